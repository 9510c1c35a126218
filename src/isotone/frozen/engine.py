"""Engine: the Python face of the compiled scorer, `cpp/runtime`.

`FrozenNetwork.score` is enough for most uses. Make an `Engine` for a table with NaN, for scores
written into memory of your own, for several threads, or for single events in a loop.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from isotone.arithmetic import ieee_arithmetic
from isotone.compiled import engine
from isotone.frozen.program import Instruction, flatten
from isotone.inputs.chain import Policy, check_policy
from isotone.inputs.frames import has_names, is_dictionary
from isotone.inputs.scaling import as_numbers
from isotone.typing import Floats, Reals

if TYPE_CHECKING:
    from isotone.frozen.network import FrozenNetwork


class Engine:
    """A compiled frozen network: call it with raw rows.

    The score of a row depends on the row alone. For networks of float64, the default, its bits
    are the same on every machine and the same as those of `isotone.frozen.reference`; for float32
    they differ between processors with and without fused multiply-add, within the certificate's E.

    Parameters
    ----------
    network : a `FrozenNetwork`
    on_unseen : what to do with a row that contains values never seen in training, such as a new
        category where none is pooled, a value missing in a column that was complete, or an
        infinite number: "error"
        names the first, "missing" treats it as a missing value, "skip" gives NaN, and a number is
        the score of such rows. What a missing value is worth was learned from those in training.
        Without any, a category counts as none of those known (all of its features are 0), and a
        row that lacks a number or a rank gets NaN: nothing can stand in for it
    threads : how many threads share the rows of large tables, each taking 1024 or more
    isa : an instruction set, one of `Engine.instruction_sets`; the best one by default

    Attributes
    ----------
    n_unseen : how many rows so far contained values never seen in training, for which `on_unseen`
        says what they get
    n_unscored : how many of these got no score: all if `on_unseen` is "skip", and with "missing"
        those in which nothing can stand in for a value
    n_pooled : how many rows so far had a category that is rare or new, in a column that pools
        those; they are scored as such, whatever `on_unseen` says

    Examples
    --------
    >>> engine = Engine(frozen, on_unseen=-1.0)  # doctest: +SKIP
    >>> engine([[0.5, math.nan], [0.5, 2.0]])  # doctest: +SKIP
    array([-1.   ,  0.731])
    """

    def __init__(
        self,
        network: FrozenNetwork,
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
        self._raises = self.on_unseen == "error"
        self._fill = np.nan if isinstance(self.on_unseen, str) else self.on_unseen
        self.n_unseen = self.n_unscored = self.n_pooled = 0
        self._is_plain = network.inputs.is_plain
        self._n_outputs = len(network.residual)
        self._dtype = np.dtype(network.precision)
        if abs(self._fill) > float(np.finfo(self._dtype).max):
            raise ValueError(f"`on_unseen={on_unseen}` is too large for {self._dtype}")

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(Engine, on_unseen=self.on_unseen, threads=self.threads, isa=self.isa)
        return make, (self.network,)

    @staticmethod
    def instruction_sets() -> list[str]:
        """Those that this machine runs, slowest first."""
        return engine.instruction_sets()

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
        # A single event takes a microsecond, so that every call of Python counts here.
        target = np.empty(self._shape(len(X)), self._dtype) if out is None else out
        if out is not None:
            self._check_out(out, len(X), X)
        n_bad = self._program.score(X, target, self._fill)
        if n_bad == 0:
            return target
        if n_bad > 0 and not self._raises:
            self._count_unseen(n_bad, n_bad)
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
        if isinstance(X, list | tuple) and self._is_plain and not has_names(X):
            return self(as_numbers(X, self.network.inputs.names), out)
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
        columns = inputs.complete(uncompleted)
        scores, n_bad = self._score_columns(columns, out)
        if n_bad and self._raises:
            inputs.refuse(raw, columns, first_row)
        n_left = n_bad
        if n_bad and self.on_unseen == "missing":
            scores, n_left = self._score_columns(inputs.complete(uncompleted, True), out)
        self._count_unseen(n_bad, n_left)
        self.n_pooled += inputs.count_pooled(uncompleted)
        return scores

    def _count_unseen(self, n_rows: int, n_filled: int) -> None:
        self.n_unseen += n_rows
        self.n_unscored += n_filled if np.isnan(self._fill) else 0

    def score_features(self, features: Reals) -> Reals:
        """Score rows of encoded features, (n_rows, n_features), all of them finite."""
        return self.score_columns(list(np.asarray(features, np.float64).T))

    def score_columns(self, columns: list[Reals]) -> Reals:
        """Score encoded features, one array (n_rows,) each, all of them finite.

        They are read where they are; `numpy.broadcast_to` makes a number a feature of all rows.
        """
        return self._score_columns(columns, None)[0]

    def _score_columns(self, columns: list[Reals], out: Reals | None) -> tuple[Reals, int]:
        """Scores of encoded features, one array each, and the number of rows without one."""
        lengths = [len(column) for column in columns]
        target = self._empty(lengths[0]) if out is None else out
        if out is not None:
            self._check_out(out, lengths[0], *columns)
        expected = len(self.network.inputs.encoded)
        if len(columns) != expected:
            raise ValueError(
                f"rows have {len(columns)} features; the model has {expected}: give what `encode` "
                "makes of raw rows"
            )
        n_bad = self._program.score(columns, target, self._fill)
        if n_bad < 0:
            raise ValueError(f"the columns of `X` have lengths {lengths}; they must be equal")
        return target, n_bad

    def _empty(self, n_rows: int) -> Reals:
        return np.empty(self._shape(n_rows), self._dtype)

    def _shape(self, n_rows: int) -> tuple[int, ...]:
        return (n_rows,) if self._n_outputs == 1 else (n_rows, self._n_outputs)


def _compile(network: FrozenNetwork, threads: int, isa: str) -> engine.Program:
    scaling, copies = network.scaling, network.copies
    numbers = np.stack([scaling.offset, scaling.floor, scaling.center, scaling.factor], axis=1)
    program = engine.Program(
        network.precision,
        scaling.log.tolist(),
        numbers,
        _contiguous(network.residual.T),
        network.clip,
        network.grid or 0.0,
        threads,
        isa,
    )
    if copies is not None:
        program.copies(copies.counts, copies.ends, copies.interleaved(network.residual))
    for instruction in flatten(network.steps, network.n_features, copies):
        _add(program, instruction)
    return program


def _add(program: engine.Program, i: Instruction) -> None:
    """Append an instruction to a compiled program."""
    match i.kind:
        case "dense" | "look_up":
            assert i.weight is not None
            assert i.bias is not None
            getattr(program, i.kind)(_contiguous(i.weight), _contiguous(i.bias))
        case "sort":
            program.sort(i.group_size)
        case "pointwise":
            program.pointwise(i.activation, i.negative_slope)
        case "save" | "fork":
            getattr(program, i.kind)()
        case "merge":
            program.merge(i.keep, i.add)
        case "part" | "join":
            program.part(i.add, last=i.kind == "join")
        case _:
            assert_never(i.kind)


def _contiguous(numbers: Reals) -> Floats:
    return np.require(numbers, np.float64, ["C", "A", "E"])
