(** Statements: what is proved, on one page. Every theorem here is an instance of one in the file
    named beside it; the last line prints the axioms of all, which are those of Coq's reals.

    Rows and units are functions of an index, [vec], of which the first n entries count. [sum n f]
    is f 0 + ... + f (n - 1). A feature is [Rising], [Falling] or [Free]; [in_order n s x y]: from
    row x to row y every feature moves in its direction, and free ones stay. [score n g r x] is
    g x + r . x. A [net] consists of dense steps, sorts, activations and weighted members; [exact]
    is its function of real numbers and [computed A] what a machine of arithmetic A makes of it. *)
From Isotone Require Import Machine Knots Elementary Ordered.

(** (a) Eq. 3 (Residual.v): g with slopes at most lambda_i, plus s_i lambda_i x_i, is monotone. *)
Theorem paper_eq3 : forall n lambda g s,
  slopes_within everywhere n lambda g ->
  forall x y, in_order n s x y ->
  score n g (fun i => sign (s i) * lambda i) x <= score n g (fun i => sign (s i) * lambda i) y.
Proof. exact eq3. Qed.

(** So is any residual that is at least as steep, and any joint direction d along which it is. *)
Theorem steeper_residual : forall n L g r s,
  slopes_within everywhere n L g ->
  (forall i, directed n s i -> L i <= sign (s i) * r i) ->
  forall x y, in_order n s x y -> score n g r x <= score n g r y.
Proof. intros. now apply (residual_monotone everywhere n L g r s). Qed.

Theorem joint_direction : forall n L g r d,
  slopes_within everywhere n L g ->
  sum n (fun i => L i * Rabs (d i)) <= sum n (fun i => r i * d i) ->
  forall x t, 0 <= t -> score n g r x <= score n g r (fun i => x i + t * d i).
Proof. exact joint_monotone. Qed.

(** (b) GroupSort (Comparators.v): any network of comparators permutes its units, and is
    1-Lipschitz in every p-norm. *)
Theorem sort_is_permutation : forall n cs h,
  network n cs -> exists f, permutation n f /\ forall k, (k < n)%nat -> sort cs h k = h (f k).
Proof. exact sort_permutes. Qed.

Theorem sort_is_1_lipschitz : forall p n cs h h',
  1 <= p -> network n cs ->
  norm p n (fun k => sort cs h k - sort cs h' k) <= norm p n (fun k => h k - h' k).
Proof. exact sort_lipschitz. Qed.

Theorem sort_is_1_lipschitz_inf : forall n cs h h' m,
  network n cs -> (forall k, (k < n)%nat -> Rabs (h k - h' k) <= m) ->
  forall k, (k < n)%nat -> Rabs (sort cs h k - sort cs h' k) <= m.
Proof. exact sort_lipschitz_inf. Qed.

(** Norms of layers multiply (Growth.v, Network.v): [slope g n j i], the product of column sums, row
    sums and entries that `bounds.slopes` forms, bounds the slope of output j along feature i. *)
Theorem layers_multiply : forall A g n j,
  fits A g n -> (j < width g n)%nat ->
  slopes_within everywhere n (slope g n j) (fun x => exact g x j).
Proof. exact slopes_sound. Qed.

(** (c) The forward error (Summation.v): b + w . h in any order, with or without fused
    multiply-add, errs by at most gamma (|b| + |w| . |h|) + (n + 1) tiny, gamma being that of n + 1
    roundings; in binary64 and in binary32 (Arithmetic.v). *)
Theorem dot_product : forall A b w h n o,
  dot o n -> INR (n + 1) * unit A <= / 2 ->
  Rabs (evaluate A (fun _ => b) w h o - (b + sum n (fun k => w k * h k))) <=
  gamma A (n + 1) * (Rabs b + sum n (fun k => Rabs (w k) * Rabs (h k))) + INR (n + 1) * tiny A.
Proof. exact dot_error. Qed.

(** E of a whole network (Score.v), as `bounds.rounding_errors` computes it. *)
Theorem error_bound : forall A g n j r reach o u,
  fits A g n -> (j < width g n)%nat -> dot o n -> few A (n + 1) -> reached n reach u ->
  Rabs (computed_score A g j r o u - score n (fun x => exact g x j) r u) <=
  rounding_error A g n j r reach.
Proof. exact rounding_error_sound. Qed.

(** (d) The last bit (Margin.v, Score.v): rows are clamped and snapped to the grid q. If the margin
    (s_i r_i - L_i) q is at least 2 E along every declared feature, computed scores of any two rows
    in order are in order. *)
Theorem computed_scores_in_order : forall A g n j r o s clip q,
  fits A g n -> (j < width g n)%nat -> dot o n -> few A (n + 1) ->
  0 < q -> 0 <= clip -> (exists k : Z, clip = IZR k * q) ->
  (forall i, directed n s i ->
     2 * rounding_error A g n j r (fun _ => clip) <= (sign (s i) * r i - slope g n j i) * q) ->
  forall x y, in_order n s x y ->
  computed_score A g j r o (fun i => snap q (clamp clip (x i))) <=
  computed_score A g j r o (fun i => snap q (clamp clip (y i))).
Proof. exact network_last_bit. Qed.

(** The same for IEEE 754 numbers (Machine.v): programs of stored binary64 or binary32 numbers, run
    by the standard's addition, multiplication and fused multiply-add. [safe_score]: no size reaches
    2^1024, or 2^128; then no score is infinite or NaN, and they are in order. *)
Theorem binary64_scores_in_order : forall p n j r o s clip q,
  let A := binary64 in
  let real := @B2R 53 1024 in
  fits A (steps 53 1024 p) n -> (j < width (steps 53 1024 p) n)%nat -> dot o n -> few A (n + 1) ->
  0 < q -> 0 <= clip -> (exists k : Z, clip = IZR k * q) ->
  safe_score 53 1024 A p n j r (fun _ => clip) ->
  (forall i, directed n s i ->
     2 * rounding_error A (steps 53 1024 p) n j (fun i => real (r i)) (fun _ => clip) <=
     (sign (s i) * real (r i) - slope (steps 53 1024 p) n j i) * q) ->
  forall x y u v, in_order n s x y ->
  (forall i, (i < n)%nat -> is_finite (u i) = true /\ real (u i) = snap q (clamp clip (x i))) ->
  (forall i, (i < n)%nat -> is_finite (v i) = true /\ real (v i) = snap q (clamp clip (y i))) ->
  let score := run_score 53 1024 eq_refl eq_refl p j r o in
  is_finite (score u) = true /\ is_finite (score v) = true /\ Bleb (score u) (score v) = true.
Proof. exact machine64. Qed.

Theorem binary32_scores_in_order : forall p n j r o s clip q,
  let A := binary32 in
  let real := @B2R 24 128 in
  fits A (steps 24 128 p) n -> (j < width (steps 24 128 p) n)%nat -> dot o n -> few A (n + 1) ->
  0 < q -> 0 <= clip -> (exists k : Z, clip = IZR k * q) ->
  safe_score 24 128 A p n j r (fun _ => clip) ->
  (forall i, directed n s i ->
     2 * rounding_error A (steps 24 128 p) n j (fun i => real (r i)) (fun _ => clip) <=
     (sign (s i) * real (r i) - slope (steps 24 128 p) n j i) * q) ->
  forall x y u v, in_order n s x y ->
  (forall i, (i < n)%nat -> is_finite (u i) = true /\ real (u i) = snap q (clamp clip (x i))) ->
  (forall i, (i < n)%nat -> is_finite (v i) = true /\ real (v i) = snap q (clamp clip (y i))) ->
  let score := run_score 24 128 eq_refl eq_refl p j r o in
  is_finite (score u) = true /\ is_finite (score v) = true /\ Bleb (score u) (score v) = true.
Proof. exact machine32. Qed.

(** Any way of computing a score with error E (Margin.v); and, as in float32, where the last
    operation rounds a sum F, only errors before it count, because rounding is monotone. *)
Theorem margin : forall rows n L g r s q E enter computed,
  slopes_within rows n L g ->
  (forall i, (i < n)%nat -> cells q (enter i)) -> 0 < q ->
  reads n computed ->
  (forall u, rows u -> Rabs (computed u - score n g r u) <= E) ->
  (forall i, directed n s i -> 2 * E <= (sign (s i) * r i - L i) * q) ->
  forall x y, rows (fun i => enter i (x i)) -> rows (fun i => enter i (y i)) -> in_order n s x y ->
  computed (fun i => enter i (x i)) <= computed (fun i => enter i (y i)).
Proof. exact last_bit. Qed.

Theorem margin_before_rounding : forall rows n L g r s q E enter F fl,
  slopes_within rows n L g ->
  (forall i, (i < n)%nat -> cells q (enter i)) -> 0 < q ->
  reads n F ->
  (forall u, rows u -> Rabs (F u - score n g r u) <= E) ->
  (forall a b, a <= b -> fl a <= fl b) ->
  (forall i, directed n s i -> 2 * E <= (sign (s i) * r i - L i) * q) ->
  forall x y, rows (fun i => enter i (x i)) -> rows (fun i => enter i (y i)) -> in_order n s x y ->
  fl (F (fun i => enter i (x i))) <= fl (F (fun i => enter i (y i))).
Proof. exact last_bit_rounded. Qed.

(** (e) Knots (Knots.v): of m copies of a column one moves, those before it are +1, those after it
    -1; W phi = C_t + W_t phi_t. A sum by look-up errs by gamma of n + 2 for n copies, and a score
    that is monotone in every copy is monotone in the column. *)
Theorem look_up : forall m W phi,
  (1 <= m)%nat -> tiled m phi ->
  sum m (fun j => W j * phi j) = table m W (cell m phi) + W (cell m phi) * phi (cell m phi).
Proof. exact look_up_exact. Qed.

Theorem look_up_rounding : forall A columns m W phi b C o,
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
Proof. exact look_up_error. Qed.

Theorem copies_of_columns : forall n columns source tile s f,
  (forall j, (j < n)%nat -> (source j < columns)%nat) ->
  (forall j a b, a <= b -> tile j a <= tile j b) ->
  (forall u v, in_order n (fun j => s (source j)) u v -> f u <= f v) ->
  forall x y, in_order columns s x y ->
  f (fun j => tile j (x (source j))) <= f (fun j => tile j (y (source j))).
Proof. exact copies_monotone. Qed.

(** (f) Logarithm, exponential, sigmoid (Elementary.v), for any formula log' within 2^-40 on numbers
    of 24 bits and any exp' within 2^-48 of it on multiples of 2^-30. *)
Theorem logarithm : forall log',
  (forall x, 0 < x -> Rabs (log' (snap24 x) - ln (snap24 x)) <= bpow radix2 (-40)) ->
  forall x y, 0 < x -> x <= y -> log' (snap24 x) <= log' (snap24 y).
Proof. exact log_monotone. Qed.

Theorem exponential : forall exp',
  (forall z, Rabs (exp' (logit_cell z) - exp (logit_cell z)) <=
     bpow radix2 (-48) * exp (logit_cell z)) ->
  forall y z, y <= z -> exp' (logit_cell y) <= exp' (logit_cell z).
Proof. exact exp_monotone. Qed.

Theorem sigmoid : forall exp',
  (forall z, Rabs (exp' (logit_cell z) - exp (logit_cell z)) <=
     bpow radix2 (-48) * exp (logit_cell z)) ->
  let sigmoid z := fl binary64 (1 / fl binary64 (1 + exp' (logit_cell (- z)))) in
  forall y z, y <= z -> sigmoid y <= sigmoid z.
Proof. exact sigmoid64_monotone. Qed.

Theorem softmax : forall A exp' n k y z,
  (forall a b, a <= b -> exp' (logit_cell a) <= exp' (logit_cell b)) ->
  let terms z l := exp' (logit_cell (fl A (z l - z k))) in
  0 < added A n (terms z) ->
  (forall l, (l < n)%nat -> fl A (z l - z k) <= fl A (y l - y k)) ->
  fl A (1 / added A n (terms y)) <= fl A (1 / added A n (terms z)).
Proof. exact softmax_monotone. Qed.

(** The axioms that all of these rest on. *)
Definition everything :=
  (paper_eq3, steeper_residual, joint_direction, sort_is_permutation, sort_is_1_lipschitz,
   sort_is_1_lipschitz_inf, layers_multiply, dot_product, error_bound,
   computed_scores_in_order, binary64_scores_in_order, binary32_scores_in_order, margin,
   margin_before_rounding, look_up, look_up_rounding, copies_of_columns, logarithm,
   exponential, sigmoid, softmax).
Print Assumptions everything.
