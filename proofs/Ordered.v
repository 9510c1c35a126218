(** Ordered: single roundings, as `isotone.certificate.ordered` charges them in float32, and the
    tables of look-ups, which are rounded before a sum begins. *)
From Isotone Require Export Summation.

Section Rounding.
  Variables (emin prec : Z).
  Context (positive : Prec_gt_0 prec).

  (** A rounding moves a number by at most half a unit in the last place of any larger one. *)
  Lemma half_ulp s m :
    Rabs s <= Rabs m ->
    Rabs (nearest emin prec s - s) <= / 2 * ulp radix2 (FLT_exp emin prec) m.
  Proof.
    intros H. eapply Rle_trans; [apply error_le_half_ulp; apply FLT_exp_valid, positive|].
    apply Rmult_le_compat_l; [lra|]. apply ulp_le; [apply FLT_exp_valid, positive|apply FLT_exp_monotone|easy].
  Qed.

  (** Whole numbers of a power of two p up to 2^prec p are not rounded at all. *)
  Lemma multiple_exact k e :
    (emin <= e)%Z -> (Z.abs k <= 2 ^ prec)%Z -> nearest emin prec (IZR k * bpow radix2 e) = IZR k * bpow radix2 e.
  Proof.
    intros E K. unfold Prec_gt_0 in positive. apply round_generic; [apply valid_rnd_N|].
    destruct (Z.eq_dec (Z.abs k) (2 ^ prec)) as [P|P].
    - apply generic_format_abs_inv. rewrite Rabs_mult, <- abs_IZR, P, (Rabs_pos_eq (bpow _ _)) by apply bpow_ge_0.
      change 2%Z with (radix_val radix2). rewrite IZR_Zpower by lia. rewrite <- bpow_plus.
      apply generic_format_bpow. unfold FLT_exp. lia.
    - apply generic_format_FLT. exists (Float radix2 k e); [easy| |easy]. simpl. lia.
  Qed.
End Rounding.

(** A table that is rounded once is as near as [look_up_error] wants it. *)
Lemma table_once A x :
  Rabs (fl A x - x) <= (grown A 2 - 1) * Rabs x + grown A 2 * (tiny A / 4).
Proof.
  pose proof (fl_error A x) as H. pose proof (unit_nonneg A) as U. pose proof (tiny_nonneg A) as T.
  pose proof (Rabs_pos x) as X. pose proof (grown_ge_1 A 2) as G.
  assert (unit A <= grown A 2 - 1).
  { unfold grown. simpl. assert (0 <= unit A * unit A) by now apply Rmult_le_pos. lra. }
  assert (unit A * Rabs x <= (grown A 2 - 1) * Rabs x) by (apply Rmult_le_compat_r; lra).
  assert (1 * (tiny A / 4) <= grown A 2 * (tiny A / 4)) by (apply Rmult_le_compat_r; lra).
  lra.
Qed.

(** In float32 tables are rounded to binary64 first. *)
Lemma table_twice x :
  Rabs (fl binary32 (fl binary64 x) - x) <=
  (grown binary32 2 - 1) * Rabs x + grown binary32 2 * (tiny binary32 / 4).
Proof.
  pose proof (fl_error binary64 x) as H.
  pose proof (fl_near binary32 (fl binary64 x) x (Rabs x) (Rle_refl _)) as K.
  pose proof (Rabs_pos x) as X.
  assert (G : grown binary32 2 = (1 + unit binary32) * (1 + unit binary32)) by (unfold grown; ring).
  rewrite G; clear G.
  set (y := fl binary64 x) in *. set (z := fl binary32 y) in *.
  assert (U : unit binary64 <= unit binary32) by (apply bpow_le; lia).
  pose proof (unit_nonneg binary32) as U0.
  assert (T : tiny binary64 <= unit binary32 * tiny binary32).
  { change (bpow radix2 (-1022) <= bpow radix2 (-24) * bpow radix2 (-126)).
    rewrite <- bpow_plus. apply bpow_le; lia. }
  pose proof (tiny_nonneg binary64) as T0. pose proof (tiny_nonneg binary32) as T1.
  set (u := unit binary32) in *. set (t := tiny binary32) in *. set (s := tiny binary64) in *.
  assert (D : Rabs (y - x) <= u * Rabs x + s / 4).
  { eapply Rle_trans; [exact H|]. apply Rplus_le_compat_r, Rmult_le_compat_r; easy. }
  apply Rmult_le_compat_l with (r := 1 + u) in D; [|lra].
  apply Rmult_le_compat_l with (r := 1 + u) in T; [|lra].
  assert (0 <= u * t) by now apply Rmult_le_pos.
  eapply Rle_trans; [exact K|].
  apply Rle_trans with ((1 + u) * (u * Rabs x + s / 4) + u * Rabs x + t / 4); [lra|].
  lra.
Qed.
