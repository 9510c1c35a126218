"""Verdicts: whether the declared directions of a network hold, from bounds on its slopes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from isotone.frozen.network import FrozenNetwork
from isotone.rounding import add, divide, multiply, subtract_down, sum_down, two_sum
from isotone.typing import Floats, Indices, Signs


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


def judge(frozen: FrozenNetwork, slope_bounds: Floats, errors: Floats) -> tuple[Verdict, ...]:
    """One for every declared direction; in time proportional to their number."""
    judged = _judge_probabilities if frozen.of_classes else _judge_scores
    slopes, doubts = judged(frozen, slope_bounds, errors)
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


def by_column(frozen: FrozenNetwork, verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
    """Verdicts along columns: a direction along all copies of one is a direction along it."""
    if not frozen.inputs.copies:
        return verdicts
    place = dict(zip(frozen.features, frozen.inputs.copies, strict=True))
    groups: dict[tuple[int, int, int], list[Verdict]] = {}
    for verdict in verdicts:
        key = verdict.output, place[verdict.feature], verdict.direction
        groups.setdefault(key, []).append(verdict)
    counts = Counter(frozen.inputs.copies)
    whole = all(len(group) == counts[source] for (_, source, _), group in groups.items())
    if not whole:  # some copies have a direction and others not: each stands for itself
        return verdicts
    return tuple(
        replace(
            group[0],
            feature=frozen.inputs.encoded[source],
            slope=min(v.slope for v in group),
            real=all(v.real for v in group),
            computed=None if group[0].computed is None else all(v.computed for v in group),
        )
        for (_, source, _), group in groups.items()
    )


def kept_directions(frozen: FrozenNetwork, verdicts: tuple[Verdict, ...]) -> Signs:
    """Declared directions that are proved, (n_outputs, n_encoded); 0 for all others."""
    directions, counts = frozen.directions.copy(), frozen.inputs.counts
    # verdicts are about features, or about their copies where the directions of these differ
    names = np.array([*frozen.inputs.encoded, *frozen.features])
    features = np.concatenate([np.arange(len(counts)), np.repeat(np.arange(len(counts)), counts)])
    for found in verdicts:
        if not found.real or found.computed is False:
            directions[found.output, features[names == found.feature]] = 0
    return directions


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
