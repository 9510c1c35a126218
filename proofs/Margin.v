(** Margin: clamp, snap, and (lambda - L) q >= 2 E put computed scores in order. *)
From Isotone Require Export Residual.

(** What enters the network instead of x: clamped to [-clip, clip] and rounded to a multiple of
    the grid q. *)
Definition clamp (clip x : R) : R := Rmax (- clip) (Rmin clip x).
Definition snap (q x : R) : R := IZR (ZnearestE (x / q)) * q.

(** A monotone map of numbers to cells that are at least q apart. *)
Definition cells (q : R) (h : R -> R) : Prop :=
  (forall x y, x <= y -> h x <= h y) /\ (forall x y, h x < h y -> q <= h y - h x).

Lemma clamp_monotone clip x y : x <= y -> clamp clip x <= clamp clip y.
Proof. intros H. apply Rle_max_compat_l, Rle_min_compat_l, H. Qed.

Lemma snap_monotone q x y : 0 < q -> x <= y -> snap q x <= snap q y.
Proof.
  intros Q H. apply Rmult_le_compat_r; [lra|]. apply IZR_le, Zrnd_le; [apply valid_rnd_N|].
  apply Rmult_le_compat_r; [|easy]. left; now apply Rinv_0_lt_compat.
Qed.

Lemma snap_cells q clip : 0 < q -> cells q (fun x => snap q (clamp clip x)).
Proof.
  intros Q; split; intros x y.
  - intros H. apply snap_monotone, clamp_monotone; easy.
  - unfold snap. intros H. apply Rmult_lt_reg_r in H; [|easy]. apply lt_IZR in H.
    assert (1 <= IZR (ZnearestE (clamp clip y / q)) - IZR (ZnearestE (clamp clip x / q))).
    { rewrite <- minus_IZR. apply IZR_le. lia. }
    apply Rmult_le_compat_r with (r := q) in H0; lra.
Qed.

(** Rounding cells once more, as a cast to float32 does, leaves cells, if the rounding is
    monotone and keeps multiples of q. *)
Lemma cells_compose q h k :
  cells q h -> (forall x y, x <= y -> k x <= k y) ->
  (forall x, exists m : Z, k (h x) = IZR m * q) -> 0 < q -> cells q (fun x => k (h x)).
Proof.
  intros [M _] K Z Q; split; intros x y H.
  - apply K, M, H.
  - destruct (Z x) as [a A], (Z y) as [b B]. rewrite A, B in *.
    apply Rmult_lt_reg_r in H; [|easy]. apply lt_IZR in H.
    assert (1 <= IZR b - IZR a) by (rewrite <- minus_IZR; apply IZR_le; lia).
    apply Rmult_le_compat_r with (r := q) in H0; lra.
Qed.

(** Rows that are equal in every feature, or whose exact scores are at least 2 E apart. *)
Lemma equal_or_apart rows n L g r s q E (enter : nat -> R -> R) x y :
  slopes_within rows n L g ->
  (forall i, (i < n)%nat -> cells q (enter i)) -> 0 < q -> 0 <= E ->
  (forall i, directed n s i -> 2 * E <= (sign (s i) * r i - L i) * q) ->
  let u i := enter i (x i) in
  let v i := enter i (y i) in
  rows u -> rows v -> in_order n s x y ->
  (forall i, (i < n)%nat -> u i = v i) \/ score n g r u + 2 * E <= score n g r v.
Proof.
  intros G C Q P M u v U V O.
  assert (O' : in_order n s u v).
  { intros i I. apply moves_compose; [apply C, I|apply O, I]. }
  assert (N : forall i, (i < n)%nat -> 0 <= (sign (s i) * r i - L i) * Rabs (v i - u i)).
  { intros i I. eapply free_gain; eauto. intros D. specialize (M i D).
    apply Rmult_le_reg_r with q; lra. }
  pose proof (gain_in_order _ _ _ _ r _ _ _ G U V O') as K.
  assert (A : (forall i, (i < n)%nat -> u i = v i) \/ exists i, (i < n)%nat /\ u i <> v i).
  { clear -n u v. induction n as [|m IH]; [left; lia|].
    destruct IH as [H|[i [I H]]]; [|right; exists i; auto with arith].
    destruct (Req_dec (u m) (v m)) as [E|E]; [left|right; exists m; auto with arith].
    intros i I. destruct (Nat.eq_dec i m) as [->|]; [easy|apply H; lia]. }
  destruct A as [A|[i [I A]]]; [now left|right].
  enough (2 * E <= sum n (fun i => (sign (s i) * r i - L i) * Rabs (v i - u i))) by lra.
  eapply Rle_trans; [|apply term_le_sum with (i := i); [exact N|easy]]; simpl.
  assert (D : directed n s i).
  { split; [easy|]. intros F. specialize (O' i I). now rewrite F in O'. }
  assert (q <= Rabs (v i - u i)).
  { destruct (C i I) as [_ S]. unfold u, v in *.
    destruct (Rtotal_order (enter i (x i)) (enter i (y i))) as [L1|[L1|L1]]; [|contradiction|].
    - specialize (S _ _ L1). rewrite Rabs_pos_eq; lra.
    - specialize (S _ _ L1). rewrite Rabs_left1; lra. }
  specialize (M i D). eapply Rle_trans; [exact M|].
  apply Rmult_le_compat_l; [|easy]. apply Rmult_le_reg_r with q; lra.
Qed.

(** The score is computed from the first n entries of a row. *)
Definition reads (n : nat) (f : vec -> R) : Prop :=
  forall u v, (forall i, (i < n)%nat -> u i = v i) -> f u = f v.

(** The theorem of the last bit: [computed] is what a machine makes of the snapped row. *)
Theorem last_bit rows n L g r s q E (enter : nat -> R -> R) (computed : vec -> R) :
  slopes_within rows n L g ->
  (forall i, (i < n)%nat -> cells q (enter i)) -> 0 < q ->
  reads n computed ->
  (forall u, rows u -> Rabs (computed u - score n g r u) <= E) ->
  (forall i, directed n s i -> 2 * E <= (sign (s i) * r i - L i) * q) ->
  forall x y, rows (fun i => enter i (x i)) -> rows (fun i => enter i (y i)) ->
  in_order n s x y ->
  computed (fun i => enter i (x i)) <= computed (fun i => enter i (y i)).
Proof.
  intros G C Q F B M x y U V O.
  pose proof (B _ U) as BU. pose proof (B _ V) as BV.
  assert (P : 0 <= E) by (eapply Rle_trans; [apply Rabs_pos|exact BU]).
  destruct (equal_or_apart rows n L g r s q E enter x y) as [H|H]; auto.
  - right. now apply F.
  - apply Rabs_le_inv in BU. apply Rabs_le_inv in BV. lra.
Qed.

(** As in float32: the last operation rounds an exact sum F, and rounding is monotone, so that
    only errors before it count. *)
Theorem last_bit_rounded rows n L g r s q E (enter : nat -> R -> R) (F : vec -> R) (fl : R -> R) :
  slopes_within rows n L g ->
  (forall i, (i < n)%nat -> cells q (enter i)) -> 0 < q ->
  reads n F ->
  (forall u, rows u -> Rabs (F u - score n g r u) <= E) ->
  (forall a b, a <= b -> fl a <= fl b) ->
  (forall i, directed n s i -> 2 * E <= (sign (s i) * r i - L i) * q) ->
  forall x y, rows (fun i => enter i (x i)) -> rows (fun i => enter i (y i)) ->
  in_order n s x y ->
  fl (F (fun i => enter i (x i))) <= fl (F (fun i => enter i (y i))).
Proof. intros. eapply H4, last_bit; eauto. Qed.
