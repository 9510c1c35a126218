"""Fields: copies of columns among the features of scaled rows, of which one moves at a time.

The fused trainer looks up what the others add, see `cpp/trainer/look_up.hpp`, so that knots cost
little more than plain columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from isotone.typing import Reals


@dataclass(frozen=True, eq=False)
class Looked:
    """Rows by what moves in them.

    Parameters
    ----------
    cells : (n_rows, n_fields), which copy moves, by its number among all features
    values : (n_rows, n_fields), its value
    """

    cells: NDArray[np.int32]
    values: Reals


def compress(x: Reals, counts: Sequence[int]) -> Looked:
    """What moves in rows of copies.

    Parameters
    ----------
    x : (n_rows, n_features); of the copies of a field those before the one that moves are 1, those
        behind it -1. A field of one copy may have any values
    counts : how many features every field has

    Examples
    --------
    >>> looked = compress(np.array([[1.0, 0.5, -1.0, 7.0], [-0.2, -1.0, -1.0, 8.0]]), [3, 1])
    >>> looked.cells.tolist(), looked.values.tolist()
    ([[1, 3], [0, 3]], [[0.5, 7.0], [-0.2, 8.0]])
    """
    cells = np.empty((len(x), len(counts)), np.int32)
    values = np.empty((len(x), len(counts)), x.dtype)
    for f, (first, count) in enumerate(zip(accumulate([0, *counts[:-1]]), counts, strict=True)):
        own = x[:, first : first + count]
        place = np.minimum((own >= 1).sum(axis=1), count - 1)
        cells[:, f] = first + place
        values[:, f] = np.take_along_axis(own, place[:, None], axis=1)[:, 0]
        if count > 1 and not np.array_equal(own, _expand(place, values[:, f], count)):
            raise ValueError(
                f"features {first} to {first + count - 1} are not copies of one column, of which "
                "one moves between -1 and 1 at a time; transform the rows with isotone.Knots"
            )
    return Looked(cells, values)


def _expand(place: NDArray[np.intp], values: Reals, count: int) -> Reals:
    copies = np.where(np.arange(count) < place[:, None], 1.0, -1.0).astype(values.dtype)
    np.put_along_axis(copies, place[:, None], values[:, None], axis=1)
    return copies
