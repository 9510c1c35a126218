"""Certificate: what a frozen network guarantees, recomputed from its stored numbers.

Nothing about training is assumed. g has slope at most Lᵢ along feature i; f = g + r·x has its
slope in [r − L, r + L], which for an increasing feature is within [0, 2λ]. The theorem is about
real numbers; the computed score is a different function, and gets a verdict of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from isotone.arithmetic import ieee_arithmetic
from isotone.certificate import bounds
from isotone.certificate.along import JointVerdict, copies_of, judge_joint
from isotone.certificate.interactions import Groups, describe_interactions, find_interactions
from isotone.certificate.missing import (
    MissingVerdict,
    describe_missing,
    judge_missing,
    promise_nothing,
)
from isotone.certificate.ordered import ScoreErrors, find_errors
from isotone.certificate.robustness import Contest, Decisions, Radius, Shifts, shift_ranges
from isotone.certificate.slopes import Interval, Slope, find_slopes, slope_range
from isotone.certificate.verdicts import Verdict, by_column, judge
from isotone.certificate.widths import describe_widths, find_widths
from isotone.frozen.joint import JointDirection
from isotone.frozen.loading import check_network
from isotone.frozen.lookup import Copies
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.notebook import badge, card
from isotone.inputs.chain import Policy, for_all_rows, has_features
from isotone.rounding import add, digits_up, divide, multiply, subtract_down
from isotone.typing import Floats

MOST_SHOWN = 1000  # slopes that a person is shown; all are in the JSON
_ABOUT = ("about_missing", "about_joint", "about_interactions")


@dataclass(frozen=True)
class Certificate:
    """The verdict on a `FrozenNetwork`; `holds` is the whole of it in one word.

    Parameters
    ----------
    fingerprint : SHA-256 of the network that was examined
    lipschitz : declared λᵢ of every feature, in scaled units
    constants : for every output, the bound found in units of what was declared: at most 1 is kept
    classes : their names, if known; one logit is that of the second of two
    slopes : of every output along every feature, all copies of it together, of the exact function.
        Computed scores move in steps: their change may exceed these by the slope over one cell of
        the grid, along a logarithm by that over another 2⁻²² of the logarithm, and by 2E
    verdicts : one for every declared direction
    missing : whether a missing value is never better, or never worse, than any value, for every
        direction along an indicator of missing values; `holds` does not depend on these
    joint : one for every output and declared joint direction
    interactions : groups of columns such that every output is a sum of functions of one group
        each; columns that share no group do not interact, and one in none has no effect
    rounding_errors : E for every output, infinite if no bound was found
    widths : bits of the inputs, of the units after every dense step and of the scores, if no
        number is ever rounded, which makes computed scores exact; otherwise empty
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
    missing: tuple[MissingVerdict, ...]
    joint: tuple[JointVerdict, ...]
    interactions: Groups
    layers: tuple[bounds.Layer, ...]
    rounding_errors: tuple[float, ...]
    widths: tuple[int, ...]
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
            none = "no direction of a single column" if self.joint else "no direction"
            return f"{none} is declared; computed scores err by at most {digits_up(error)}"
        what = "differences of logits" if self.frozen.of_classes else "scores"
        if self.grid is None:
            return f"computed {what} are monotone up to {digits_up(self.drop)}"
        also = ", and so are probabilities" if self.outputs == "logits" else ""
        return f"computed {what} are monotone to the last bit{also}"

    @property
    def about_missing(self) -> str:
        """What is and is not promised for missing values, in words; nothing if there are none."""
        if not self.holds:
            return promise_nothing(self.frozen)
        return describe_missing(self.frozen, self.verdicts, self.missing)

    @property
    def about_joint(self) -> str:
        """What is promised along joint directions, in words; nothing if none is declared."""
        return "; ".join(map(str, self.joint))

    @property
    def about_interactions(self) -> str:
        """Which columns do not interact, in words; nothing if all of them may."""
        return describe_interactions(self.frozen, self.interactions)

    @property
    def asides(self) -> dict[str, str]:
        """What is also promised, in words by topic: of missing values and several columns."""
        every = {
            "exact": describe_widths(self.widths),
            "missing values": self.about_missing,
            "joint directions": self.about_joint,
            "interactions": self.about_interactions,
        }
        return {topic: about for topic, about in every.items() if about}

    def to_dict(self, *, in_short: bool = False) -> dict[str, Any]:
        """Plain JSON content; an infinite number becomes None.

        With `in_short`, more than a thousand slopes and their verdicts, and more than a thousand
        groups, are left out, so that a model file has room for the rest.
        """
        left_out = {"frozen"}
        if in_short and len(self.slopes) > MOST_SHOWN:
            left_out |= {"slopes", "verdicts"}
        if in_short and len(self.interactions) > MOST_SHOWN:
            left_out.add("interactions")
        names = [f.name for f in fields(self) if f.name not in left_out]
        return {
            name: _plain(getattr(self, name))
            for name in (*names, "lipschitz_holds", "guarantee", *_ABOUT)
        }

    def to_json(self, *, asked: Sequence[JointVerdict] = (), **more: Any) -> str:
        """`to_dict` as text, in lines if there are few enough to be read.

        With `asked` also what `along` said of directions that nobody declared; and `more`.
        """
        indent = 2 if len(self.slopes) <= MOST_SHOWN else None
        content = self.to_dict() | ({"asked": _plain(tuple(asked))} if asked else {}) | more
        return json.dumps(content, indent=indent, allow_nan=False)

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdict, and the slope along every feature."""
        frozen, names = self.frozen, self.frozen.output_names
        facts = {"guaranteed": self.guarantee, "fingerprint": self.fingerprint}
        facts |= self.asides
        if len(self.constants) == 1:
            facts["directions"] = f"of the {frozen.about(0)}"
        directions = [frozen.direction(i) for i in range(len(frozen.inputs.encoded))]
        rows = []
        for k, slope in enumerate(self.slopes[:MOST_SHOWN]):
            output = f"{names[slope.output]}: " if frozen.n_outputs > 1 else ""
            direction = directions[k % len(directions)]
            rows.append((output + slope.feature, direction, str(slope.scaled), str(slope.raw)))
        if len(self.slopes) > len(rows):
            facts["slopes"] = f"the first {len(rows)} of {len(self.slopes)}; all are in `slopes`"
        head = ["feature", "declared", "slope, scaled", "slope per raw unit"]
        word = "HOLDS" if self.holds else "FAILS"
        return badge(self.holds, word) + card(f"Certificate {word}", facts, head, rows)

    @ieee_arithmetic()
    def certified_radius(
        self, X: Any, threshold: float = 0.0, on_unseen: Policy = "error"
    ) -> Radius:
        """How far every row may move before its decision can change.

        The decision is score ≥ `threshold` for one output, and the class with the largest logit
        (the first of those that tie) for several classes, where there is no threshold.

        Uses the one-sided slopes: raising an increasing column never turns acceptance into
        rejection, so that distance is infinite; for classes those of differences of logits.
        Valid for the computed score: rounding errors and the grid are subtracted.

        Parameters
        ----------
        X : (n_rows, n_columns), raw
        on_unseen : as for `FrozenNetwork.score`; a row without features of its own gets NaN
        """
        inputs, features = self.frozen.inputs, self.frozen.encode(X, on_unseen)
        known = has_features(features)
        radius = self.radius_of_features(features[known], threshold)
        movable = inputs.movable(features[known])
        down, up = (
            np.where(movable, distance[:, inputs.places], math.nan)
            for distance in (radius.down, radius.up)
        )
        scaled, down, up = (for_all_rows(each, known) for each in (radius.scaled, down, up))
        return Radius(scaled, down, up, names=tuple(inputs.names))

    @ieee_arithmetic()
    def radius_of_features(self, features: Floats, threshold: float = 0.0) -> Radius:
        """The same by features, for rows that `FrozenNetwork.encode` made."""
        score = self.frozen.score_features(features).astype(np.float64)
        return self.decisions(threshold).radius(features, score)

    @ieee_arithmetic()
    def flip_bound(
        self, X: Any, shifts: Shifts, threshold: float = 0.0, on_unseen: Policy = "error"
    ) -> float:
        """Largest fraction of these rows whose decision can change under shifts of the columns.

        Decisions are those of `certified_radius`.

        Parameters
        ----------
        X : (n_rows, n_columns), raw
        shifts : for every column a number δ (it may move by anything within ±δ, raw units, or
            ranks of ordered categories) or a pair (low, high); or these by name, the other columns
            standing still. Categories without an order cannot move; missing values stay missing
        on_unseen : as for `FrozenNetwork.score`; a row without features of its own is left out

        Examples
        --------
        >>> import isotone
        >>> network = isotone.MonotonicNetwork([2, 8, 1], monotonic_cst=[1, -1])
        >>> certificate = isotone.certify(isotone.freeze(network, features=["income", "debt"]))
        >>> certificate.flip_bound([[1.0, 2.0], [3.0, 1.0]], shifts={"debt": 0.0})
        0.0
        """
        decisions, features = self.decisions(threshold), self.frozen.encode(X, on_unseen)
        features = features[has_features(features)]
        ranges = shift_ranges(shifts, self.frozen.inputs.columns)
        low, high = (self.frozen.inputs.shift(features, amounts) for amounts in ranges)
        score = self.frozen.score_features(features).astype(np.float64)
        flips = decisions.can_flip(features, score, low, high)
        return float(np.mean(flips)) if len(flips) else 0.0

    @ieee_arithmetic()
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
        low, high = slope_range(self.frozen.residual, self._slope_bounds)
        order = float(self._errors.order[0])
        return self._decide(threshold, low[0], high[0], self.rounding_errors[0], order)

    @ieee_arithmetic()
    def along(self, direction: JointDirection) -> tuple[JointVerdict, ...]:
        """Whether outputs never fall when columns move together, at these rates in raw units.

        One verdict per output, for rows whose columns are present and within the clip. The
        direction need not be declared.

        Examples
        --------
        >>> import isotone
        >>> network = isotone.MonotonicNetwork([2, 8, 1], monotonic_cst=[1, -1])
        >>> certificate = isotone.certify(isotone.freeze(network, features=["income", "debt"]))
        >>> [verdict.real for verdict in certificate.along({"income": 2.0, "debt": -1.0})]
        [True]
        """
        errors = np.array(self.rounding_errors)
        return judge_joint(self.frozen, self._slope_bounds, errors, direction)

    @ieee_arithmetic()
    def rivals(self, k: int) -> dict[int, Decisions]:
        """For every other class l the decisions z_k − z_l ≥ 0."""
        frozen = self.frozen
        slopes = bounds.rival_slopes(frozen.steps, frozen.n_features, k)
        low = subtract_down(subtract_down(frozen.residual[k], frozen.residual), slopes)
        high = -subtract_down(subtract_down(frozen.residual, frozen.residual[k]), slopes)
        errors = add(self.rounding_errors[k], self.rounding_errors).tolist()
        return {
            other: self._decide(0.0, low[other], high[other], errors[other], errors[other])
            for other in range(frozen.n_outputs)
            if other != k
        }

    def _decide(
        self, threshold: float, low: Floats, high: Floats, error: float, order: float
    ) -> Decisions:
        """Decisions about a score whose slopes along inputs of the network are in [low, high].

        Its error, and that which matters for its order, are as in `ordered.ScoreErrors`.
        """
        grid = self.frozen.grid
        margin = math.inf if grid is None else divide(multiply(2.0, order), grid)
        least = np.maximum(low, -high)  # slope in the direction in which the score rises
        return Decisions(
            copies=self._copies,
            threshold=threshold,
            fall=np.maximum(-low, 0.0),
            rise=np.maximum(high, 0.0),
            exact=(least >= margin) & np.isfinite(margin),
            error=error,
        )

    @cached_property
    def _slope_bounds(self) -> Floats:
        return bounds.slopes(self.frozen.steps, self.frozen.n_features)

    @cached_property
    def _errors(self) -> ScoreErrors:
        return find_errors(self.frozen)

    @cached_property
    def _copies(self) -> Copies:
        """The inputs of the network as copies of features, one of each if there are no knots."""
        return copies_of(self.frozen)


@ieee_arithmetic()
def certify(frozen: FrozenNetwork) -> Certificate:
    """Examine the stored numbers of a network and say what they guarantee."""
    check_network("`certify` examines", frozen)
    slope_bounds = bounds.slopes(frozen.steps, frozen.n_features)
    found = find_errors(frozen)
    errors = found.score
    constants = (
        bounds.steepest(slope_bounds, frozen.lipschitz)
        if frozen.metric == "1"
        else bounds.constants(frozen.steps, frozen.lipschitz, frozen.metric)
    )
    verdicts = by_column(frozen, judge(frozen, slope_bounds, found.order))
    kept = all(v.real and v.computed is not False for v in verdicts)
    kept = kept and bool(np.all(np.isfinite(errors)))
    joint = tuple(
        verdict
        for direction in frozen.joint_cst
        for verdict in judge_joint(frozen, slope_bounds, errors, direction)
    )
    return Certificate(
        holds=bool(kept and np.all(constants <= 1.0) and all(v.real for v in joint)),
        fingerprint=frozen.fingerprint,
        precision=frozen.precision,
        metric=frozen.metric,
        outputs=frozen.outputs,
        classes=frozen.classes,
        clip=frozen.clip,
        grid=frozen.grid,
        lipschitz=tuple(frozen.lipschitz.tolist()),
        constants=tuple(constants.tolist()),
        slopes=find_slopes(frozen, slope_bounds),
        verdicts=verdicts,
        missing=judge_missing(frozen, slope_bounds, errors),
        joint=joint,
        interactions=find_interactions(frozen),
        layers=bounds.layer_bounds(frozen.steps),
        rounding_errors=tuple(errors.tolist()),
        widths=() if np.any(errors) else find_widths(frozen),
        frozen=frozen,
    )


_FIELDS: dict[type, list[str]] = {
    kind: [f.name for f in fields(kind)]
    for kind in (Slope, Interval, Verdict, MissingVerdict, JointVerdict, bounds.Layer)
}


def _plain(value: Any) -> Any:
    """JSON content: tuples as lists, dataclasses as dictionaries, infinity as None."""
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if type(value) in _FIELDS:
        return {name: _plain(getattr(value, name)) for name in _FIELDS[type(value)]}
    return None if isinstance(value, float) and not math.isfinite(value) else value
