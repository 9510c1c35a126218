"""Bits: the smallest widths of fixed point that provably change few decisions.

No score moves by more than D (`isotone.certificate.distance`), so that only rows whose score lies
within D of the threshold can change sides: their share bounds that of flipped decisions, on any
rows that are distributed like the given ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from isotone.certificate.certify import certify
from isotone.certificate.distance import distances
from isotone.certificate.widths import find_widths
from isotone.freezing.fixed import Bits, check_bits, round_to, to_fixed
from isotone.freezing.margin import dense_first
from isotone.frozen.network import FrozenNetwork
from isotone.typing import Bools, Floats

_MOST_BITS, _LEAST_BITS = 24, 3


@dataclass(frozen=True)
class FixedPoint:
    """A network in fixed point, and how many decisions it changes.

    Parameters
    ----------
    bits : of inputs and of weights
    distance : D, which no score within the clip moves by more than
    flip_bound : share of the rows whose score is within D of the threshold, or beyond the clip
    flips : share of the rows whose decision did change, at most `flip_bound`
    """

    frozen: FrozenNetwork
    bits: tuple[int, int]
    distance: float
    flip_bound: float
    flips: float


def choose_bits(
    frozen: FrozenNetwork,
    X: Any,
    *,
    threshold: float = 0.0,
    max_flips: float,
    clip: float | None = None,
) -> FixedPoint:
    """The network in fixed point with the narrowest scores for which the bound allows it.

    Parameters
    ----------
    frozen : certified
    X : raw rows, as for `FrozenNetwork.score`
    threshold : the decision is score ≥ threshold; for several classes the largest logit, and 0
    max_flips : largest share of rows whose decision may change, by the bound; that is a worst
        case over the whole box of inputs, some ten to fifty times what is measured
    clip : scaled inputs are clamped to this, or where the network does if that is less; by
        default the power of two that no row exceeds
    """
    if not 0 < max_flips < 1:
        raise ValueError(f"`max_flips={max_flips}` must be between 0 and 1, such as 0.001")
    rows = _Rows.of(frozen, X, threshold)
    # beyond the clip of the network the two would move apart
    clip = min(rows.reach if clip is None else clip, frozen.clip)
    found = list(_candidates(frozen, rows, clip, max_flips))
    if not found:
        raise ValueError(_too_few(frozen, rows, clip, max_flips))
    _, bits = min(found)
    return rows.judge(to_fixed(frozen, bits, clip), bits)


def judge_bits(
    frozen: FrozenNetwork, bits: Bits, X: Any, *, threshold: float = 0.0, clip: float | None = None
) -> FixedPoint:
    """The network in fixed point of given bits, and how many decisions it changes on rows."""
    rows, pair = _Rows.of(frozen, X, threshold), check_bits(bits)
    return rows.judge(to_fixed(frozen, pair, rows.reach if clip is None else clip), pair)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows, their scores and decisions, of the network that fixed point is compared with."""

    frozen: FrozenNetwork
    features: Floats
    scaled: Floats
    scores: Floats
    threshold: float

    @classmethod
    def of(cls, frozen: FrozenNetwork, X: Any, threshold: float) -> _Rows:
        certify(frozen).decisions(threshold)  # refuses what is no decision
        features = frozen.encode(X)
        if not len(features):
            raise ValueError("`rows` has none; give rows like those that will be decided on")
        scaled = np.abs(replace(frozen, grid=None).snap(features)).max(axis=1)
        scores = frozen.score_features(features).astype(np.float64)
        return cls(frozen, features, scaled, scores.reshape(len(features), -1), threshold)

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

    def judge(self, fixed: FrozenNetwork, bits: tuple[int, int]) -> FixedPoint:
        distance = self.distance(fixed)
        scores = fixed.score_features(self.features).astype(np.float64)
        flips = float(np.mean(self.decide(scores) != self.decide(self.scores)))
        found = FixedPoint(fixed, bits, distance, self.bound(distance, fixed.clip), flips)
        return replace(found, frozen=self._noted(found))

    def _noted(self, found: FixedPoint) -> FrozenNetwork:
        """The network with what was found in its provenance."""
        about = {name: value for name, value in vars(found).items() if name != "frozen"}
        about |= {"bits": list(found.bits), "threshold": self.threshold, "rows": len(self.scores)}
        return replace(found.frozen, provenance=dict(found.frozen.provenance) | {"fixed": about})

    def distance(self, fixed: FrozenNetwork) -> float:
        return float(distances(self.frozen, dense_first(self.frozen), fixed).max())


def _candidates(
    frozen: FrozenNetwork, rows: _Rows, clip: float, max_flips: float
) -> Iterator[tuple[int, tuple[int, int]]]:
    """For every width of weights the narrowest inputs that will do, with the width of scores."""
    for of_weights in range(_LEAST_BITS, _MOST_BITS + 1):

        def widths(of_inputs: int, of_weights: int = of_weights) -> tuple[int, ...]:
            return _within(frozen, rows, (of_inputs, of_weights), clip, max_flips)

        of_inputs = _least(lambda n: bool(widths(n)))
        if of_inputs is not None:
            yield widths(of_inputs)[-1], (of_inputs, of_weights)


def _least(holds: Callable[[int], bool]) -> int | None:
    """The fewest bits of inputs that will do; more never hurt until scores are too wide."""
    return next((n for n in range(_LEAST_BITS, _MOST_BITS + 1) if holds(n)), None)


def _within(
    frozen: FrozenNetwork, rows: _Rows, bits: tuple[int, int], clip: float, max_flips: float
) -> tuple[int, ...]:
    """The widths with these bits if the bound holds, otherwise none."""
    fixed = round_to(frozen, bits, clip)
    widths = find_widths(fixed)
    if not widths or rows.bound(rows.distance(fixed), fixed.clip) > max_flips:
        return ()
    return widths


def _too_few(frozen: FrozenNetwork, rows: _Rows, clip: float, max_flips: float) -> str:
    """What to do where no widths will do, with the best bound that there is."""
    best = 1.0
    for of_weights in range(_LEAST_BITS, _MOST_BITS + 1):
        for of_inputs in range(of_weights, _MOST_BITS + 1, 3):
            fixed = round_to(frozen, (of_inputs, of_weights), clip)
            if find_widths(fixed):
                best = min(best, rows.bound(rows.distance(fixed), fixed.clip))
    return (
        f"`max_flips={max_flips:g}` cannot be proved with scores of at most 53 bits; the best "
        f"bound found is {best:.2g} of the rows: allow as many, give a smaller `clip`, or train "
        "fewer or narrower layers"
    )
