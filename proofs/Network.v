(** Network: dense steps, sorts, activations and members; exact, and as computed. *)
From Isotone Require Export Comparators Growth Summation.

(** An activation: a function of slope at most [steepness] and at most [at_zero] at 0, and the
    function that is computed in its place, with a bound on the error of its formula. *)
Record activation := {
  shape : R -> R; shaped : R -> R; steepness : R; at_zero : R; formula_error : R }.

(** The steps of `isotone.frozen.steps`; every sum has an order of its own. *)
Inductive net :=
| Identity
| Dense (m n : nat) (W : nat -> vec) (b : vec) (o : nat -> order)
| Sort (cs : list (nat * nat))
| Pointwise (a : activation)
| Then (f g : net)
| Members (s : nat) (w : vec) (member : nat -> net) (o : nat -> order).

Fixpoint width (g : net) (n : nat) : nat :=
  match g with
  | Identity | Sort _ | Pointwise _ => n
  | Dense m _ _ _ _ => m
  | Then f g => width g (width f n)
  | Members _ _ member _ => width (member O) n
  end.

(** The function of real numbers. *)
Fixpoint exact (g : net) (h : vec) : vec :=
  match g with
  | Identity => h
  | Dense m n W b _ => fun j => b j + sum n (fun k => W j k * h k)
  | Sort cs => sort cs h
  | Pointwise a => fun j => shape a (h j)
  | Then f g => exact g (exact f h)
  | Members s w member _ => fun j => sum s (fun k => w k * exact (member k) h j)
  end.

(** What a machine computes. Comparators return one of their arguments, so sorts do not round. *)
Fixpoint computed (A : arithmetic) (g : net) (h : vec) : vec :=
  match g with
  | Identity => h
  | Dense m n W b o => fun j => evaluate A (fun _ => b j) (W j) h (o j)
  | Sort cs => sort cs h
  | Pointwise a => fun j => shaped a (h j)
  | Then f g => computed A g (computed A f h)
  | Members s w member o => fun j =>
      evaluate A (fun _ => 0) w (fun k => computed A (member k) h j) (o j)
  end.

Definition is_activation (A : arithmetic) (a : activation) : Prop :=
  0 <= steepness a /\ Rabs (shape a 0) <= at_zero a /\
  (forall x y, Rabs (shape a x - shape a y) <= steepness a * Rabs (x - y)) /\
  (forall x, Rabs (shaped a x - shape a x) <=
     2 * unit A * Rabs (shape a x) + (formula_error a + 4 * tiny A)).

(** Widths agree, every sum has its terms, each once, and no sum has 1 / (2 u) terms. *)
Fixpoint fits (A : arithmetic) (g : net) (n : nat) : Prop :=
  match g with
  | Identity => True
  | Dense m k W b o => k = n /\ few A (n + 1) /\ forall j, (j < m)%nat -> dot (o j) n
  | Sort cs => network n cs
  | Pointwise a => is_activation A a
  | Then f g => fits A f n /\ fits A g (width f n)
  | Members s w member o =>
      few A (s + 1) /\
      (forall k, (k < s)%nat -> fits A (member k) n /\ width (member k) n = width (member O) n) /\
      forall j, (j < width (member O) n)%nat -> weighted (o j) s
  end.

(** How far units move if those that enter move within [c]: `bounds.slopes`. *)
Fixpoint growth (g : net) (n : nat) (c : change) : change :=
  match g with
  | Identity => c
  | Dense m _ W _ _ => through m n W c
  | Sort _ => alike c
  | Pointwise a => alike (scaled (steepness a) c)
  | Then f g => growth g (width f n) (growth f n c)
  | Members s w member _ => weigh s w (fun k => growth (member k) n c)
  end.

(** How large computed units can be, and how far they can be off. *)
Record numbers := { size : change; error : change }.

(** Both raised by what m rounded sums of n terms of these sizes add. *)
Definition rounded (A : arithmetic) (m n : nat) (sizes errors : change) : numbers :=
  let extra := gamma A n * one sizes + INR m * (INR n * tiny A) in
  let extras j := fresh A n (each sizes j) in
  {| size := raised m sizes extra extras; error := raised m errors extra extras |}.

(** The same for an activation, which rounds twice. *)
Definition activated (A : arithmetic) (n : nat) (a : activation) (x : numbers) : numbers :=
  let sizes := raised n (alike (scaled (steepness a) (size x)))
                 (INR n * at_zero a) (fun _ => at_zero a) in
  let small := formula_error a + 4 * tiny A in
  let extra := 2 * unit A * one sizes + INR n * small in
  let extras j := 2 * unit A * each sizes j + small in
  {| size := raised n sizes extra extras;
     error := raised n (alike (scaled (steepness a) (error x))) extra extras |}.

(** `bounds.rounding_errors`: sizes and errors after every step. *)
Fixpoint follow (A : arithmetic) (g : net) (n : nat) (x : numbers) : numbers :=
  match g with
  | Identity => x
  | Dense m _ W b _ =>
      rounded A m (n + 1)
        (raised m (through m n W (size x)) (sum m (fun j => Rabs (b j))) (fun j => Rabs (b j)))
        (through m n W (error x))
  | Sort _ => {| size := alike (size x); error := alike (error x) |}
  | Pointwise a => activated A n a x
  | Then f g => follow A g (width f n) (follow A f n x)
  | Members s w member _ =>
      rounded A (width (member O) n) (s + 1)
        (weigh s w (fun k => size (follow A (member k) n x)))
        (weigh s w (fun k => error (follow A (member k) n x)))
  end.

(** [h'] was computed in place of [h], and the bounds are true of them. *)
Definition known (n : nat) (x : numbers) (h' h : vec) : Prop :=
  within 1 n (size x) h' /\ within 1 n (error x) (fun k => h' k - h k).

Lemma alike_sound t n c d : within t n c d -> within t n (alike c) d.
Proof. intros [O E]; split; [easy|]. intros k K. now destruct (E k K). Qed.

Lemma scaled_sound t n c d a : 0 <= a -> within t n c d -> within t n (scaled a c) (fun k => a * Rabs (d k)).
Proof.
  intros P [O E]. split; simpl.
  - rewrite (sum_ext n _ (fun k => a * Rabs (d k))).
    + rewrite sum_scale. apply Rmult_le_compat_l with (r := a) in O; lra.
    + intros k _. apply Rabs_pos_eq, Rmult_le_pos; [easy|apply Rabs_pos].
  - intros k K. destruct (E k K) as [A B].
    rewrite Rabs_pos_eq by (apply Rmult_le_pos; [easy|apply Rabs_pos]).
    apply Rmult_le_compat_l with (r := a) in A; [|easy].
    apply Rmult_le_compat_l with (r := a) in B; [|easy]. lra.
Qed.

(** Sorts: the sizes of the units and the errors of all together do not grow. *)
Lemma sort_within t n c cs d :
  network n cs -> within t n c d -> within t n (alike c) (sort cs d).
Proof.
  intros N [O E]. split; simpl.
  - eapply Rle_trans; [now apply sort_size_one|easy].
  - intros k K. split; apply (sort_size_inf n); auto; intros i I; apply E, I.
Qed.

Lemma sort_within_change t n c cs h h' :
  network n cs -> within t n c (fun k => h k - h' k) ->
  within t n (alike c) (fun k => sort cs h k - sort cs h' k).
Proof.
  intros N [O E]. split; simpl.
  - eapply Rle_trans; [now apply sort_lipschitz_one|easy].
  - intros k K. split; apply (sort_lipschitz_inf n); auto; intros i I; apply E, I.
Qed.

(** Norms of layers multiply: the slopes of the exact function. *)
Theorem growth_sound A g : forall n t c x y,
  fits A g n -> 0 <= t -> within t n c (fun k => x k - y k) ->
  within t (width g n) (growth g n c) (fun k => exact g x k - exact g y k).
Proof.
  induction g as [|m n' W b o|cs|a|f IHf g IHg|s w member IH o]; intros n t c x y F T H; simpl in *.
  - easy.
  - destruct F as [-> _]. eapply within_le; [now apply through_sound; eauto|].
    intros j J. simpl. right. f_equal.
    rewrite (sum_ext n (fun k => W j k * (x k - y k)) (fun k => W j k * x k - W j k * y k))
      by (intros; ring).
    rewrite sum_minus. ring.
  - now apply sort_within_change.
  - destruct F as [P [_ [L _]]]. apply alike_sound.
    eapply within_le; [apply scaled_sound; eassumption|]. intros k K. simpl.
    rewrite (Rabs_pos_eq (_ * _)); [apply L|apply Rmult_le_pos; [easy|apply Rabs_pos]].
  - destruct F as [F G]. apply IHg; auto.
  - destruct F as [_ [F _]]. eapply within_le.
    + apply (weigh_sound t (width (member O) n) s w (fun k => growth (member k) n c)
               (fun k j => exact (member k) x j - exact (member k) y j)).
      intros k K. destruct (F k K) as [Fk <-]. now apply IH.
    + intros j J. simpl. right. f_equal.
      rewrite (sum_ext s (fun k => w k * (exact (member k) x j - exact (member k) y j))
                 (fun k => w k * exact (member k) x j - w k * exact (member k) y j))
        by (intros; ring).
      now rewrite sum_minus.
Qed.

(** What m rounded sums add to sizes and errors. *)
Lemma rounded_sound A m n sizes errors (v e h' h : vec) :
  few A n -> within 1 m sizes v -> (forall j, (j < m)%nat -> 0 <= v j) ->
  within 1 m errors e ->
  (forall j, (j < m)%nat -> Rabs (h' j) <= v j + fresh A n (v j)) ->
  (forall j, (j < m)%nat -> Rabs (h' j - h j) <= Rabs (e j) + fresh A n (v j)) ->
  known m (rounded A m n sizes errors) h' h.
Proof.
  intros F V P E S D. pose proof (gamma_nonneg A n F) as G.
  assert (X : forall j, (j < m)%nat -> fresh A n (v j) <= fresh A n (each sizes j)).
  { intros j J. destruct V as [_ V]. destruct (V j J) as [_ B]. rewrite Rabs_pos_eq in B by auto.
    unfold fresh. apply Rplus_le_compat_r, Rmult_le_compat_l; lra. }
  assert (Y : sum m (fun j => fresh A n (v j)) <= gamma A n * one sizes + INR m * (INR n * tiny A)).
  { unfold fresh. rewrite sum_plus, sum_scale, sum_const. apply Rplus_le_compat_r, Rmult_le_compat_l.
    - easy.
    - destruct V as [V _]. rewrite (sum_ext m _ v) in V by (intros; apply Rabs_pos_eq; auto). lra. }
  split; simpl.
  - apply (raised_sound m sizes _ _ v h' (fun j => fresh A n (v j))); auto.
    intros j J. rewrite (Rabs_pos_eq (v j)); auto.
  - apply (raised_sound m errors _ _ e _ (fun j => fresh A n (v j))); auto.
Qed.

Lemma activated_sound A n a x h' h :
  is_activation A a -> known n x h' h ->
  known n (activated A n a x) (fun j => shaped a (h' j)) (fun j => shape a (h j)).
Proof.
  intros [P [Z [L B]]] [S E]. pose proof (unit_nonneg A) as U.
  set (v := fun j => steepness a * Rabs (h' j) + at_zero a).
  assert (Z0 : 0 <= at_zero a) by (eapply Rle_trans; [apply Rabs_pos|exact Z]).
  assert (V0 : forall j, 0 <= v j).
  { intros j. apply Rplus_le_le_0_compat; [apply Rmult_le_pos; [easy|apply Rabs_pos]|easy]. }
  assert (SV : forall j, Rabs (shape a (h' j)) <= v j).
  { intros j. pose proof (L (h' j) 0) as K. rewrite Rminus_0_r in K. unfold v.
    replace (shape a (h' j)) with (shape a (h' j) - shape a 0 + shape a 0) by ring.
    eapply Rle_trans; [apply Rabs_triang|lra]. }
  assert (BV : forall j, Rabs (shaped a (h' j) - shape a (h' j)) <=
                         2 * unit A * v j + (formula_error a + 4 * tiny A)).
  { intros j. eapply Rle_trans; [apply B|]. apply Rplus_le_compat_r, Rmult_le_compat_l; auto; lra. }
  assert (V : within 1 n (raised n (alike (scaled (steepness a) (size x)))
                 (INR n * at_zero a) (fun _ => at_zero a)) v).
  { apply (raised_sound n _ _ _ (fun j => steepness a * Rabs (h' j)) v (fun _ => at_zero a)).
    - now apply alike_sound, scaled_sound.
    - intros j _. rewrite (Rabs_pos_eq (v j)) by auto.
      rewrite Rabs_pos_eq; [unfold v; lra|apply Rmult_le_pos; [easy|apply Rabs_pos]].
    - intros; lra.
    - rewrite sum_const; lra. }
  unfold activated.
  set (sizes := raised n (alike (scaled (steepness a) (size x)))
                 (INR n * at_zero a) (fun _ => at_zero a)) in *.
  set (small := formula_error a + 4 * tiny A) in *.
  set (p := fun j => 2 * unit A * v j + small).
  assert (X : forall j, (j < n)%nat -> p j <= 2 * unit A * each sizes j + small).
  { intros j J. destruct V as [_ V]. destruct (V j J) as [_ K]. rewrite Rabs_pos_eq in K by auto.
    unfold p. apply Rplus_le_compat_r, Rmult_le_compat_l; lra. }
  assert (Y : sum n p <= 2 * unit A * one sizes + INR n * small).
  { unfold p. rewrite sum_plus, sum_scale, sum_const. apply Rplus_le_compat_r, Rmult_le_compat_l; [lra|].
    destruct V as [V _]. rewrite (sum_ext n _ v) in V by (intros; apply Rabs_pos_eq; auto). lra. }
  split; simpl.
  - apply (raised_sound n sizes _ _ v _ p); auto. intros j J. rewrite (Rabs_pos_eq (v j)) by auto.
    specialize (BV j). specialize (SV j). unfold p.
    replace (shaped a (h' j)) with (shaped a (h' j) - shape a (h' j) + shape a (h' j)) by ring.
    eapply Rle_trans; [apply Rabs_triang|lra].
  - apply (raised_sound n _ _ _ (fun j => steepness a * Rabs (h' j - h j)) _ p); auto.
    + now apply alike_sound, (scaled_sound 1 n (error x) (fun k => h' k - h k)).
    + intros j J. specialize (BV j). unfold p.
      rewrite (Rabs_pos_eq (_ * Rabs _)) by (apply Rmult_le_pos; [easy|apply Rabs_pos]).
      replace (shaped a (h' j) - shape a (h j)) with
        ((shape a (h' j) - shape a (h j)) + (shaped a (h' j) - shape a (h' j))) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. specialize (L (h' j) (h j)). lra.
Qed.

(** The error bound through all steps. *)
Theorem follow_sound A g : forall n x h' h,
  fits A g n -> known n x h' h ->
  known (width g n) (follow A g n x) (computed A g h') (exact g h).
Proof.
  induction g as [|m n' W b o|cs|a|f IHf g IHg|s w member IH o]; intros n x h' h F H; simpl in *.
  - easy.
  - destruct F as [-> [F O]]. destruct H as [S E].
    set (v := fun j => sizes n W h' j + Rabs (b j)).
    apply (rounded_sound A m (n + 1) _ _ v (fun j => sum n (fun k => W j k * (h' k - h k)))); auto.
    + apply (raised_sound m _ _ _ (sizes n W h') v (fun j => Rabs (b j))); auto; try lra.
      * apply through_sizes; auto; lra.
      * intros j J. unfold v. pose proof (sizes_nonneg n W h' j). pose proof (Rabs_pos (b j)).
        rewrite (Rabs_pos_eq (_ + _)), (Rabs_pos_eq (sizes n W h' j)); lra.
      * intros; lra.
    + intros j J. pose proof (sizes_nonneg n W h' j). pose proof (Rabs_pos (b j)). unfold v; lra.
    + apply through_sound; auto; lra.
    + intros j J. pose proof (dot_error A (b j) (W j) h' n (o j) (O j J) F) as D.
      assert (Rabs (b j + sum n (fun k => W j k * h' k)) <= v j).
      { eapply Rle_trans; [apply Rabs_triang|]. unfold v, sizes. rewrite Rplus_comm.
        apply Rplus_le_compat_r. eapply Rle_trans; [apply sum_abs|].
        right; apply sum_ext; intros; apply Rabs_mult. }
      set (y := evaluate A (fun _ => b j) (W j) h' (o j)) in *.
      set (z := b j + sum n (fun k => W j k * h' k)) in *.
      replace (Rabs (b j) + sum n (fun k => Rabs (W j k) * Rabs (h' k))) with (v j) in D
        by (unfold v, sizes; ring).
      replace y with (y - z + z) by ring. eapply Rle_trans; [apply Rabs_triang|].
      lra.
    + intros j J. pose proof (dot_error A (b j) (W j) h' n (o j) (O j J) F) as D.
      replace (Rabs (b j) + sum n (fun k => Rabs (W j k) * Rabs (h' k))) with (v j) in D
        by (unfold v, sizes; ring).
      rewrite (sum_ext n (fun k => W j k * (h' k - h k)) (fun k => W j k * h' k - W j k * h k))
        by (intros; ring).
      rewrite sum_minus.
      set (y := evaluate A (fun _ => b j) (W j) h' (o j)) in *.
      set (s := sum n (fun k => W j k * h' k)) in *. set (t := sum n (fun k => W j k * h k)) in *.
      replace (y - (b j + t)) with ((s - t) + (y - (b j + s))) by ring.
      eapply Rle_trans; [apply Rabs_triang|lra].
  - destruct H as [S E]. split; [now apply sort_within|now apply sort_within_change].
  - now apply activated_sound.
  - destruct F as [F G]. apply IHg; auto.
  - destruct F as [F [M P]]. set (m := width (member O) n) in *.
    set (c := fun k => computed A (member k) h'). set (e := fun k => exact (member k) h).
    assert (B : forall k, (k < s)%nat -> known m (follow A (member k) n x) (c k) (e k)).
    { intros k K. destruct (M k K) as [Fk <-]. now apply IH. }
    set (v := fun j => sum s (fun k => Rabs (w k) * Rabs (c k j))).
    assert (V0 : forall j, 0 <= v j).
    { intros j. apply sum_nonneg; intros; apply Rmult_le_pos; apply Rabs_pos. }
    assert (D : forall j, (j < m)%nat ->
      Rabs (evaluate A (fun _ => 0) w (fun k => c k j) (o j) - sum s (fun k => w k * c k j)) <=
      fresh A (s + 1) (v j)).
    { intros j J. apply weighted_error; auto. }
    apply (rounded_sound A m (s + 1) _ _ v (fun j => sum s (fun k => w k * (c k j - e k j)))); auto.
    + apply weigh_sizes. intros k K. now destruct (B k K).
    + apply (weigh_sound 1 m s w _ (fun k j => c k j - e k j)). intros k K. now destruct (B k K).
    + intros j J. specialize (D j J).
      assert (Rabs (sum s (fun k => w k * c k j)) <= v j).
      { eapply Rle_trans; [apply sum_abs|]. right; apply sum_ext; intros; apply Rabs_mult. }
      set (y := evaluate A (fun _ => 0) w (fun k => c k j) (o j)) in *.
      set (z := sum s (fun k => w k * c k j)) in *.
      change (Rabs y <= v j + fresh A (s + 1) (v j)).
      replace y with (y - z + z) by ring. eapply Rle_trans; [apply Rabs_triang|lra].
    + intros j J. specialize (D j J).
      rewrite (sum_ext s (fun k => w k * (c k j - e k j)) (fun k => w k * c k j - w k * e k j))
        by (intros; ring).
      rewrite sum_minus.
      set (y := evaluate A (fun _ => 0) w (fun k => c k j) (o j)) in *.
      set (z := sum s (fun k => w k * c k j)) in *.
      change (Rabs (y - sum s (fun k => w k * e k j)) <=
              Rabs (z - sum s (fun k => w k * e k j)) + fresh A (s + 1) (v j)).
      set (t := sum s (fun k => w k * e k j)) in *.
      replace (y - t) with ((z - t) + (y - z)) by ring.
      eapply Rle_trans; [apply Rabs_triang|lra].
Qed.
