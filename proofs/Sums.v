(** Sums: finite sums and maxima of real numbers, with which everything else is stated. *)
From Coq Require Export Reals Lra Lia Arith.
From Flocq Require Export Core Relative.
Open Scope R_scope.

(** The units of a layer, of which the first n count. *)
Definition vec := nat -> R.

(** f 0 + ... + f (n - 1) *)
Fixpoint sum (n : nat) (f : nat -> R) : R :=
  match n with
  | O => 0
  | S m => sum m f + f m
  end.

(** max (0, f 0, ..., f (n - 1)) *)
Fixpoint largest (n : nat) (f : nat -> R) : R :=
  match n with
  | O => 0
  | S m => Rmax (largest m f) (f m)
  end.

Lemma sum_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> sum n f = sum n g.
Proof.
  induction n as [|n IH]; intros H; simpl; [easy|].
  rewrite IH, H; auto with arith.
Qed.

Lemma sum_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> sum n f <= sum n g.
Proof.
  induction n as [|n IH]; intros H; simpl; [lra|].
  assert (sum n f <= sum n g) by (apply IH; auto with arith).
  specialize (H n (Nat.lt_succ_diag_r n)); lra.
Qed.

Lemma sum_zero n f : (forall i, (i < n)%nat -> f i = 0) -> sum n f = 0.
Proof.
  induction n as [|n IH]; intros H; simpl; [easy|].
  rewrite IH, H; auto with arith; lra.
Qed.

Lemma sum_nonneg n f : (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= sum n f.
Proof.
  intros H. rewrite <- (sum_zero n (fun _ => 0)) by easy. now apply sum_le.
Qed.

Lemma sum_plus n f g : sum n (fun i => f i + g i) = sum n f + sum n g.
Proof. induction n as [|n IH]; simpl; [lra|rewrite IH; lra]. Qed.

Lemma sum_minus n f g : sum n (fun i => f i - g i) = sum n f - sum n g.
Proof. induction n as [|n IH]; simpl; [lra|rewrite IH; lra]. Qed.

Lemma sum_scale n c f : sum n (fun i => c * f i) = c * sum n f.
Proof. induction n as [|n IH]; simpl; [lra|rewrite IH; lra]. Qed.

Lemma sum_scale_r n c f : sum n (fun i => f i * c) = sum n f * c.
Proof. induction n as [|n IH]; simpl; [lra|rewrite IH; lra]. Qed.

Lemma sum_const n c : sum n (fun _ => c) = INR n * c.
Proof. induction n as [|n IH]; [simpl; lra|]. rewrite S_INR; simpl; rewrite IH; lra. Qed.

Lemma sum_abs n f : Rabs (sum n f) <= sum n (fun i => Rabs (f i)).
Proof.
  induction n as [|n IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|lra].
Qed.

Lemma sum_swap m n f :
  sum m (fun i => sum n (fun j => f i j)) = sum n (fun j => sum m (fun i => f i j)).
Proof.
  induction m as [|m IH]; simpl; [now rewrite sum_zero|].
  now rewrite sum_plus, IH.
Qed.

Lemma term_le_sum n f i :
  (forall k, (k < n)%nat -> 0 <= f k) -> (i < n)%nat -> f i <= sum n f.
Proof.
  induction n as [|n IH]; intros H L; simpl; [lia|].
  assert (0 <= sum n f) by (apply sum_nonneg; auto with arith).
  assert (0 <= f n) by auto with arith.
  destruct (Nat.eq_dec i n) as [->|D]; [lra|].
  assert (f i <= sum n f) by (apply IH; auto with arith; lia). lra.
Qed.

(** The sum over a single index. *)
Lemma sum_single n f i :
  (i < n)%nat -> (forall k, (k < n)%nat -> k <> i -> f k = 0) -> sum n f = f i.
Proof.
  induction n as [|n IH]; intros L H; simpl; [lia|].
  destruct (Nat.eq_dec i n) as [->|D].
  - rewrite sum_zero; [lra|intros k K; apply H; lia].
  - rewrite IH, (H n); try lia; [lra|intros k K; apply H; lia].
Qed.

(** Two sums that differ in two terms only. *)
Lemma sum_two n f g i j :
  (i < n)%nat -> (j < n)%nat -> i <> j ->
  (forall k, (k < n)%nat -> k <> i -> k <> j -> f k = g k) ->
  sum n f - sum n g = (f i - g i) + (f j - g j).
Proof.
  intros I J D H. rewrite <- sum_minus.
  rewrite (sum_ext n _ (fun k => (if Nat.eq_dec k i then f i - g i else 0) +
                                 (if Nat.eq_dec k j then f j - g j else 0))).
  - rewrite sum_plus, (sum_single n _ i), (sum_single n _ j); auto.
    + destruct (Nat.eq_dec i i), (Nat.eq_dec j j); congruence.
    + intros k _ K. now destruct (Nat.eq_dec k j).
    + intros k _ K. now destruct (Nat.eq_dec k i).
  - intros k K. destruct (Nat.eq_dec k i), (Nat.eq_dec k j); subst; try congruence; try lra.
    rewrite H by auto; lra.
Qed.

Lemma largest_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> largest n f = largest n g.
Proof.
  induction n as [|n IH]; intros H; simpl; [easy|].
  rewrite IH, H; auto with arith.
Qed.

Lemma largest_nonneg n f : 0 <= largest n f.
Proof.
  induction n as [|n IH]; simpl; [lra|]. eapply Rle_trans; [exact IH|apply Rmax_l].
Qed.

Lemma le_largest n f i : (i < n)%nat -> f i <= largest n f.
Proof.
  induction n as [|n IH]; intros L; simpl; [lia|].
  destruct (Nat.eq_dec i n) as [->|D]; [apply Rmax_r|].
  eapply Rle_trans; [apply IH; lia|apply Rmax_l].
Qed.

Lemma largest_le n f c : 0 <= c -> (forall i, (i < n)%nat -> f i <= c) -> largest n f <= c.
Proof.
  induction n as [|n IH]; intros C H; simpl; [easy|].
  apply Rmax_lub; auto with arith.
Qed.
