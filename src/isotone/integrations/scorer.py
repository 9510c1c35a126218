"""Scorer: columns of Arrow in, a column of Arrow out; what databases and data frames call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from isotone.checks import check_choice
from isotone.frozen.engine import Engine
from isotone.frozen.loading import check_network
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Policy
from isotone.inputs.columns import Number

Output = Literal["score", "probability"]


class Scorer:
    """Scores of raw columns, given in the order of `columns`.

    Parameters
    ----------
    frozen : a `FrozenNetwork`
    output : the "score", or the "probability" of a network of logits
    on_unseen : as for `Engine`; NaN becomes null
    """

    def __init__(
        self, frozen: FrozenNetwork, output: Output = "score", on_unseen: Policy = "error"
    ) -> None:
        check_network("a scorer takes", frozen)
        check_choice("output", output, ("score", "probability"))
        if output == "probability":
            frozen.to_probability(np.zeros(1))  # refuses a network of values
        self.frozen, self.output = frozen, output
        self.engine = Engine(frozen, on_unseen=on_unseen)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.frozen.inputs.names

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers; the others hold text."""
        return [isinstance(column, Number) for column in self.frozen.inputs.columns]

    @property
    def fields(self) -> list[str]:
        """What the results are called: one name, or one per output."""
        if self.output == "probability" and not self.frozen.of_classes:
            return [self.output]
        return self.frozen.names_of(self.output)

    @property
    def type(self) -> pa.DataType:
        """Of the result: a number, or a struct of one number per output."""
        if len(self.fields) == 1:
            return pa.float64()
        return pa.struct([(name, pa.float64()) for name in self.fields])

    def __call__(self, columns: Sequence[Any]) -> pa.Array:
        """Score rows that are given column by column, as arrays of Arrow."""
        try:
            scores = self.engine.score_batch([_whole(column) for column in columns])
        except ValueError as error:  # whoever calls divides a table as it likes
            raise ValueError(f"in a batch of {len(columns[0])} rows: {error}") from error
        if self.output == "probability":
            scores = self.frozen.to_probability(scores)
        if scores.ndim == 1:
            return _column(scores)
        return pa.StructArray.from_arrays([_column(one) for one in scores.T], names=self.fields)


def _whole(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _column(scores: Any) -> pa.Array:
    return pa.array(np.asarray(scores, np.float64), from_pandas=True)  # NaN is null
