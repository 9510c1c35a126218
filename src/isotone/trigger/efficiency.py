"""Efficiencies: how many pass, by group and in bins of a true quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.typing import Bools, Floats, Indices, Integers


@dataclass(frozen=True, eq=False)
class Efficiency:
    """Efficiencies with their errors, for each of `at`: groups, or middles of bins.

    Parameters
    ----------
    at : (n,)
    n : (n,), how many there are
    n_passed : (n,), how many of them pass
    sums : (4, n), if events have weights: those of what passes and of what fails, P and F, and
        the sums of their squares; weights may be negative, as sWeights are
    """

    at: NDArray[Any]
    n: Integers
    n_passed: Integers
    sums: Floats | None = None

    def take(self, order: Indices) -> Efficiency:
        """Some of them, in this order."""
        sums = None if self.sums is None else self.sums[:, order]
        return Efficiency(self.at[order], self.n[order], self.n_passed[order], sums)

    @property
    def value(self) -> Floats:
        """k / n, with weights P / (P + F); NaN where there is nothing, or no positive weight."""
        if self.sums is not None:
            passed, total = self.sums[0], self.sums[0] + self.sums[1]
            return divided(passed, total)
        return np.where(self.n > 0, self.n_passed / np.maximum(self.n, 1), np.nan)

    @property
    def error(self) -> Floats:
        r"""The width of the posterior with a flat prior: never zero, even if all or none pass.

        .. math:: \sqrt{\tfrac{p(1-p)}{n+3}}, \quad p = \tfrac{k+1}{n+2}

        With weights P and F are independent sums with variances :math:`\sum w^2`, also where some
        weights are negative, and to first order the error is

        .. math:: \sqrt{F^2 {\textstyle\sum}_{\text{pass}} w^2 + P^2 \sum_{\text{fail}} w^2}
            \; / \; (P + F)^2

        which is :math:`\sqrt{p(1-p)/n}` if all weights are equal, and 0 if all or none pass.
        """
        if self.sums is not None:
            passed, failed, passed_2, failed_2 = self.sums
            total = passed + failed
            error = np.sqrt(failed**2 * passed_2 + passed**2 * failed_2)
            return divided(divided(error, total), total)
        p = (self.n_passed + 1) / (self.n + 2)
        return np.asarray(np.sqrt(p * (1 - p) / (self.n + 3)))


def divided(numerator: Floats, total: Floats) -> Floats:
    """A ratio, NaN where the total is not positive."""
    return np.where(total > 0, numerator / np.where(total > 0, total, 1.0), np.nan)


def in_groups(
    passed: Bools, groups: Sequence[Bools], at: NDArray[Any], weight: Floats | None = None
) -> Efficiency:
    """Efficiency of each of several selections."""
    n = np.array([group.sum() for group in groups], dtype=np.int64)
    n_passed = np.array([(group & passed).sum() for group in groups], dtype=np.int64)
    if weight is None:
        return Efficiency(at, n, n_passed)
    sums = np.array(
        [
            [w[group & side].sum() for group in groups]
            for w in (weight, weight**2)
            for side in (passed, ~passed)
        ]
    )
    return Efficiency(at, n, n_passed, sums)


def by_group(passed: Bools, group: NDArray[Any], weight: Floats | None = None) -> Efficiency:
    """Efficiency for every value of a column, in order.

    Parameters
    ----------
    weight : of every event, which may be negative

    Examples
    --------
    >>> found = by_group(np.array([True, False, True]), np.array(["b", "b", "c"]))
    >>> found.at.tolist(), found.value.tolist()
    (['b', 'c'], [0.5, 1.0])
    """
    names, index = np.unique(group, return_inverse=True)
    n = np.bincount(index, minlength=len(names))
    n_passed = np.bincount(index[passed], minlength=len(names))
    if weight is None:
        return Efficiency(names, n, n_passed)
    sides = [np.where(side, w, 0.0) for w in (weight, weight**2) for side in (passed, ~passed)]
    sums = np.array([np.bincount(index, side, len(names)) for side in sides])
    return Efficiency(names, n, n_passed, sums)


def by_bin(
    passed: Bools, values: Floats, edges: Floats, weight: Floats | None = None
) -> Efficiency:
    """Efficiency in bins of a quantity; a bin holds its lower edge, values outside are in none."""
    edges = np.asarray(edges, dtype=float)
    if len(edges) < 2 or not (np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
        raise ValueError(
            f"`edges={edges.tolist()}` must be two or more finite numbers that increase"
        )
    index = np.searchsorted(edges, values, side="right") - 1
    bins = [index == i for i in range(len(edges) - 1)]
    return in_groups(passed, bins, 0.5 * (edges[:-1] + edges[1:]), weight)


def quantile_edges(values: Floats, n_bins: int) -> Floats:
    """Edges of bins with about equally many values; the largest value is in the last bin."""
    known = values[np.isfinite(values)]
    if len(known) == 0:
        raise ValueError("there are no finite values to divide into bins; choose another column")
    edges = np.unique(np.quantile(known, np.linspace(0.0, 1.0, n_bins + 1)))
    above = np.nextafter(edges[-1], np.inf)
    return np.append(edges[:-1], above) if len(edges) > 1 else np.array([edges[0], above])
