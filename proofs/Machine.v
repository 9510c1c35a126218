(** Machine: IEEE 754 numbers themselves. Where no size reaches 2^emax, nothing overflows, and the
    operations of the standard give the real numbers of [computed]. *)
From Coq Require Import SpecFloat.
From Flocq Require Export BinarySingleNaN.
From Isotone Require Export Score.

Section Format.
  Variables (prec emax : Z).
  Context (prec_positive : Prec_gt_0 prec) (prec_below : Prec_lt_emax prec emax).
  Notation float := (binary_float prec emax).
  Notation real := (@B2R prec emax).
  Notation finite := (@is_finite prec emax).
  Notation top := (bpow radix2 emax).

  Variable A : arithmetic.
  Hypothesis A_is_format : forall x, fl A x = round radix2 (SpecFloat.fexp prec emax) ZnearestE x.

  Definition plus : float -> float -> float := Bplus mode_NE.
  Definition times : float -> float -> float := Bmult mode_NE.
  Definition fused : float -> float -> float -> float := Bfma mode_NE.

  (** A sum in an order, by the operations of the standard. *)
  Fixpoint run_sum (b w h : nat -> float) (o : order) : float :=
    match o with
    | Leaf (Number k) => b k
    | Leaf (Times k) => times (w k) (h k)
    | Add s t => plus (run_sum b w h s) (run_sum b w h t)
    | Fused s k => fused (w k) (h k) (run_sum b w h s)
    end.

  Definition leaf_finite (b w h : nat -> float) (t : term) : Prop :=
    match t with
    | Number k => finite (b k) = true
    | Times k => finite (w k) = true /\ finite (h k) = true
    end.

  Lemma exact_numbers_near (b : vec) k :
    Rabs (b k - b k) <= (grown A (1 + 0) - 1) * Rabs (b k) + grown A (1 + 0) * (tiny A / 4).
  Proof.
    rewrite Rminus_diag_eq, Rabs_R0 by easy. pose proof (grown_ge_1 A (1 + 0)).
    pose proof (tiny_nonneg A). pose proof (Rabs_pos (b k)).
    apply Rplus_le_le_0_compat; apply Rmult_le_pos; lra.
  Qed.

  Lemma evaluate_size (b w h : vec) o n s :
    few A n -> (length (leaves o) <= n)%nat ->
    total (fun t => Rabs (value w h b t)) (leaves o) <= s -> s + fresh A n s < top ->
    Rabs (evaluate A b w h o) < top.
  Proof.
    intros F L T B. eapply Rle_lt_trans; [|exact B].
    assert (H := sum_error A b b w h 0 o (exact_numbers_near b)).
    specialize (H ltac:(rewrite Nat.add_0_r; now apply (few_le A _ n))).
    pose proof (total_abs w h b (leaves o)) as V.
    assert (K : fresh A (length (leaves o) + 0) (total (fun t => Rabs (value w h b t)) (leaves o)) <=
                fresh A n s).
    { apply fresh_le; [easy|lia|]. split; [apply total_abs_nonneg|easy]. }
    set (y := evaluate A b w h o) in *. set (z := total (value w h b) (leaves o)) in *.
    replace y with (y - z + z) by ring. eapply Rle_trans; [apply Rabs_triang|lra].
  Qed.

  (** Without overflow the standard's sum is the one of the model, and it is a number. *)
  Theorem run_sum_sound b w h n s o :
    let b' k := real (b k) in let w' k := real (w k) in let h' k := real (h k) in
    (forall t, In t (leaves o) -> leaf_finite b w h t) ->
    few A n -> (length (leaves o) <= n)%nat ->
    total (fun t => Rabs (value w' h' b' t)) (leaves o) <= s -> s + fresh A n s < top ->
    real (run_sum b w h o) = evaluate A b' w' h' o /\ finite (run_sum b w h o) = true.
  Proof.
    intros b' w' h' Fin F L T B. pose proof (evaluate_size b' w' h' o n s F L T B) as Y.
    induction o as [[k|k]|o1 IH1 o2 IH2|o IH k]; simpl in *.
    - split; [easy|]. now apply (Fin (Number k)); left.
    - destruct (Fin (Times k)) as [Fw Fh]; [now left|].
      pose proof (Bmult_correct prec emax _ _ mode_NE (w k) (h k)) as H.
      rewrite A_is_format in *. rewrite Rlt_bool_true in H by exact Y.
      destruct H as [H1 [H2 _]]. split; [exact H1|]. unfold times. rewrite H2. now rewrite Fw, Fh.
    - rewrite total_app, app_length in *.
      pose proof (total_abs_nonneg w' h' b' (leaves o1)). pose proof (total_abs_nonneg w' h' b' (leaves o2)).
      assert (F1 : forall t, In t (leaves o1) -> leaf_finite b w h t) by (intros; apply Fin, in_or_app; auto).
      assert (F2 : forall t, In t (leaves o2) -> leaf_finite b w h t) by (intros; apply Fin, in_or_app; auto).
      destruct IH1 as [R1 N1]; auto; try lia; try lra.
      { apply (evaluate_size b' w' h' o1 n s); auto; try lia; lra. }
      destruct IH2 as [R2 N2]; auto; try lia; try lra.
      { apply (evaluate_size b' w' h' o2 n s); auto; try lia; lra. }
      pose proof (Bplus_correct prec emax _ _ mode_NE _ _ N1 N2) as H1.
      rewrite R1, R2 in H1. rewrite A_is_format in *. rewrite Rlt_bool_true in H1 by exact Y.
      destruct H1 as [H1 [H2 _]]. split; [exact H1|exact H2].
    - rewrite total_app, app_length in *. simpl in *.
      pose proof (Rabs_pos (w' k * h' k)).
      assert (F1 : forall t, In t (leaves o) -> leaf_finite b w h t) by (intros; apply Fin, in_or_app; auto).
      destruct (Fin (Times k)) as [Fw Fh]; [apply in_or_app; right; simpl; auto|].
      destruct IH as [R1 N1]; auto; try lia; try lra.
      { apply (evaluate_size b' w' h' o n s); auto; try lia; lra. }
      pose proof (Bfma_correct prec emax _ _ mode_NE (w k) (h k) _ Fw Fh N1) as H1. simpl in H1.
      rewrite R1 in H1. rewrite (Rplus_comm (real (w k) * real (h k))) in H1.
      rewrite A_is_format in *. rewrite Rlt_bool_true in H1 by exact Y.
      destruct H1 as [H1 [H2 _]]. split; [exact H1|exact H2].
  Qed.

  (** Comparators of numbers. *)
  Definition run_compare (c : nat * nat) (h : nat -> float) : nat -> float := fun k =>
    let low := Bleb (h (fst c)) (h (snd c)) in
    if k =? fst c then (if low then h (fst c) else h (snd c))
    else if k =? snd c then (if low then h (snd c) else h (fst c))
    else h k.

  Definition run_sort (cs : list (nat * nat)) (h : nat -> float) : nat -> float :=
    fold_left (fun h c => run_compare c h) cs h.

  Lemma run_compare_sound n c (h : nat -> float) :
    joins n c -> (forall k, (k < n)%nat -> finite (h k) = true) ->
    forall k, (k < n)%nat ->
    real (run_compare c h k) = compare c (fun k => real (h k)) k /\ finite (run_compare c h k) = true.
  Proof.
    intros [I [J D]] F k K. unfold run_compare, compare.
    rewrite (Bleb_correct prec emax _ _ (F _ I) (F _ J)).
    unfold Rmin, Rmax.
    destruct (Rle_bool_spec (real (h (fst c))) (real (h (snd c)))) as [L|L];
      destruct (Rle_dec (real (h (fst c))) (real (h (snd c)))); try lra;
      destruct (k =? fst c); [| | |]; auto; destruct (k =? snd c); auto.
  Qed.

  Lemma run_sort_sound n cs : forall h (u : vec),
    network n cs -> (forall k, (k < n)%nat -> real (h k) = u k /\ finite (h k) = true) ->
    forall k, (k < n)%nat -> real (run_sort cs h k) = sort cs u k /\ finite (run_sort cs h k) = true.
  Proof.
    intros h u N. revert h u. induction N as [|c cs B N IH]; intros h u H; simpl; [easy|].
    apply IH. intros k K.
    destruct (run_compare_sound n c h B (fun k K => proj2 (H k K)) k K) as [R1 F1].
    split; [|exact F1]. rewrite R1. destruct B as [I [J D]]. unfold compare.
    destruct (H _ I) as [-> _], (H _ J) as [-> _], (H _ K) as [-> _]. easy.
  Qed.

  (** Steps with stored numbers of the format. *)
  Inductive program :=
  | PDense (m n : nat) (W : nat -> nat -> float) (b : nat -> float) (o : nat -> order)
  | PSort (cs : list (nat * nat))
  | PThen (f g : program)
  | PMembers (s : nat) (w : nat -> float) (member : nat -> program) (o : nat -> order).

  Fixpoint steps (p : program) : net :=
    match p with
    | PDense m n W b o => Dense m n (fun j k => real (W j k)) (fun j => real (b j)) o
    | PSort cs => Sort cs
    | PThen f g => Then (steps f) (steps g)
    | PMembers s w member o => Members s (fun k => real (w k)) (fun k => steps (member k)) o
    end.

  Fixpoint run (p : program) (h : nat -> float) : nat -> float :=
    match p with
    | PDense m n W b o => fun j => run_sum (fun _ => b j) (W j) h (o j)
    | PSort cs => run_sort cs h
    | PThen f g => run g (run f h)
    | PMembers s w member o => fun j => run_sum (fun _ => B754_zero false) w (fun k => run (member k) h j) (o j)
    end.

  (** Stored numbers are finite, and no size reaches 2^emax: `bounds._refuse_overflow`. *)
  Fixpoint safe (p : program) (n : nat) (x : numbers) : Prop :=
    match p with
    | PDense m k W b o =>
        forall j, (j < m)%nat -> finite (b j) = true /\
          (forall i, (i < n)%nat -> finite (W j i) = true) /\
          each (size (follow A (steps p) n x)) j < top
    | PSort cs => True
    | PThen f g => safe f n x /\ safe g (width (steps f) n) (follow A (steps f) n x)
    | PMembers s w member o =>
        (forall k, (k < s)%nat -> finite (w k) = true /\ safe (member k) n x) /\
        forall j, (j < width (steps (member O)) n)%nat ->
          each (size (follow A (steps p) n x)) j < top
    end.

  Lemma value_size_products (b w h : vec) n :
    total (fun t => Rabs (value w h b t)) (products n) = sum n (fun k => Rabs (w k) * Rabs (h k)).
  Proof. rewrite total_products. apply sum_ext; intros; simpl; apply Rabs_mult. Qed.

  Theorem run_sound p : forall n x h (u : vec),
    fits A (steps p) n -> safe p n x -> known n x u u ->
    (forall k, (k < n)%nat -> real (h k) = u k /\ finite (h k) = true) ->
    forall j, (j < width (steps p) n)%nat ->
    real (run p h j) = computed A (steps p) u j /\ finite (run p h j) = true.
  Proof.
    enough (G : forall n x h (u v : vec),
      fits A (steps p) n -> safe p n x -> known n x u v ->
      (forall k, (k < n)%nat -> real (h k) = u k /\ finite (h k) = true) ->
      forall j, (j < width (steps p) n)%nat ->
      real (run p h j) = computed A (steps p) u j /\ finite (run p h j) = true) by (intros; eapply G; eauto).
    induction p as [m n' W b o|cs|f IHf g IHg|s w member IH o]; intros n x h u v F S B H j J; simpl in *.
    - destruct F as [-> [F D]]. destruct (S j J) as [Fb [Fw T]].
      destruct B as [B _].
      pose proof (through_sizes m n (fun j k => real (W j k)) 1 (size x) u Rle_0_1 B) as [_ V].
      destruct (V j J) as [_ Vj]. rewrite (Rabs_pos_eq (sizes _ _ _ _)) in Vj by apply sizes_nonneg.
      rewrite Rmult_1_l in Vj. simpl in Vj.
      set (sz := rows n (fun j k => real (W j k)) (size x) j + Rabs (real (b j))) in *.
      assert (K : real (run_sum (fun _ => b j) (W j) h (o j)) =
                  evaluate A (fun _ => real (b j)) (fun k => real (W j k)) (fun k => real (h k)) (o j) /\
                  finite (run_sum (fun _ => b j) (W j) h (o j)) = true).
      { apply (run_sum_sound (fun _ => b j) (W j) h (n + 1) sz (o j)); auto.
        - intros t I. apply (Permutation_in _ (D j J)) in I. destruct I as [<-|I]; [exact Fb|].
          destruct (in_products n t I) as [k [-> L]]. split; [now apply Fw|now apply H].
        - rewrite (Permutation_length (D j J)). simpl. rewrite products_length. lia.
        - rewrite (total_permuted _ _ _ (D j J)). simpl. rewrite value_size_products. unfold sz.
          rewrite Rplus_comm. apply Rplus_le_compat_r. eapply Rle_trans; [|exact Vj].
          right. apply sum_ext; intros k L. now destruct (H k L) as [-> _]. }
      destruct K as [K1 K2]. split; [|exact K2]. rewrite K1.
      apply (dot_reads A _ _ _ _ _ n); auto. intros k L. now destruct (H k L).
    - now apply (run_sort_sound n).
    - destruct F as [F G], S as [Sf Sg].
      apply (IHg (width (steps f) n) (follow A (steps f) n x) (run f h) (computed A (steps f) u) (exact (steps f) v)); auto.
      + now apply follow_sound.
      + now apply (IHf n x h u v).
    - destruct F as [F [M D]], S as [S T]. specialize (T j J). set (m := width (steps (member O)) n) in *.
      assert (R : forall k, (k < s)%nat -> real (run (member k) h j) = computed A (steps (member k)) u j /\
                                            finite (run (member k) h j) = true).
      { intros k K. destruct (M k K) as [Fk Wk]. destruct (S k K) as [_ Sk].
        apply (IH k n x h u v); auto. rewrite Wk. exact J. }
      assert (V : within 1 m (weigh s (fun k => real (w k)) (fun k => size (follow A (steps (member k)) n x)))
        (fun j => sum s (fun k => Rabs (real (w k)) * Rabs (computed A (steps (member k)) u j)))).
      { apply weigh_sizes. intros k K. destruct (M k K) as [Fk Wk]. rewrite <- Wk.
        now apply (follow_sound A (steps (member k)) n x u v). }
      destruct V as [_ V]. destruct (V j J) as [_ Vj]. rewrite Rmult_1_l in Vj.
      rewrite Rabs_pos_eq in Vj by (apply sum_nonneg; intros; apply Rmult_le_pos; apply Rabs_pos).
      simpl in Vj.
      set (sz := sum s (fun k => Rabs (real (w k)) * each (size (follow A (steps (member k)) n x)) j)) in *.
      assert (K : real (run_sum (fun _ => B754_zero false) w (fun k => run (member k) h j) (o j)) =
                  evaluate A (fun _ => 0) (fun k => real (w k)) (fun k => real (run (member k) h j)) (o j) /\
                  finite (run_sum (fun _ => B754_zero false) w (fun k => run (member k) h j) (o j)) = true).
      { apply (run_sum_sound (fun _ => B754_zero false) w (fun k => run (member k) h j) (s + 1) sz (o j)); auto.
        - intros t I. apply (Permutation_in _ (D j J)) in I.
          destruct (in_products s t I) as [k [-> L]]. split; [now apply S|now apply R].
        - rewrite (Permutation_length (D j J)), products_length. lia.
        - rewrite (total_permuted _ _ _ (D j J)), value_size_products. eapply Rle_trans; [|exact Vj].
          right. apply sum_ext; intros k L. now destruct (R k L) as [-> _]. }
      destruct K as [K1 K2]. split; [|exact K2]. rewrite K1.
      apply (evaluate_reads A _ _ _ _ _ s (o j)).
      + intros t I. apply (Permutation_in _ (D j J)) in I.
        destruct (in_products s t I) as [k [-> L]]. exact L.
      + intros k K. now destruct (R k K).
  Qed.

  (** Output j of a program with its residual. *)
  Definition run_score (p : program) (j : nat) (r : nat -> float) (o : order) (h : nat -> float) : float :=
    run_sum (fun _ => run p h j) r h o.

  (** No score overflows either. *)
  Definition safe_score (p : program) (n j : nat) (r : nat -> float) (reach : vec) : Prop :=
    let x := follow A (steps p) n (inputs n reach) in
    let s := each (size x) j + sum n (fun i => Rabs (real (r i)) * reach i) in
    safe p n (inputs n reach) /\ (forall i, (i < n)%nat -> finite (r i) = true) /\
    s + fresh A (n + 1) s < top.

  Theorem run_score_sound p n j r o reach h :
    fits A (steps p) n -> (j < width (steps p) n)%nat -> dot o n -> few A (n + 1) ->
    safe_score p n j r reach ->
    (forall k, (k < n)%nat -> Rabs (real (h k)) <= reach k /\ finite (h k) = true) ->
    real (run_score p j r o h) =
      computed_score A (steps p) j (fun i => real (r i)) o (fun i => real (h i)) /\
    finite (run_score p j r o h) = true.
  Proof.
    intros F J D N [S [Fr T]] H.
    set (u := fun i => real (h i)).
    assert (B : known n (inputs n reach) u u).
    { apply inputs_known. intros i I. now apply H. }
    assert (R : real (run p h j) = computed A (steps p) u j /\ finite (run p h j) = true).
    { apply (run_sound p n (inputs n reach) h u); auto. intros k K. split; [easy|now apply H]. }
    destruct R as [R1 R2].
    destruct (follow_sound A (steps p) n (inputs n reach) u u F B) as [[_ Z] _].
    destruct (Z j J) as [_ Zj]. rewrite Rmult_1_l in Zj. rewrite <- R1 in Zj.
    set (s := each (size (follow A (steps p) n (inputs n reach))) j +
              sum n (fun i => Rabs (real (r i)) * reach i)) in *.
    unfold computed_score, run_score. rewrite <- R1.
    apply (run_sum_sound (fun _ => run p h j) r h (n + 1) s o); auto.
    - intros t I. apply (Permutation_in _ D) in I. destruct I as [<-|I]; [exact R2|].
      destruct (in_products n t I) as [k [-> L]]. split; [now apply Fr|now apply H].
    - rewrite (Permutation_length D). simpl. rewrite products_length. lia.
    - rewrite (total_permuted _ _ _ D). simpl. rewrite value_size_products. unfold s.
      apply Rplus_le_compat; [exact Zj|]. apply sum_le; intros i I.
      apply Rmult_le_compat_l; [apply Rabs_pos|now apply H].
  Qed.

  (** The scores of the standard's arithmetic are in order, and none is infinite or NaN. *)
  Theorem machine_last_bit p n j r o s clip q :
    fits A (steps p) n -> (j < width (steps p) n)%nat -> dot o n -> few A (n + 1) ->
    0 < q -> 0 <= clip -> (exists k : Z, clip = IZR k * q) ->
    safe_score p n j r (fun _ => clip) ->
    (forall i, directed n s i ->
       2 * rounding_error A (steps p) n j (fun i => real (r i)) (fun _ => clip) <=
       (sign (s i) * real (r i) - slope (steps p) n j i) * q) ->
    forall x y (u v : nat -> float), in_order n s x y ->
    (forall i, (i < n)%nat -> finite (u i) = true /\ real (u i) = snap q (clamp clip (x i))) ->
    (forall i, (i < n)%nat -> finite (v i) = true /\ real (v i) = snap q (clamp clip (y i))) ->
    finite (run_score p j r o u) = true /\ finite (run_score p j r o v) = true /\
    Bleb (run_score p j r o u) (run_score p j r o v) = true.
  Proof.
    intros F J D N Q C K T M x y u v O U V.
    assert (X : forall (z : vec) (h : nat -> float),
      (forall i, (i < n)%nat -> finite (h i) = true /\ real (h i) = snap q (clamp clip (z i))) ->
      real (run_score p j r o h) = computed_score A (steps p) j (fun i => real (r i)) o
        (fun i => snap q (clamp clip (z i))) /\ finite (run_score p j r o h) = true).
    { intros z h H. destruct (run_score_sound p n j r o (fun _ => clip) h) as [R1 R2]; auto.
      - intros i I. destruct (H i I) as [Fi Ri]. split; [|easy]. rewrite Ri. now apply snap_reach.
      - split; [|exact R2]. rewrite R1. apply (dot_reads A _ _ _ _ _ n); auto.
        + apply (computed_reads A (steps p) n); auto. intros i I. now apply H.
        + intros i I. now apply H. }
    destruct (X x u U) as [R1 F1], (X y v V) as [R2 F2].
    split; [exact F1|split; [exact F2|]]. rewrite Bleb_correct by easy.
    apply Rle_bool_true. rewrite R1, R2. now apply (network_last_bit A (steps p) n j _ o s).
  Qed.
End Format.

(** The two formats, 53 bits below 2^1024 and 24 bits below 2^128, have the arithmetics of
    Arithmetic.v. *)
Lemma format64 x : fl binary64 x = round radix2 (SpecFloat.fexp 53 1024) ZnearestE x.
Proof. reflexivity. Qed.

Lemma format32 x : fl binary32 x = round radix2 (SpecFloat.fexp 24 128) ZnearestE x.
Proof. reflexivity. Qed.

Definition machine64 := machine_last_bit 53 1024 eq_refl eq_refl binary64 format64.
Definition machine32 := machine_last_bit 24 128 eq_refl eq_refl binary32 format32.
