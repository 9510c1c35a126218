r"""Shares: how the output rate divides among runs, numbers of primary vertices or the like.

Without more knowledge the rate of a group is its part of the whole, so that parts sum up to it.
Where the number of examined events is known by group, it is the rate that there would be if all
crossings were such: with k of n events of the group, the rate of `Exposure` for k and n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.data.table import open_table
from isotone.inputs.cells import floats, labels
from isotone.trigger.working_point import Exposure, most_together
from isotone.typing import Bools, Floats, Integers

EXAMINED = "n_events"  # the column of a table of examined events


@dataclass(frozen=True, eq=False)
class RateShares:
    """Rates by group, in Hz.

    Parameters
    ----------
    at : (n,), names of the groups
    n : (n,), events with a candidate, or all examined events if these are known
    n_passed : (n,), of them
    rate, error : (n,); of sums of weights, if events have some
    limit : (n,), an upper limit of the rate with 95 % confidence where no event
        with a weight passes, else NaN
    """

    at: NDArray[Any]
    n: Integers
    n_passed: Integers
    rate: Floats
    error: Floats
    limit: Floats


def rates_by(
    passed: Bools,
    group: NDArray[Any],
    exposure: Exposure,
    block: NDArray[Any] | None = None,
    examined: Mapping[str, int] | None = None,
    weight: Floats | None = None,
) -> RateShares:
    r"""The output rate of every group of background events.

    With the weight :math:`k_g` that passes in group g (their number, without weights) and
    :math:`K = \sum_g k_g`, the part of g is :math:`k_g \, h(K)` with :math:`h(K) = R(K) / K`. An
    event, or block, with the weights :math:`w_g` in the groups moves it by
    :math:`h\, w_g + k_g\, h' \sum_g w_g`, and the variance is the sum of the squares.

    Parameters
    ----------
    passed, group, block, weight : of every background event with a candidate, as for `choose`
    examined : the number of examined events of every group, those without a candidate included;
        with weights, the weight that was examined

    Examples
    --------
    >>> passed, run = np.array([True, True, False, True]), np.array(["1", "1", "2", "2"])
    >>> rates_by(passed, run, Exposure(100, input_rate=1e6)).rate.tolist()
    [20000.0, 10000.0]
    """
    names, index = np.unique(group, return_inverse=True)
    each = np.ones(len(passed)) if weight is None else weight
    n = np.bincount(index, minlength=len(names))
    n_passed = np.bincount(index[passed], minlength=len(names))
    k: Floats = np.bincount(index[passed], each[passed], len(names)).astype(np.float64)
    weighed = np.bincount(index[passed], each[passed] != 0, len(names))
    sums = _squares(each * passed, index, len(names), block)
    together = most_together(len(passed), block, weight)
    if examined is None:
        limit = np.where(weighed > 0, np.nan, exposure.limit(together))
        return RateShares(names, n, n_passed, *_parts(k, sums, exposure), limit)
    total = np.bincount(index, each, len(names))
    known = np.array([_examined(examined, *pair) for pair in zip(names, total, strict=True)])
    parts = [replace(exposure, n_events=int(m)) for m in known]
    found = list(zip(parts, k.tolist(), np.sqrt(sums.own).tolist(), strict=True))
    rate = np.array([part.rate(number) for part, number, _ in found])
    error = np.array([part.error(number, e) for part, number, e in found])
    limit = np.where(weighed > 0, np.nan, [part.limit(together) for part in parts])
    return RateShares(names, known, n_passed, rate, error, limit)


def _parts(k: Floats, sums: _Squares, exposure: Exposure) -> tuple[Floats, Floats]:
    """Parts of the whole rate, and their errors."""
    total = float(k.sum())
    slope = exposure.error(total, 1.0)
    h = exposure.rate(total) / total if total else slope
    bend = (slope - h) / total if total else 0.0  # h'
    variance = h**2 * sums.own + 2 * h * bend * k * sums.mixed + (bend * k) ** 2 * sums.all
    return h * k, np.sqrt(np.maximum(variance, 0.0))


def read_examined(path: str, columns: Sequence[str]) -> dict[str, dict[str, int]]:
    """Numbers of examined events by value of each column, from a table with `n_events`."""
    found: dict[str, dict[str, int]] = {name: {} for name in columns}
    for batch in open_table(path).batches([*columns, EXAMINED]):
        counts = floats(batch.column(EXAMINED), EXAMINED)
        if not np.all((counts >= 0) & (counts == np.floor(counts)) & (counts < 2**53)):
            raise ValueError(
                f"column {EXAMINED!r} of {path!r} must hold numbers of events, whole and at least "
                "0; correct it"
            )
        for name in columns:
            for text, count in zip(labels(batch.column(name)).to_pylist(), counts, strict=True):
                found[name][str(text)] = found[name].get(str(text), 0) + int(count)
    return found


class _Squares(NamedTuple):
    """Sums over blocks: of squares of their weight in a group, times that in all, and of all."""

    own: Floats
    mixed: Floats
    all: float


def _squares(weight: Floats, index: Integers, n: int, block: NDArray[Any] | None) -> _Squares:
    """Events of one block are not independent, so that their weights add up first."""
    if block is None:
        own = np.bincount(index, weight**2, n).astype(np.float64)
        return _Squares(own, own, float(own.sum()))
    blocks = np.unique(block, return_inverse=True)[1]
    cells, where = np.unique(blocks * n + index, return_inverse=True)
    here, whole = np.bincount(where, weight), np.bincount(blocks, weight)
    group, mixed = cells % n, here * whole[cells // n]
    squares, products = (np.bincount(group, w, n).astype(np.float64) for w in (here**2, mixed))
    return _Squares(squares, products, float((whole**2).sum()))


def _examined(examined: Mapping[str, int], name: str, total: float) -> int:
    known = examined.get(str(name), 0)
    if known < max(total, 1):
        raise ValueError(
            f"{known} events are said to be examined for {str(name)!r}, but {total:.10g} have a "
            "candidate; every group needs its number of examined events: correct the table"
        )
    return known
