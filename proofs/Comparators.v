(** Comparators: GroupSort as any network of comparators is a permutation and 1-Lipschitz. *)
From Coq Require Export List.
From Isotone Require Export Convexity.

(** A comparator puts the smaller of two units first. *)
Definition compare (c : nat * nat) (h : vec) : vec := fun k =>
  if k =? fst c then Rmin (h (fst c)) (h (snd c))
  else if k =? snd c then Rmax (h (fst c)) (h (snd c))
  else h k.

Definition sort (cs : list (nat * nat)) (h : vec) : vec := fold_left (fun h c => compare c h) cs h.

Definition joins (n : nat) (c : nat * nat) : Prop :=
  (fst c < n)%nat /\ (snd c < n)%nat /\ fst c <> snd c.

Definition network (n : nat) (cs : list (nat * nat)) : Prop := Forall (joins n) cs.

Lemma compare_at c h k :
  fst c <> snd c ->
  (k = fst c /\ compare c h k = Rmin (h (fst c)) (h (snd c))) \/
  (k = snd c /\ compare c h k = Rmax (h (fst c)) (h (snd c))) \/
  (k <> fst c /\ k <> snd c /\ compare c h k = h k).
Proof.
  intros D. unfold compare. destruct (Nat.eqb_spec k (fst c)); [auto|].
  destruct (Nat.eqb_spec k (snd c)); auto.
Qed.

Lemma compare_first c h : compare c h (fst c) = Rmin (h (fst c)) (h (snd c)).
Proof. unfold compare. now rewrite Nat.eqb_refl. Qed.

Lemma compare_second c h :
  fst c <> snd c -> compare c h (snd c) = Rmax (h (fst c)) (h (snd c)).
Proof.
  intros D. unfold compare. destruct (Nat.eqb_spec (snd c) (fst c)); [congruence|].
  now rewrite Nat.eqb_refl.
Qed.

Lemma compare_other c h k : k <> fst c -> k <> snd c -> compare c h k = h k.
Proof.
  intros A B. unfold compare.
  destruct (Nat.eqb_spec k (fst c)), (Nat.eqb_spec k (snd c)); congruence.
Qed.

(** Two pairs, each put in order: no convex function of the differences grows. *)
Lemma pair_convex phi a b c d :
  convex phi ->
  phi (Rmin a b - Rmin c d) + phi (Rmax a b - Rmax c d) <= phi (a - c) + phi (b - d).
Proof.
  intros C.
  destruct (Rle_dec a b) as [A|A], (Rle_dec c d) as [B|B]; unfold Rmin, Rmax;
    destruct (Rle_dec a b), (Rle_dec c d); try contradiction; try lra.
  - apply (convex_outer phi); auto; lra.
  - rewrite (Rplus_comm (phi (a - c))). apply (convex_outer phi); auto; lra.
Qed.

Theorem sort_convex phi n cs h h' :
  convex phi -> network n cs ->
  sum n (fun k => phi (sort cs h k - sort cs h' k)) <= sum n (fun k => phi (h k - h' k)).
Proof.
  intros C N. revert h h'. induction N as [|c cs [I [J D]] N IH]; intros h h'; simpl; [lra|].
  eapply Rle_trans; [apply IH|].
  assert (K := sum_two n (fun k => phi (compare c h k - compare c h' k))
                 (fun k => phi (h k - h' k)) (fst c) (snd c) I J D).
  pose proof (pair_convex phi (h (fst c)) (h (snd c)) (h' (fst c)) (h' (snd c)) C) as P.
  simpl in K. rewrite !compare_first, !compare_second in K by easy.
  assert (forall k, (k < n)%nat -> k <> fst c -> k <> snd c ->
          phi (compare c h k - compare c h' k) = phi (h k - h' k)) as H.
  { intros k _ A B. now rewrite !compare_other. }
  specialize (K H). lra.
Qed.

(** The p-norm of n units. *)
Definition norm (p : R) (n : nat) (h : vec) : R := power (/ p) (sum n (fun k => power p (h k))).

Theorem sort_lipschitz p n cs h h' :
  1 <= p -> network n cs ->
  norm p n (fun k => sort cs h k - sort cs h' k) <= norm p n (fun k => h k - h' k).
Proof.
  intros P N. apply power_le.
  - left; apply Rinv_0_lt_compat; lra.
  - split; [apply sum_nonneg; intros; apply power_nonneg|].
    apply sort_convex; [now apply convex_power|easy].
Qed.

Theorem sort_lipschitz_one n cs h h' :
  network n cs ->
  sum n (fun k => Rabs (sort cs h k - sort cs h' k)) <= sum n (fun k => Rabs (h k - h' k)).
Proof. apply sort_convex, convex_abs. Qed.

Lemma pair_inf a b c d m :
  Rabs (a - c) <= m -> Rabs (b - d) <= m ->
  Rabs (Rmin a b - Rmin c d) <= m /\ Rabs (Rmax a b - Rmax c d) <= m.
Proof.
  intros A B. apply Rabs_le_inv in A. apply Rabs_le_inv in B.
  unfold Rmin, Rmax. destruct (Rle_dec a b), (Rle_dec c d); split; apply Rabs_le; lra.
Qed.

(** The infinity-norm: if no unit moves by more than m, no sorted unit does. *)
Theorem sort_lipschitz_inf n cs h h' m :
  network n cs -> (forall k, (k < n)%nat -> Rabs (h k - h' k) <= m) ->
  forall k, (k < n)%nat -> Rabs (sort cs h k - sort cs h' k) <= m.
Proof.
  intros N. revert h h'. induction N as [|c cs [I [J D]] N IH]; intros h h' H; simpl; [easy|].
  apply IH. intros k K. destruct (pair_inf _ _ _ _ m (H _ I) (H _ J)) as [H1 H2].
  destruct (Nat.eq_dec k (fst c)) as [->|A]; [now rewrite !compare_first|].
  destruct (Nat.eq_dec k (snd c)) as [->|B]; [now rewrite !compare_second|].
  rewrite !compare_other by easy. now apply H.
Qed.

Corollary sort_ext n cs h h' :
  network n cs -> (forall k, (k < n)%nat -> h k = h' k) ->
  forall k, (k < n)%nat -> sort cs h k = sort cs h' k.
Proof.
  intros N H k K. apply Rminus_diag_uniq, Rabs_eq_R0, Rle_antisym; [|apply Rabs_pos].
  apply (sort_lipschitz_inf n); auto. intros i I. rewrite H, Rminus_diag_eq, Rabs_R0; auto; lra.
Qed.

(** A permutation of the first n numbers. *)
Definition permutation (n : nat) (f : nat -> nat) : Prop :=
  (forall k, (k < n)%nat -> (f k < n)%nat) /\
  (forall i j, (i < n)%nat -> (j < n)%nat -> f i = f j -> i = j).

Lemma compare_permutes n c h :
  joins n c -> exists f, permutation n f /\ forall k, (k < n)%nat -> compare c h k = h (f k).
Proof.
  intros [I [J D]]. destruct (Rle_dec (h (fst c)) (h (snd c))) as [L|L].
  - exists (fun k => k). split; [split; auto|]. intros k K.
    destruct (compare_at c h k D) as [[-> ->]|[[-> ->]|[_ [_ ->]]]]; [| |easy].
    + now rewrite Rmin_left.
    + now rewrite Rmax_right.
  - exists (fun k => if k =? fst c then snd c else if k =? snd c then fst c else k).
    split; [split|].
    + intros k K. destruct (k =? fst c), (k =? snd c); easy.
    + intros i j _ _. destruct (Nat.eqb_spec i (fst c)), (Nat.eqb_spec i (snd c)),
        (Nat.eqb_spec j (fst c)), (Nat.eqb_spec j (snd c)); congruence.
    + intros k K. destruct (Nat.eqb_spec k (fst c)) as [->|A].
      * rewrite compare_first. apply Rmin_right; lra.
      * destruct (Nat.eqb_spec k (snd c)) as [->|B]; [|now apply compare_other].
        rewrite compare_second by easy. apply Rmax_left; lra.
Qed.

Theorem sort_permutes n cs h :
  network n cs -> exists f, permutation n f /\ forall k, (k < n)%nat -> sort cs h k = h (f k).
Proof.
  intros N. revert h. induction N as [|c cs B N IH]; intros h; simpl.
  { exists (fun k => k). split; [split|]; auto. }
  destruct (IH (compare c h)) as [f [[F1 F2] F]]. destruct (compare_permutes n c h B) as [g [[G1 G2] G]].
  exists (fun k => g (f k)). split; [split|]; auto.
  intros k K. now rewrite F, G; auto.
Qed.

(** Hence the sizes of the units stay what they are. *)
Lemma sort_size_inf n cs h m :
  network n cs -> (forall k, (k < n)%nat -> Rabs (h k) <= m) ->
  forall k, (k < n)%nat -> Rabs (sort cs h k) <= m.
Proof.
  intros N H k K. destruct (sort_permutes n cs h N) as [f [[F1 _] F]]. rewrite F; auto.
Qed.

Lemma sort_size_one n cs h :
  network n cs -> sum n (fun k => Rabs (sort cs h k)) <= sum n (fun k => Rabs (h k)).
Proof.
  intros N. revert h. induction N as [|c cs [I [J D]] N IH]; intros h; simpl; [lra|].
  eapply Rle_trans; [apply IH|].
  assert (K := sum_two n (fun k => Rabs (compare c h k)) (fun k => Rabs (h k)) (fst c) (snd c) I J D).
  simpl in K. rewrite compare_first, compare_second in K by easy.
  assert (Rabs (Rmin (h (fst c)) (h (snd c))) + Rabs (Rmax (h (fst c)) (h (snd c))) =
          Rabs (h (fst c)) + Rabs (h (snd c))).
  { unfold Rmin, Rmax. destruct (Rle_dec (h (fst c)) (h (snd c))); lra. }
  assert (forall k, (k < n)%nat -> k <> fst c -> k <> snd c -> Rabs (compare c h k) = Rabs (h k)).
  { intros k _ A B. now rewrite compare_other. }
  specialize (K H0). lra.
Qed.
