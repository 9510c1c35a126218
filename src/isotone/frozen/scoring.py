"""Scoring of tables on disk: one file in pieces, or a directory of Parquet files by workers.

Memory does not grow with the table. Files appear whole or not at all, so a directory whose scoring
was interrupted resumes with the files that are missing, or whose table has changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from isotone.data.dataset import tables_in
from isotone.data.table import Table, open_table, split_tree, suffix_of, write_table
from isotone.files import refuse_overwriting, remove_leftovers, write_whole
from isotone.files.locks import sole_use
from isotone.files.untrusted import parse_json, read_json
from isotone.frozen.engine import Engine
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Policy
from isotone.typing import Reals
from isotone.workers import Workers, run

NOTE = "scored-with.json"  # in a directory of scores: which model and columns they are of
_MARK = b"isotone.scores_of"  # in the metadata of a file of scores: size and digest of the table


@dataclass(frozen=True, eq=False)
class Scoring:
    """What is written for every row: kept columns, the scores, and probabilities if asked for.

    Parameters
    ----------
    on_unseen : what to do with rows that contain values never seen in training, see
        `isotone.Engine`; where a row gets no score, the cell is left empty
    """

    frozen: FrozenNetwork
    keep: tuple[str, ...] = ()
    probability: bool = False
    on_unseen: Policy = "error"

    def outputs(self, score: Reals) -> dict[str, Reals]:
        """Output columns by name."""
        each = [score] if score.ndim == 1 else list(score.T)
        columns = dict(zip(self.frozen.names_of("score"), each, strict=True))
        if self.probability:
            columns |= self._probabilities(self.frozen.to_probability(score))
        return columns

    def _probabilities(self, values: Reals) -> dict[str, Reals]:
        """Named after the class, which is the second of two if there is one column."""
        classes = self.frozen.classes
        if values.ndim == 1:
            return {f"probability({classes[1]})" if classes else "probability": values}
        names = self.frozen.output_names
        return {f"probability({name})": values[:, k] for k, name in enumerate(names)}

    def score(
        self,
        source: str | Table,
        target: str,
        on_rows: Callable[[int], object] = lambda n: None,
        metadata: dict[bytes, bytes] | None = None,
    ) -> Scored:
        """Score one table and write another.

        Parameters
        ----------
        source : the path of a CSV, Parquet or ROOT file, or a table
        target : the path of a file, which may be of another kind
        on_rows : called with the number of rows of every piece that is done
        metadata : of the written file, if it is a Parquet file
        """
        table = open_table(source) if isinstance(source, str) else source
        engine = Engine(self.frozen, on_unseen=self.on_unseen)
        refuse_overwriting([split_tree(target)[0]], table.local_files)
        table.require(self.frozen.inputs.names)
        kept = kept_schema(table, self.keep, target)
        nothing = np.empty((0, len(self.frozen.inputs.encoded)))
        outputs = self.outputs(self.frozen.score_features(nothing))
        for name in outputs:
            if name in kept.names:
                raise ValueError(
                    f"`--keep {name}` has the name of an output column; they must differ: rename "
                    "the column of the table"
                )
        types = [(name, pa.from_numpy_dtype(values.dtype)) for name, values in outputs.items()]
        schema = pa.schema([*kept, *types], metadata)
        pieces = while_unchanged(
            table.local_files, self._pieces(table, engine, kept, schema, on_rows)
        )
        n_rows = write_table(target, schema, pieces)
        return Scored(n_rows, engine.n_unseen, engine.n_unscored, engine.n_pooled)

    def _pieces(
        self,
        table: Table,
        engine: Engine,
        kept: pa.Schema,
        schema: pa.Schema,
        on_rows: Callable[[int], object],
    ) -> Iterator[pa.RecordBatch]:
        first_row, names = 0, self.frozen.inputs.names
        for batch in table.batches([*kept.names, *names]):
            columns = [batch.column(field.name).cast(field.type) for field in kept]
            raw = [batch.column(name) for name in names]
            outputs = self.outputs(engine.score_batch(raw, first_row)).values()
            empty = self.on_unseen in ("skip", "missing")
            arrays = columns + [pa.array(values, from_pandas=empty) for values in outputs]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            first_row += batch.num_rows
            on_rows(batch.num_rows)

    def note(self) -> dict[str, Any]:
        return {
            "fingerprint": self.frozen.fingerprint,
            "keep": list(self.keep),
            "probability": self.probability,
            "on_unseen": self.on_unseen,
        }


class Scored(NamedTuple):
    """Numbers of rows, or files, scored, and of rows with values unlike those of training.

    Parameters
    ----------
    n_unseen, n_unscored, n_pooled : as in `Engine`
    """

    n: int
    n_unseen: int
    n_unscored: int
    n_pooled: int


def score_directory(
    scoring: Scoring,
    source: Path,
    target: Path,
    workers: Workers,
    on_done: Callable[[int, int], object] = lambda done, total: None,
) -> Scored:
    """Score every Parquet file below `source` to a file of that name below `target`.

    Files that have their scores already, of the same bytes, are not scored again, nor counted. One
    run at a time may write to `target`.

    Parameters
    ----------
    workers : processes, or the client of a Dask cluster whose workers see both directories
    on_done : called with the numbers of finished and of all files
    """
    files = _pairs(source.resolve(), target.resolve())
    written = [path for _, path in files]
    with sole_use(target):
        remove_leftovers(*written)
        try:
            return _score_files(scoring, files, target, workers, on_done)
        finally:
            remove_leftovers(*written)  # those of processes that were ended


def _score_files(
    scoring: Scoring,
    files: list[tuple[Path, Path]],
    target: Path,
    workers: Workers,
    on_done: Callable[[int, int], object],
) -> Scored:
    _take_note(scoring, target, [written for _, written in files])
    present = [pair for pair in files if pair[1].exists()]
    with run(workers, _is_done, None, present) as checked:
        done_before = {pair for pair, is_done in checked if is_done}
    missing = [pair for pair in files if pair not in done_before]
    on_done(len(files) - len(missing), len(files))
    counts = np.zeros(3, int)
    with run(workers, _score_file, scoring, missing) as finished:
        for done, (_, outcome) in enumerate(finished, len(files) - len(missing) + 1):
            if isinstance(outcome, str):
                raise ValueError(outcome)
            counts += outcome[1:]
            on_done(done, len(files))
    return Scored(len(missing), *counts.tolist())


def outputs_of(source: Path, target: Path) -> list[Path]:
    """The files that `score_directory` writes."""
    return [target / NOTE, *(written for _, written in _pairs(source.resolve(), target.resolve()))]


def _pairs(source: Path, target: Path) -> list[tuple[Path, Path]]:
    if source == target or source in target.parents:
        raise ValueError(
            f"`--out {target}` is inside the directory that is read; choose one outside it"
        )
    found = tables_in(source)
    if not found:
        raise ValueError(f"there are no Parquet files in {str(source)!r}; give another directory")
    pairs = [(path, target / path.relative_to(source)) for path in found]
    refuse_overwriting([written for _, written in pairs] + [target / NOTE], found)
    return pairs


def _take_note(scoring: Scoring, target: Path, files: list[Path]) -> None:
    """Leave a note in a new directory; refuse one that has tables of another kind."""
    path, present = target / NOTE, [file for file in files if file.exists()]
    if _read_note(path) == scoring.note():
        return
    if present:
        raise ValueError(
            f"{str(present[0])!r} exists but was not written with this model and these columns "
            f"(see {path.name} next to it, if any); choose a new directory, or empty this one"
        )
    write_whole(path, json.dumps(scoring.note(), indent=2))


def _read_note(path: Path) -> Any:
    """The note, or nothing if there is none that can be read."""
    try:
        return read_json(path)
    except (FileNotFoundError, ValueError):
        return None


def _is_done(_: None, files: tuple[Path, Path]) -> bool:
    """Whether there are scores of these very bytes; a time stamp can be that of a copy."""
    source, target = files
    try:
        metadata = pyarrow.parquet.read_schema(target).metadata or {}
        mark = parse_json(metadata.get(_MARK, b"null"))
    except (pa.ArrowException, OSError, ValueError):  # no table, or not ours: score it again
        return False
    is_ours = isinstance(mark, dict) and mark.get("bytes") == source.stat().st_size
    return bool(is_ours and mark == _mark(source))


def _mark(source: Path) -> dict[str, Any]:
    """What tells a file from all others."""
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": source.stat().st_size, "sha256": digest}


def while_unchanged(
    sources: Sequence[Path], pieces: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The pieces of files; raises `ValueError` at their end if one was changed meanwhile."""
    before = [source.stat() for source in sources]
    yield from pieces
    for source, then in zip(sources, before, strict=True):
        now = source.stat()
        if (then.st_size, then.st_mtime_ns) != (now.st_size, now.st_mtime_ns):
            raise ValueError(
                f"{str(source)!r} changed while it was being read; it must stay the same: score "
                "it again"
            )


def _score_file(scoring: Scoring, files: tuple[Path, Path]) -> str | Scored:
    """Numbers of rows, or why a file cannot be scored.

    An exception would make Dask try it again. Scores are marked with the bytes that they are of.
    """
    source, target = files
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        mark = {_MARK: json.dumps(_mark(source)).encode()}
        return scoring.score(str(source), str(target), metadata=mark)
    except (ValueError, OSError) as error:
        return f"{source}: {error}"


def kept_schema(table: Table, keep: Sequence[str], target: str) -> pa.Schema:
    """Types of the kept columns; from CSV to CSV text is copied as it is."""
    paths = [target, *(part.path for part in table.parts)]
    if all(suffix_of(path).startswith(".csv") for path in paths):
        return pa.schema([(name, pa.string()) for name in dict.fromkeys(keep)])
    return table.schema(keep)
