"""Background: the rows that others are compared with, of which a sample stands for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isotone.checks import check_count
from isotone.data.several import open_tables
from isotone.data.table import Table
from isotone.frozen.loading import check_network
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Policy, has_features
from isotone.typing import Bools, Floats

N_ROWS = 100


@dataclass(frozen=True, eq=False)
class Background:
    """A table to compare with: some of its rows, and the range of all of them.

    Parameters
    ----------
    features : (n_rows, n_encoded), drawn from the table without replacement, as
        `FrozenNetwork.encode` makes them
    n_table : rows of the table that have features
    low, high : (n_encoded,), the least and the largest of every feature over the whole table
    whole : (n_encoded,), whether every feature is a whole number all over the table
    fingerprint : of the model
    """

    features: Floats
    n_table: int
    low: Floats
    high: Floats
    whole: Bools
    fingerprint: str

    @classmethod
    def of(
        cls,
        frozen: FrozenNetwork,
        table: Any,
        *,
        n_rows: int = N_ROWS,
        seed: int = 0,
        on_unseen: Policy = "error",
    ) -> Background:
        """Read a table once, in memory that does not grow with it.

        Parameters
        ----------
        table : path of a CSV, Parquet or ROOT file, or rows as for `FrozenNetwork.score`
        n_rows : how many rows, drawn at random, stand for the table; all, if it has no more
        seed : of the draw, which depends on it and on the table alone
        on_unseen : as for `FrozenNetwork.score`; a row without features of its own is left out
        """
        check_network("`Background.of` reads with", frozen)
        n_kept, rng = check_count("n_rows", n_rows), np.random.default_rng(seed)
        kept, keys, n_table = np.empty((0, len(frozen.inputs.encoded))), np.empty(0), 0
        low, high = np.full(kept.shape[1], np.inf), np.full(kept.shape[1], -np.inf)
        whole = np.ones(kept.shape[1], bool)
        for features in encoded_batches(frozen, table, on_unseen):
            own = features[has_features(features)]
            n_table += len(own)
            low = np.minimum(low, own.min(axis=0, initial=np.inf))
            high = np.maximum(high, own.max(axis=0, initial=-np.inf))
            whole &= np.all(own == np.rint(own), axis=0)
            keys = np.concatenate([keys, rng.random(len(own))])
            first = np.argsort(keys, kind="stable")[:n_kept]
            kept, keys = np.concatenate([kept, own])[first], keys[first]
        if not n_table:
            raise ValueError(
                "the background has no rows with features; give a table that has some"
            )
        return cls(kept, n_table, low, high, whole, frozen.fingerprint)

    @property
    def is_whole(self) -> bool:
        """Whether every row of the table is among its rows."""
        return len(self.features) == self.n_table

    @property
    def doubt(self) -> float:
        """By how much drawing without replacement reduces a standard error; 0 for all rows."""
        return float(np.sqrt(1.0 - len(self.features) / self.n_table))

    def check(self, frozen: FrozenNetwork) -> None:
        """Raise `ValueError` unless the rows were encoded by this model."""
        if self.fingerprint != frozen.fingerprint:
            raise ValueError(
                f"the background was read with the model {self.fingerprint[:12]}… but this one is "
                f"{frozen.fingerprint[:12]}…; they must agree: read it again with `Background.of`"
            )


def encoded_batches(
    frozen: FrozenNetwork, table: Any, on_unseen: Policy = "error"
) -> Iterator[Floats]:
    """Features of some rows at a time, of a file or of rows in memory."""
    names, first_row = list(frozen.inputs.names), 0
    if not isinstance(table, str | Path | Table):
        yield frozen.encode(table, on_unseen)
        return
    opened = table if isinstance(table, Table) else open_tables([str(table)])
    opened.require(names)
    for batch in opened.batches(names):
        yield frozen.inputs.encode(batch, first_row, on_unseen)
        first_row += batch.num_rows
