"""Streams: fitting an estimator to a data set that does not fit into memory.

Scaling, knots, fills and a λ that is chosen come from a sample, by the same code as for rows in
memory. Categories, classes, missing values and ranges are those of all rows, see
`isotone.data.survey`. The members then learn from all rows in the fused trainer. A data set of up
to `SMALL_ROWS` rows is read as a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
from numpy.typing import NDArray
from rich.progress import Progress

from isotone.data.dataset import Dataset, open_dataset
from isotone.data.holdout import GROUP
from isotone.data.source import Source
from isotone.data.survey import MAX_LABELS, Survey, is_small, joined, take_survey
from isotone.data.table import index_columns
from isotone.estimators.columns import check_categories
from isotone.estimators.fitting.conversion import Conversion, Targets, values_of
from isotone.estimators.fitting.dispatch import learn_apart, refuse_apart
from isotone.estimators.fitting.members import Design, Run, drive
from isotone.estimators.preparation.signed import learn_mean_weights
from isotone.inputs.cells import decoded
from isotone.inputs.chain import Inputs
from isotone.inputs.frames import is_category
from isotone.nn.network import MonotonicNetwork
from isotone.training.fields import Field
from isotone.training.learners import why_not_fused
from isotone.training.recipe import History, Recipe
from isotone.training.rows import Rows
from isotone.training.streaming.chunks import ChunkLearner, Chunks
from isotone.typing import Floats, Indices
from isotone.workers import ALONE, Workers, workers_from

_SCANNED = 2**22  # rows that a member of a scan visits, at most
_NUMBERS_AT_ONCE = 2**20  # of rows that are being scaled


@dataclass(frozen=True, eq=False)
class Stream:
    """The rows of a surveyed data set, for an estimator, and who learns from them."""

    survey: Survey
    targets: Targets
    workers: Workers = ALONE

    def __len__(self) -> int:
        """Number of rows that are learned from."""
        return self.survey.n_rows - len(self.survey.held.rows)

    @property
    def table(self) -> tuple[pa.Table, NDArray[Any], Floats]:
        """Features, targets and weights of the sample."""
        sample = self.survey.sample
        return sample.X, self.targets.values(sample.cells), sample.weight

    @property
    def groups(self) -> NDArray[Any] | None:
        """The keys of the groups of the sample, if there are groups."""
        return self.survey.sample.group

    def positive(
        self, rows: Rows, classes: Indices | None, names: Any = None
    ) -> tuple[Rows, Stream]:
        """The sample, and the stream, with mean weights in place of signed ones.

        Every class keeps its total, which is that of all rows, up to how far the mean of the
        predicted weights of the sample is from that of all.

        Parameters
        ----------
        rows : the sample
        classes, names : as for `mean_weights`
        """
        if not self.survey.is_negative:
            return rows, self
        stands_for = self.survey.sample.stands_for
        own = replace(rows, weight=rows.weights() / stands_for)
        weight, means = learn_mean_weights(own, classes, names)
        totals = self._class_totals(classes, names)
        place = np.zeros(len(rows), np.intp) if classes is None else classes
        sums = np.bincount(place, weight * stands_for, len(totals))
        ratio = totals / sums
        parts = [part.times(r) for part, r in zip(means.parts, ratio.tolist(), strict=True)]
        means = replace(means, parts=tuple(parts))
        rows = replace(rows, weight=weight * stands_for * ratio[place])
        return rows, replace(self, targets=replace(self.targets, means=means))

    def _class_totals(self, classes: Indices | None, names: Any) -> Floats:
        """The weight of every class among all rows, or that of all; positive."""
        if classes is None:
            return np.array([self.survey.total])
        labels, totals = self.totals()
        order = np.argsort(labels)
        for name, total in zip(labels[order].tolist(), totals[order].tolist(), strict=True):
            if not total > 0:
                raise ValueError(
                    f"the weights of class {name!r} add up to {total:.4g}; their total must be "
                    "positive, since it says how often such rows occur: correct the weights, or "
                    "give more rows"
                )
        return np.asarray(totals[order])

    def totals(self) -> tuple[NDArray[Any], Floats]:
        """Classes, and the weight of each among all rows."""
        found = self.survey.classes
        if found is None:
            raise ValueError(
                f"the target {self.survey.source.target!r} holds more than {MAX_LABELS} different "
                "values, which cannot all be classes; fit a MonotonicRegressor, or merge classes"
            )
        cells = decoded(self.survey.sample.cells)
        labels = self.targets.values(pa.array(list(found), cells.type))
        return labels, np.array(list(found.values()))

    def of_classes(self, classes: NDArray[Any], class_weight: Floats, sign: int) -> Stream:
        """The stream whose targets are numbers of classes."""
        numbers = replace(self.targets, classes=classes, class_weight=class_weight, sign=sign)
        return replace(self, targets=numbers)

    def refuse_missing(self) -> None:
        """Raise `ValueError` if a value is missing in any row."""
        for name, (n, path, row) in self.survey.missing.items():
            raise ValueError(
                f"`X` has {n} missing values (NaN) in feature {name!r}, the first in row {row} of "
                f"{path!r} (data rows, counted from 0); missing='error' refuses them: fill or "
                "drop such rows, or set missing='indicator'"
            )

    def held_out(self, inputs: Inputs) -> Rows:
        """Features, targets and weights of rows that are not learned from."""
        held = self.survey.held
        y, factor = self.targets.read(held.cells)
        weight = held.weight
        if self.targets.means is not None:
            weight = self.targets.mean_weights(inputs, held.X, y)
        return Rows(inputs.encode(held.X), y, weight * factor)

    def learn(
        self,
        design: Design,
        members: list[MonotonicNetwork],
        inputs: Inputs,
        scale: Callable[[Rows], Rows],
        recipe: Recipe,
        *,
        validation: Rows | None,
        run: Run,
        progress: bool,
    ) -> History:
        """Train all members on all rows, as one stack or by workers.

        Parameters
        ----------
        scale : what the networks see of rows of features
        """
        refuse_unfused(members[0], design)
        learner = ChunkLearner(
            members, design.loss, recipe, "shared", design.threads, fields=design.fields
        )
        rows = self._chunks(inputs, scale, learner.trainer.fields, members[0].n_features)
        checkpoint = run.file("members")
        how: Any = {"validation": validation, "checkpoint": checkpoint, "progress": progress}
        if self.workers != ALONE:
            return learn_apart(self.workers, design, members, rows, recipe, **how)
        refuse_apart(checkpoint, len(members))
        return drive(learner, design, members, rows, recipe, stops=run.stops, **how)

    def scan_recipe(self, recipe: Recipe) -> Recipe:
        """The recipe of choosing λ on the sample: as many steps as on all rows, up to a limit."""
        n_sample = len(self.survey.sample.rows)
        most = min(recipe.epochs * len(self), _SCANNED)
        return replace(recipe, epochs=max(1, most // n_sample))

    def describe(self) -> str:
        """Which rows decide what, in words."""
        return (
            f"scaling, knots and any choice of λ from {len(self.survey.sample.rows):,} of "
            f"{self.survey.n_rows:,} rows; categories, classes and weights from all"
        )

    def _chunks(
        self, inputs: Inputs, scale: Callable[[Rows], Rows], fields: Sequence[Field], n_inputs: int
    ) -> Chunks:
        source, n_seen = replace(self.survey.source, group=()), len(fields) or n_inputs
        return Chunks(
            source.dataset,
            source.columns,
            Conversion(source, self.targets, inputs, scale),
            width=2 * n_seen if fields else n_seen,
            batch_rows=max(_NUMBERS_AT_ONCE // n_seen, 1),
            left_out=self.survey.held.rows,
            mean_weight=self._total() / self.survey.n_rows,
            key=f"{self.survey.digest} {inputs.to_dict()} {self.targets.class_weight} "
            f"{self.targets.means is not None}".encode(),
        )

    def _total(self) -> float:
        """Weight of all rows, with that of their classes."""
        classes, class_weight = self.targets.classes, self.targets.class_weight
        if classes is None or class_weight is None:
            return self.survey.total
        labels, totals = self.totals()
        return float(totals @ class_weight[np.searchsorted(classes, labels)])


def refuse_unfused(member: MonotonicNetwork, design: Design) -> None:
    """Raise `ValueError` if the fused trainer cannot train this."""
    reason = why_not_fused(member, design.loss)
    if reason is not None:
        raise ValueError(
            f"only the fused trainer learns from a data set on disk, but {reason}; choose another "
            "loss or smaller `hidden_layer_sizes`, or give rows in memory"
        )


class Options(NamedTuple):
    """What of an estimator decides how a data set is read.

    Parameters
    ----------
    categorical : the `categorical_features`, whose other columns are counted
    n_held : how many rows to hold out, of a given number
    signed : whether weights may be negative
    """

    categorical: Any
    n_held: Callable[[int], int]
    signed: bool
    verbose: bool


def in_memory(
    X: Any,
    y: Any,
    sample_weight: Any,
    groups: Any,
    workers: Any,
    options: Options,
) -> tuple[Any, Any, Any, Any, Stream | None]:
    """Rows in memory as they are; those of a small data set; or the sample of a large one.

    Parameters
    ----------
    X : a table, a `Stream`, or a data set, of which `y`, `sample_weight` and `groups` name columns
    workers : those of a stream
    """
    known = workers_from(workers)
    if isinstance(X, Stream):
        return *X.table, X.groups, replace(X, workers=known)
    if not isinstance(X, pyarrow.dataset.Dataset | str | Path):
        _refuse_workers(known)
        return X, y, sample_weight, groups, None
    source = open_source(X, y, sample_weight, options.categorical, groups)
    source = replace(source, signed=options.signed)
    if is_small(source.dataset):
        return *read_all(source), None
    found = survey(source, options.n_held(source.dataset.n_rows or 0), options.verbose)
    stream = Stream(found, Targets(source.target), known)
    return *stream.table, stream.groups, stream


def _refuse_workers(workers: Workers) -> None:
    if workers != ALONE:
        raise ValueError(
            f"`workers={workers!r:.100}` are for data sets on disk but `X` is in memory, where "
            "threads train: leave it out, and see `n_jobs`"
        )


def survey(source: Source, n_held: int, verbose: bool) -> Survey:
    """The survey of a source; a bar shows the time left."""
    with Progress(disable=not verbose) as bar:
        task = bar.add_task("first pass", total=source.dataset.n_rows)
        return take_survey(source, n_held=n_held, on_rows=lambda n: bar.advance(task, n))


def read_all(
    source: Source,
) -> tuple[pa.Table, NDArray[Any], Floats | None, NDArray[Any] | None]:
    """Features, targets, weights and keys of groups of all rows."""
    parts, first_row = [], 0
    for batch in source.dataset.batches(source.columns):
        parts.append(source.read(batch, source.dataset.path, first_row)[0])
        first_row += len(batch)
    table = joined(parts, source)
    weight = None if source.weight is None else table[source.weight].to_numpy()
    group = table[GROUP].to_numpy() if source.group else None
    y = values_of(table[source.target].combine_chunks())
    return table.select(source.features), y, weight, group


def open_source(
    X: Any, target: Any, weight: Any, categorical: Any = "from_dtype", groups: Any = None
) -> Source:
    """What a data set of Arrow, or a directory, is learned from."""
    for name, value in (("y", target), ("sample_weight", weight)):
        if not isinstance(value, str) and (name == "y" or value is not None):
            raise TypeError(
                f"`{name}` is a {type(value).__name__} but `X` is a data set, whose rows are not "
                "in memory; it must be the name of a column: give that, or a table as `X`"
            )
    dataset, group = _open(X), _group_names(groups)
    names = [target] if weight is None else [target, weight]
    dataset.find([*names, *group])
    features = [n for n in dataset.columns if n not in (*names, *group, *index_columns(dataset))]
    listed = check_categories(categorical, features, features) or frozenset()
    categories = listed | _typed_categories(dataset, features)
    return Source(dataset, tuple(features), target, weight, categories, group=group)


def _group_names(groups: Any) -> tuple[str, ...]:
    names = (groups,) if isinstance(groups, str) else () if groups is None else tuple(groups)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"`groups` is a {type(groups).__name__} but `X` is a data set, whose rows are not in "
            "memory; it must be the name of a column, or a list of names: give these, or a table "
            "as `X`"
        )
    return names


def _typed_categories(dataset: Dataset, features: list[str]) -> frozenset[str]:
    """Features that are categories without an order by the type that some file gives them."""
    first = next(iter(dataset.batches(features, 1)), None)
    kinds = {} if first is None else {n: first.column(n).type for n in features}
    ordered = {n for n, kind in kinds.items() if is_category(kind) and kind.ordered}
    return dataset.noted_categories.intersection(kinds) - ordered


def _open(X: Any) -> Dataset:
    if isinstance(X, str | Path):
        if not Path(X).is_dir():
            raise ValueError(
                f"`X` is {str(X)!r}, which is not a directory; a path must be that of a directory "
                "of Parquet files: give that, or a table"
            )
        dataset = open_dataset(X)
        dataset.refuse_partitions(f"give pyarrow.dataset.dataset({str(X)!r}, partitioning=None)")
        return dataset
    files: Sequence[str] = getattr(X, "files", ())
    local = isinstance(getattr(X, "filesystem", None), pa.fs.LocalFileSystem)
    if not files or not local or not isinstance(X.format, pa.dataset.ParquetFileFormat):
        raise ValueError(
            f"`X` is a {type(X).__name__} that is not of Parquet files on this machine; only "
            "those can be streamed: write it to a directory, or give X.to_table()"
        )
    dataset = open_dataset(Path(files[0]).parent, files)
    extra = [name for name in X.schema.names if name not in dataset.columns]
    if extra or X.count_rows() != dataset.n_rows:
        what = f"the column {extra[0]!r}, which is not in its files" if extra else "a filter"
        raise ValueError(
            f"`X` has {what}; all rows and columns of the files are streamed: write what you want "
            "to a directory, or give X.to_table()"
        )
    return dataset
