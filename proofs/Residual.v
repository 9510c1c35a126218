(** Residual: Eq. 3 of the paper, for real numbers. *)
From Isotone Require Export Sums.

(** A score may have to rise with a feature, to fall with it, or be free. *)
Inductive direction := Rising | Falling | Free.

Definition sign (d : direction) : R :=
  match d with Rising => 1 | Falling => -1 | Free => 0 end.

(** From a to b a feature moves in its direction; a free feature stays the same. *)
Definition moves (d : direction) (a b : R) : Prop :=
  match d with Rising => a <= b | Falling => b <= a | Free => a = b end.

Definition in_order (n : nat) (s : nat -> direction) (x y : vec) : Prop :=
  forall i, (i < n)%nat -> moves (s i) (x i) (y i).

(** g has slope at most L i along feature i, between any two points of a set of rows. *)
Definition slopes_within (rows : vec -> Prop) (n : nat) (L : nat -> R) (g : vec -> R) : Prop :=
  forall x y, rows x -> rows y ->
  Rabs (g x - g y) <= sum n (fun i => L i * Rabs (x i - y i)).

Definition everywhere (x : vec) : Prop := True.

(** f = g + r . x *)
Definition score (n : nat) (g : vec -> R) (r : nat -> R) (x : vec) : R :=
  g x + sum n (fun i => r i * x i).

Lemma moves_sign d a b : moves d a b -> b - a = sign d * Rabs (b - a).
Proof.
  destruct d; simpl; intros H.
  - rewrite Rabs_pos_eq; lra.
  - rewrite Rabs_left1; lra.
  - subst; rewrite Rminus_diag_eq; lra.
Qed.

Lemma moves_compose d a b (h : R -> R) :
  (forall x y, x <= y -> h x <= h y) -> moves d a b -> moves d (h a) (h b).
Proof. destruct d; simpl; auto. now intros _ ->. Qed.

(** What is left of a change of g: every feature gains its residual less its slope. *)
Lemma gain rows n L g r x y :
  slopes_within rows n L g -> rows x -> rows y ->
  sum n (fun i => r i * (y i - x i) - L i * Rabs (y i - x i)) <= score n g r y - score n g r x.
Proof.
  intros G X Y. specialize (G y x Y X).
  apply Rabs_le_inv in G. unfold score.
  rewrite sum_minus.
  rewrite (sum_ext n (fun i => r i * (y i - x i)) (fun i => r i * y i - r i * x i)) by (intros; lra).
  rewrite sum_minus. lra.
Qed.

Lemma gain_in_order rows n L g r s x y :
  slopes_within rows n L g -> rows x -> rows y -> in_order n s x y ->
  sum n (fun i => (sign (s i) * r i - L i) * Rabs (y i - x i)) <= score n g r y - score n g r x.
Proof.
  intros G X Y O. eapply Rle_trans; [|now apply (gain rows n L)].
  apply sum_le; intros i I. specialize (O i I). apply moves_sign in O.
  set (a := Rabs (y i - x i)) in *. rewrite O. lra.
Qed.

(** Features that stay the same gain nothing, so free ones need no residual. *)
Definition directed (n : nat) (s : nat -> direction) (i : nat) : Prop :=
  (i < n)%nat /\ s i <> Free.

Lemma free_gain n s x y i c :
  in_order n s x y -> (i < n)%nat -> (directed n s i -> 0 <= c) -> 0 <= c * Rabs (y i - x i).
Proof.
  intros O I C. destruct (s i) eqn:D.
  3: { specialize (O i I). rewrite D in O; simpl in O. rewrite O, Rminus_diag_eq, Rabs_R0; lra. }
  all: apply Rmult_le_pos; [apply C; split; congruence|apply Rabs_pos].
Qed.

(** Eq. 3 with any residual that is at least as steep as g. *)
Theorem residual_monotone rows n L g r s :
  slopes_within rows n L g ->
  (forall i, directed n s i -> L i <= sign (s i) * r i) ->
  forall x y, rows x -> rows y -> in_order n s x y -> score n g r x <= score n g r y.
Proof.
  intros G H x y X Y O. pose proof (gain_in_order _ _ _ _ r _ _ _ G X Y O) as K.
  enough (0 <= sum n (fun i => (sign (s i) * r i - L i) * Rabs (y i - x i))) by lra.
  apply sum_nonneg; intros i I. eapply free_gain; eauto. intros D. specialize (H i D). lra.
Qed.

(** Eq. 3 of the paper: the residual is s_i lambda_i. *)
Theorem eq3 n lambda g s :
  slopes_within everywhere n lambda g ->
  forall x y, in_order n s x y ->
  score n g (fun i => sign (s i) * lambda i) x <= score n g (fun i => sign (s i) * lambda i) y.
Proof.
  intros G x y. apply (residual_monotone everywhere n lambda); try easy.
  intros i [_ D]. destruct (s i); simpl; [lra|lra|congruence].
Qed.

(** Several features that move together at rates d, even where not one of them is monotone. *)
Theorem joint_monotone n L g r d :
  slopes_within everywhere n L g ->
  sum n (fun i => L i * Rabs (d i)) <= sum n (fun i => r i * d i) ->
  forall x t, 0 <= t -> score n g r x <= score n g r (fun i => x i + t * d i).
Proof.
  intros G H x t T. pose proof (gain everywhere n L g r x (fun i => x i + t * d i) G I I) as K.
  simpl in K.
  rewrite (sum_ext n _ (fun i => t * (r i * d i - L i * Rabs (d i)))) in K.
  - rewrite sum_scale, sum_minus in K. apply Rmult_le_compat_l with (r := t) in H; lra.
  - intros i _. replace (x i + t * d i - x i) with (t * d i) by ring.
    rewrite Rabs_mult, (Rabs_pos_eq t) by easy. ring.
Qed.
