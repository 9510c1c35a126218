"""The compiled engine and the readable reference are one function."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from draws import draw_frozen, draw_rows, single
from isotone import FrozenNetwork, Scaling
from isotone._engine import Program
from isotone.certificate.bounds import rounding_errors
from isotone.frozen import reference
from isotone.frozen.engine import Engine
from isotone.frozen.steps import Dense, Sort, Step
from isotone.typing import Floats, Reals
from networks import small


def missing_or(bad: float) -> str:
    return "missing" if math.isnan(bad) else str(bad)


def same_bits(a: Reals, b: Reals) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("seed", range(120))
def test_every_instruction_set_computes_the_reference_to_the_last_bit(seed: int) -> None:
    frozen = draw_frozen(seed)
    X = draw_rows(seed, 517, frozen.n_features)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = reference.score(frozen, X)
    finite = np.isfinite(expected.reshape(len(X), -1)).all(axis=1)
    for isa in Engine.instruction_sets():
        assert same_bits(Engine(frozen, isa=isa)(X)[finite], expected[finite])


@pytest.mark.parametrize("seed", range(40))
def test_float32_scores_are_within_e_of_the_reference(seed: int) -> None:
    frozen = draw_frozen(seed, "float32")
    error = rounding_errors(frozen)
    assert np.all(np.isfinite(error))
    X = draw_rows(seed, 300, frozen.n_features)
    expected = reference.score(frozen, X).astype(np.float64).reshape(len(X), -1)
    for isa in Engine.instruction_sets():
        score = Engine(frozen, isa=isa)(X).astype(np.float64).reshape(len(X), -1)
        assert np.all(np.abs(score - expected) <= 2 * error)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("n", [2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2), (2, 2), (1, 1)])
def test_sorts_of_several_groups_around_a_dense_step_are_not_taken_for_one(
    n: int, before: int, after: int, precision: Any
) -> None:
    """Sort, dense, sort are computed at once if each sorts all its units, and only then."""
    rng = np.random.default_rng(n)

    def dense(n_out: int, n_in: int) -> Dense:
        weight = rng.normal(size=(n_out, n_in)) / np.sqrt(n_in)
        return Dense(weight.astype(precision), rng.normal(size=n_out).astype(precision))

    middle = (Sort(n), dense(after * n, before * n), Sort(n))
    steps = (dense(before * n, 3), *middle, dense(1, after * n))
    residual, zero = np.ones((1, 3)), np.zeros((1, 3), np.int8)
    frozen = FrozenNetwork(
        ("a", "b", "c"),
        Scaling.identity(3),
        steps,
        residual,
        np.ones(3),
        zero,
        precision=precision,
    )
    X = rng.normal(size=(300, 3))
    expected = reference.score(frozen, X).astype(np.float64)
    for isa in Engine.instruction_sets():
        score = Engine(frozen, isa=isa)(X).astype(np.float64)
        assert np.all(np.abs(score - expected) <= 2 * rounding_errors(frozen))


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_no_score_is_minus_zero(precision: Any) -> None:
    """0 x is -0.0 for negative x, and so is a sum of those."""
    zero = np.zeros((1, 2), precision)
    steps = (Dense(zero, np.full(1, -0.0, precision)),)
    names, signs = ("a", "b"), np.zeros((1, 2), np.int8)
    identity, options = Scaling.identity(2), {"precision": precision}
    frozen = FrozenNetwork(names, identity, steps, np.zeros((1, 2)), np.ones(2), signs, **options)
    X = -np.linspace(1.0, 2.0, 200).reshape(100, 2)
    assert not np.any(np.signbit(reference.score(frozen, X)))
    for isa in Engine.instruction_sets():
        assert not np.any(np.signbit(Engine(frozen, isa=isa)(X)))


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_score_depends_on_its_row_alone(precision: Any) -> None:
    frozen = draw_frozen(3, precision)
    X = draw_rows(0, 300, frozen.n_features)
    for isa in ["", *Engine.instruction_sets()]:
        engine = Engine(frozen, isa=isa)
        whole = engine(X)
        for size in (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 65, 127, 129):
            parts = [engine(X[start : start + size]) for start in range(0, len(X), size)]
            assert same_bits(np.concatenate(parts), whole)
        assert same_bits(engine(X[::-1])[::-1].copy(), whole)
    assert same_bits(Engine(frozen, threads=3)(X), Engine(frozen)(X))


@pytest.mark.parametrize("width", [7, 8, 9, 12, 13, 20, 21, 24, 25])
def test_full_sorts_of_one_width_give_tiles_the_bits_of_single_rows(width: int) -> None:
    rng = np.random.default_rng(width)
    steps: list[Step] = []
    for n_in, n_out in pairwise([3, width, width, width, 1]):
        steps += [Dense(rng.normal(size=(n_out, n_in)), rng.normal(size=n_out)), Sort(n_out)]
    frozen = FrozenNetwork(
        features=("a", "b", "c"),
        scaling=Scaling.identity(3),
        steps=tuple(single(step) for step in steps),
        residual=np.ones((1, 3)),
        lipschitz=np.ones(3),
        monotonic_cst=np.zeros((1, 3)),
        precision="float32",
        grid=None,
    )
    X = draw_rows(width, 300, 3)
    for isa in Engine.instruction_sets():
        engine = Engine(frozen, isa=isa)
        one_by_one = np.concatenate([engine(row[None]) for row in X])
        assert same_bits(engine(X), one_by_one)


@pytest.mark.parametrize("group_size", [2, 3, 20, 32, 33, 60, 120])
def test_groups_of_every_size_are_sorted(group_size: int) -> None:
    rng = np.random.default_rng(group_size)
    width = 120 if 120 % group_size == 0 else group_size * 2
    steps = (
        Dense(rng.normal(size=(width, 2)), rng.normal(size=width)),
        Sort(group_size),
        Dense(rng.normal(size=(1, width)), np.zeros(1)),
    )
    frozen = FrozenNetwork(
        features=("a", "b"),
        scaling=Scaling.identity(2),
        steps=steps,
        residual=np.zeros((1, 2)),
        lipschitz=np.ones(2),
        monotonic_cst=np.zeros((1, 2)),
    )
    X = draw_rows(1, 100, 2)
    for isa in Engine.instruction_sets():
        assert same_bits(Engine(frozen, isa=isa)(X), reference.score(frozen, X))


def test_no_rows_give_no_scores() -> None:
    assert small().score(np.empty((0, 3))).shape == (0,)
    empty = pa.table({f"x{i}": pa.array([], pa.float64()) for i in range(3)})
    assert small().score(empty).shape == (0,)


LAYOUTS: dict[str, Callable[[Floats], Any]] = {
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: X[:, ::-1].copy()[:, ::-1],
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "float32": lambda X: X.astype("f4"),
    "Fortran float32": lambda X: np.asfortranarray(X.astype("f4")),
    "big-endian": lambda X: X.astype(">f8"),
    "lists": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(other="text"),
    "mixed pandas": lambda X: pd.DataFrame({f"x{2 - i}": X[:, 2 - i] for i in range(3)}),
    "polars": lambda X: pl.DataFrame({f"x{i}": X[:, i] for i in range(3)}),
    "Arrow": lambda X: pa.table({f"x{i}": X[:, i] for i in range(3)}),
    "Arrow chunks": lambda X: pa.table(
        {f"x{i}": pa.chunked_array([X[: 10 + i, i], X[10 + i :, i]]) for i in range(3)}
    ),
    "Arrow batch": lambda X: pa.table({f"x{i}": X[:, i] for i in range(3)}).to_batches()[0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_may_come_in_any_layout(layout: str) -> None:
    frozen = small()
    X = np.random.default_rng(0).normal(size=(50, 3)).astype("f4").astype("f8")
    assert same_bits(frozen.score(LAYOUTS[layout](X)), frozen.score(X))


@pytest.mark.parametrize("kinds", [["standard"] * 9, ["standard"] * 5 + ["log"] * 4])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_whole_rows_are_read_as_their_columns_are(kinds: list[Any], precision: Any) -> None:
    X = np.random.default_rng(0).exponential(size=(309, 9)).astype("f4").astype("f8")
    frozen = small((1,) * 9, scaling=Scaling.fit(X, kinds), precision=precision)
    for isa in Engine.instruction_sets():
        engine = Engine(frozen, on_unseen=-7.5, isa=isa)
        expected = engine(np.asfortranarray(X))
        for n_rows in (309, 128, 68, 12):
            for kind in ("f4", "f8"):
                assert same_bits(engine(X[:n_rows].astype(kind)), expected[:n_rows])
        for column in range(9):
            holed = X.copy()
            holed[17 * column, column] = math.inf
            assert np.flatnonzero(engine(holed) == -7.5).tolist() == [17 * column]


def test_integers_and_booleans_are_numbers() -> None:
    X = np.array([[0, 1, 1], [1, 0, 1]])
    frozen = small()
    assert same_bits(frozen.score(X), frozen.score(X.astype(float)))
    assert same_bits(frozen.score(X.astype(bool)), frozen.score(X.astype(float)))
    frame = pd.DataFrame({"x0": [0, 1], "x1": [True, False], "x2": [1, 1]})
    assert same_bits(frozen.score(frame), frozen.score(X.astype(float)))


def test_scores_are_written_to_out() -> None:
    frozen, X = small(), np.random.default_rng(0).normal(size=(9, 3))
    out = np.full(9, -5.0)
    engine = Engine(frozen)
    assert engine(X, out) is out
    assert same_bits(out, engine(X))
    assert engine(X.tolist(), out=out) is out
    assert same_bits(engine(pd.DataFrame(X, columns=list(frozen.features)), out), engine(X))
    for bad in (np.empty(8), np.empty(9, "f4"), np.empty((9, 1)), np.empty(18)[::2], [0.0] * 9):
        with pytest.raises(ValueError, match=r"`out` is .*must be a writable array of float64"):
            engine(X, bad)  # type: ignore[arg-type]


def test_out_must_not_overlap_the_rows() -> None:
    X = np.asfortranarray(np.zeros((9, 3)))
    with pytest.raises(ValueError, match="`out` overlaps `X`"):
        Engine(small())(X, X[:, 0])
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"], copy=False)
    with pytest.raises(ValueError, match="`out` overlaps `X`"):
        Engine(small())(frame, X[:, 0])


class Uneven:
    """What looks like a frame but has columns of different lengths."""

    columns = ("x0", "x1", "x2")

    def __init__(self, *lengths: int) -> None:
        self.lengths = dict(zip(self.columns, lengths, strict=True))

    def __len__(self) -> int:
        return 4

    def __getitem__(self, name: str) -> Floats:
        return np.ones(self.lengths[name])


def test_nothing_is_scored_of_uneven_columns() -> None:
    for on_unseen in ("error", -1.0):
        engine = Engine(small(), on_unseen=on_unseen)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"has 3 values but column '\w+' has 4; a row needs"):
            engine(Uneven(4, 4, 3))
        with pytest.raises(ValueError, match="has 4 rows but its columns have 3"):
            engine(Uneven(3, 3, 3))


def test_threads_that_cannot_be_had_are_done_without() -> None:
    frozen, X = small(), np.random.default_rng(0).normal(size=(5000, 3))
    assert same_bits(Engine(frozen, threads=2_000_000_000)(X), frozen.score(X))


@pytest.mark.parametrize("kind", [np.float16, np.longdouble, ">f8", object])
def test_the_score_of_gaps_holds_for_converted_arrays(kind: Any) -> None:
    X = np.array([[0.0, 1.0, math.nan], [0.0, 1.0, 2.0]]).astype(kind)
    assert Engine(small(), on_unseen=-1.0)(X)[0] == -1.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("row", [0, 1, 63, 64, 300, 308])
def test_what_is_not_finite_is_never_scored(bad: float, row: int) -> None:
    frozen = small()
    X = np.random.default_rng(0).normal(size=(309, 3))
    expected = frozen.score(X)
    X[row, 1] = bad
    with pytest.raises(ValueError, match=f"column 'x1' is {missing_or(bad)} in row {row}"):
        frozen.score(X)
    table = pa.table({name: X[:, i] for i, name in enumerate(frozen.features)})
    with pytest.raises(ValueError, match=f"column 'x1' is {missing_or(bad)} in row {row}"):
        frozen.score(table)
    for isa in Engine.instruction_sets():
        score = Engine(frozen, on_unseen=-7.5, isa=isa)(X)
        assert score[row] == -7.5
        assert np.array_equal(np.delete(score, row), np.delete(expected, row))
    assert math.isnan(Engine(frozen, on_unseen="skip")(X)[row])


def test_missing_values_of_frames_count_as_nan() -> None:
    frozen = small()
    table = pa.table({"x0": pa.array([1.0, None]), "x1": [1.0, 2.0], "x2": [1, 2]})
    with pytest.raises(ValueError, match="column 'x0' is missing in row 1"):
        frozen.score(table)
    assert Engine(frozen, on_unseen=0.5)(table)[1] == 0.5
    assert Engine(frozen, on_unseen=0.5)(table.to_pandas())[1] == 0.5
    assert Engine(frozen, on_unseen=0.5)(pl.from_arrow(table))[1] == 0.5


def test_an_engine_survives_pickling() -> None:
    engine = pickle.loads(pickle.dumps(Engine(small(), on_unseen=1.5)))
    assert engine([[math.nan, 0.0, 0.0]])[0] == 1.5
    frozen = small()
    frozen.score([[0.0, 0.0, 0.0]])
    assert pickle.loads(pickle.dumps(frozen)).fingerprint == frozen.fingerprint


def test_wrong_arguments_are_explained() -> None:
    frozen = small()
    with pytest.raises(ValueError, match="`on_unseen='ignore'` is unknown"):
        Engine(frozen, on_unseen="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`threads=0` must be at least 1"):
        Engine(frozen, threads=0)
    with pytest.raises(ValueError, match="is too large for float32"):
        Engine(small(precision="float32"), on_unseen=1e300)
    with pytest.raises(ValueError, match='`isa="mmx"` does not run here'):
        Engine(frozen, isa="mmx")
    with pytest.raises(ValueError, match=r"shape \(2, 2\); it must have rows and 3 columns"):
        frozen.score(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="no column 'x2'"):
        frozen.score(pd.DataFrame({"x0": [0.0], "x1": [0.0]}))
    with pytest.raises(ValueError, match="column 'x1' holds the text 'a' in row 0"):
        frozen.score(pd.DataFrame({"x0": [0.0], "x1": ["a"], "x2": [0.0]}, dtype=object))


def test_encoded_columns_that_are_not_those_of_the_model_are_refused() -> None:
    """The compiled code reads as many numbers as it was told."""
    engine, column = Engine(small()), np.zeros(4)
    for n in (1, 2, 4):
        with pytest.raises(ValueError, match=f"rows have {n} features; the model has 3: give"):
            engine.score_columns([column] * n)
    for uneven in ([column, column, column[:3]], [column[:3], column, column]):
        with pytest.raises(ValueError, match=r"have lengths \[.*3.*\]; they must be equal"):
            engine.score_columns(uneven)
    assert same_bits(engine.score_columns([column] * 3), engine(np.zeros((4, 3))))


def test_programs_refuse_what_does_not_fit() -> None:
    numbers, one = np.array([[0.0, 1.0, 0.0, 1.0]]), np.ones((1, 1))

    def program() -> Program:
        return Program("float64", [False], numbers, one, 1.0, 0.0)

    with pytest.raises(ValueError, match="`part` needs a `fork` before it"):
        program().part(1.0, last=True)
    blend = program()
    blend.save()
    with pytest.raises(ValueError, match="`part` needs a `fork` before it"):
        blend.part(1.0, last=True)
    members = program()
    members.fork()
    with pytest.raises(ValueError, match="`merge` needs a `save` before it"):
        members.merge(0.5, 0.5)
    members.part(1.0, last=False)
    with pytest.raises(ValueError, match="the steps do not end in the outputs"):
        members.score(one, np.empty(1), 0.0)
    members.dense(np.ones((1, 2)), np.zeros(2))
    with pytest.raises(ValueError, match="members of as many outputs"):
        members.part(1.0, last=True)
