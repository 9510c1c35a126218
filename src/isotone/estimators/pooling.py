"""Pooling: which categories have too few rows to stand alone.

They share one place of the model, which is learned from the rows of all of them, and in which
categories that no training row had are found as well: a new one is most like the rare ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from isotone.typing import Floats

Levels = Mapping[str, Mapping[str | None, int]]

_NEARLY = 1.0 - 2.0**-40  # sums of weights are rounded


@dataclass(frozen=True, eq=False)
class Rarity:
    """What makes a category rare.

    A row of weight two is two rows. Where weights are below 1 on average they are no counts, and
    the mean weight is one row.

    Parameters
    ----------
    min_frequency : the least number of rows, or share of them, of a category that stands alone
    weight : of every row; None if all rows count alike
    levels : rows of every category by column, None for a missing value, if the rows to be judged
        by are a sample of these
    """

    min_frequency: float
    weight: Floats | None = None
    levels: Levels = field(default_factory=dict)

    def rare(self, texts: pa.Array, name: str) -> set[str]:
        """Categories of a column that have too few rows, which may be all of them."""
        if self.min_frequency == 1:
            return set()
        if name in self.levels:
            return self._rare_of_all(self.levels[name])
        encoded = texts.dictionary_encode()
        names, places = encoded.dictionary.to_pylist(), encoded.indices
        rows = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
        weight = np.ones(len(texts)) if self.weight is None else self.weight
        rows = rows[np.argsort(weight[rows])]  # so that their order changes no sum
        place = places.to_numpy(zero_copy_only=False)[rows].astype(np.intp)
        counts = np.bincount(place, weight[rows], len(names)) / self._unit(weight)
        # one that no row counts for would make a pool of which nothing is learned
        few = (counts > 0) & (counts < self.min_frequency * _NEARLY)
        return {name for name, is_rare in zip(names, few.tolist(), strict=True) if is_rare}

    def _rare_of_all(self, rows: Mapping[str | None, int]) -> set[str]:
        share = self.min_frequency < 1
        least = self.min_frequency * (sum(rows.values()) if share else 1) * _NEARLY
        return {name for name, n in rows.items() if name is not None and n < least}

    def _unit(self, weight: Floats) -> float:
        """The weight of all rows, or of one."""
        counted = np.sort(weight[weight > 0])
        if not len(counted):
            return 1.0
        return float(counted.sum() if self.min_frequency < 1 else min(counted.mean(), 1.0))
