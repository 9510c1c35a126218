"""Certificate: what a frozen network guarantees, recomputed from its stored numbers.

Nothing that training said is believed. g has slope at most Lᵢ along feature i; f = g + r·x has its
slope in [r − L, r + L], which for an increasing feature is within [0, 2λ]. The theorem is about
real numbers; the computed score is a different function, and gets a verdict of its own.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone import bounds
from isotone.arithmetic import ieee_arithmetic
from isotone.card import card
from isotone.elementary import Floats
from isotone.frozen import FrozenNetwork
from isotone.robustness import Contest, Decisions, Radius, Shifts
from isotone.rounding import (
    add,
    digits_down,
    digits_up,
    divide,
    multiply,
    multiply_down,
    subtract_down,
    sum_down,
    two_sum,
)

Indices = NDArray[np.intp]
MOST_SHOWN = 1000  # slopes that a person is shown; all are in the JSON


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval that holds every slope of the exact function between rows in the clip.

    Beyond the clip the slope is 0. Computed scores move in steps: see `Certificate.slopes`.
    """

    low: float
    high: float

    def __str__(self) -> str:
        """A few digits, rounded outward."""
        return f"[{digits_down(self.low, 3)}, {digits_up(self.high, 3)}]"


@dataclass(frozen=True, slots=True)
class Slope:
    """Slope of one output along one feature, in scaled and in raw units."""

    output: int
    feature: str
    scaled: Interval
    raw: Interval


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a declared direction holds: for the real-number function, and as computed.

    Parameters
    ----------
    about : what rises or falls: the score, or the probability of a class that is named
    slope : the least slope in the declared direction, of the score or of a difference of logits,
        in scaled units; at least 0 is needed for `real`
    margin : the least slope that is needed for `computed`, 2E / q
    computed : None if nothing is promised about computed scores (`grid` is None); they are then
        monotone up to twice the rounding error
    """

    output: int
    feature: str
    direction: int
    about: str
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
    classes : their names, if known; one logit is that of the second of two
    slopes : of every output along every feature, of the exact function. Computed scores move in
        steps: their change may exceed these by the slope over one cell of the grid, and by 2E
    verdicts : one for every declared direction
    rounding_errors : E for every output, infinite if no bound was found
    """

    holds: bool
    fingerprint: str
    precision: str
    metric: str
    outputs: str
    classes: tuple[str, ...] | None
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
    def drop(self) -> float:
        """How far a computed score, or a difference of logits, may move against its direction."""
        if not self.holds:
            return math.inf
        pairs = 4 if self.frozen.of_classes else 2
        return 0.0 if self.grid is not None else pairs * max(self.rounding_errors)

    @property
    def guarantee(self) -> str:
        """What is promised about computed scores, in words."""
        error = max(self.rounding_errors)
        if not self.holds:
            return "nothing: a declared constraint does not hold"
        if not self.verdicts:
            return f"no direction is declared; computed scores err by at most {digits_up(error)}"
        what = "differences of logits" if self.frozen.of_classes else "scores"
        if self.grid is None:
            return f"computed {what} are monotone up to {digits_up(self.drop)}"
        also = ", and so are probabilities" if self.outputs == "logits" else ""
        return f"computed {what} are monotone to the last bit{also}"

    def to_dict(self, *, in_short: bool = False) -> dict[str, Any]:
        """Plain JSON content; an infinite number becomes None.

        With `in_short`, more than a thousand slopes and their verdicts are left out, so that a
        model file has room for the rest.
        """
        left_out = {"frozen"}
        if in_short and len(self.slopes) > MOST_SHOWN:
            left_out |= {"slopes", "verdicts"}
        names = [f.name for f in fields(self) if f.name not in left_out]
        data = {name: _plain(getattr(self, name)) for name in names}
        return data | {"lipschitz_holds": self.lipschitz_holds, "guarantee": self.guarantee}

    def to_json(self) -> str:
        """`to_dict` as text, in lines if there are few enough to be read."""
        indent = 2 if len(self.slopes) <= MOST_SHOWN else None
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdict, and the slope along every feature."""
        frozen, names = self.frozen, self.frozen.output_names
        facts = {"guaranteed": self.guarantee, "fingerprint": self.fingerprint}
        if len(self.constants) == 1:
            facts["directions"] = f"of the {frozen.about(0)}"
        directions = [frozen.direction(i) for i in range(frozen.n_features)]
        rows = []
        for k, slope in enumerate(self.slopes[:MOST_SHOWN]):
            output = f"{names[slope.output]}: " if frozen.n_outputs > 1 else ""
            direction = directions[k % frozen.n_features]
            rows.append((output + slope.feature, direction, str(slope.scaled), str(slope.raw)))
        if len(self.slopes) > len(rows):
            facts["slopes"] = f"the first {len(rows)} of {len(self.slopes)}; all are in `slopes`"
        head = ["feature", "declared", "slope, scaled", "slope per raw unit"]
        return card("Certificate HOLDS" if self.holds else "Certificate FAILS", facts, head, rows)

    @ieee_arithmetic()
    def certified_radius(self, X: Any, threshold: float = 0.0) -> Radius:
        """How far every row may move before its decision can change.

        The decision is score ≥ `threshold` for one output, and the class with the largest logit
        (the first of those that tie) for several classes, where there is no threshold.

        Uses the one-sided slopes: raising an increasing feature never turns acceptance into
        rejection, so that distance is infinite; for classes those of differences of logits.
        Valid for the computed score: rounding errors and the grid are subtracted.

        Parameters
        ----------
        X : (n_rows, n_features), raw
        """
        decisions, table = self.decisions(threshold), self.frozen.table(X)
        return decisions.radius(table, self.frozen.score(table).astype(np.float64))

    @ieee_arithmetic()
    def flip_bound(self, X: Any, shifts: Shifts, threshold: float = 0.0) -> float:
        """Largest fraction of these rows whose decision can change under shifts of the features.

        Decisions are those of `certified_radius`.

        Parameters
        ----------
        X : (n_rows, n_features), raw
        shifts : for every feature a number δ (it may move by anything within ±δ, raw units)
            or a pair (low, high); or these by name, the other features standing still

        Examples
        --------
        >>> import isotone
        >>> network = isotone.MonotonicNetwork([2, 8, 1], monotonic_cst=[1, -1])
        >>> certificate = isotone.certify(isotone.freeze(network, features=["income", "debt"]))
        >>> certificate.flip_bound([[1.0, 2.0], [3.0, 1.0]], shifts={"debt": 0.0})
        0.0
        """
        decisions, table = self.decisions(threshold), self.frozen.table(X)
        score = self.frozen.score(table).astype(np.float64)
        flips = decisions.can_flip(table, score, shifts)
        return float(np.mean(flips)) if len(flips) else 0.0

    def decisions(self, threshold: float = 0.0) -> Decisions | Contest:
        """The decisions of `certified_radius`, with the slopes that bound them."""
        if not math.isfinite(threshold):
            raise ValueError(f"`threshold={threshold}` must be a finite number")
        if self.frozen.of_classes:
            if threshold != 0:
                raise ValueError(
                    f"`threshold={threshold}` is for one output; with {len(self.constants)} "
                    "classes the largest logit decides: leave it out"
                )
            return Contest(self.rivals)
        if len(self.constants) != 1:
            raise ValueError(
                f"decisions need one output, or classes; this network has {len(self.constants)} "
                "outputs that are values: freeze one that scores what is to be decided"
            )
        exact = {verdict.feature for verdict in self.verdicts if verdict.computed}
        return Decisions(
            frozen=self.frozen,
            threshold=threshold,
            fall=np.array([max(-slope.scaled.low, 0.0) for slope in self.slopes]),
            rise=np.array([max(slope.scaled.high, 0.0) for slope in self.slopes]),
            exact=np.array([name in exact for name in self.frozen.features]),
            error=self.rounding_errors[0],
        )

    @ieee_arithmetic()
    def rivals(self, k: int) -> dict[int, Decisions]:
        """For every other class l the decisions z_k − z_l ≥ 0."""
        frozen = self.frozen
        slopes = bounds.rival_slopes(frozen.steps, frozen.n_features, k)
        low = subtract_down(subtract_down(frozen.residual[k], frozen.residual), slopes)
        high = -subtract_down(subtract_down(frozen.residual, frozen.residual[k]), slopes)
        errors = add(self.rounding_errors[k], self.rounding_errors)
        margins = divide(multiply(2.0, errors), frozen.grid or math.inf)
        least = np.maximum(low, -high)  # slope in the direction in which the difference rises
        exact = (least >= margins[:, None]) & (frozen.grid is not None)
        return {
            other: Decisions(
                frozen=frozen,
                threshold=0.0,
                fall=np.maximum(-low[other], 0.0),
                rise=np.maximum(high[other], 0.0),
                exact=exact[other],
                error=float(errors[other]),
            )
            for other in range(frozen.n_outputs)
            if other != k
        }


@ieee_arithmetic()
def certify(frozen: FrozenNetwork) -> Certificate:
    """Examine the stored numbers of a network and say what they guarantee."""
    if not isinstance(frozen, FrozenNetwork):
        raise TypeError(
            f"`certify` examines a FrozenNetwork; got {type(frozen).__name__}: call "
            "isotone.freeze(network) first, or isotone.load(path)"
        )
    slope_bounds = bounds.slopes(frozen.steps, frozen.n_features)
    errors = bounds.rounding_errors(frozen)
    constants = bounds.constants(frozen.steps, frozen.lipschitz, frozen.metric)
    verdicts = _verdicts(frozen, slope_bounds, errors)
    kept = all(v.real and v.computed is not False for v in verdicts)
    kept = kept and bool(np.all(np.isfinite(errors)))
    return Certificate(
        holds=bool(kept and np.all(constants <= 1.0)),
        fingerprint=frozen.fingerprint,
        precision=frozen.precision,
        metric=frozen.metric,
        outputs=frozen.outputs,
        classes=frozen.classes,
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
    bottom, top = _raw_intervals(low, high, flat, steep)
    columns = (array.ravel().tolist() for array in (low, high, bottom, top))
    cells = product(range(frozen.n_outputs), frozen.features)
    return tuple(
        Slope(output, feature, Interval(a, b), Interval(c, d))
        for (output, feature), a, b, c, d in zip(cells, *columns, strict=True)
    )


def _raw_intervals(
    low: Floats, high: Floats, flat: Floats, steep: Floats
) -> tuple[Floats, Floats]:
    """Intervals times any slope in [flat, steep] of the scaling, rounded outward."""
    steep = np.nextafter(steep, np.inf)
    top = np.where(high > 0, multiply(np.maximum(high, 0.0), steep), -multiply_down(-high, flat))
    bottom = np.where(low < 0, -multiply(np.maximum(-low, 0.0), steep), multiply_down(low, flat))
    return bottom + 0.0, top + 0.0  # + 0.0 turns -0.0 into 0.0


def _verdicts(frozen: FrozenNetwork, slope_bounds: Floats, errors: Floats) -> tuple[Verdict, ...]:
    """One for every declared direction; in time proportional to their number."""
    judge = _judge_probabilities if frozen.of_classes else _judge_scores
    slopes, doubts = judge(frozen, slope_bounds, errors)
    margins = None if frozen.grid is None else divide(multiply(2.0, doubts), frozen.grid).tolist()
    about = [frozen.about(j) for j in range(frozen.n_outputs)]
    directions = frozen.monotonic_cst[frozen.monotonic_cst != 0].tolist()
    declared = zip(*(index.tolist() for index in np.nonzero(frozen.monotonic_cst)), strict=True)
    return tuple(
        Verdict(
            output=j,
            feature=frozen.features[i],
            direction=direction,
            about=about[j],
            slope=slope,
            margin=None if margins is None else margins[j],
            real=slope >= 0,
            computed=None
            if margins is None
            else slope >= margins[j] and math.isfinite(margins[j]),
        )
        for (j, i), direction, slope in zip(declared, directions, slopes, strict=True)
    )


def _judge_scores(
    frozen: FrozenNetwork, slope_bounds: Floats, errors: Floats
) -> tuple[list[float], Floats]:
    """Least slope of every declared output in its direction, |r| − L, and errors E of outputs.

    Inputs in one cell of the grid give the same bits. In different cells they differ by at least
    q, hence the exact scores by (|r| − L) q, which must be at least 2E.
    """
    slopes = subtract_down(frozen.monotonic_cst * frozen.residual, slope_bounds)
    return slopes[frozen.monotonic_cst != 0].tolist(), errors


def _judge_probabilities(
    frozen: FrozenNetwork, slope_bounds: Floats, errors: Floats
) -> tuple[list[float], Floats]:
    r"""Least slope of all :math:`z_k - z_l` in the directions of classes, and largest errors.

    :math:`P_k = 1 / \sum_l \exp(z_l - z_k)` rises if every :math:`z_k - z_l` does: each has slope
    at least :math:`r_k - r_l - L_k - L_l` and error at most :math:`E_k + E_l`. The least of those
    slopes is that of the rival with the largest :math:`r_l + L_l`, which are compared exactly.
    """
    rivals = {sign: _strongest(*two_sum(sign * frozen.residual, slope_bounds)) for sign in (-1, 1)}
    ks, columns = np.nonzero(frozen.monotonic_cst)
    signs = frozen.monotonic_cst[ks, columns].astype(np.float64)
    first, second = (
        np.where(signs > 0, rivals[1][place][columns], rivals[-1][place][columns])
        for place in (0, 1)
    )
    others = np.where(first == ks, second, first)
    terms = np.stack(
        [
            *(signs * frozen.residual[ks, columns], -signs * frozen.residual[others, columns]),
            *(-slope_bounds[ks, columns], -slope_bounds[others, columns]),
        ],
        axis=1,
    )
    slopes = [sum_down(row) for row in terms.tolist()]
    first, second = _strongest(errors[:, None], np.zeros((len(errors), 1)))
    rest = np.where(np.arange(len(errors)) == first[0], errors[second[0]], errors[first[0]])
    return slopes, add(errors, rest)


def _strongest(high: Floats, low: Floats) -> tuple[Indices, Indices]:
    """In every column the rows of the largest and of the second largest high + low."""
    rows = np.lexsort((low, high), axis=0)
    return rows[-1], rows[-2]


_FIELDS: dict[type, list[str]] = {
    kind: [f.name for f in fields(kind)] for kind in (Slope, Interval, Verdict, Layer)
}


def _plain(value: Any) -> Any:
    """JSON content: tuples as lists, dataclasses as dictionaries, infinity as None."""
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if type(value) in _FIELDS:
        return {name: _plain(getattr(value, name)) for name in _FIELDS[type(value)]}
    return None if isinstance(value, float) and not math.isfinite(value) else value
