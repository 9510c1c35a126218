(** Knots: copies of columns, each for one tile, and dense steps on them by look-up. *)
From Isotone Require Export Score.

(** The copies of a column: one leaves -1 only where the one before it has reached +1. *)
Definition tiled (m : nat) (phi : vec) : Prop :=
  forall j, (S j < m)%nat -> phi j = 1 \/ phi (S j) = -1.

(** The copy that moves: from copy j on the first that is not +1, or, after m steps, the last. *)
Fixpoint moving (phi : vec) (j m : nat) : nat :=
  match m with
  | O => j
  | S m => if Req_EM_T (phi j) 1 then moving phi (S j) m else j
  end.

(** Of m copies. The upper end of a tile is always written as the lower end of the next. *)
Definition cell (m : nat) (phi : vec) : nat := moving phi 0 (m - 1).

(** C_t: what the copies add that do not move. *)
Definition table (m : nat) (W : vec) (t : nat) : R :=
  sum m (fun j => if j <? t then W j else if t <? j then - W j else 0).

Lemma moving_bounds phi m : forall j, (j <= moving phi j m <= j + m)%nat.
Proof.
  induction m as [|m IH]; intros j; simpl; [lia|].
  destruct (Req_EM_T (phi j) 1); [|lia]. specialize (IH (S j)). lia.
Qed.

Lemma cell_inside m phi : (1 <= m)%nat -> (cell m phi < m)%nat.
Proof. intros M. pose proof (moving_bounds phi (m - 1) 0). unfold cell. lia. Qed.

Lemma moving_before phi m : forall j k, (j <= k < moving phi j m)%nat -> phi k = 1.
Proof.
  induction m as [|m IH]; intros j k K; simpl in *; [lia|].
  destruct (Req_EM_T (phi j) 1) as [E|]; [|lia].
  destruct (Nat.eq_dec k j) as [->|]; [easy|]. apply (IH (S j)). lia.
Qed.

Lemma moving_here phi m : forall j, (moving phi j m < j + m)%nat -> phi (moving phi j m) <> 1.
Proof.
  induction m as [|m IH]; intros j K; simpl in *; [lia|].
  destruct (Req_EM_T (phi j) 1) as [E|N]; [|easy]. apply IH. lia.
Qed.

Lemma tiled_after m phi t k :
  tiled m phi -> phi t <> 1 -> (t < k < m)%nat -> phi k = -1.
Proof.
  intros T N [L K]. induction L as [|k L IH].
  - destruct (T t) as [E|E]; [lia|congruence|easy].
  - destruct (T k) as [E|E]; [lia| |easy]. rewrite IH in E by lia. lra.
Qed.

Lemma copies_at m phi k :
  (1 <= m)%nat -> tiled m phi -> (k < m)%nat ->
  ((k < cell m phi)%nat -> phi k = 1) /\ ((cell m phi < k)%nat -> phi k = -1).
Proof.
  intros M T K. unfold cell. split; intros L.
  - apply (moving_before phi (m - 1) 0). lia.
  - apply (tiled_after m phi (moving phi 0 (m - 1))); [easy| |lia]. apply moving_here. lia.
Qed.

(** W phi = C_t + W_t phi_t: two numbers are added in place of m products. *)
Theorem look_up_exact m W phi :
  (1 <= m)%nat -> tiled m phi ->
  sum m (fun j => W j * phi j) = table m W (cell m phi) + W (cell m phi) * phi (cell m phi).
Proof.
  intros M T. set (t := cell m phi). pose proof (cell_inside m phi M) as L. fold t in L.
  replace (W t * phi t) with (sum m (fun j => if j =? t then W t * phi t else 0)).
  - unfold table. rewrite <- sum_plus. apply sum_ext; intros j J.
    destruct (copies_at m phi j M T J) as [B A]. fold t in A, B.
    destruct (Nat.ltb_spec j t), (Nat.ltb_spec t j), (Nat.eqb_spec j t); subst; try lia.
    + rewrite B by easy. lra.
    + rewrite A by easy. lra.
    + lra.
  - rewrite (sum_single m _ t L), Nat.eqb_refl; [easy|]. intros k _ N.
    now destruct (Nat.eqb_spec k t).
Qed.

(** Both together are no larger than all products. *)
Lemma look_up_size m W phi :
  (1 <= m)%nat -> tiled m phi ->
  Rabs (table m W (cell m phi)) + Rabs (W (cell m phi) * phi (cell m phi)) <=
  sum m (fun j => Rabs (W j) * Rabs (phi j)).
Proof.
  intros M T. set (t := cell m phi). pose proof (cell_inside m phi M) as L. fold t in L.
  replace (Rabs (W t * phi t)) with (sum m (fun j => if j =? t then Rabs (W t * phi t) else 0)).
  - apply Rle_trans with (sum m (fun j => Rabs (if j <? t then W j else if t <? j then - W j else 0) +
      (if j =? t then Rabs (W t * phi t) else 0))).
    + rewrite sum_plus. apply Rplus_le_compat_r, sum_abs.
    + apply sum_le; intros j J. destruct (copies_at m phi j M T J) as [B A]. fold t in A, B.
      destruct (Nat.ltb_spec j t), (Nat.ltb_spec t j), (Nat.eqb_spec j t); subst; try lia.
      * rewrite B, Rabs_R1 by easy. lra.
      * rewrite A by easy. replace (-1) with (-(1)) by lra. rewrite !Rabs_Ropp, Rabs_R1. lra.
      * rewrite Rabs_R0, Rabs_mult. lra.
  - rewrite (sum_single m _ t L), Nat.eqb_refl; [easy|]. intros k _ N.
    now destruct (Nat.eqb_spec k t).
Qed.

(** The terms of a look-up: for every column its product, and C where it has several copies. *)
Definition column_terms (m : nat -> nat) (s : nat) : list term :=
  if 1 <? m s then Number (S s) :: Times s :: nil else Times s :: nil.

Definition looks_up (o : order) (columns : nat) (m : nat -> nat) : Prop :=
  Permutation (leaves o) (Number 0 :: flat_map (column_terms m) (seq 0 columns)).

Fixpoint copies (columns : nat) (m : nat -> nat) : nat :=
  match columns with O => O | S s => (copies s m + m s)%nat end.

Lemma terms_length columns m :
  (forall s, (s < columns)%nat -> (1 <= m s)%nat) ->
  (length (flat_map (column_terms m) (seq 0 columns)) <= copies columns m)%nat.
Proof.
  induction columns as [|s IH]; intros M; [simpl; lia|].
  rewrite seq_S, flat_map_app, app_length. simpl.
  assert (1 <= m s)%nat by (apply M; lia).
  assert (length (column_terms m s ++ nil) <= m s)%nat.
  { rewrite app_nil_r. unfold column_terms. destruct (Nat.ltb_spec 1 (m s)); simpl; lia. }
  specialize (IH ltac:(intros; apply M; lia)). lia.
Qed.

Lemma terms_total f columns m :
  total f (flat_map (column_terms m) (seq 0 columns)) =
  sum columns (fun s => (if (1 <? m s)%nat then f (Number (S s)) else 0) + f (Times s)).
Proof.
  induction columns as [|s IH]; [easy|].
  rewrite seq_S, flat_map_app, total_app, IH. simpl. rewrite app_nil_r.
  unfold column_terms. destruct (1 <? m s); simpl; lra.
Qed.

(** A look-up as computed, from tables that were rounded at most twice, errs by no more than gamma
    of one rounding more than a dense step: n + 2 for n copies in all. *)
Theorem look_up_error A columns m (W phi : nat -> vec) b C o :
  (forall s, (s < columns)%nat -> (1 <= m s)%nat /\ tiled (m s) (phi s)) ->
  let t s := cell (m s) (phi s) in
  let exact_table s := table (m s) (W s) (t s) in
  (forall s, Rabs (C s - exact_table s) <=
     (grown A 2 - 1) * Rabs (exact_table s) + grown A 2 * (tiny A / 4)) ->
  looks_up o columns m -> few A (copies columns m + 2) ->
  Rabs (evaluate A (fun k => match k with O => b | S s => C s end)
          (fun s => W s (t s)) (fun s => phi s (t s)) o -
        (b + sum columns (fun s => sum (m s) (fun k => W s k * phi s k)))) <=
  fresh A (copies columns m + 2)
    (Rabs b + sum columns (fun s => sum (m s) (fun k => Rabs (W s k) * Rabs (phi s k)))).
Proof.
  intros M t exact_table T P F.
  pose proof (Permutation_length P) as L. simpl in L.
  pose proof (terms_length columns m (fun s K => proj1 (M s K))) as L'.
  set (exact_numbers := fun k => match k with O => b | S s => exact_table s end).
  assert (H := sum_error A exact_numbers (fun k => match k with O => b | S s => C s end)
                 (fun s => W s (t s)) (fun s => phi s (t s)) 1 o).
  rewrite !(total_permuted _ _ _ P) in H. simpl in H. rewrite !terms_total in H. simpl in H.
  assert (Z : forall s, (s < columns)%nat -> (1 <? m s)%nat = false -> exact_table s = 0).
  { intros s K O. apply Nat.ltb_ge in O. destruct (M s K) as [M1 _].
    assert (m s = 1)%nat by lia. unfold exact_table, table, t, cell. rewrite H0. simpl. lra. }
  rewrite (sum_ext columns _ (fun s => sum (m s) (fun k => W s k * phi s k))) in H.
  - eapply Rle_trans; [apply H|].
    + intros [|s]; [|apply T]. simpl. rewrite Rminus_diag_eq, Rabs_R0 by easy.
      pose proof (grown_ge_1 A 2). pose proof (tiny_nonneg A). pose proof (Rabs_pos b).
      apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra.
    + apply (few_le A _ (copies columns m + 2)); [lia|easy].
    + apply fresh_le; [easy|lia|]. split.
      * apply Rplus_le_le_0_compat; [apply Rabs_pos|]. apply sum_nonneg; intros s _.
        apply Rplus_le_le_0_compat; [|apply Rabs_pos]. destruct (1 <? m s); [apply Rabs_pos|lra].
      * apply Rplus_le_compat_l, sum_le; intros s K. destruct (M s K) as [M1 M2].
        pose proof (look_up_size (m s) (W s) (phi s) M1 M2) as S. fold (t s) in S.
        fold (exact_table s) in S. eapply Rle_trans; [|exact S]. apply Rplus_le_compat_r.
        destruct (1 <? m s); [lra|apply Rabs_pos].
  - intros s K. destruct (M s K) as [M1 M2]. rewrite (look_up_exact (m s) (W s) (phi s) M1 M2).
    fold (t s). fold (exact_table s). destruct (1 <? m s) eqn:E; [easy|]. rewrite (Z s K E). lra.
Qed.

(** A score that follows its direction in every copy follows it in the column: [tile j] is copy j
    of column [source j], as computed. *)
Theorem copies_monotone n columns (source : nat -> nat) (tile : nat -> R -> R) s (f : vec -> R) :
  (forall j, (j < n)%nat -> (source j < columns)%nat) ->
  (forall j a b, a <= b -> tile j a <= tile j b) ->
  (forall u v, in_order n (fun j => s (source j)) u v -> f u <= f v) ->
  forall x y, in_order columns s x y ->
  f (fun j => tile j (x (source j))) <= f (fun j => tile j (y (source j))).
Proof.
  intros S T F x y O. apply F. intros j J. apply moves_compose; [apply T|apply O, S, J].
Qed.
