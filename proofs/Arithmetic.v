(** Arithmetic: what is used of IEEE 754, and that binary64 and binary32 have it. *)
From Isotone Require Export Sums.

(** Rounding is monotone, and errs by at most [unit] times the number and, where it underflows, by
    a quarter of [tiny]. Nothing else is used of it in bounds on errors. *)
Record arithmetic := {
  fl : R -> R;
  unit : R;
  tiny : R;
  unit_nonneg : 0 <= unit;
  tiny_nonneg : 0 <= tiny;
  fl_error : forall x, Rabs (fl x - x) <= unit * Rabs x + tiny / 4;
  fl_monotone : forall x y, x <= y -> fl x <= fl y
}.

(** Rounding to nearest, ties to even, to numbers of [prec] bits above 2^[emin], subnormal ones
    included. *)
Definition nearest (emin prec : Z) : R -> R := round radix2 (FLT_exp emin prec) ZnearestE.

Lemma nearest_error emin prec u t :
  (0 < prec)%Z -> u = bpow radix2 (- prec) -> bpow radix2 (emin + 1) <= t ->
  forall x, Rabs (nearest emin prec x - x) <= u * Rabs x + t / 4.
Proof.
  intros P -> T x.
  destruct (error_N_FLT radix2 emin prec P (fun z => negb (Z.even z)) x) as [e [d [E [D [_ H]]]]].
  unfold nearest. rewrite H. replace (x * (1 + e) + d - x) with (e * x + d) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult.
  apply Rplus_le_compat.
  - apply Rmult_le_compat_r; [apply Rabs_pos|].
    eapply Rle_trans; [exact E|]. rewrite bpow_plus, bpow_1. simpl; lra.
  - eapply Rle_trans; [exact D|]. rewrite bpow_plus, bpow_1 in T. simpl in T; lra.
Qed.

Lemma nearest_monotone emin prec :
  (0 < prec)%Z -> forall x y, x <= y -> nearest emin prec x <= nearest emin prec y.
Proof.
  intros P x y H. apply round_le; [now apply FLT_exp_valid|apply valid_rnd_N|easy].
Qed.

(** The unit roundoffs and the bounds on an underflow of src/isotone/certificate/bounds.py. *)
Definition binary64 : arithmetic.
Proof.
  refine {| fl := nearest (-1074) 53; unit := bpow radix2 (-53); tiny := bpow radix2 (-1022) |};
    try apply bpow_ge_0.
  - now apply nearest_error; try apply bpow_le.
  - now apply nearest_monotone.
Defined.

Definition binary32 : arithmetic.
Proof.
  refine {| fl := nearest (-149) 24; unit := bpow radix2 (-24); tiny := bpow radix2 (-126) |};
    try apply bpow_ge_0.
  - now apply nearest_error; try apply bpow_le.
  - now apply nearest_monotone.
Defined.
