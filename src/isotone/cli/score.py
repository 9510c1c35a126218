"""`isotone score`: stream a table through a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import isotone
from isotone.cli.terminal import errors, output, output_names, printable
from isotone.elementary import Floats, Reals
from isotone.encoding import Encoding
from isotone.frozen import FrozenNetwork
from isotone.table import Table, numbers, open_table, split_tree, suffix_of, write_table


def score(
    model: Annotated[Path, typer.Argument(help="An .isotone file.")],
    table: Annotated[str, typer.Argument(help="CSV, Parquet or ROOT (file.root:tree).")],
    out: Annotated[str, typer.Option(help="Where to write: CSV, Parquet or ROOT.")],
    keep: Annotated[list[str] | None, typer.Option(help="Copy this column; repeatable.")] = None,
    probability: Annotated[bool, typer.Option(help="Write probabilities too.")] = False,
) -> None:
    """Score every row of a table, of any size, and write the scores to a new table."""
    start = time.perf_counter()
    frozen, source = isotone.load(model), open_table(table)
    _refuse_overwriting(table, out)
    kept = _kept_schema(source, keep or [], out)
    with _progress() as progress:
        task = progress.add_task("", total=source.n_rows)
        job = _Job(frozen, source, kept, probability, lambda n: progress.advance(task, n))
        n_rows = write_table(out, job.schema, job.batches())
    seconds = time.perf_counter() - start
    output.print(printable(f"scored {n_rows:,} rows in {seconds:.1f} s: {out}"), soft_wrap=True)


def _refuse_overwriting(table: str, out: str) -> None:
    source, target = (split_tree(path)[0] for path in (table, out))
    if target.exists() and target.samefile(source):
        raise ValueError(
            f"`--out {out}` is the table that is read; it must be another file: choose a new name"
        )


def _kept_schema(source: Table, keep: list[str], out: str) -> pa.Schema:
    """Types of the kept columns; from CSV to CSV text is copied as it is."""
    if all(suffix_of(path).startswith(".csv") for path in (source.path, out)):
        return pa.schema([(name, pa.string()) for name in dict.fromkeys(keep)])
    return source.schema(keep)


def _progress() -> Progress:
    """A bar on stderr, if that is a terminal."""
    rows = TextColumn("{task.completed:,.0f} rows")
    columns = BarColumn(), rows, TimeRemainingColumn()
    return Progress(*columns, console=errors, disable=not errors.is_terminal, transient=True)


class _Job:
    """Kept columns and scores of a table, batch after batch."""

    def __init__(
        self,
        frozen: FrozenNetwork,
        source: Table,
        kept: pa.Schema,
        probability: bool,
        advance: Callable[[int], None],
    ) -> None:
        self.frozen, self.source, self.kept = frozen, source, kept
        self.probability, self.advance = probability, advance
        self.encoding = Encoding.of(frozen)
        outputs = self._outputs(np.empty((0, frozen.n_features)))
        for name in outputs:
            if name in kept.names:
                raise ValueError(
                    f"`--keep {name}` has the name of an output column; they must differ: rename "
                    "the column of the table"
                )
        self.schema = pa.schema(
            [*kept, *((n, pa.from_numpy_dtype(v.dtype)) for n, v in outputs.items())]
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        first_row = 0
        for batch in self.source.batches([*self.kept.names, *self.encoding.columns]):
            kept = [batch.column(field.name).cast(field.type) for field in self.kept]
            outputs = self._outputs(self._features(batch, first_row))
            arrays = kept + [pa.array(values) for values in outputs.values()]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
            first_row += batch.num_rows
            self.advance(batch.num_rows)

    def _features(self, batch: pa.RecordBatch, first_row: int) -> Floats:
        if self.encoding.is_plain:
            return numbers(batch, self.encoding.columns, first_row)
        return self.encoding.encode(batch, first_row)

    def _outputs(self, X: Floats) -> dict[str, Reals]:
        """Output columns by name."""
        score = self.frozen.score(X)
        columns = self._name("score", score)
        if self.probability:
            columns |= self._name("probability", self.frozen.to_probability(score))
        return columns

    def _name(self, what: str, values: Reals) -> dict[str, Reals]:
        if values.ndim == 1:
            return {what: values}
        names = output_names(self.frozen)
        return {f"{what}_{name}": values[:, k] for k, name in enumerate(names)}
