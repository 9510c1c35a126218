(** Growth: how changes grow through matrices, in the 1-norm and in the infinity-norm at once. *)
From Isotone Require Export Sums.

(** Bounds on the sum of |d k|, on the largest of them, and on every single one. *)
Record change := { one : R; inf : R; each : nat -> R }.

(** The first n entries of d are within t times the bounds. *)
Definition within (t : R) (n : nat) (c : change) (d : vec) : Prop :=
  sum n (fun k => Rabs (d k)) <= t * one c /\
  forall k, (k < n)%nat -> Rabs (d k) <= t * inf c /\ Rabs (d k) <= t * each c k.

Section Matrix.
  Variables (m n : nat) (W : nat -> vec).

  Definition row_sum (j : nat) : R := sum n (fun k => Rabs (W j k)).
  Definition row_max (j : nat) : R := largest n (fun k => Rabs (W j k)).
  Definition column_sum (k : nat) : R := sum m (fun j => Rabs (W j k)).

  (** Every output of a matrix: the best of three bounds. *)
  Definition rows (c : change) (j : nat) : R :=
    Rmin (row_max j * one c)
      (Rmin (row_sum j * inf c) (sum n (fun k => Rabs (W j k) * each c k))).

  (** Eq. 6: the 1-norm grows by at most the largest column sum, the infinity-norm by at most the
      largest row sum, and each can be bounded from the other. *)
  Definition through (c : change) : change :=
    {| one := Rmin (largest n column_sum * one c)
                (Rmin (sum m row_sum * inf c) (sum m (rows c)));
       inf := largest m (rows c);
       each := rows c |}.

  (** |W| |d| *)
  Definition sizes (d : vec) (j : nat) : R := sum n (fun k => Rabs (W j k) * Rabs (d k)).

  Lemma le_min t x a b : x <= t * a -> x <= t * b -> x <= t * Rmin a b.
  Proof. intros. unfold Rmin. now destruct (Rle_dec a b). Qed.

  Lemma rows_sound t c d j : 0 <= t -> within t n c d -> sizes d j <= t * rows c j.
  Proof.
    intros T [O E]. unfold rows, sizes. repeat apply le_min.
    - apply Rle_trans with (row_max j * sum n (fun k => Rabs (d k))).
      + rewrite <- sum_scale. apply sum_le; intros k K. apply Rmult_le_compat_r; [apply Rabs_pos|].
        apply (le_largest n (fun k => Rabs (W j k))), K.
      + apply Rmult_le_compat_l with (r := row_max j) in O; [lra|apply largest_nonneg].
    - unfold row_sum. rewrite (Rmult_comm (sum _ _)), <- !sum_scale. apply sum_le; intros k K.
      destruct (E k K) as [H _]. apply Rmult_le_compat_l with (r := Rabs (W j k)) in H;
        [lra|apply Rabs_pos].
    - rewrite <- sum_scale. apply sum_le; intros k K. destruct (E k K) as [_ H].
      apply Rmult_le_compat_l with (r := Rabs (W j k)) in H; [lra|apply Rabs_pos].
  Qed.

  Lemma sizes_nonneg d j : 0 <= sizes d j.
  Proof. apply sum_nonneg; intros. apply Rmult_le_pos; apply Rabs_pos. Qed.

  (** The 1-norm and the infinity-norm of |W| |d|. *)
  Theorem through_sizes t c d : 0 <= t -> within t n c d -> within t m (through c) (sizes d).
  Proof.
    intros T H. pose proof H as [O E]. split.
    - rewrite (sum_ext m _ (sizes d)) by (intros; apply Rabs_pos_eq, sizes_nonneg).
      simpl. repeat apply le_min.
      + apply Rle_trans with (largest n column_sum * sum n (fun k => Rabs (d k))).
        * unfold sizes. rewrite sum_swap, <- sum_scale. apply sum_le; intros k K.
          rewrite sum_scale_r. apply Rmult_le_compat_r; [apply Rabs_pos|].
          now apply (le_largest n column_sum).
        * apply Rmult_le_compat_l with (r := largest n column_sum) in O; [lra|apply largest_nonneg].
      + rewrite (Rmult_comm (sum m row_sum)), <- Rmult_assoc, <- sum_scale.
        apply sum_le; intros j J. unfold sizes, row_sum. rewrite <- sum_scale.
        apply sum_le; intros k K. destruct (E k K) as [B _].
        apply Rmult_le_compat_l with (r := Rabs (W j k)) in B; [lra|apply Rabs_pos].
      + rewrite <- sum_scale. apply sum_le; intros j J. now apply rows_sound.
    - intros j J. rewrite (Rabs_pos_eq (sizes d j)) by apply sizes_nonneg.
      pose proof (rows_sound t c d j T H) as B. split; [|exact B]. simpl.
      eapply Rle_trans; [exact B|]. apply Rmult_le_compat_l; [easy|].
      now apply (le_largest m (rows c)).
  Qed.

  Lemma within_le t c d e l :
    within t l c d -> (forall k, (k < l)%nat -> Rabs (e k) <= Rabs (d k)) -> within t l c e.
  Proof.
    intros [O E] H. split.
    - eapply Rle_trans; [|exact O]. now apply sum_le.
    - intros k K. destruct (E k K). specialize (H k K). lra.
  Qed.

  Theorem through_sound t c d :
    0 <= t -> within t n c d -> within t m (through c) (fun j => sum n (fun k => W j k * d k)).
  Proof.
    intros T H. eapply within_le; [now apply through_sizes; eauto|]. intros j J.
    rewrite (Rabs_pos_eq (sizes d j)) by apply sizes_nonneg.
    eapply Rle_trans; [apply sum_abs|]. right. apply sum_ext; intros. apply Rabs_mult.
  Qed.
End Matrix.

(** After a sort, or where nothing is known of single units. *)
Definition alike (c : change) : change := {| one := one c; inf := inf c; each := fun _ => inf c |}.

(** Times a constant. *)
Definition scaled (a : R) (c : change) : change :=
  {| one := a * one c; inf := a * inf c; each := fun k => a * each c k |}.

(** A weighted sum of members: the bound of a mean is the mean of the bounds. *)
Definition weigh (s : nat) (w : vec) (c : nat -> change) : change :=
  {| one := sum s (fun k => Rabs (w k) * one (c k));
     inf := sum s (fun k => Rabs (w k) * inf (c k));
     each := fun j => sum s (fun k => Rabs (w k) * each (c k) j) |}.

Lemma weigh_sizes t m s w c (d : nat -> vec) :
  (forall k, (k < s)%nat -> within t m (c k) (d k)) ->
  within t m (weigh s w c) (fun j => sum s (fun k => Rabs (w k) * Rabs (d k j))).
Proof.
  intros H.
  assert (P : forall j, 0 <= sum s (fun k => Rabs (w k) * Rabs (d k j))).
  { intros j. apply sum_nonneg; intros. apply Rmult_le_pos; apply Rabs_pos. }
  split.
  - rewrite (sum_ext m _ (fun j => sum s (fun k => Rabs (w k) * Rabs (d k j)))) by
      (intros; now apply Rabs_pos_eq).
    rewrite sum_swap. simpl. rewrite <- sum_scale. apply sum_le; intros k K. rewrite sum_scale.
    destruct (H k K) as [O _]. apply Rmult_le_compat_l with (r := Rabs (w k)) in O; [lra|apply Rabs_pos].
  - intros j J. rewrite Rabs_pos_eq by apply P. simpl. rewrite <- !sum_scale.
    split; apply sum_le; intros k K; destruct (H k K) as [_ E]; destruct (E j J) as [A B].
    + apply Rmult_le_compat_l with (r := Rabs (w k)) in A; [lra|apply Rabs_pos].
    + apply Rmult_le_compat_l with (r := Rabs (w k)) in B; [lra|apply Rabs_pos].
Qed.

Lemma weigh_sound t m s w c (d : nat -> vec) :
  (forall k, (k < s)%nat -> within t m (c k) (d k)) ->
  within t m (weigh s w c) (fun j => sum s (fun k => w k * d k j)).
Proof.
  intros H. eapply within_le; [now apply weigh_sizes; eauto|]. intros j J. simpl.
  rewrite (Rabs_pos_eq (sum s (fun k => Rabs (w k) * Rabs (d k j)))).
  - eapply Rle_trans; [apply sum_abs|]. right. apply sum_ext; intros. apply Rabs_mult.
  - apply sum_nonneg; intros. apply Rmult_le_pos; apply Rabs_pos.
Qed.

(** Bounds that are raised by something for every unit, and by a total. *)
Definition raised (m : nat) (c : change) (extra : R) (extras : nat -> R) : change :=
  {| one := one c + extra;
     inf := largest m (fun j => each c j + extras j);
     each := fun j => each c j + extras j |}.

Lemma raised_sound m c extra extras (d e : vec) (p : nat -> R) :
  within 1 m c d ->
  (forall j, (j < m)%nat -> Rabs (e j) <= Rabs (d j) + p j) ->
  (forall j, (j < m)%nat -> p j <= extras j) -> sum m p <= extra ->
  within 1 m (raised m c extra extras) e.
Proof.
  intros [O E] H P Q. split; simpl.
  - apply Rle_trans with (sum m (fun j => Rabs (d j) + p j)); [now apply sum_le|].
    rewrite sum_plus. lra.
  - intros j J. assert (B : Rabs (e j) <= 1 * (each c j + extras j)).
    { specialize (H j J). specialize (P j J). destruct (E j J). lra. }
    split; [|exact B]. eapply Rle_trans; [exact B|]. rewrite !Rmult_1_l.
    now apply (le_largest m (fun j => each c j + extras j)).
Qed.
