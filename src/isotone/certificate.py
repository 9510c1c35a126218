"""Certificate: what a frozen network guarantees, recomputed from its stored numbers.

Nothing that training said is believed. g has slope at most Lᵢ along feature i; f = g + r·x has its
slope in [r − L, r + L], which for an increasing feature is within [0, 2λ]. The theorem is about
real numbers; the computed score is a different function, and gets a verdict of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone import bounds
from isotone.elementary import Floats
from isotone.frozen import FrozenNetwork
from isotone.rounding import add, digits_up, divide, multiply, subtract_down

_INWARD = 1.0 - 2.0**-30  # distances are shortened by this, far more than they can be rounded


@dataclass(frozen=True)
class Interval:
    """A closed interval that surely holds every slope."""

    low: float
    high: float


@dataclass(frozen=True)
class Slope:
    """Slope of one output along one feature, in scaled and in raw units."""

    output: int
    feature: str
    scaled: Interval
    raw: Interval


@dataclass(frozen=True)
class Verdict:
    """Whether a declared direction holds: for the real-number function, and as computed.

    Parameters
    ----------
    slope : the least slope in the declared direction, of the score or of a difference of logits,
        in scaled units; at least 0 is needed for `real`
    margin : the least slope that is needed for `computed`, 2E / q
    computed : None if nothing is promised about computed scores (`grid` is None); they are then
        monotone up to twice the rounding error
    """

    output: int
    feature: str
    direction: int
    slope: float
    margin: float | None
    real: bool
    computed: bool | None


@dataclass(frozen=True)
class Layer:
    """Bounds of one step as a map of the 1-norm and of the ∞-norm."""

    name: str
    one: float
    inf: float


@dataclass(frozen=True)
class Certificate:
    """The verdict on a `FrozenNetwork`; `holds` is the whole of it in one word.

    Parameters
    ----------
    fingerprint : SHA-256 of the network that was examined
    lipschitz : declared λᵢ of every feature, in scaled units
    constants : for every output, the bound found in units of what was declared: at most 1 is kept
    slopes : of every output along every feature
    verdicts : one for every declared direction
    rounding_errors : E for every output, infinite if no bound was found
    """

    holds: bool
    fingerprint: str
    precision: str
    metric: str
    outputs: str
    clip: float
    grid: float | None
    lipschitz: tuple[float, ...]
    constants: tuple[float, ...]
    slopes: tuple[Slope, ...]
    verdicts: tuple[Verdict, ...]
    layers: tuple[Layer, ...]
    rounding_errors: tuple[float, ...]
    frozen: FrozenNetwork

    @property
    def lipschitz_holds(self) -> bool:
        """Whether g keeps the declared λ of every feature."""
        return all(constant <= 1.0 for constant in self.constants)

    @property
    def guarantee(self) -> str:
        """What is promised about computed scores, in words."""
        error = max(self.rounding_errors)
        if not self.holds:
            return "nothing: a declared constraint does not hold"
        if not self.verdicts:
            return f"no direction is declared; computed scores err by at most {digits_up(error)}"
        what = "differences of logits" if self.of_classes else "scores"
        if self.grid is None:
            drop = (4 if self.of_classes else 2) * error
            return f"computed {what} are monotone up to {digits_up(drop)}"
        also = ", and so are probabilities" if self.outputs == "logits" else ""
        return f"computed {what} are monotone to the last bit{also}"

    @property
    def of_classes(self) -> bool:
        """Whether directions are about probabilities after softmax."""
        return self.outputs == "logits" and len(self.constants) > 1

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON content; an infinite number becomes None."""
        data = {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.name != "frozen"}
        return data | {"lipschitz_holds": self.lipschitz_holds, "guarantee": self.guarantee}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def certified_radius(self, X: Any, threshold: float = 0.0) -> Radius:
        """How far every row may move before its decision (score ≥ `threshold`) can change.

        Uses the one-sided slopes: raising an increasing feature never turns acceptance into
        rejection, so that distance is infinite. Valid for the computed score: rounding errors
        and the grid are subtracted.

        Parameters
        ----------
        X : (n_rows, n_features), raw
        """
        accepted, gap = self._gap(X, threshold)
        fall, rise = self._steepness()
        # what hurts when a feature goes down, and when it goes up: (n_rows, n_features)
        down = np.where(accepted[:, None], rise, fall)
        up = np.where(accepted[:, None], fall, rise)
        both = np.maximum(down, up)
        together = self._reach(gap, both.max(axis=1), both.sum(axis=1))
        table = self.frozen.table(X)
        return Radius(
            scaled=together,
            down=self._raw_distance(table, -self._reach(gap[:, None], down, down)),
            up=self._raw_distance(table, self._reach(gap[:, None], up, up)),
        )

    def flip_bound(
        self,
        X: Any,
        shifts: Sequence[float | tuple[float, float]] | Floats,
        threshold: float = 0.0,
    ) -> float:
        """Largest fraction of these rows whose decision can change under shifts of the features.

        Parameters
        ----------
        X : (n_rows, n_features), raw
        shifts : for every feature a number δ (it may move by anything within ±δ, raw units)
            or a pair (low, high)
        """
        accepted, gap = self._gap(X, threshold)
        fall, rise = self._steepness()
        table = self.frozen.table(X)
        low, high = _shift_ranges(shifts, self.frozen.features)
        x = self.frozen.scaling.transform(table)
        down = np.maximum(x - self.frozen.scaling.transform(table + low), 0.0)
        up = np.maximum(self.frozen.scaling.transform(table + high) - x, 0.0)
        moved = (low != 0) | (high != 0)
        # a move can cross one grid cell more than its length
        down, up = (np.where(moved, d / _INWARD + self._cell, 0.0) for d in (down, up))
        worse = np.where(
            accepted[:, None],
            np.maximum(rise * down, fall * up),
            np.maximum(rise * up, fall * down),
        )
        return float(np.mean(worse.sum(axis=1) / _INWARD >= gap)) if len(table) else 0.0

    @property
    def _cell(self) -> float:
        """How much farther than the scaled row the numbers that enter the network can move."""
        cast = self.clip * 2.0**-23 if self.precision == "float32" else 0.0
        return cast + (self.grid or 0.0)

    def _reach(self, gap: Floats, slope: Floats, all_slopes: Floats) -> Floats:
        """Scaled distance over which a score with this slope cannot cross the gap."""
        room = np.maximum(gap - all_slopes * self._cell, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(slope > 0, room / slope * _INWARD, math.inf)

    def _gap(self, X: Any, threshold: float) -> tuple[NDArray[np.bool_], Floats]:
        """Decision of every row, and how much its exact score surely lies off the threshold."""
        if len(self.constants) != 1:
            raise ValueError(
                f"decisions need one output; this network has {len(self.constants)}: freeze one "
                "that scores the class in question"
            )
        score = self.frozen.score(X).astype(np.float64)
        slack = 2 * self.rounding_errors[0]
        return score >= threshold, np.maximum(np.abs(score - threshold) * _INWARD - slack, 0.0)

    def _steepness(self) -> tuple[Floats, Floats]:
        """Steepest fall and steepest rise of the score along every feature, as positive slopes."""
        low = np.array([slope.scaled.low for slope in self.slopes])
        high = np.array([slope.scaled.high for slope in self.slopes])
        return np.maximum(-low, 0.0), np.maximum(high, 0.0)

    def _raw_distance(self, table: Floats, reach: Floats) -> Floats:
        """Raw distance that surely stays within the scaled distance |`reach`|, on its side."""
        scaling = self.frozen.scaling
        finite = np.where(np.isinf(reach), 0.0, reach)
        there = scaling.inverse(scaling.transform(table) + finite)
        slip = scaling.slip(table) + scaling.slip(there)
        distance = np.maximum(np.copysign(1.0, reach) * (there - table) * _INWARD - slip, 0.0)
        return np.where(np.isinf(reach), math.inf, distance)


@dataclass(frozen=True, eq=False)
class Radius:
    """Distances within which a decision cannot change.

    Parameters
    ----------
    scaled : (n_rows,), L1 distance in scaled units, all features moving together
    down, up : (n_rows, n_features), raw distance of one feature moving alone
    """

    scaled: Floats
    down: Floats
    up: Floats


def certify(frozen: FrozenNetwork) -> Certificate:
    """Examine the stored numbers of a network and say what they guarantee."""
    slope_bounds = bounds.slopes(frozen.steps, frozen.n_features)
    errors = bounds.rounding_errors(frozen)
    constants = bounds.constants(frozen.steps, frozen.lipschitz, frozen.metric)
    verdicts = _verdicts(frozen, slope_bounds, errors)
    kept = all(v.real and v.computed is not False for v in verdicts)
    return Certificate(
        holds=bool(kept and np.all(constants <= 1.0)),
        fingerprint=frozen.fingerprint,
        precision=frozen.precision,
        metric=frozen.metric,
        outputs=frozen.outputs,
        clip=frozen.clip,
        grid=frozen.grid,
        lipschitz=tuple(frozen.lipschitz.tolist()),
        constants=tuple(constants.tolist()),
        slopes=_slopes(frozen, slope_bounds),
        verdicts=verdicts,
        layers=tuple(Layer(*entry) for entry in bounds.layer_bounds(frozen.steps)),
        rounding_errors=tuple(errors.tolist()),
        frozen=frozen,
    )


def _slopes(frozen: FrozenNetwork, slope_bounds: Floats) -> tuple[Slope, ...]:
    low = subtract_down(frozen.residual, slope_bounds)
    high = -subtract_down(-frozen.residual, slope_bounds)
    steep, flat = (s() for s in (frozen.scaling.steepest, frozen.scaling.flattest))
    return tuple(
        Slope(
            output=j,
            feature=name,
            scaled=Interval(float(low[j, i]), float(high[j, i])),
            raw=_raw_interval(low[j, i], high[j, i], flat[i], steep[i]),
        )
        for j in range(frozen.n_outputs)
        for i, name in enumerate(frozen.features)
    )


def _raw_interval(low: float, high: float, flat: float, steep: float) -> Interval:
    """The interval times any slope in [flat, steep] of the scaling, rounded outward."""
    steep = math.nextafter(steep, math.inf)
    top = float(multiply(high, steep)) if high > 0 else -_down(-high, flat)
    bottom = -float(multiply(-low, steep)) if low < 0 else _down(low, flat)
    return Interval(bottom + 0.0, top + 0.0)  # + 0.0 turns -0.0 into 0.0


def _down(a: float, b: float) -> float:
    """Lower bound of the product of two non-negative numbers."""
    return max(0.0, math.nextafter(a * b, -math.inf))


def _verdicts(frozen: FrozenNetwork, slope_bounds: Floats, errors: Floats) -> tuple[Verdict, ...]:
    softmax = frozen.outputs == "logits" and frozen.n_outputs > 1
    least_slope = _slope_of_probability if softmax else _slope_of_score
    verdicts = []
    for j, i in np.argwhere(frozen.monotonic_cst != 0):
        slope, error = least_slope(frozen, slope_bounds, errors, j, i)
        margin = None if frozen.grid is None else float(divide(multiply(2.0, error), frozen.grid))
        verdicts.append(
            Verdict(
                output=int(j),
                feature=frozen.features[i],
                direction=int(frozen.monotonic_cst[j, i]),
                slope=slope,
                margin=margin,
                real=slope >= 0,
                computed=None if margin is None else slope >= margin and math.isfinite(margin),
            )
        )
    return tuple(verdicts)


def _slope_of_score(
    frozen: FrozenNetwork, slope_bounds: Floats, errors: Floats, j: int, i: int
) -> tuple[float, float]:
    """Least slope of output j in its direction along feature i, |r| − L, and its error E.

    Inputs in one cell of the grid give the same bits. In different cells they differ by at least
    q, hence the exact scores by (|r| − L) q, which must be at least 2E.
    """
    direction = frozen.monotonic_cst[j, i]
    slope = subtract_down(direction * frozen.residual[j, i], slope_bounds[j, i])
    return float(slope), float(errors[j])


def _slope_of_probability(
    frozen: FrozenNetwork, slope_bounds: Floats, errors: Floats, k: int, i: int
) -> tuple[float, float]:
    r"""Least slope of all :math:`z_k - z_l` in the direction of class k, and their largest error.

    :math:`P_k = 1 / \sum_l \exp(z_l - z_k)` rises if every :math:`z_k - z_l` does: each has slope
    at least :math:`r_k - r_l - L_k - L_l` and error at most :math:`E_k + E_l`.
    """
    direction = frozen.monotonic_cst[k, i]
    others = np.arange(frozen.n_outputs) != k
    gain = subtract_down(direction * frozen.residual[k, i], direction * frozen.residual[others, i])
    slope = subtract_down(gain, add(slope_bounds[k, i], slope_bounds[others, i]))
    return float(slope.min()), float(add(errors[k], errors[others]).max())


def _shift_ranges(
    shifts: Sequence[float | tuple[float, float]] | Floats, features: tuple[str, ...]
) -> tuple[Floats, Floats]:
    if len(shifts) != len(features):
        raise ValueError(
            f"`shifts` has {len(shifts)} entries but the network has {len(features)} features "
            f"({', '.join(features)}); give one per feature, 0 for none"
        )
    pairs = [(-abs(s), abs(s)) if np.ndim(s) == 0 else tuple(s) for s in shifts]  # type: ignore[arg-type]
    low, high = np.array(pairs, dtype=np.float64).T
    if not np.all(np.isfinite(pairs)) or np.any(low > high):
        raise ValueError(f"`shifts` must be finite, with low ≤ high; got {shifts}")
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


def _plain(value: Any) -> Any:
    """JSON content: tuples as lists, dataclasses as dictionaries, infinity as None."""
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, Slope | Interval | Verdict | Layer):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    return None if isinstance(value, float) and not math.isfinite(value) else value
