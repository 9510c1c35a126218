"""Engine: the Python face of the compiled scorer, `cpp/runtime`.

`FrozenNetwork.score` is enough for most uses. Make an `Engine` for a table with gaps, for scores
written into memory of your own, for several threads, or for single events in a loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from isotone.arithmetic import ieee_arithmetic
from isotone.elementary import Floats, Reals
from isotone.frozen.steps import Blend, Dense, Members, Pointwise, Sort, Step
from isotone.inputs.frames import column_names, has_names, is_category
from isotone.inputs.scaling import Scaling, as_numbers, without_na

try:
    from isotone._engine import Program, instruction_sets
except ImportError as error:  # pragma: no cover
    raise ImportError(
        f"isotone's compiled part cannot be loaded ({error}); it was not built or is for another "
        "Python: install isotone again with pip, which compiles it"
    ) from error

_FLOATS = (np.dtype("f4"), np.dtype("f8"))


class Network(Protocol):
    """What an engine needs of a `FrozenNetwork`."""

    @property
    def features(self) -> tuple[str, ...]: ...

    @property
    def scaling(self) -> Scaling: ...

    @property
    def steps(self) -> tuple[Step, ...]: ...

    @property
    def residual(self) -> Floats: ...

    @property
    def precision(self) -> Literal["float64", "float32"]: ...

    @property
    def clip(self) -> float: ...

    @property
    def grid(self) -> float | None: ...


class Engine:
    """A compiled frozen network: call it with raw rows.

    The score of a row depends on the row alone. For networks of float64, the default, its bits
    are the same on every machine and the same as those of `isotone.frozen.reference`; for float32
    they differ between processors with and without fused multiply-add, within the certificate's E.

    Parameters
    ----------
    network : a `FrozenNetwork`
    nonfinite : "raise" for an error that names the first NaN or infinity, or the score of such
        rows, for example ``math.nan``; what is missing in a frame counts as NaN
    threads : how many to share the rows of large tables among, each having 1024 or more
    isa : an instruction set, one of `Engine.instruction_sets`; the best one by default

    Examples
    --------
    >>> engine = Engine(frozen, nonfinite=-1.0)  # doctest: +SKIP
    >>> engine([[0.5, math.nan], [0.5, 2.0]])  # doctest: +SKIP
    array([-1.   ,  0.731])
    """

    def __init__(
        self,
        network: Network,
        *,
        nonfinite: float | Literal["raise"] = "raise",
        threads: int = 1,
        isa: str = "",
    ) -> None:
        if isinstance(nonfinite, str) and nonfinite != "raise":
            raise ValueError(
                f"`nonfinite={nonfinite!r}` is unknown; give 'raise', or the score of such rows"
            )
        if threads < 1:
            raise ValueError(f"`threads={threads}` must be at least 1")
        self.network, self.nonfinite = network, nonfinite
        self.threads, self.isa = threads, isa
        self._program = _compile(network, threads, isa)
        self._raises = isinstance(nonfinite, str)
        self._fill = 0.0 if isinstance(nonfinite, str) else float(nonfinite)
        self._n_outputs = len(network.residual)
        self._dtype = np.dtype(network.precision)
        if np.isfinite(self._fill) and abs(self._fill) > float(np.finfo(self._dtype).max):
            raise ValueError(f"`nonfinite={nonfinite}` is too large for {self._dtype}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.network, self.nonfinite, self.threads, self.isa)

    @staticmethod
    def instruction_sets() -> list[str]:
        """Those that this machine runs, slowest first."""
        return instruction_sets()

    def __call__(self, X: Any, out: Reals | None = None) -> Reals:
        """Score raw rows.

        Parameters
        ----------
        X : (n_rows, n_features), an array in any order of memory, or a data frame or Arrow table
            with columns of the features' names; float32 and float64 are read where they are
        out : (n_rows,) for one output, otherwise (n_rows, n_outputs), of the network's precision
            and in C order; the scores are written there. It must not overlap `X`, and holds
            numbers of no meaning after an error

        Returns
        -------
        `out`, or a new array of that shape
        """
        if type(X) is not np.ndarray or X.ndim != 2:
            return self._score_any(X, out)
        target = np.empty(self._shape(len(X)), self._dtype) if out is None else out
        if out is not None:
            self._check_out(out, len(X), X)
        n_bad = self._program.score(X, target, self._fill)
        if n_bad == 0 or (n_bad > 0 and not self._raises):
            return target
        return self._score_any(X, out)  # explains, or converts

    def _check_out(self, out: Any, n_rows: int, *inputs: Reals) -> None:
        is_array = isinstance(out, np.ndarray)
        if is_array and any(np.may_share_memory(out, array) for array in inputs):
            raise ValueError("`out` overlaps `X`; it must be memory of its own: allocate it")
        if (
            is_array
            and out.shape == self._shape(n_rows)
            and out.dtype == self._dtype
            and out.flags.carray
        ):
            return
        found = f"{out.dtype} of shape {out.shape}" if is_array else type(out).__name__
        raise ValueError(
            f"`out` is {found}; it must be a writable array of {self._dtype}, shape "
            f"{self._shape(n_rows)}, in C order: allocate it with numpy.empty"
        )

    @ieee_arithmetic()
    def _score_any(self, X: Any, out: Reals | None) -> Reals:
        """Score arrays of any kind, frames, Arrow tables and lists, and explain what is wrong."""
        features = self.network.features
        table = X if has_names(X) else as_numbers(X, features)
        target = np.empty(self._shape(len(table)), self._dtype) if out is None else out
        start = 0
        for columns in named_columns(X, features) if has_names(X) else [list(table.T)]:
            self._check_out(target, len(table), *columns)
            part = target[start : start + len(columns[0])]
            n_bad = self._program.score(columns, part, self._fill)
            if n_bad < 0:
                raise ValueError(f"the columns of `X` have lengths {[len(c) for c in columns]}")
            if n_bad and self._raises:
                _refuse(columns, features, start)
            start += len(columns[0])
        if start != len(table):
            raise ValueError(f"`X` has {len(table)} rows but its columns have {start}")
        return target

    def _shape(self, n_rows: int) -> tuple[int, ...]:
        return (n_rows,) if self._n_outputs == 1 else (n_rows, self._n_outputs)


def _rebuild(network: Network, nonfinite: Any, threads: int, isa: str) -> Engine:
    return Engine(network, nonfinite=nonfinite, threads=threads, isa=isa)


def _compile(network: Network, threads: int, isa: str) -> Program:
    scaling = network.scaling
    numbers = np.stack([scaling.offset, scaling.floor, scaling.center, scaling.factor], axis=1)
    program = Program(
        network.precision,
        scaling.log.tolist(),
        numbers,
        np.ascontiguousarray(network.residual.T, dtype=np.float64),
        network.clip,
        network.grid or 0.0,
        threads,
        isa,
    )
    _add_steps(program, network.steps)
    return program


def _add_steps(program: Program, steps: tuple[Step, ...]) -> None:
    for step in steps:
        match step:
            case Dense(weight, bias):
                transposed = np.ascontiguousarray(weight.T, dtype=np.float64)
                program.dense(transposed, bias.astype(np.float64))
            case Sort(group_size):
                program.sort(group_size)
            case Pointwise(name, slope):
                program.pointwise(name, slope)
            case Blend(keep, add, inner):
                program.save()
                _add_steps(program, inner)
                program.merge(keep, add)
            case Members(weights, members):
                program.fork()
                for k, member in enumerate(members):
                    _add_steps(program, member)
                    program.part(weights[k], last=k == len(members) - 1)


def named_columns(X: Any, features: Sequence[str]) -> Iterator[list[Reals]]:
    """The features' columns; those of an Arrow table in its own batches, which are not copied."""
    labels = column_names(X)
    names = [str(label) for label in labels]  # a frame may call a column 3, a feature is a text
    for name in features:
        if names.count(name) != 1:
            raise ValueError(
                f"the table has {names.count(name)} columns {name!r}; it needs one of each feature"
            )
    if not hasattr(X, "to_batches"):
        yield [_column(X[labels[names.index(name)]], name) for name in features]
        return
    for batch in X.select(list(features)).to_batches():
        yield [_column(batch.column(i), name) for i, name in enumerate(features)]


def _column(values: Any, name: str) -> Reals:
    """One column as floats, where it is if it can stay; what is missing becomes NaN."""
    if is_category(getattr(values, "type", getattr(values, "dtype", ""))):
        raise ValueError(
            f"feature {name!r} holds categories, which have no size even where they are written "
            "as numbers; the network takes numbers: convert the column"
        )
    array: NDArray[Any] = (
        values.to_numpy(zero_copy_only=False)
        if hasattr(values, "null_count") and hasattr(values, "buffers")
        else np.asarray(values)
    )
    if isinstance(values, np.ma.MaskedArray) or array.dtype.kind not in "biufO" or array.ndim != 1:
        raise ValueError(f"feature {name!r} holds {array.dtype}; convert it to numbers")
    try:
        return array if array.dtype in _FLOATS else without_na(array).astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"feature {name!r} holds no numbers ({error}); convert it") from error


def _refuse(columns: list[Reals], features: Sequence[str], start: int) -> None:
    """Raise the error about the first NaN or infinity."""
    row, column = np.argwhere(~np.isfinite(np.column_stack(columns)))[0]
    raise ValueError(
        f"feature {features[column]!r} is {columns[column][row]} in row {start + row}; only "
        "finite numbers can be scored: drop or fill such rows, or give `Engine` a score for them"
    )
