r"""Duality: what a critic of known Lipschitz constant proves about a Wasserstein distance.

Kantorovich and Rubinstein: for a metric d and all functions h with slope at most 1 in it,

.. math:: W_1(P, Q) = \sup_h \bigl( E_P[h] - E_Q[h] \bigr).

*Every* such h therefore gives a lower bound. A frozen network has a constant that follows from
its stored numbers alone, so the bound holds however badly it was trained.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from isotone.certificate import bounds
from isotone.frozen.network import FrozenNetwork
from isotone.rounding import add, multiply, root, subtract_down
from isotone.transport.clouds import Cloud
from isotone.typing import Floats

_ROWS = 65536


@dataclass(frozen=True)
class DualValue:
    """What a critic says about a distance, and what it proves.

    Parameters
    ----------
    value : (E_P[g] − E_Q[g]) / L, as computed
    lower_bound : certified: at most the exact distance of the two given measures
    """

    value: float
    lower_bound: float

    def larger(self, other: DualValue) -> DualValue:
        """The larger of two values and of two bounds: both hold."""
        return DualValue(max(self.value, other.value), max(self.lower_bound, other.lower_bound))


def dual_value(critic: FrozenNetwork, P: Cloud, Q: Cloud) -> DualValue:
    r"""(E_P[g] − E_Q[g]) / L, and a number that W₁(P, Q) provably does not fall below.

    **Proof.** Let t(X) = (X − c) a be the exact scaling, k the clamp to ±R, and g the exact
    function of the stored steps. Clamping moves no two numbers apart, and with C from
    `isotone.certificate.bounds.constants`,

    .. math:: |g(k(t(X))) - g(k(t(Y)))| \le C \|\Lambda (t(X) - t(Y))\|_p \le L \|X - Y\|_p,
              \quad L = C \max_i \lambda_i a_i,

    so that h = g∘k∘t / L has constant 1, and E_P[h] − E_Q[h] ≤ W₁. What is *computed* differs.
    Subtraction and product round once each, so a scaled coordinate is off by less than 2⁻⁵¹ R (if
    it is beyond the clamp by more than that, by nothing), by q/2 more on a grid of spacing q, and
    by less than 2⁻²³ R where the steps take float32. The score of what enters the steps is off by
    at most E (`bounds.rounding_errors`). Every score is therefore within
    e = E + C λ ‖slip‖ₚ of the exact one, so is every mean of them, and the means themselves err by
    what `Cloud.mean` states. The lower bound is (computed difference − 2e − errors of the means)
    / L, rounded down, and at least 0. ∎
    """
    _check(critic, P)
    (mean_p, error_p), (mean_q, error_q) = (cloud.mean(_scores(critic, cloud)) for cloud in (P, Q))
    constant = bounds.constants(critic.steps, critic.lipschitz, critic.metric).max()
    slope = multiply(constant, multiply(critic.lipschitz, critic.scaling.factor).max())
    error = add(multiply(2.0, _score_error(critic, constant)), add(error_p, error_q))
    difference = mean_p - mean_q
    if slope == 0:  # a constant function
        return DualValue(0.0, 0.0)
    least = float(subtract_down(subtract_down(mean_p, mean_q), error))
    bound = math.nextafter(least / float(slope), -math.inf)
    return DualValue(difference / float(slope), max(bound, 0.0))


def unit_scores(critic: FrozenNetwork, cloud: Cloud) -> Floats:
    """Scores divided by the constant L, as computed: slope 1, in the units of the points."""
    constant = bounds.constants(critic.steps, critic.lipschitz, critic.metric).max()
    slope = constant * float((critic.lipschitz * critic.scaling.factor).max())
    scores = _scores(critic, cloud)
    return scores / slope if slope > 0 else np.zeros_like(scores)


def _score_error(critic: FrozenNetwork, constant: float) -> Floats:
    """Bound on |computed score − exact function of the exact raw row|."""
    n = critic.n_features
    unit = 2.0**-51 if critic.precision == "float64" else 2.0**-23
    slip = add(unit * critic.clip + 2.0**-140, 0.5 * (critic.grid or 0.0))
    size = {"1": np.asarray(float(n)), "2": root(np.asarray(float(n))), "inf": np.asarray(1.0)}
    moved = multiply(
        multiply(constant, critic.lipschitz.max()), multiply(slip, size[critic.metric])
    )
    return add(bounds.rounding_errors(critic).max(), moved)


def _scores(critic: FrozenNetwork, cloud: Cloud) -> Floats:
    parts = range(0, len(cloud), _ROWS)
    each = [critic.score(cloud.points[start : start + _ROWS]) for start in parts]
    return np.concatenate(each).astype(np.float64)


def _check(critic: FrozenNetwork, cloud: Cloud) -> None:
    if critic.n_features != cloud.n_features:
        raise ValueError(
            f"the critic takes {critic.n_features} coordinates but the clouds have "
            f"{cloud.n_features}; they must agree"
        )
    if critic.n_outputs != 1 or np.any(critic.residual) or np.any(critic.scaling.log):
        raise ValueError(
            "a critic must have one output, no directions and a scaling without logarithms, since "
            "only its Lipschitz constant counts: freeze a LipschitzNetwork([d, ..., 1])"
        )
