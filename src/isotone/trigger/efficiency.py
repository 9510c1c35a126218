"""Efficiencies: how many pass, by group and in bins of a true quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.typing import Bools, Floats, Integers


@dataclass(frozen=True, eq=False)
class Efficiency:
    """Efficiencies with their errors, for each of `at`: groups, or middles of bins.

    Parameters
    ----------
    at : (n,)
    n : (n,), how many there are
    n_passed : (n,), how many of them pass
    """

    at: NDArray[Any]
    n: Integers
    n_passed: Integers

    @property
    def value(self) -> Floats:
        """k / n, NaN where there is nothing."""
        return np.where(self.n > 0, self.n_passed / np.maximum(self.n, 1), np.nan)

    @property
    def error(self) -> Floats:
        r"""The width of the posterior with a flat prior: never zero, even if all or none pass.

        .. math:: \sqrt{\tfrac{p(1-p)}{n+3}}, \quad p = \tfrac{k+1}{n+2}
        """
        p = (self.n_passed + 1) / (self.n + 2)
        return np.asarray(np.sqrt(p * (1 - p) / (self.n + 3)))


def in_groups(passed: Bools, groups: Sequence[Bools], at: NDArray[Any]) -> Efficiency:
    """Efficiency of each of several selections."""
    n = np.array([group.sum() for group in groups], dtype=np.int64)
    n_passed = np.array([(group & passed).sum() for group in groups], dtype=np.int64)
    return Efficiency(at, n, n_passed)


def by_group(passed: Bools, group: NDArray[Any]) -> Efficiency:
    """Efficiency for every value of a column, in order.

    Examples
    --------
    >>> found = by_group(np.array([True, False, True]), np.array(["b", "b", "c"]))
    >>> found.at.tolist(), found.value.tolist()
    (['b', 'c'], [0.5, 1.0])
    """
    names, index = np.unique(group, return_inverse=True)
    n = np.bincount(index, minlength=len(names))
    return Efficiency(names, n, np.bincount(index[passed], minlength=len(names)))


def by_bin(passed: Bools, values: Floats, edges: Floats) -> Efficiency:
    """Efficiency in bins of a quantity; a bin holds its lower edge, values outside are in none."""
    edges = np.asarray(edges, dtype=float)
    if len(edges) < 2 or not (np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
        raise ValueError(
            f"`edges={edges.tolist()}` must be two or more finite numbers that increase"
        )
    index = np.searchsorted(edges, values, side="right") - 1
    bins = range(len(edges) - 1)
    return in_groups(passed, [index == i for i in bins], 0.5 * (edges[:-1] + edges[1:]))


def quantile_edges(values: Floats, n_bins: int) -> Floats:
    """Edges of bins with about equally many values; the largest value is in the last bin."""
    known = values[np.isfinite(values)]
    if len(known) == 0:
        raise ValueError("there are no finite values to divide into bins; choose another column")
    edges = np.unique(np.quantile(known, np.linspace(0.0, 1.0, n_bins + 1)))
    above = np.nextafter(edges[-1], np.inf)
    return np.append(edges[:-1], above) if len(edges) > 1 else np.array([edges[0], above])
