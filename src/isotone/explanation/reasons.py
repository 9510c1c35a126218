"""Reasons: how much every column raises or lowers the score of a row against a background.

`explain` is enough for most uses; make an `Explainer` to explain one batch of rows after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from isotone.arithmetic import ieee_arithmetic
from isotone.certificate.certify import Certificate, certify
from isotone.checks import check_choice
from isotone.explanation.background import N_ROWS, Background
from isotone.explanation.draws import DrawPlan, Mean, Method
from isotone.explanation.outputs import Output
from isotone.explanation.points import Points
from isotone.explanation.shapley import Game, along, exact
from isotone.explanation.signs import Proved, exact_directions, prove_signs
from isotone.frozen.loading import check_network
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Policy, has_features
from isotone.typing import Floats, Indices, Reals

Side = Literal["both", "raises", "lowers"]


@dataclass(frozen=True, eq=False)
class Reasons:
    r"""Contributions of columns to the scores of rows: :math:`f(x) - \bar f = \sum_i \phi_i`.

    Parameters
    ----------
    columns : names
    output : what is explained, in words
    score : (n_rows,), NaN for rows that have none
    baseline : the mean score of the background rows that were compared with
    baseline_error : its standard error as a mean over the table that they were drawn from
    contributions : (n_rows, n_columns)
    errors : standard errors of these, for drawn orders and for a drawn background; 0 if neither
        was drawn, NaN if one draw alone cannot tell
    proved : the signs that a direction proves
    method : how contributions were found, in words
    """

    columns: tuple[str, ...]
    output: str
    score: Floats
    baseline: float
    baseline_error: float
    contributions: Floats
    errors: Floats
    proved: Proved
    method: str

    def ranked(self, top: int | None = None, side: Side = "both") -> Indices:
        """Numbers of columns by decreasing size of their contributions, (n_rows, top).

        With a side, only what raises or lowers the score; -1 where there is no further one.
        """
        check_choice("side", side, ("both", "raises", "lowers"))
        sign = {"both": 0.0, "raises": 1.0, "lowers": -1.0}[side]
        size = sign * self.contributions if sign else np.abs(self.contributions)
        order = np.argsort(-np.nan_to_num(size, nan=-1.0), axis=1, kind="stable")
        counts = np.take_along_axis(size, order, axis=1) > 0
        return np.where(counts, order, -1)[:, :top]

    def in_points(self, points: Points) -> Reasons:
        """The same on the scale of points; signs turn if higher odds give fewer points."""
        flipped = Proved(self.proved.never_positive, self.proved.never_negative)
        return replace(
            self,
            output="points",
            score=points.of_score(self.score),
            baseline=float(points.of_score(np.array(self.baseline))),
            baseline_error=abs(points.factor) * self.baseline_error,
            contributions=points.factor * self.contributions,
            errors=abs(points.factor) * self.errors,
            proved=self.proved if points.factor > 0 else flipped,
        )


def explain(
    model: FrozenNetwork | Certificate,
    X: Any,
    background: Any,
    *,
    n_background: int = N_ROWS,
    output: str | int | None = None,
    method: Method = "auto",
    n_orders: int | None = None,
    seed: int = 0,
    on_unseen: Policy = "error",
) -> Reasons:
    """Shapley values of raw columns for every row, against a background.

    Parameters
    ----------
    model : a frozen network, or its certificate, which saves the time to compute it again
    X : rows as for `FrozenNetwork.score`
    background : a `Background`, rows, or the path of a table
    n_background : rows that are drawn from a background that is no `Background`
    output : which one, by its name or number, if there are several; of several classes it is the
        probability
    method : "exact" enumerates the sets of columns that interact, "sampled" draws orders of them,
        "auto" enumerates up to 12 columns and draws for more
    n_orders : orders that are drawn for every background row, each followed there and back; by
        default 2, and more if there are fewer than 16 rows
    seed : of the draws
    on_unseen : as for `FrozenNetwork.score`; a row without features of its own gets NaN

    Examples
    --------
    >>> import isotone
    >>> from isotone.explanation import explain
    >>> network = isotone.MonotonicNetwork([2, 8, 1], monotonic_cst=[1, -1])
    >>> model = isotone.freeze(network, features=["income", "debt"])
    >>> reasons = explain(model, [[3.0, 0.0]], background=[[1.0, 2.0], [2.0, 1.0]])
    >>> reasons.proved.signs  # income is above, and debt below, all of the background
    array([[1, 1]], dtype=int8)
    """
    frozen = model.frozen if isinstance(model, Certificate) else model
    if not isinstance(background, Background):
        background = Background.of(
            frozen, background, n_rows=n_background, seed=seed, on_unseen=on_unseen
        )
    explainer = Explainer(
        model, background, output=output, method=method, n_orders=n_orders, seed=seed
    )
    return explainer.explain(X, on_unseen)


class Explainer:
    """Explains rows against one background; see `explain`.

    What it says of a row depends on the row, not on the others that it is explained with.
    """

    def __init__(
        self,
        model: FrozenNetwork | Certificate,
        background: Background,
        *,
        output: str | int | None = None,
        method: Method = "auto",
        n_orders: int | None = None,
        seed: int = 0,
    ) -> None:
        if not isinstance(model, Certificate):
            check_network("`explain` explains", model)
        self.certificate = model if isinstance(model, Certificate) else certify(model)
        self.frozen, self.background = self.certificate.frozen, background
        background.check(self.frozen)
        self.output = Output.of(self.frozen, output)
        self._plan = DrawPlan.of(self.certificate, self.output, background, method, n_orders, seed)
        owners = np.array(self.frozen.inputs.owners)
        self._by_column = np.argsort(owners, kind="stable")
        self._owned = [np.flatnonzero(owners == c).tolist() for c in range(owners.max() + 1)]

    @property
    def method(self) -> str:
        """How contributions are found, in words."""
        return self._plan.describe(self.background)

    @property
    def is_exact(self) -> bool:
        """Whether nothing is drawn, neither orders nor rows of the background."""
        return self._plan.is_exact and self.background.is_whole

    def explain(self, X: Any, on_unseen: Policy = "error") -> Reasons:
        """Explain raw rows."""
        return self.explain_features(self.frozen.encode(X, on_unseen), on_unseen)

    @ieee_arithmetic()
    def explain_features(self, features: Floats, on_unseen: Policy = "error") -> Reasons:
        """Explain rows that `FrozenNetwork.encode` made; NaN for those that have no features."""
        known = has_features(features)
        parts = self._parts(features[known])
        score = np.full(len(known), np.nan if isinstance(on_unseen, str) else on_unseen)
        contributions = np.full((len(known), len(self._owned)), np.nan)
        errors = contributions.copy()
        score[known] = self.output(list(features[known].T))
        contributions[known], errors[known] = parts
        return Reasons(
            columns=self.frozen.inputs.names,
            output=self.output.name,
            score=score,
            baseline=self._baseline[0],
            baseline_error=self._baseline[1],
            contributions=contributions,
            errors=errors,
            proved=self._proved(features),
            method=self.method,
        )

    def _proved(self, features: Floats) -> Proved:
        order = self._by_column
        background = replace(
            self.background, low=self.background.low[order], high=self.background.high[order]
        )
        counts = [len(own) for own in self._owned]
        first = np.cumsum([0, *counts[:-1]])
        directions = exact_directions(self.certificate, self.output.number)[order]
        return prove_signs(directions, features[:, order], background, first)

    @cached_property
    def _baseline(self) -> tuple[float, float]:
        """The mean of the background, and its standard error."""
        scores, doubt = self.output(list(self.background.features.T)), self.background.doubt
        n = len(scores)
        spread = float(scores.std(ddof=1)) if n > 1 else np.nan
        return float(scores.mean()), 0.0 if doubt == 0 else doubt * spread / np.sqrt(n)

    def _parts(self, features: Floats) -> tuple[Floats, Floats]:
        """Contributions and errors of rows that all have features, some rows at a time."""
        step, nothing = self._plan.rows_at_once, np.empty((0, len(self._owned)))
        starts = range(0, len(features), step)
        found = [self._contributions(features[start : start + step]) for start in starts]
        found.append((nothing, nothing))
        values, errors = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return values, errors

    def _contributions(self, features: Floats) -> tuple[Floats, Floats]:
        plan, n_rows = self._plan, len(features)
        values, errors = np.zeros((2, n_rows, len(self._owned)))
        for block, orders in zip(plan.blocks, plan.orders, strict=True):
            mean = Mean()
            n_together = 1 if orders else plan.together(n_rows, len(block))
            for number, game in self._games(features, n_together):
                if orders is None:
                    each = exact(game, block).reshape(len(block), -1, n_rows)
                    for place in range(each.shape[1]):
                        mean.add([each[:, place]])
                else:
                    mean.add([along(game, block, order) for order in orders[number]])
            values[:, block] = mean.value.T
            errors[:, block] = mean.error(self.background.doubt, orders is None).T
        return values, errors

    def _games(self, features: Floats, n_together: int) -> Iterator[tuple[int, Game]]:
        """Batches of rows against as many background rows as fit at once, and their number."""
        rows, n_rows = np.ascontiguousarray(features.T), len(features)
        for start in range(0, len(self.background.features), n_together):
            others = self.background.features[start : start + n_together].T
            if n_together == 1:
                background: list[Reals] = [np.broadcast_to(value[0], n_rows) for value in others]
                yield start, Game(self.output, list(rows), background, self._owned)
            else:
                own = list(np.tile(rows, others.shape[1]))
                yield (
                    start,
                    Game(self.output, own, list(np.repeat(others, n_rows, 1)), self._owned),
                )
