(** Convexity: of |x|^p for every real p >= 1, from ln x <= x - 1 alone. *)
From Isotone Require Export Sums.

Definition convex (phi : R -> R) : Prop :=
  forall t a b, 0 <= t <= 1 -> phi (t * a + (1 - t) * b) <= t * phi a + (1 - t) * phi b.

(** Two numbers between two others with the same sum: the outer pair has the larger sum. *)
Lemma convex_outer phi s x y t :
  convex phi -> s <= x <= t -> x + y = s + t -> phi x + phi y <= phi s + phi t.
Proof.
  intros C X S. destruct (Req_dec s t) as [->|D].
  - assert (x = t) by lra. assert (y = t) by lra. subst; lra.
  - set (a := (t - x) / (t - s)).
    assert (A : 0 <= a <= 1).
    { split; [apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra]|].
      apply Rmult_le_reg_r with (t - s); [lra|]. unfold a. field_simplify; lra. }
    pose proof (C a s t A) as H1. pose proof (C a t s A) as H2.
    replace (a * s + (1 - a) * t) with x in H1 by (unfold a; field; lra).
    replace (a * t + (1 - a) * s) with y in H2.
    + lra.
    + replace y with (s + t - x) by lra. unfold a; field; lra.
Qed.

Lemma convex_abs : convex Rabs.
Proof.
  intros t a b T. eapply Rle_trans; [apply Rabs_triang|].
  rewrite !Rabs_mult, (Rabs_pos_eq t), (Rabs_pos_eq (1 - t)); lra.
Qed.

(** |x|^p *)
Definition power (p x : R) : R := if Req_EM_T x 0 then 0 else Rpower (Rabs x) p.

Lemma power_nonneg p x : 0 <= power p x.
Proof. unfold power. destruct (Req_EM_T x 0); [lra|left; apply exp_pos]. Qed.

Lemma power_abs p x : power p (Rabs x) = power p x.
Proof.
  unfold power. destruct (Req_EM_T x 0) as [->|N].
  - rewrite Rabs_R0. now destruct (Req_EM_T 0 0).
  - destruct (Req_EM_T (Rabs x) 0) as [E|_]; [now apply Rabs_no_R0 in N|].
    now rewrite Rabs_Rabsolu.
Qed.

Lemma power_pos p x : 0 < x -> power p x = Rpower x p.
Proof. intros H. unfold power. destruct (Req_EM_T x 0); [lra|]. now rewrite Rabs_pos_eq; [|lra]. Qed.

Lemma power_le p a b : 0 <= p -> 0 <= a <= b -> power p a <= power p b.
Proof.
  intros P [A B]. destruct (Req_dec a 0) as [->|N].
  - unfold power at 1. destruct (Req_EM_T 0 0); [apply power_nonneg|congruence].
  - rewrite !power_pos by lra. apply Rle_Rpower_l; lra.
Qed.

Lemma ln_below x : 0 < x -> ln x <= x - 1.
Proof.
  intros X. pose proof (exp_ineq1_le (ln x)) as H. rewrite exp_ln in H by easy. lra.
Qed.

(** Bernoulli's inequality for real exponents. *)
Lemma bernoulli p y : 1 <= p -> -1 < y -> 1 + p * y <= Rpower (1 + y) p.
Proof.
  intros P Y. destruct (Rle_or_lt (1 + p * y) 0) as [L|L].
  { eapply Rle_trans; [exact L|left; apply exp_pos]. }
  set (m := 1 + y). set (x := 1 + p * y) in *.
  assert (M : 0 < m) by (unfold m; lra).
  assert (H1 : ln (x / m) <= x / m - 1) by (apply ln_below; now apply Rdiv_lt_0_compat).
  assert (H2 : ln (/ m) <= / m - 1) by (apply ln_below; now apply Rinv_0_lt_compat).
  unfold Rdiv in H1. rewrite ln_mult in H1 by (auto using Rinv_0_lt_compat).
  rewrite ln_Rinv in H1, H2 by easy.
  assert (H : ln x <= p * ln m).
  { assert (K : x * / m - 1 + (p - 1) * (/ m - 1) = 0) by (unfold x, m in *; field; lra).
    apply Rmult_le_compat_l with (r := p - 1) in H2; lra. }
  unfold Rpower. rewrite <- (exp_ln x) by easy. now apply Raux.exp_le.
Qed.

(** The tangent of x^p lies below it. *)
Lemma tangent p z a :
  1 <= p -> 0 < z -> 0 <= a -> power p z + p * Rpower z (p - 1) * (a - z) <= power p a.
Proof.
  intros P Z A. rewrite (power_pos p z) by easy.
  assert (S : Rpower z p = z * Rpower z (p - 1)).
  { replace p with (1 + (p - 1)) at 1 by ring. now rewrite Rpower_plus, Rpower_1. }
  destruct (Req_dec a 0) as [->|N].
  - unfold power. destruct (Req_EM_T 0 0); [|congruence]. rewrite S.
    assert (0 < z * Rpower z (p - 1)) by (apply Rmult_lt_0_compat; [easy|apply exp_pos]).
    replace (z * Rpower z (p - 1) + p * Rpower z (p - 1) * (0 - z))
      with ((1 - p) * (z * Rpower z (p - 1))) by ring.
    assert (0 <= (p - 1) * (z * Rpower z (p - 1))) by (apply Rmult_le_pos; lra). lra.
  - rewrite power_pos by lra.
    assert (Y : -1 < a / z - 1) by (assert (0 < a / z) by (apply Rdiv_lt_0_compat; lra); lra).
    pose proof (bernoulli p (a / z - 1) P Y) as B.
    replace (1 + (a / z - 1)) with (a / z) in B by ring.
    apply Rmult_le_compat_l with (r := Rpower z p) in B; [|left; apply exp_pos].
    assert (I : Rpower z p * Rpower (a * / z) p = Rpower a p).
    { rewrite Rpower_mult_distr by (try apply Rmult_lt_0_compat; try apply Rinv_0_lt_compat; lra).
      f_equal. field. lra. }
    unfold Rdiv in B. rewrite I in B. eapply Rle_trans; [|exact B].
    rewrite S. right. field. lra.
Qed.

Theorem convex_power p : 1 <= p -> convex (power p).
Proof.
  intros P t a b T. set (z := t * Rabs a + (1 - t) * Rabs b).
  assert (A := Rabs_pos a). assert (B := Rabs_pos b).
  assert (Z : 0 <= z).
  { unfold z. apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra. }
  apply Rle_trans with (power p z).
  { rewrite <- power_abs. apply power_le; [lra|]. split; [apply Rabs_pos|]. now apply convex_abs. }
  destruct (Req_dec z 0) as [E|N].
  - rewrite E. unfold power at 1. destruct (Req_EM_T 0 0); [|congruence].
    apply Rplus_le_le_0_compat; apply Rmult_le_pos; try apply power_nonneg; lra.
  - assert (Z' : 0 < z) by lra.
    pose proof (tangent p z (Rabs a) P Z' A) as H1. pose proof (tangent p z (Rabs b) P Z' B) as H2.
    rewrite power_abs in H1, H2.
    apply Rmult_le_compat_l with (r := t) in H1; [|lra].
    apply Rmult_le_compat_l with (r := 1 - t) in H2; [|lra].
    set (c := p * Rpower z (p - 1)) in *.
    assert (t * (c * (Rabs a - z)) + (1 - t) * (c * (Rabs b - z)) = 0) by (unfold z; ring).
    lra.
Qed.
