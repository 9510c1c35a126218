"""Engine: the Python face of the compiled scorer, `cpp/runtime`.

`FrozenNetwork.score` is enough for most uses. Make an `Engine` for a table with NaN, for scores
written into memory of your own, for several threads, or for single events in a loop.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np

from isotone.arithmetic import ieee_arithmetic
from isotone.frozen.lookup import Copies
from isotone.frozen.steps import Blend, Dense, Members, Pointwise, Sort, Step, Steps
from isotone.inputs.chain import Inputs, Policy, check_policy
from isotone.inputs.frames import is_dictionary
from isotone.inputs.scaling import Scaling
from isotone.typing import Floats, Reals

try:
    from isotone._engine import Program, instruction_sets
except ImportError as error:  # pragma: no cover
    raise ImportError(
        f"isotone's compiled part cannot be loaded ({error}); it was not built or is for another "
        "Python: install isotone again with pip, which compiles it"
    ) from error


class Network(Protocol):
    """What an engine needs of a `FrozenNetwork`."""

    @property
    def inputs(self) -> Inputs: ...

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

    @property
    def copies(self) -> Copies | None: ...


class Engine:
    """A compiled frozen network: call it with raw rows.

    The score of a row depends on the row alone. For networks of float64, the default, its bits
    are the same on every machine and the same as those of `isotone.frozen.reference`; for float32
    they differ between processors with and without fused multiply-add, within the certificate's E.

    Parameters
    ----------
    network : a `FrozenNetwork`
    on_unseen : what a row gets that holds what no training row held, such as a new category, a
        value missing in a column that was complete, or an infinite number: "error" names the
        first, "missing" treats it as a missing value where those have a meaning, "skip" gives
        NaN, and a number is the score of such rows
    threads : how many to share the rows of large tables among, each having 1024 or more
    isa : an instruction set, one of `Engine.instruction_sets`; the best one by default

    Attributes
    ----------
    n_unseen : how many rows so far held what no training row held

    Examples
    --------
    >>> engine = Engine(frozen, on_unseen=-1.0)  # doctest: +SKIP
    >>> engine([[0.5, math.nan], [0.5, 2.0]])  # doctest: +SKIP
    array([-1.   ,  0.731])
    """

    def __init__(
        self,
        network: Network,
        *,
        on_unseen: Policy = "error",
        threads: int = 1,
        isa: str = "",
    ) -> None:
        if threads < 1:
            raise ValueError(f"`threads={threads}` must be at least 1")
        self.network, self.on_unseen = network, check_policy(on_unseen)
        self.threads, self.isa = threads, isa
        self._program = _compile(network, threads, isa)
        self._raises = self.on_unseen in ("error", "missing")
        self._fill = np.nan if isinstance(self.on_unseen, str) else self.on_unseen
        self.n_unseen = 0
        self._is_plain = network.inputs.is_plain
        self._n_outputs = len(network.residual)
        self._dtype = np.dtype(network.precision)
        if np.isfinite(self._fill) and abs(self._fill) > float(np.finfo(self._dtype).max):
            raise ValueError(f"`on_unseen={on_unseen}` is too large for {self._dtype}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.network, self.on_unseen, self.threads, self.isa)

    @staticmethod
    def instruction_sets() -> list[str]:
        """Those that this machine runs, slowest first."""
        return instruction_sets()

    def __call__(self, X: Any, out: Reals | None = None) -> Reals:
        """Score raw rows.

        Parameters
        ----------
        X : a data frame, Arrow table or dictionary with the model's columns, in any order; or, if
            all of them are numbers, an array (n_rows, n_columns) in any order of memory. Columns
            of float32 and float64 are read where they are
        out : (n_rows,) for one output, otherwise (n_rows, n_outputs), of the network's precision
            and in C order; the scores are written there. It must not overlap `X`, and holds
            numbers of no meaning after an error

        Returns
        -------
        `out`, or a new array of that shape
        """
        if type(X) is not np.ndarray or X.ndim != 2 or not self._is_plain:
            return self._score_any(X, out)
        target = self._empty(len(X)) if out is None else out
        if out is not None:
            self._check_out(out, len(X), X)
        n_bad = self._program.score(X, target, self._fill)
        if n_bad == 0 or (n_bad > 0 and not self._raises):
            self.n_unseen += n_bad
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
        """Score frames, Arrow tables, dictionaries and lists, and explain what is wrong."""
        start, parts = 0, []
        for raw in self.network.inputs.batches(X):
            n_rows = len(raw[0])
            target = None if out is None else out[start : start + n_rows]
            parts.append(self.score_batch(raw, start, target))
            start += n_rows
        if not is_dictionary(X) and len(X) != start:
            raise ValueError(f"`X` has {len(X)} rows but its columns have {start}")
        if out is not None:
            self._check_out(out, start)
            return out
        return parts[0] if len(parts) == 1 else np.concatenate([self._empty(0), *parts])

    def score_batch(self, raw: list[Any], first_row: int = 0, out: Reals | None = None) -> Reals:
        """Score the raw columns of some rows, in the order of the model.

        Parameters
        ----------
        first_row : number of the first row within a larger table, for messages
        out : as for a call
        """
        inputs = self.network.inputs
        uncompleted = inputs.read(raw)
        as_missing = self.on_unseen == "missing"
        if as_missing:
            self.n_unseen += int(np.isinf(uncompleted).any(axis=0).sum())
        columns = inputs.complete(uncompleted, as_missing)
        scores, n_bad = self._score_columns(columns, out)
        if n_bad and self._raises:
            inputs.refuse(raw, columns, first_row)
        self.n_unseen += n_bad
        return scores

    def score_features(self, features: Reals) -> Reals:
        """Score rows of encoded features, (n_rows, n_features), all of them finite."""
        return self._score_columns(list(np.asarray(features, np.float64).T), None)[0]

    def _score_columns(self, columns: list[Reals], out: Reals | None) -> tuple[Reals, int]:
        """Scores of encoded features, one array each, and the number of rows without one."""
        lengths = [len(column) for column in columns]
        target = self._empty(lengths[0]) if out is None else out
        if out is not None:
            self._check_out(out, lengths[0], *columns)
        n_bad = self._program.score(columns, target, self._fill)
        if n_bad < 0:
            raise ValueError(f"the columns of `X` have lengths {lengths}; they must be equal")
        return target, n_bad

    def _empty(self, n_rows: int) -> Reals:
        return np.empty(self._shape(n_rows), self._dtype)

    def _shape(self, n_rows: int) -> tuple[int, ...]:
        return (n_rows,) if self._n_outputs == 1 else (n_rows, self._n_outputs)


def _rebuild(network: Network, on_unseen: Policy, threads: int, isa: str) -> Engine:
    return Engine(network, on_unseen=on_unseen, threads=threads, isa=isa)


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
    copies = network.copies
    if copies is not None:
        program.copies(copies.counts, copies.ends, copies.interleaved(network.residual))
    _add_steps(program, network.steps, copies)
    return program


def _add_steps(program: Program, steps: Steps, copies: Copies | None = None) -> None:
    for step in steps:
        match step:
            case Dense(weight, bias) if copies is not None:
                program.look_up(copies.interleaved(weight), bias.astype(np.float64))
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
                    _add_steps(program, member, copies)
                    program.part(weights[k], last=k == len(members) - 1)
        copies = None
