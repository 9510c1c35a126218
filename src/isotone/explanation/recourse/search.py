"""Recourse: the least change of a row that turns its decision, and a proof of how little can.

`find_recourse` searches for a cheap change, and bounds the cost of any from below by the
certificate, so that the gap between both is known. A change that is found does turn the decision:
the engine has scored the changed row. That there is none cheaper is proved only down to the bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from isotone.arithmetic import ieee_arithmetic
from isotone.certificate.certify import Certificate, certify
from isotone.certificate.robustness import Decisions
from isotone.checks import check_choice
from isotone.explanation.recourse.bound import least_costs
from isotone.explanation.recourse.changes import (
    AllowedChange,
    Choice,
    ColumnMoves,
    check_changes,
    choices_of,
)
from isotone.explanation.recourse.rays import Space, cheapest
from isotone.explanation.signs import exact_directions
from isotone.frozen.loading import check_network
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Inputs, Policy, for_all_rows, has_features
from isotone.inputs.columns import Category
from isotone.typing import Bools, Floats, Signs

_AT_ONCE = 2048  # rows


@dataclass(frozen=True, eq=False)
class Recourse:
    """What turns the decisions of rows, and what it costs, (n_rows,) each.

    Parameters
    ----------
    columns : that may change
    needed : rows whose decision is not the wanted one; the others cost nothing
    cost : of the change that was found; infinite if none was, NaN for rows without features
    bound : no allowed change that turns the decision costs less; infinite if none can
    values : (n_rows, n_columns), of the columns after the change: numbers, ranks, or the places
        of categories; NaN for a missing value
    inputs : of the model
    """

    columns: tuple[str, ...]
    needed: Bools
    cost: Floats
    bound: Floats
    values: Floats
    inputs: Inputs

    @property
    def found(self) -> Bools:
        """Rows that have the wanted decision after the change."""
        return np.isfinite(self.cost)

    @property
    def impossible(self) -> Bools:
        """Rows for which it is proved that no allowed change turns the decision."""
        return np.isinf(self.bound)

    def changed(self) -> dict[str, list[Any]]:
        """Values of the columns after the change, as they stand in a raw table."""
        columns = tuple(self.inputs.column(name) for name in self.columns)
        return Inputs(columns).decode(self.values)


@ieee_arithmetic()
def find_recourse(
    model: FrozenNetwork | Certificate,
    X: Any,
    changes: Mapping[str, AllowedChange],
    *,
    threshold: float = 0.0,
    to: Literal["accept", "refuse"] = "accept",
    seed: int = 0,
    on_unseen: Policy = "error",
    encoded: bool = False,
) -> Recourse:
    """Search for the cheapest allowed change that turns the decision score ≥ threshold.

    Along a single column with a direction the least change is found up to rounding. Several
    columns, or columns without a direction, are searched along many rays, and the best is not
    proved to be the least: `Recourse.bound` says how much cheaper another can be at most. If all
    columns that may move have directions, rows that cannot be turned are known for certain.

    Parameters
    ----------
    model : a frozen network with one output, or its certificate
    X : rows as for `FrozenNetwork.score`
    changes : columns that may change, and how; a value that is missing stays missing
    threshold : of the score
    to : the decision that is wanted; rows that have it need no change
    seed : of the rays
    on_unseen : as for `FrozenNetwork.score`
    encoded : whether `X` is what `FrozenNetwork.encode` made, with NaN in rows without features

    Examples
    --------
    >>> import isotone
    >>> from isotone.explanation import AllowedChange, find_recourse
    >>> network = isotone.MonotonicNetwork([2, 8, 1], monotonic_cst=[1, -1])
    >>> model = isotone.freeze(network, features=["income", "debt"])
    >>> found = find_recourse(model, [[-9.0, 9.0]], {"income": AllowedChange(down=False)})
    >>> bool(found.bound[0] <= found.cost[0])
    True
    """
    check_choice("to", to, ("accept", "refuse"))
    if not isinstance(model, Certificate):
        check_network("`find_recourse` changes rows of", model)
    certificate = model if isinstance(model, Certificate) else certify(model)
    frozen = certificate.frozen
    decisions = certificate.decisions(threshold)
    if not isinstance(decisions, Decisions):
        raise ValueError(
            f"recourse needs one output and a threshold; this model decides between "
            f"{frozen.n_outputs} classes: train one with two classes"
        )
    check_changes(frozen, changes)
    finder = _Finder(certificate, decisions, dict(changes), 1 if to == "accept" else -1, seed)
    features = np.asarray(X) if encoded else frozen.encode(X, on_unseen)
    known = has_features(features)
    starts = range(0, max(int(known.sum()), 1), _AT_ONCE)
    found = [finder.find(features[known][start : start + _AT_ONCE]) for start in starts]
    needed, cost, bound, values = (
        for_all_rows(np.concatenate(part), known) for part in zip(*found, strict=True)
    )
    names = tuple(changes)
    return Recourse(names, needed > 0, cost, bound, values, frozen.inputs)


@dataclass(frozen=True, eq=False)
class _Finder:
    """Finds changes for rows that have features.

    Parameters
    ----------
    goal : +1 if scores are to reach the threshold, -1 if they are to fall below it
    """

    certificate: Certificate
    decisions: Decisions
    changes: dict[str, AllowedChange]
    goal: int
    seed: int

    def find(self, features: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Whether rows need a change, its cost, the bound, and values of changed columns."""
        inputs = self.certificate.frozen.inputs
        needed = ~self._has_goal(features)
        cost, bound = np.zeros((2, len(features)))
        turned = features.copy()
        rows = features[needed]
        turned[needed], cost[needed], corners = self._search(rows)
        scores = self.certificate.frozen.score_features(rows).astype(np.float64)
        movable = inputs.movable(rows)
        least = least_costs(self.decisions, inputs, self.changes, rows, scores, movable)
        bound[needed] = np.where(corners, least, np.inf)
        return needed.astype(float), cost, bound, self._codes(turned)

    def _has_goal(self, features: Floats) -> Bools:
        scores = self.certificate.frozen.score_features(features).astype(np.float64)
        accepted: Bools = scores >= self.decisions.threshold  # which float32 might round
        return accepted if self.goal > 0 else ~accepted

    def _search(self, features: Floats) -> tuple[Floats, Floats, Bools]:
        """Features after the best change, its cost, and whether any change may turn a row."""
        inputs = self.certificate.frozen.inputs
        best, cost = features.copy(), np.full(len(features), np.inf)
        corners = np.zeros(len(features), bool)
        for choice in choices_of(inputs, self.changes):
            turned, price, corner = self._move(features, choice)
            better = price < cost
            best[better], cost[better] = turned[better], price[better]
            corners |= corner
        return best, cost, corners

    def _move(self, features: Floats, choice: Choice) -> tuple[Floats, Floats, Bools]:
        """The same for one choice of categories."""
        inputs, moves = self.certificate.frozen.inputs, self._moves
        start, paid = choice.apply(features)
        x, movable = start[:, moves.places], inputs.movable(start)[:, moves.numbers]
        helps_up, helps_down = moves.helpful(self._directions, self.goal)
        far = [
            np.where(movable & helps, moves.far(x, side), 0.0)
            for side, helps in ((1, helps_up), (-1, helps_down))
        ]
        reach = self._reach(start)
        up, down = np.minimum(far[0], reach[0]), np.minimum(far[1], reach[1])
        space = Space(
            x=x,
            up=up,
            down=down,
            low=moves.low,
            high=moves.high,
            cost=moves.cost,
            whole=moves.whole,
            flips=lambda v: self._turns(start, v),
        )
        values, price = cheapest(space, self.seed)
        at_once = self._has_goal(start)
        values, price = np.where(at_once[:, None], x, values), np.where(at_once, 0.0, price)
        turned = start.copy()
        turned[:, moves.places] = values
        return turned, price + paid, self._may_turn(start, x, far)

    def _may_turn(self, start: Floats, x: Floats, far: list[Floats]) -> Bools:
        """Whether moves can turn rows: not if all have directions, and even the farthest do not.

        A move of a column with a direction is never worse than a shorter one, to the last bit.
        """
        free = ((far[0] > 0) | (far[1] > 0)) & (self._directions[self._moves.places] == 0)
        # the limits themselves: x + (high - x) can be below `high`
        ends = (np.where(far[1] > 0, self._moves.low, x), self._moves.high)
        farthest = np.clip(np.where(far[0] > 0, ends[1], ends[0]), -1.7e308, 1.7e308)
        corner = self._turns(start, farthest[:, None])[:, 0]
        may_turn: Bools = corner | free.any(axis=1)
        return may_turn

    @cached_property
    def _moves(self) -> ColumnMoves:
        return ColumnMoves.of(self.certificate.frozen.inputs, self.changes)

    @cached_property
    def _directions(self) -> Signs:
        return exact_directions(self.certificate, 0)

    def _reach(self, start: Floats) -> tuple[Floats, Floats]:
        """How far columns can move up and down until scores no longer change."""
        copies, places = self.decisions.copies, self._moves.places
        firsts, counts = copies.firsts, np.array(copies.counts)
        last = firsts + counts - 1
        scaling, reach = copies.scaling, copies.reach
        ends = []
        for side, copy in ((1, last), (-1, firsts)):
            at = scaling.center[copy] + side * reach[copy] / scaling.factor[copy]
            with np.errstate(over="ignore"):
                raw = np.where(scaling.log[copy], np.exp(at), at) - scaling.offset[copy]
            ends.append(np.clip(raw, -1e300, 1e300)[places])
        x = start[:, places]
        up, down = np.abs(ends[0] - x) * 1.001 + 1e-9, np.abs(x - ends[1]) * 1.001 + 1e-9
        return up, down

    def _turns(self, start: Floats, values: Floats) -> Bools:
        """Whether rows with other values have the wanted decision, (n_rows, n_rays)."""
        n_rows, n_rays = values.shape[:2]
        features = np.repeat(start, n_rays, axis=0)
        features[:, self._moves.places] = values.reshape(n_rows * n_rays, values.shape[2])
        return self._has_goal(features).reshape(n_rows, n_rays)

    def _codes(self, features: Floats) -> Floats:
        """Codes of the changeable columns, (n_rows, n_changes): NaN where a value is missing."""
        inputs, codes = self.certificate.frozen.inputs, []
        movable = inputs.movable(features)
        for name in self.changes:
            number = inputs.names.index(name)
            column, first = inputs.columns[number], inputs.places[number]
            own = features[:, first : first + len(column.features)]
            if isinstance(column, Category):
                codes.append(np.where(own.any(axis=1), own.argmax(axis=1), np.nan))
            else:
                codes.append(np.where(movable[:, number], own[:, 0], np.nan))
        return np.column_stack(codes)
