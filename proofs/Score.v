(** Score: a network with its residual, its slopes and its E; computed scores are in order. *)
From Isotone Require Export Network Margin.

(** Feature i moves by one, and no other. *)
Definition single (i : nat) : change :=
  {| one := 1; inf := 1; each := fun k => if k =? i then 1 else 0 |}.

(** L: how steep output j of g can be along feature i. *)
Definition slope (g : net) (n j i : nat) : R := each (growth g n (single i)) j.

(** Rows with the first k features of y and the others of x lead from x to y. *)
Definition mixed (k : nat) (x y : vec) : vec := fun i => if i <? k then y i else x i.

Lemma exact_reads A g : forall n x y,
  fits A g n -> (forall i, (i < n)%nat -> x i = y i) ->
  forall j, (j < width g n)%nat -> exact g x j = exact g y j.
Proof.
  intros n x y F H j J.
  assert (Z : forall k, (k < n)%nat -> Rabs (x k - y k) = 0).
  { intros k K. rewrite H, Rminus_diag_eq, Rabs_R0; auto. }
  pose proof (growth_sound A g n 0 {| one := 0; inf := 0; each := fun _ => 0 |} x y F (Rle_refl 0)) as G0.
  destruct G0 as [_ G0].
  - split; simpl; [rewrite sum_zero; auto; lra|]. intros k K. rewrite Z by easy. lra.
  - destruct (G0 j J) as [B _]. rewrite Rmult_0_l in B.
    apply Rminus_diag_uniq, Rabs_eq_R0, Rle_antisym; [easy|apply Rabs_pos].
Qed.

(** The slopes of the certificate are slopes: one feature after the other. *)
Theorem slopes_sound A g n j :
  fits A g n -> (j < width g n)%nat ->
  slopes_within everywhere n (slope g n j) (fun x => exact g x j).
Proof.
  intros F J x y _ _.
  assert (S : forall k, (k < n)%nat ->
    Rabs (exact g (mixed k x y) j - exact g (mixed (S k) x y) j) <= slope g n j k * Rabs (x k - y k)).
  { intros k K.
    destruct (growth_sound A g n (Rabs (x k - y k)) (single k) (mixed k x y) (mixed (S k) x y) F)
      as [_ E].
    - apply Rabs_pos.
    - assert (D : forall i, mixed k x y i - mixed (S k) x y i = if i =? k then x k - y k else 0).
      { intros i. unfold mixed. destruct (Nat.ltb_spec i k), (Nat.ltb_spec i (S k)), (Nat.eqb_spec i k);
          subst; try lia; try easy; lra. }
      split; simpl.
      + rewrite (sum_single n _ k K).
        * rewrite D, Nat.eqb_refl. lra.
        * intros i _ N. rewrite D. destruct (Nat.eqb_spec i k); [easy|apply Rabs_R0].
      + intros i I. rewrite D. pose proof (Rabs_pos (x k - y k)).
        destruct (i =? k); [lra|rewrite Rabs_R0; lra].
    - destruct (E j J) as [_ B]. rewrite Rmult_comm. exact B. }
  assert (P : forall k, (k <= n)%nat ->
    Rabs (exact g (mixed 0 x y) j - exact g (mixed k x y) j) <=
    sum k (fun i => slope g n j i * Rabs (x i - y i))).
  { induction k as [|k IH]; intros K; simpl.
    - rewrite Rminus_diag_eq, Rabs_R0 by easy. lra.
    - specialize (IH ltac:(lia)). specialize (S k ltac:(lia)).
      replace (exact g (mixed 0 x y) j - exact g (mixed (Datatypes.S k) x y) j) with
        ((exact g (mixed 0 x y) j - exact g (mixed k x y) j) +
         (exact g (mixed k x y) j - exact g (mixed (Datatypes.S k) x y) j)) by ring.
      eapply Rle_trans; [apply Rabs_triang|lra]. }
  specialize (P n (le_n n)).
  rewrite (exact_reads A g n (mixed n x y) y F) in P; auto.
  intros i I. unfold mixed. destruct (Nat.ltb_spec i n); [easy|lia].
Qed.

(** What is known of the inputs: none is larger than its reach, and they are exact. *)
Definition inputs (n : nat) (reach : vec) : numbers :=
  {| size := {| one := sum n reach; inf := largest n reach; each := reach |};
     error := {| one := 0; inf := 0; each := fun _ => 0 |} |}.

Definition reached (n : nat) (reach u : vec) : Prop :=
  forall i, (i < n)%nat -> Rabs (u i) <= reach i.

Lemma inputs_known n reach u : reached n reach u -> known n (inputs n reach) u u.
Proof.
  intros U. split; split; simpl.
  - rewrite Rmult_1_l. now apply sum_le.
  - intros k K. rewrite !Rmult_1_l. split; [|now apply U].
    eapply Rle_trans; [now apply U|now apply (le_largest n reach)].
  - rewrite sum_zero; [lra|]. intros. rewrite Rminus_diag_eq, Rabs_R0; easy.
  - intros k K. rewrite Rminus_diag_eq, Rabs_R0 by easy. lra.
Qed.

(** Output j as computed: g, then the products of the residual, in any order. *)
Definition computed_score (A : arithmetic) (g : net) (j : nat) (r : vec) (o : order) (u : vec) : R :=
  evaluate A (fun _ => computed A g u j) r u o.

(** E of `bounds.rounding_errors`, for output j. *)
Definition rounding_error (A : arithmetic) (g : net) (n j : nat) (r reach : vec) : R :=
  let x := follow A g n (inputs n reach) in
  fresh A (n + 1) (each (size x) j + sum n (fun i => Rabs (r i) * reach i)) + each (error x) j.

Theorem rounding_error_sound A g n j r reach o u :
  fits A g n -> (j < width g n)%nat -> dot o n -> few A (n + 1) -> reached n reach u ->
  Rabs (computed_score A g j r o u - score n (fun x => exact g x j) r u) <=
  rounding_error A g n j r reach.
Proof.
  intros F J D N U.
  destruct (follow_sound A g n (inputs n reach) u u F) as [S E].
  { now apply inputs_known. }
  destruct S as [_ S], E as [_ E]. destruct (S j J) as [_ Sj]. destruct (E j J) as [_ Ej].
  rewrite Rmult_1_l in *. pose proof (dot_error A (computed A g u j) r u n o D N) as B.
  unfold rounding_error, computed_score, score. set (x := follow A g n (inputs n reach)) in *.
  set (y := evaluate A _ r u o) in *. set (t := sum n (fun k => r k * u k)) in *.
  replace (y - (exact g u j + t)) with
    ((y - (computed A g u j + t)) + (computed A g u j - exact g u j)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. apply Rplus_le_compat; [|easy].
  eapply Rle_trans; [exact B|]. apply fresh_le; [easy|lia|]. split.
  - apply Rplus_le_le_0_compat; [apply Rabs_pos|]. apply sum_nonneg; intros.
    apply Rmult_le_pos; apply Rabs_pos.
  - apply Rplus_le_compat; [easy|]. apply sum_le; intros i I.
    apply Rmult_le_compat_l; [apply Rabs_pos|now apply U].
Qed.

(** Equal numbers enter, the same operations follow in the same order: equal bits come out. *)
Lemma evaluate_reads A b b' w h h' n o :
  (forall t, In t (leaves o) -> match t with Number k => b k = b' k | Times k => (k < n)%nat end) ->
  (forall i, (i < n)%nat -> h i = h' i) -> evaluate A b w h o = evaluate A b' w h' o.
Proof.
  intros L H. induction o as [[k|k]|s IHs t IHt|s IHs k]; simpl in *.
  - now apply (L (Number k)); left.
  - rewrite H; [easy|]. now apply (L (Times k)); left.
  - rewrite IHs, IHt; [easy| |]; intros z Z; apply L, in_or_app; auto.
  - rewrite IHs, H; [easy| |].
    + apply (L (Times k)), in_or_app; right; simpl; auto.
    + intros z Z; apply L, in_or_app; auto.
Qed.

Lemma in_products n t : In t (products n) -> exists k, t = Times k /\ (k < n)%nat.
Proof.
  intros H. apply in_map_iff in H. destruct H as [k [<- K]]. apply in_seq in K. exists k; split; [easy|lia].
Qed.

Lemma dot_reads A b b' w h h' n o :
  dot o n -> b = b' -> (forall i, (i < n)%nat -> h i = h' i) ->
  evaluate A (fun _ => b) w h o = evaluate A (fun _ => b') w h' o.
Proof.
  intros D B H. apply (evaluate_reads A _ _ w h h' n o); [|easy].
  intros t T. apply (Permutation_in _ D) in T. destruct T as [<-|T]; [easy|].
  destruct (in_products n t T) as [k [-> K]]. easy.
Qed.

Lemma computed_reads A g : forall n u v,
  fits A g n -> (forall i, (i < n)%nat -> u i = v i) ->
  forall j, (j < width g n)%nat -> computed A g u j = computed A g v j.
Proof.
  induction g as [|m n' W b o|cs|a|f IHf g IHg|s w member IH o]; intros n u v F H j J; simpl in *.
  - auto.
  - destruct F as [-> [_ D]]. eapply dot_reads; eauto.
  - apply (sort_ext n); auto.
  - now rewrite H.
  - destruct F as [F G]. apply (IHg (width f n)); auto. now apply (IHf n).
  - destruct F as [_ [M D]]. apply (evaluate_reads A _ _ w _ _ s (o j)).
    + intros t T. apply (Permutation_in _ (D j J)) in T.
      destruct (in_products s t T) as [k [-> K]]. easy.
    + intros k K. destruct (M k K) as [Fk Wk]. apply (IH k n); auto. now rewrite Wk.
Qed.

(** Clamped and snapped rows are within the clip, if that is a multiple of the grid. *)
Lemma snap_reach q clip x :
  0 < q -> 0 <= clip -> (exists k : Z, clip = IZR k * q) -> Rabs (snap q (clamp clip x)) <= clip.
Proof.
  intros Q C [k K].
  assert (E : forall z : Z, snap q (IZR z * q) = IZR z * q).
  { intros z. unfold snap. replace (IZR z * q / q) with (IZR z) by (field; lra).
    now rewrite Zrnd_IZR; [|apply valid_rnd_N]. }
  assert (B : - clip <= clamp clip x <= clip).
  { unfold clamp. split; [apply Rmax_l|]. apply Rmax_lub; [lra|apply Rmin_l]. }
  apply Rabs_le. split.
  - replace (- clip) with (snap q (- clip)).
    + now apply snap_monotone.
    + rewrite K at 1 2. rewrite <- Ropp_mult_distr_l_reverse, <- opp_IZR. apply E.
  - replace clip with (snap q clip) at 2.
    + now apply snap_monotone.
    + rewrite K. apply E.
Qed.

(** The end: if the margin along every declared feature is at least 2 E / q, the computed scores
    of any two rows in order are in order, in this arithmetic and for this order of sums. *)
Theorem network_last_bit A g n j r o s clip q :
  fits A g n -> (j < width g n)%nat -> dot o n -> few A (n + 1) ->
  0 < q -> 0 <= clip -> (exists k : Z, clip = IZR k * q) ->
  (forall i, directed n s i ->
     2 * rounding_error A g n j r (fun _ => clip) <= (sign (s i) * r i - slope g n j i) * q) ->
  forall x y, in_order n s x y ->
  computed_score A g j r o (fun i => snap q (clamp clip (x i))) <=
  computed_score A g j r o (fun i => snap q (clamp clip (y i))).
Proof.
  intros F J D N Q C K M x y O.
  apply (last_bit (reached n (fun _ => clip)) n (slope g n j) (fun x => exact g x j) r s q
           (rounding_error A g n j r (fun _ => clip)) (fun _ x => snap q (clamp clip x))); auto.
  - intros u v _ _. now apply (slopes_sound A).
  - intros i _. now apply snap_cells.
  - intros u v H. apply (dot_reads A _ _ r u v n o); auto. now apply (computed_reads A g n).
  - intros u U. now apply rounding_error_sound.
  - intros i _. now apply snap_reach.
  - intros i _. now apply snap_reach.
Qed.
