r"""Shares: how the output rate divides among runs, numbers of primary vertices or the like.

Without more knowledge the rate of a group is its part of the whole, so that parts sum up to it.
Where the number of examined events is known by group, it is the rate that there would be if all
crossings were such: with k of n events of the group, the rate of `Exposure` for k and n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.data.table import open_table
from isotone.inputs.cells import floats, labels
from isotone.trigger.working_point import Exposure
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
    rate, error : (n,)
    """

    at: NDArray[Any]
    n: Integers
    n_passed: Integers
    rate: Floats
    error: Floats


def rates_by(
    passed: Bools,
    group: NDArray[Any],
    exposure: Exposure,
    block: NDArray[Any] | None = None,
    examined: Mapping[str, int] | None = None,
) -> RateShares:
    """The output rate of every group of background events.

    Parameters
    ----------
    passed, group, block : of every background event with a candidate; blocks as for `choose`
    examined : the number of examined events of every group, those without a candidate included

    Examples
    --------
    >>> passed, run = np.array([True, True, False, True]), np.array(["1", "1", "2", "2"])
    >>> rates_by(passed, run, Exposure(100, input_rate=1e6)).rate.tolist()
    [20000.0, 10000.0]
    """
    names, index = np.unique(group, return_inverse=True)
    n = np.bincount(index, minlength=len(names))
    k = np.bincount(index[passed], minlength=len(names))
    errors = _errors(passed, index, len(names), block)
    if examined is None:
        total = int(k.sum())
        each = exposure.rate(total) / total if total else 0.0
        return RateShares(names, n, k, each * k.astype(float), each * errors)
    known = np.array([_examined(examined, str(name), m) for name, m in zip(names, n, strict=True)])
    parts = [replace(exposure, n_events=int(m)) for m in known]
    pairs = list(zip(parts, k.tolist(), errors.tolist(), strict=True))
    rate = np.array([part.rate(number) for part, number, _ in pairs])
    return RateShares(
        names, known, k, rate, np.array([part.error(number, e) for part, number, e in pairs])
    )


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


def _errors(passed: Bools, index: Integers, n: int, block: NDArray[Any] | None) -> Floats:
    """Errors of the numbers that pass: of blocks, if events of one are not independent."""
    if block is None:
        return np.sqrt(np.bincount(index[passed], minlength=n))
    blocks = np.unique(block, return_inverse=True)[1]
    cells, where = np.unique(np.stack([index, blocks]), axis=1, return_inverse=True)
    counts = np.bincount(where.ravel(), passed)
    return np.sqrt(np.bincount(cells[0], counts**2, n))


def _examined(examined: Mapping[str, int], name: str, n: int) -> int:
    known = examined.get(name, 0)
    if known < max(n, 1):
        raise ValueError(
            f"{known} events are said to be examined for {name!r}, but {n} have a candidate; "
            "every group needs its number of examined events: correct the table"
        )
    return known
