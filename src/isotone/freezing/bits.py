r"""Bits: the smallest widths of fixed point that provably change few decisions.

Three statements, from the widest to the sharpest:

- of any row within the clip: no score moves by more than D (`isotone.certificate.distance`), so
  that only scores within D of the threshold can change sides. D is a worst case over the box;
- of other rows, drawn as these were, one by one: where k of n decisions changed, the share p that
  changes among all of them is, with the confidence :math:`1 - \alpha`, at most the p for which

  .. math:: \sum_{i=0}^{k} \binom{n}{i} p^i (1 - p)^{n - i} = \alpha

  (Clopper and Pearson). If widths are chosen by it, α is divided by the number of choices, so that
  the confidence holds for the chosen ones. It presumes rows that the network was not trained on,
  and a `clip` that was not chosen from them;
- of the given rows themselves: k is counted, exactly, since neither network's computed decision
  leaves anything open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from isotone.certificate.certify import certify
from isotone.certificate.distance import distances
from isotone.certificate.widths import find_widths
from isotone.checks import check_choice
from isotone.freezing.fixed import Bits, check_bits, round_to, to_fixed
from isotone.freezing.margin import dense_first
from isotone.frozen.network import FrozenNetwork
from isotone.typing import Bools, Floats

Rule = Literal["rows", "box"]

CONFIDENCE = 0.99
_MOST_BITS, _LEAST_BITS = 24, 3
_N_CHOICES = (_MOST_BITS - _LEAST_BITS + 1) ** 2  # of bits of inputs and of weights


@dataclass(frozen=True)
class FixedPoint:
    """A network in fixed point, and how many decisions it changes.

    Parameters
    ----------
    bits : of inputs and of weights
    distance : D, which no score within the clip moves by more than
    flip_bound : share of the rows whose score is within D of the threshold, or beyond the clip
    flip_limit : upper limit of the share among all rows that are drawn as these were
    confidence : of that limit
    flips : share of the rows whose decision did change, at most `flip_bound`
    """

    frozen: FrozenNetwork
    bits: tuple[int, int]
    distance: float
    flip_bound: float
    flip_limit: float
    confidence: float
    flips: float


def upper_limit(k: int, n: int, alpha: float) -> float:
    """The largest share that k of n leave possible, with confidence 1 - `alpha`; rounded up.

    Examples
    --------
    >>> round(upper_limit(0, 1000, 0.05), 6), round(upper_limit(7, 20_000, 0.01), 6)
    (0.002991, 0.0008)
    """
    if k >= n:
        return 1.0
    i = np.arange(k + 1)
    ways = np.array([math.lgamma(n + 1) - math.lgamma(j + 1) - math.lgamma(n - j + 1) for j in i])

    def chance(p: float) -> float:
        """Of no more than k, if the share is p."""
        return float(np.exp(ways + i * math.log(p) + (n - i) * math.log1p(-p)).sum())

    low, high = k / n, 1.0
    while high - low > 2.0**-40 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle > 0 and chance(middle) > alpha else (low, middle)
    return min(high * (1.0 + 2.0**-20), 1.0)  # above the errors of the logarithms


def choose_bits(
    frozen: FrozenNetwork,
    X: Any,
    *,
    threshold: float = 0.0,
    max_flips: float,
    clip: float | None = None,
    confidence: float = CONFIDENCE,
    rule: Rule = "rows",
) -> FixedPoint:
    """The network in fixed point with the narrowest scores for which the rule allows it.

    Parameters
    ----------
    frozen : certified
    X : raw rows, as for `FrozenNetwork.score`
    threshold : the decision is score ≥ threshold; for several classes the largest logit, and 0
    max_flips : largest share of decisions that may change
    confidence : with which no more change among all rows that are drawn as X was
    rule : "rows" limits the share among such rows; "box" that of rows of X whose score lies
        within D of the threshold, whatever the confidence: a worst case over the whole box of
        inputs, some ten to seventy times what happens
    clip : scaled inputs are clamped to this, or where the network does if that is less; by
        default the power of two that no row exceeds
    """
    if not 0 < max_flips < 1:
        raise ValueError(f"`max_flips={max_flips}` must be between 0 and 1, such as 0.001")
    check_choice("rule", rule, ("rows", "box"))
    rows = _Rows.of(frozen, X, threshold, confidence, n_choices=_N_CHOICES)
    # beyond the clip of the network the two would move apart
    clip = min(rows.reach if clip is None else clip, frozen.clip)
    found = list(_candidates(frozen, rows, clip, max_flips, rule))
    if not found:
        raise ValueError(_too_few(frozen, rows, clip, max_flips, rule))
    _, bits = min(found)
    return rows.judge(to_fixed(frozen, bits, clip), bits)


def judge_bits(
    frozen: FrozenNetwork,
    bits: Bits,
    X: Any,
    *,
    threshold: float = 0.0,
    clip: float | None = None,
    confidence: float = CONFIDENCE,
) -> FixedPoint:
    """The network in fixed point of given bits, and how many decisions it changes on rows."""
    rows, pair = _Rows.of(frozen, X, threshold, confidence), check_bits(bits)
    return rows.judge(to_fixed(frozen, pair, rows.reach if clip is None else clip), pair)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows, their scores and decisions, of the network that fixed point is compared with."""

    frozen: FrozenNetwork
    features: Floats
    scaled: Floats
    scores: Floats
    threshold: float
    confidence: float
    n_choices: int

    @classmethod
    def of(
        cls, frozen: FrozenNetwork, X: Any, threshold: float, confidence: float, n_choices: int = 1
    ) -> _Rows:
        certify(frozen).decisions(threshold)  # refuses what is no decision
        if not 0 < confidence < 1:
            raise ValueError(
                f"`confidence={confidence}` must be between 0 and 1; choose one such as 0.99"
            )
        features = frozen.encode(X)
        if not len(features):
            raise ValueError("`rows` is empty; give rows like those that decisions will be about")
        scaled = np.abs(replace(frozen, grid=None).snap(features)).max(axis=1)
        scores = frozen.score_features(features).astype(np.float64)
        scores = scores.reshape(len(features), -1)
        return cls(frozen, features, scaled, scores, threshold, confidence, n_choices)

    @property
    def reach(self) -> float:
        """The least power of two above every scaled input."""
        return float(2.0 ** math.frexp(float(self.scaled.max()))[1])

    def bound(self, distance: float, clip: float) -> float:
        """Share of rows whose decision can change."""
        if self.frozen.of_classes:
            two = np.sort(self.scores, axis=1)[:, -2:]
            near: Bools = two[:, 1] - two[:, 0] <= 2.0 * distance
        else:
            near = np.abs(self.scores[:, 0] - self.threshold) <= distance
        return float(np.mean(near | (self.scaled > clip)))

    def decide(self, scores: Floats) -> Any:
        if self.frozen.of_classes:
            return scores.argmax(axis=1)
        return scores.reshape(-1) >= self.threshold

    def n_flips(self, fixed: FrozenNetwork) -> int:
        """How many decisions change."""
        scores = fixed.score_features(self.features).astype(np.float64)
        return int(np.count_nonzero(self.decide(scores) != self.decide(self.scores)))

    def limit(self, n_flips: int) -> float:
        """What `upper_limit` says of a number of changes, for one of all choices."""
        alpha = (1.0 - self.confidence) / self.n_choices
        return upper_limit(n_flips, len(self.scores), alpha)

    def worst(self, fixed: FrozenNetwork, rule: Rule) -> float:
        """The share of decisions that may change by a rule."""
        if rule == "rows":
            return self.limit(self.n_flips(fixed))
        return self.bound(self.distance(fixed), fixed.clip)

    def judge(self, fixed: FrozenNetwork, bits: tuple[int, int]) -> FixedPoint:
        distance, n_flips = self.distance(fixed), self.n_flips(fixed)
        found = FixedPoint(
            fixed,
            bits,
            distance,
            self.bound(distance, fixed.clip),
            self.limit(n_flips),
            self.confidence,
            n_flips / len(self.scores),
        )
        return replace(found, frozen=self._noted(found))

    def _noted(self, found: FixedPoint) -> FrozenNetwork:
        """The network with what was found in its provenance."""
        about = {name: value for name, value in vars(found).items() if name != "frozen"}
        about |= {"bits": list(found.bits), "threshold": self.threshold, "rows": len(self.scores)}
        return replace(found.frozen, provenance=dict(found.frozen.provenance) | {"fixed": about})

    def distance(self, fixed: FrozenNetwork) -> float:
        return float(distances(self.frozen, dense_first(self.frozen), fixed).max())


def _candidates(
    frozen: FrozenNetwork, rows: _Rows, clip: float, max_flips: float, rule: Rule
) -> Iterator[tuple[int, tuple[int, int]]]:
    """For every width of weights the narrowest inputs that will do, with the width of scores."""
    for of_weights in range(_LEAST_BITS, _MOST_BITS + 1):

        def widths(of_inputs: int, of_weights: int = of_weights) -> tuple[int, ...]:
            return _within(frozen, rows, (of_inputs, of_weights), clip, max_flips, rule)

        of_inputs = _least(lambda n: bool(widths(n)))
        if of_inputs is not None:
            yield widths(of_inputs)[-1], (of_inputs, of_weights)


def _least(holds: Callable[[int], bool]) -> int | None:
    """The fewest bits of inputs that will do; more never hurt until scores are too wide."""
    return next((n for n in range(_LEAST_BITS, _MOST_BITS + 1) if holds(n)), None)


def _within(
    frozen: FrozenNetwork,
    rows: _Rows,
    bits: tuple[int, int],
    clip: float,
    max_flips: float,
    rule: Rule,
) -> tuple[int, ...]:
    """The widths with these bits if the rule allows them, otherwise none."""
    fixed = round_to(frozen, bits, clip)
    widths = find_widths(fixed)
    if not widths or rows.worst(fixed, rule) > max_flips:
        return ()
    return widths


def _too_few(frozen: FrozenNetwork, rows: _Rows, clip: float, max_flips: float, rule: Rule) -> str:
    """What to do where no widths will do, with the best bound that there is."""
    best = 1.0
    for of_weights in range(_LEAST_BITS, _MOST_BITS + 1):
        for of_inputs in range(of_weights, _MOST_BITS + 1, 3):
            fixed = round_to(frozen, (of_inputs, of_weights), clip)
            if find_widths(fixed):
                best = min(best, rows.worst(fixed, rule))
    more = "give more rows, " if rule == "rows" else ""
    return (
        f"`max_flips={max_flips:g}` cannot be proved with scores of at most 53 bits; the best "
        f"bound found is {best:.2g} of the rows: allow as many, {more}give a smaller `clip`, or "
        "train fewer or narrower layers"
    )
