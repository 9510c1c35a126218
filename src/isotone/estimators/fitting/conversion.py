"""Conversion: cells of a data set as the rows that networks learn from.

It holds what workers need of a stream, and no rows, so that it is sent to them as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from isotone.data.source import Source
from isotone.estimators.preparation.signed import MeanWeights
from isotone.inputs.cells import decoded, is_text
from isotone.inputs.chain import Inputs
from isotone.training.rows import Rows
from isotone.typing import Floats


def values_of(cells: pa.Array) -> NDArray[Any]:
    """Targets as NumPy has them."""
    column = decoded(cells)
    if is_text(column.type):
        return np.array(column.to_pylist(), dtype=np.str_)
    return np.asarray(column.to_numpy(zero_copy_only=False))


@dataclass(frozen=True, eq=False)
class Targets:
    """How cells of a target become what networks learn.

    Parameters
    ----------
    name : of the column
    values : gives the targets, values or classes, of cells
    classes : sorted, those that `values` gives; None for a regression
    class_weight : by class
    sign : -1 if the first of two classes is the one that is scored
    means : mean weights, in place of signed ones; None if weights are as they are
    """

    name: str
    values: Callable[[pa.Array], NDArray[Any]] = values_of
    classes: NDArray[Any] | None = None
    class_weight: Floats | None = None
    sign: int = 1
    means: MeanWeights | None = None

    def read(self, cells: pa.Array) -> tuple[Floats, Floats]:
        """Targets (n_rows, 1), and the weight of their classes."""
        if self.classes is None or self.class_weight is None:
            y = self.values(cells).astype(np.float64)
            return y[:, None], np.ones(len(y))
        encoded = decoded(cells).dictionary_encode()
        known = self.values(encoded.dictionary)
        place = np.minimum(np.searchsorted(self.classes, known), len(self.classes) - 1)
        if not np.array_equal(self.classes[place], known):
            raise ValueError(
                f"the target {self.name!r} holds a class that it did not hold in the first pass; "
                "files must not change during training: fit again"
            )
        labels = place[encoded.indices.to_numpy()]
        y = labels if self.sign > 0 else 1 - labels
        return y[:, None].astype(np.float64), self.class_weight[labels]

    def mean_weights(self, inputs: Inputs, X: pa.Table, y: Floats) -> Floats:
        """What rows weigh on average, by their features and targets as `read` gives them."""
        assert self.means is not None
        x = np.concatenate([np.column_stack(inputs.read(raw)) for raw in inputs.batches(X)])
        turned = self.classes is not None and self.sign < 0
        return self.means(x, 1.0 - y[:, 0] if turned else y[:, 0])

    @property
    def is_weighted(self) -> bool:
        """Whether classes differ in their weight."""
        return self.class_weight is not None and bool(np.ptp(self.class_weight))


@dataclass(frozen=True, eq=False)
class Conversion:
    """How batches of a source become rows.

    Parameters
    ----------
    scale : what the networks see of rows of features
    """

    source: Source
    targets: Targets
    inputs: Inputs
    scale: Callable[[Rows], Rows]

    def __call__(self, batch: pa.RecordBatch, path: str, first_row: int) -> Rows | None:
        """Rows of a batch that count, or None if there are none; see `Chunks`."""
        cells, _ = self.source.read(batch, path, first_row)
        return self._rows(cells) if len(cells) else None

    def _rows(self, cells: pa.RecordBatch) -> Rows:
        table = pa.Table.from_batches([cells])
        X = self.inputs.encode(table)
        y, factor = self.targets.read(cells.column(self.targets.name))
        rows, weight = self.scale(Rows(X, y)), self.source.weight
        if weight is None and not self.targets.is_weighted:
            return rows
        own: Any = 1.0 if weight is None else cells.column(weight).to_numpy()
        if self.targets.means is not None:
            own = self.targets.mean_weights(self.inputs, table, y)
        return replace(rows, weight=own * factor)
