(** Summation: the error of a sum of products in any order, with or without fused multiply-add. *)
From Coq Require Export List Permutation.
From Isotone Require Export Arithmetic.

(** A sum has terms of two kinds: numbers, such as a bias, and products of a weight and a unit. *)
Inductive term := Number (k : nat) | Times (k : nat).

(** An order of summation: any tree. A product is rounded before it is added, or it is fused. *)
Inductive order :=
| Leaf (t : term)
| Add (s t : order)
| Fused (s : order) (k : nat).

Fixpoint leaves (o : order) : list term :=
  match o with
  | Leaf t => t :: nil
  | Add s t => leaves s ++ leaves t
  | Fused s k => leaves s ++ Times k :: nil
  end.

Section Sum.
  Variables (A : arithmetic) (b' w h : vec).

  (** What a machine computes. *)
  Fixpoint evaluate (o : order) : R :=
    match o with
    | Leaf (Number k) => b' k
    | Leaf (Times k) => fl A (w k * h k)
    | Add s t => fl A (evaluate s + evaluate t)
    | Fused s k => fl A (evaluate s + w k * h k)
    end.

  Variable b : vec.

  Definition value (t : term) : R := match t with Number k => b k | Times k => w k * h k end.
  Definition total (f : term -> R) (l : list term) : R := fold_right (fun t s => f t + s) 0 l.

  Lemma total_app f l m : total f (l ++ m) = total f l + total f m.
  Proof. induction l as [|t l IH]; simpl; [lra|rewrite IH; lra]. Qed.

  Lemma total_permuted f l m : Permutation l m -> total f l = total f m.
  Proof. induction 1; simpl; lra. Qed.

  Lemma total_abs_nonneg l : 0 <= total (fun t => Rabs (value t)) l.
  Proof.
    induction l as [|t l IH]; simpl; [lra|]. pose proof (Rabs_pos (value t)); lra.
  Qed.

  Lemma total_abs l : Rabs (total value l) <= total (fun t => Rabs (value t)) l.
  Proof.
    induction l as [|t l IH]; simpl; [rewrite Rabs_R0; lra|].
    eapply Rle_trans; [apply Rabs_triang|lra].
  Qed.

  Lemma leaves_positive o : (1 <= length (leaves o))%nat.
  Proof. induction o; simpl; rewrite ?app_length; simpl; lia. Qed.

  Local Notation u := (unit A).
  Local Notation eta := (tiny A / 4).
  Definition grown (n : nat) : R := (1 + unit A) ^ n.

  Lemma grown_ge_1 n : 1 <= grown n.
  Proof. apply pow_R1_Rle. pose proof (unit_nonneg A); lra. Qed.

  Lemma grown_le m n : (m <= n)%nat -> grown m <= grown n.
  Proof. intros H. apply Rle_pow; [pose proof (unit_nonneg A); lra|easy]. Qed.

  Lemma grown_S n : grown (S n) = (1 + u) * grown n.
  Proof. easy. Qed.

  (** Rounding once more what is already off by d. *)
  Lemma fl_near x y s : Rabs y <= s -> Rabs (fl A x - y) <= (1 + u) * Rabs (x - y) + u * s + eta.
  Proof.
    intros S. pose proof (fl_error A x) as H. pose proof (unit_nonneg A) as U.
    assert (Rabs x <= Rabs (x - y) + Rabs y).
    { replace x with (x - y + y) at 1 by ring. apply Rabs_triang. }
    assert (Rabs (fl A x - y) <= Rabs (fl A x - x) + Rabs (x - y)).
    { replace (fl A x - y) with (fl A x - x + (x - y)) by ring. apply Rabs_triang. }
    assert (u * Rabs x <= u * (Rabs (x - y) + s)) by (apply Rmult_le_compat_l; lra).
    lra.
  Qed.

  (** How often numbers were rounded before the sum began, one time that a leaf has free aside. *)
  Variable before : nat.
  Hypothesis numbers_near : forall k,
    Rabs (b' k - b k) <= (grown (1 + before) - 1) * Rabs (b k) + grown (1 + before) * eta.

  Definition error_of (n : nat) (size : R) : R :=
    (grown (n + before) - 1) * size + (2 * INR n - 1) * grown (n + before) * eta.

  Lemma error_of_S n size :
    (1 <= n)%nat -> 0 <= size ->
    (1 + u) * error_of n size + u * size + eta <= error_of (S n) size.
  Proof.
    intros N P. unfold error_of. rewrite S_INR. simpl (S n + before)%nat. rewrite grown_S.
    pose proof (grown_ge_1 (n + before)) as G. pose proof (unit_nonneg A) as U.
    pose proof (tiny_nonneg A) as T.
    assert (1 <= (1 + u) * grown (n + before)).
    { rewrite <- grown_S. apply grown_ge_1. }
    assert (eta * 1 <= eta * (2 * ((1 + u) * grown (n + before)))) by (apply Rmult_le_compat_l; lra).
    lra.
  Qed.

  Lemma error_of_le m n size : (1 <= m <= n)%nat -> 0 <= size -> error_of m size <= error_of n size.
  Proof.
    intros [M N] P. induction N as [|n N IH]; [lra|].
    eapply Rle_trans; [exact IH|]. eapply Rle_trans; [|apply error_of_S; [lia|easy]].
    assert (0 <= error_of n size).
    { unfold error_of. pose proof (grown_ge_1 (n + before)). pose proof (tiny_nonneg A).
      assert (1 <= INR n) by (apply (le_INR 1); lia).
      apply Rplus_le_le_0_compat; repeat apply Rmult_le_pos; lra. }
    pose proof (unit_nonneg A). pose proof (tiny_nonneg A).
    assert (0 <= u * error_of n size) by now apply Rmult_le_pos.
    assert (0 <= u * size) by now apply Rmult_le_pos. lra.
  Qed.

  Lemma error_of_plus l m s t :
    (1 <= l)%nat -> (1 <= m)%nat -> 0 <= s -> 0 <= t ->
    (1 + u) * (error_of l s + error_of m t) + u * (s + t) + eta <= error_of (l + m) (s + t).
  Proof.
    intros L M P T. pose proof (unit_nonneg A) as U.
    pose proof (error_of_S l s L P) as H1. pose proof (error_of_S m t M T) as H2.
    unfold error_of in *. rewrite plus_INR. rewrite S_INR in *.
    pose proof (tiny_nonneg A) as E.
    assert (A1 := grown_le (l + before) (l + m + before - 1) ltac:(lia)).
    assert (A2 := grown_le (m + before) (l + m + before - 1) ltac:(lia)).
    replace (l + m + before)%nat with (S (l + m + before - 1)) by lia.
    simpl plus in H1, H2. rewrite grown_S in *.
    set (g := grown (l + m + before - 1)) in *.
    set (g1 := grown (l + before)) in *. set (g2 := grown (m + before)) in *.
    assert (G1 : 1 <= g1) by apply grown_ge_1. assert (G2 : 1 <= g2) by apply grown_ge_1.
    assert (B1 : (1 + u) * g1 * s <= (1 + u) * g * s) by (apply Rmult_le_compat_r; [easy|]; apply Rmult_le_compat_l; lra).
    assert (B2 : (1 + u) * g2 * t <= (1 + u) * g * t) by (apply Rmult_le_compat_r; [easy|]; apply Rmult_le_compat_l; lra).
    assert (1 <= INR l) by (apply (le_INR 1); lia). assert (1 <= INR m) by (apply (le_INR 1); lia).
    assert (C1 : (1 + u) * g1 * ((2 * INR l - 1) * eta) <= (1 + u) * g * ((2 * INR l - 1) * eta)).
    { apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|]; apply Rmult_le_compat_l; lra. }
    assert (C2 : (1 + u) * g2 * ((2 * INR m - 1) * eta) <= (1 + u) * g * ((2 * INR m - 1) * eta)).
    { apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|]; apply Rmult_le_compat_l; lra. }
    assert (C3 : 1 * eta <= (1 + u) * g * eta).
    { apply Rmult_le_compat_r; [lra|]. rewrite <- (Rmult_1_r 1). apply Rmult_le_compat; lra. }
    lra.
  Qed.

  (** Induction over the tree. *)
  Lemma evaluate_error o :
    Rabs (evaluate o - total value (leaves o)) <=
    error_of (length (leaves o)) (total (fun t => Rabs (value t)) (leaves o)).
  Proof.
    pose proof (unit_nonneg A) as U. pose proof (tiny_nonneg A) as T.
    induction o as [[k|k]|o1 IH1 o2 IH2|o IH k]; simpl.
    - rewrite Rplus_0_r, Rplus_0_r. unfold error_of. simpl (INR 1).
      eapply Rle_trans; [apply numbers_near|]. lra.
    - rewrite Rplus_0_r, Rplus_0_r. pose proof (fl_error A (w k * h k)) as H.
      eapply Rle_trans; [exact H|]. unfold error_of. simpl (INR 1).
      pose proof (grown_le 1 (1 + before) ltac:(lia)) as G. unfold grown at 1 in G. simpl in G.
      pose proof (grown_ge_1 (1 + before)).
      apply Rplus_le_compat.
      + apply Rmult_le_compat_r; [apply Rabs_pos|simpl in *; lra].
      + replace eta with (1 * eta) at 1 by ring. apply Rmult_le_compat_r; lra.
    - rewrite !total_app, app_length.
      eapply Rle_trans; [|apply error_of_plus; try apply leaves_positive; apply total_abs_nonneg].
      eapply Rle_trans; [apply fl_near|].
      + eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat; apply total_abs.
      + apply Rplus_le_compat_r, Rplus_le_compat_r, Rmult_le_compat_l; [lra|].
        replace (evaluate o1 + evaluate o2 - (total value (leaves o1) + total value (leaves o2)))
          with ((evaluate o1 - total value (leaves o1)) + (evaluate o2 - total value (leaves o2))) by ring.
        eapply Rle_trans; [apply Rabs_triang|lra].
    - rewrite !total_app, app_length. simpl. rewrite !Rplus_0_r, Nat.add_1_r.
      pose proof (total_abs_nonneg (leaves o)) as N. pose proof (leaves_positive o) as L.
      pose proof (Rabs_pos (w k * h k)) as W.
      eapply Rle_trans; [|apply error_of_S; [easy|lra]].
      eapply Rle_trans; [apply fl_near|].
      + eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat_r, total_abs.
      + apply Rplus_le_compat_r, Rplus_le_compat_r, Rmult_le_compat_l; [lra|].
        replace (evaluate o + w k * h k - (total value (leaves o) + w k * h k))
          with (evaluate o - total value (leaves o)) by ring.
        eapply Rle_trans; [exact IH|]. unfold error_of.
        apply Rplus_le_compat_r, Rmult_le_compat_l; [|lra].
        pose proof (grown_ge_1 (length (leaves o) + before)); lra.
  Qed.
End Sum.

(** gamma_n = n u / (1 - n u), as `isotone.rounding.gamma` has it. *)
Definition gamma (A : arithmetic) (n : nat) : R := INR n * unit A / (1 - INR n * unit A).

(** n is small enough for gamma; `isotone.rounding.gamma` is infinite elsewhere. *)
Definition few (A : arithmetic) (n : nat) : Prop := INR n * unit A <= / 2.

Lemma few_le A m n : (m <= n)%nat -> few A n -> few A m.
Proof.
  intros L F. eapply Rle_trans; [|exact F]. apply Rmult_le_compat_r; [apply unit_nonneg|].
  now apply le_INR.
Qed.

Lemma grown_gamma A n : few A n -> grown A n <= / (1 - INR n * unit A).
Proof.
  intros F. pose proof (unit_nonneg A) as U.
  induction n as [|n IH].
  - unfold grown. simpl. rewrite Rmult_0_l, Rminus_0_r, Rinv_1. lra.
  - specialize (IH (few_le A n (S n) ltac:(lia) F)). rewrite grown_S.
    unfold few in F. rewrite S_INR in *. assert (0 <= INR n) by apply pos_INR.
    assert (0 <= INR n * unit A) by now apply Rmult_le_pos.
    apply Rmult_le_compat_l with (r := 1 + unit A) in IH; [|lra].
    eapply Rle_trans; [exact IH|].
    apply Rmult_le_reg_r with (1 - INR n * unit A); [lra|].
    rewrite Rmult_assoc, Rinv_l by lra.
    apply Rmult_le_reg_l with (1 - (INR n + 1) * unit A); [lra|].
    rewrite <- !Rmult_assoc, Rinv_r by lra.
    assert (0 <= unit A * unit A) by now apply Rmult_le_pos.
    assert (0 <= INR n * (unit A * unit A)) by now apply Rmult_le_pos.
    lra.
Qed.

Lemma gamma_nonneg A n : few A n -> 0 <= gamma A n.
Proof.
  intros F. unfold gamma. pose proof (unit_nonneg A). pose proof (pos_INR n).
  apply Rmult_le_pos; [now apply Rmult_le_pos|]. left; apply Rinv_0_lt_compat. unfold few in F; lra.
Qed.

(** Rounding adds to a sum of n terms, in whatever order, at most this. *)
Definition fresh (A : arithmetic) (n : nat) (size : R) : R := gamma A n * size + INR n * tiny A.

Lemma error_of_fresh A before n size :
  few A (n + before) -> 0 <= size -> error_of A before n size <= fresh A (n + before) size.
Proof.
  intros F P. pose proof (grown_gamma A _ F) as G. pose proof (unit_nonneg A) as U.
  pose proof (tiny_nonneg A) as T. pose proof (grown_ge_1 A (n + before)) as G1.
  unfold error_of, fresh, gamma. set (m := INR (n + before)) in *.
  assert (M : m * unit A <= / 2) by exact F.
  assert (M0 : 0 <= m) by apply pos_INR. assert (N : INR n <= m) by (apply le_INR; lia).
  assert (0 <= m * unit A) by now apply Rmult_le_pos.
  assert (I : / (1 - m * unit A) - 1 = m * unit A / (1 - m * unit A)) by (field; lra).
  apply Rplus_le_compat.
  - apply Rmult_le_compat_r; lra.
  - assert (grown A (n + before) <= 2).
    { eapply Rle_trans; [exact G|]. replace 2 with (/ / 2) by field. apply Rinv_le; lra. }
    assert (N0 : 0 <= INR n) by apply pos_INR.
    destruct n as [|n]; [simpl (INR 0)|].
    + assert (0 <= grown A (0 + before) * (tiny A / 4)) by (apply Rmult_le_pos; lra).
      assert (0 <= m * tiny A) by (apply Rmult_le_pos; lra). lra.
    + assert (1 <= INR (S n)) by (apply (le_INR 1); lia).
      apply Rle_trans with ((2 * m) * 2 * (tiny A / 4)); [|lra].
      apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat; lra.
Qed.

(** The forward error bound. [b'] are computed numbers near [b]; exact ones need no [before]. *)
Theorem sum_error A b b' w h before o :
  (forall k, Rabs (b' k - b k) <=
     (grown A (1 + before) - 1) * Rabs (b k) + grown A (1 + before) * (tiny A / 4)) ->
  few A (length (leaves o) + before) ->
  Rabs (evaluate A b' w h o - total (value w h b) (leaves o)) <=
  fresh A (length (leaves o) + before) (total (fun t => Rabs (value w h b t)) (leaves o)).
Proof.
  intros B F. eapply Rle_trans; [apply evaluate_error; eassumption|].
  apply error_of_fresh; [easy|apply total_abs_nonneg].
Qed.

Lemma fresh_le A m n s t :
  few A n -> (m <= n)%nat -> 0 <= s <= t -> fresh A m s <= fresh A n t.
Proof.
  intros F L [S T]. pose proof (unit_nonneg A) as U. unfold few in F.
  assert (M : INR m <= INR n) by now apply le_INR. pose proof (pos_INR m).
  assert (0 <= INR m * unit A) by now apply Rmult_le_pos.
  assert (K : INR m * unit A <= INR n * unit A) by now apply Rmult_le_compat_r.
  unfold fresh, gamma. apply Rplus_le_compat.
  - apply Rmult_le_compat; [|easy| |easy].
    + apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra].
    + apply Rmult_le_compat; [lra|left; apply Rinv_0_lt_compat; lra|easy|apply Rinv_le; lra].
  - apply Rmult_le_compat_r; [apply tiny_nonneg|easy].
Qed.

(** The terms of a dot product, with a number to which it is added or without. *)
Definition products (n : nat) : list term := map Times (seq 0 n).
Definition dot (o : order) (n : nat) : Prop := Permutation (leaves o) (Number 0 :: products n).
Definition weighted (o : order) (n : nat) : Prop := Permutation (leaves o) (products n).

Lemma total_products f n : total f (products n) = sum n (fun k => f (Times k)).
Proof.
  unfold products. induction n as [|n IH]; [easy|].
  rewrite seq_S, map_app, total_app, IH. simpl. lra.
Qed.

Lemma products_length n : length (products n) = n.
Proof. unfold products. now rewrite map_length, seq_length. Qed.

(** b + w . h as computed, for any order. *)
Theorem dot_error A b w h n o :
  dot o n -> few A (n + 1) ->
  Rabs (evaluate A (fun _ => b) w h o - (b + sum n (fun k => w k * h k))) <=
  fresh A (n + 1) (Rabs b + sum n (fun k => Rabs (w k) * Rabs (h k))).
Proof.
  intros D F. pose proof (Permutation_length D) as L. simpl in L. rewrite products_length in L.
  assert (H := sum_error A (fun _ => b) (fun _ => b) w h 0 o).
  rewrite !Nat.add_0_r, L in H.
  replace (S n) with (n + 1)%nat in H by lia.
  rewrite !(total_permuted _ _ _ D) in H. simpl in H. rewrite !total_products in H. simpl in H.
  rewrite (sum_ext n (fun k => Rabs (w k * h k)) (fun k => Rabs (w k) * Rabs (h k))) in H
    by (intros; apply Rabs_mult).
  apply H; [|easy]. intros k. rewrite Rminus_diag_eq, Rabs_R0 by easy.
  pose proof (grown_ge_1 A 1). pose proof (tiny_nonneg A). pose proof (Rabs_pos b).
  apply Rplus_le_le_0_compat; apply Rmult_le_pos; simpl in *; lra.
Qed.

(** A weighted sum of n numbers; one rounding more is charged than there can be. *)
Theorem weighted_error A w h n o :
  weighted o n -> few A (n + 1) ->
  Rabs (evaluate A (fun _ => 0) w h o - sum n (fun k => w k * h k)) <=
  fresh A (n + 1) (sum n (fun k => Rabs (w k) * Rabs (h k))).
Proof.
  intros D F. pose proof (Permutation_length D) as L. rewrite products_length in L.
  assert (H := sum_error A (fun _ => 0) (fun _ => 0) w h 0 o).
  rewrite !Nat.add_0_r, L in H.
  rewrite !(total_permuted _ _ _ D) in H. rewrite !total_products in H. simpl in H.
  rewrite (sum_ext n (fun k => Rabs (w k * h k)) (fun k => Rabs (w k) * Rabs (h k))) in H
    by (intros; apply Rabs_mult).
  eapply Rle_trans; [apply H|apply fresh_le; try easy; try lia].
  - intros k. rewrite Rminus_0_r, Rabs_R0, Rmult_0_r, Rplus_0_l.
    pose proof (grown_ge_1 A 1). pose proof (tiny_nonneg A). apply Rmult_le_pos; simpl in *; lra.
  - apply (few_le A n (n + 1)); [lia|easy].
  - split; [|lra]. apply sum_nonneg; intros. apply Rmult_le_pos; apply Rabs_pos.
Qed.
