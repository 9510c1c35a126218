(** Elementary: logarithm, exponential and sigmoid, monotone as computed on snapped arguments. *)
From Isotone Require Export Margin Convexity Arithmetic.

(** If snapped arguments that differ have values further apart than twice the error, the computed
    function is monotone. *)
Theorem snapped_monotone (cell f f' : R -> R) E :
  (forall x y, x <= y -> cell x <= cell y) ->
  (forall x y, cell x < cell y -> f (cell x) + 2 * E <= f (cell y)) ->
  (forall x, Rabs (f' (cell x) - f (cell x)) <= E) ->
  forall x y, x <= y -> f' (cell x) <= f' (cell y).
Proof.
  intros M S B x y H. destruct (M x y H) as [L|<-]; [|lra].
  specialize (S x y L). pose proof (B x) as Bx. pose proof (B y) as By.
  apply Rabs_le_inv in Bx. apply Rabs_le_inv in By. lra.
Qed.

Local Instance positive24 : Prec_gt_0 24 := eq_refl.

(** Numbers of 24 significant bits, whatever their exponent. *)
Definition snap24 : R -> R := round radix2 (FLX_exp 24) ZnearestE.

Lemma snap24_monotone x y : x <= y -> snap24 x <= snap24 y.
Proof. apply round_le; [now apply FLX_exp_valid|apply valid_rnd_N]. Qed.

Lemma snap24_positive x : 0 < x -> 0 < snap24 x.
Proof.
  intros H. assert (0 <= snap24 x).
  { apply round_ge_generic; [now apply FLX_exp_valid|apply valid_rnd_N|apply generic_format_0|lra]. }
  enough (snap24 x <> 0) by lra. intros Z.
  apply (eq_0_round_0_FLX radix2 24) in Z; [lra|apply valid_rnd_N].
Qed.

(** Neighbors have a ratio of at least 1 + 2^-24, hence logarithms 2^-25 apart. *)
Lemma snap24_ratio x y :
  0 < x -> snap24 x < snap24 y -> snap24 x * (1 + bpow radix2 (-24)) <= snap24 y.
Proof.
  intros X L. pose proof (snap24_positive x X) as P.
  assert (V : Valid_exp (FLX_exp 24)) by now apply FLX_exp_valid.
  assert (Fx : generic_format radix2 (FLX_exp 24) (snap24 x)) by (apply generic_format_round; [easy|apply valid_rnd_N]).
  assert (Fy : generic_format radix2 (FLX_exp 24) (snap24 y)) by (apply generic_format_round; [easy|apply valid_rnd_N]).
  pose proof (succ_le_lt radix2 (FLX_exp 24) _ _ Fx Fy L) as S.
  rewrite succ_eq_pos in S by lra.
  assert (U : Rabs (snap24 x) * bpow radix2 (-24) <= ulp radix2 (FLX_exp 24) (snap24 x)).
  { apply (ulp_FLX_ge radix2 24). }
  rewrite Rabs_pos_eq in U by lra. lra.
Qed.

Lemma ln_gap a b :
  0 < a -> a * (1 + bpow radix2 (-24)) <= b -> ln a + 2 * bpow radix2 (-40) <= ln b.
Proof.
  intros A B. set (e := bpow radix2 (-24)) in *.
  assert (E0 : 0 < e) by apply bpow_gt_0.
  assert (E1 : e <= 1) by (apply (bpow_le radix2 (-24) 0); lia).
  assert (H : ln (a * (1 + e)) <= ln b).
  { destruct B as [B|<-]; [left; apply ln_increasing; [apply Rmult_lt_0_compat; lra|easy]|lra]. }
  rewrite ln_mult in H by lra.
  pose proof (ln_below (/ (1 + e)) ltac:(apply Rinv_0_lt_compat; lra)) as K.
  rewrite ln_Rinv in K by lra.
  assert (/ (1 + e) <= 1 - e / 2).
  { apply Rmult_le_reg_r with (1 + e); [lra|]. rewrite Rinv_l by lra.
    assert (0 <= e * (1 - e)) by (apply Rmult_le_pos; lra). lra. }
  assert (2 * bpow radix2 (-40) <= e / 2).
  { replace (2 * bpow radix2 (-40)) with (bpow radix2 (-39)).
    - replace (e / 2) with (bpow radix2 (-25)).
      + apply bpow_le; lia.
      + unfold e. replace (-24)%Z with (-25 + 1)%Z by lia. rewrite (bpow_plus radix2 (-25) 1), bpow_1. simpl. lra.
    - replace (-39)%Z with (-40 + 1)%Z by lia. rewrite (bpow_plus radix2 (-40) 1), bpow_1. simpl. lra. }
  lra.
Qed.

(** `isotone.elementary.log`, whose error is at most 2^-40, is monotone. *)
Theorem log_monotone (log' : R -> R) :
  (forall x, 0 < x -> Rabs (log' (snap24 x) - ln (snap24 x)) <= bpow radix2 (-40)) ->
  forall x y, 0 < x -> x <= y -> log' (snap24 x) <= log' (snap24 y).
Proof.
  intros B x y X H.
  destruct (snap24_monotone x y H) as [L|E]; [|rewrite E; lra].
  pose proof (ln_gap _ _ (snap24_positive x X) (snap24_ratio x y X L)) as G.
  pose proof (B x X) as Bx. pose proof (B y ltac:(lra)) as By.
  apply Rabs_le_inv in Bx. apply Rabs_le_inv in By. lra.
Qed.

(** Logits are clamped to +-700 and snapped to 2^-30. *)
Definition logit_cell (z : R) : R := snap (bpow radix2 (-30)) (clamp 700 z).

Lemma exp_gap e d : 0 <= d <= / 8 -> 8 * d <= e -> e <= 1 -> 1 + d <= (1 + e) * (1 - d).
Proof.
  intros D E F. assert (0 <= e * (/ 8 - d)) by (apply Rmult_le_pos; lra).
  assert (e * d <= 1 * d) by (apply Rmult_le_compat_r; lra). lra.
Qed.

(** `isotone.elementary.monotone_exp`, from an exponential of relative error at most 2^-48. *)
Theorem exp_monotone (exp' : R -> R) :
  (forall z, Rabs (exp' (logit_cell z) - exp (logit_cell z)) <=
     bpow radix2 (-48) * exp (logit_cell z)) ->
  forall y z, y <= z -> exp' (logit_cell y) <= exp' (logit_cell z).
Proof.
  intros B y z H.
  assert (Q : 0 < bpow radix2 (-30)) by apply bpow_gt_0.
  destruct (snap_cells (bpow radix2 (-30)) 700 Q) as [M S].
  destruct (M y z H) as [L|E]; [|unfold logit_cell; rewrite E; lra].
  specialize (S y z L). fold (logit_cell y) (logit_cell z) in *.
  pose proof (B y) as By. pose proof (B z) as Bz. apply Rabs_le_inv in By. apply Rabs_le_inv in Bz.
  set (a := logit_cell y) in *. set (b := logit_cell z) in *.
  set (e := bpow radix2 (-30)) in *. set (d := bpow radix2 (-48)) in *.
  assert (D : 0 < d) by apply bpow_gt_0.
  assert (DE : 8 * d <= e).
  { replace (8 * d) with (bpow radix2 (-45)); [apply bpow_le; lia|].
    unfold d. replace (-45)%Z with (3 + -48)%Z by lia. rewrite bpow_plus. simpl. lra. }
  assert (E1 : e <= 1) by (apply (bpow_le radix2 (-30) 0); lia).
  assert (X : exp a * (1 + e) <= exp b).
  { replace b with (a + (b - a)) by ring. rewrite exp_plus. apply Rmult_le_compat_l; [left; apply exp_pos|].
    pose proof (exp_ineq1_le (b - a)). lra. }
  pose proof (exp_pos a) as PA. pose proof (exp_pos b) as PB.
  assert (exp' a <= exp a * (1 + d)) by lra.
  assert (exp b * (1 - d) <= exp' b) by lra.
  assert (exp a * (1 + d) <= exp a * ((1 + e) * (1 - d))).
  { apply Rmult_le_compat_l; [lra|]. apply exp_gap; lra. }
  assert (exp a * (1 + e) * (1 - d) <= exp b * (1 - d)) by (apply Rmult_le_compat_r; lra).
  lra.
Qed.

(** Additions one after the other are monotone in every term, because rounding is. *)
Fixpoint added (A : arithmetic) (n : nat) (e : vec) : R :=
  match n with O => 0 | S m => fl A (added A m e + e m) end.

Lemma added_monotone A n d e :
  (forall l, (l < n)%nat -> d l <= e l) -> added A n d <= added A n e.
Proof.
  induction n as [|n IH]; intros H; simpl; [lra|]. apply fl_monotone.
  specialize (IH ltac:(auto with arith)). specialize (H n ltac:(lia)). lra.
Qed.

Lemma reciprocal_monotone A a b : 0 < a -> a <= b -> fl A (1 / b) <= fl A (1 / a).
Proof.
  intros P H. apply fl_monotone. unfold Rdiv. rewrite !Rmult_1_l. apply Rinv_le; lra.
Qed.

(** 1 / (1 + exp (-z)) as computed. *)
Theorem sigmoid_monotone A (exp' : R -> R) :
  0 < fl A 1 -> (forall z, 0 <= exp' (logit_cell z)) ->
  (forall y z, y <= z -> exp' (logit_cell y) <= exp' (logit_cell z)) ->
  let sigmoid z := fl A (1 / fl A (1 + exp' (logit_cell (- z)))) in
  forall y z, y <= z -> sigmoid y <= sigmoid z.
Proof.
  intros P N M sigmoid y z H. apply reciprocal_monotone.
  - eapply Rlt_le_trans; [exact P|]. apply fl_monotone. specialize (N (- z)). lra.
  - apply fl_monotone. specialize (M (- z) (- y) ltac:(lra)). lra.
Qed.

(** The one of `isotone.frozen.reference.probability`, from the error of the exponential alone. *)
Theorem sigmoid64_monotone (exp' : R -> R) :
  (forall z, Rabs (exp' (logit_cell z) - exp (logit_cell z)) <=
     bpow radix2 (-48) * exp (logit_cell z)) ->
  let sigmoid z := fl binary64 (1 / fl binary64 (1 + exp' (logit_cell (- z)))) in
  forall y z, y <= z -> sigmoid y <= sigmoid z.
Proof.
  intros B. apply sigmoid_monotone.
  - pose proof (fl_error binary64 1) as H. apply Rabs_le_inv in H. rewrite Rabs_R1 in H.
    assert (U : unit binary64 <= bpow radix2 (-2)) by (apply bpow_le; lia).
    assert (T : tiny binary64 <= bpow radix2 (-2)) by (apply bpow_le; lia).
    assert (Q : bpow radix2 (-2) = / 4) by (simpl; lra).
    rewrite Q in U, T. lra.
  - intros z. specialize (B z). apply Rabs_le_inv in B.
    assert (D : bpow radix2 (-48) <= 1) by (apply (bpow_le radix2 (-48) 0); lia).
    pose proof (exp_pos (logit_cell z)) as P.
    apply Rmult_le_compat_r with (r := exp (logit_cell z)) in D; lra.
  - now apply exp_monotone.
Qed.

(** P_k = 1 / sum_l exp (z_l - z_k) as computed rises if no computed difference z_l - z_k does. *)
Theorem softmax_monotone A (exp' : R -> R) n k (y z : vec) :
  (forall a b, a <= b -> exp' (logit_cell a) <= exp' (logit_cell b)) ->
  let terms z l := exp' (logit_cell (fl A (z l - z k))) in
  0 < added A n (terms z) ->
  (forall l, (l < n)%nat -> fl A (z l - z k) <= fl A (y l - y k)) ->
  fl A (1 / added A n (terms y)) <= fl A (1 / added A n (terms z)).
Proof.
  intros M terms P H. apply reciprocal_monotone; [easy|]. apply added_monotone.
  intros l L. apply M, H, L.
Qed.
