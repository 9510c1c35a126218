"""Drawn calls of the extension: models, rows and threads of every kind, and arguments that lie.

Each ends with the right result or with an exception of Python. What a sanitizer would see is
looked for by `python -m bench.fuzz.extension`; tests run a few.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from candidates import draw_model
from draws import draw_rows
from isotone.compiled import engine
from isotone.export.parity import check_rows
from isotone.frozen.engine import Engine
from isotone.training.fused import FusedTrainer

Rng = np.random.Generator

REFUSALS = (ValueError, TypeError, MemoryError, BufferError, OverflowError)
LOSSES = ("cross_entropy", "squared_error", "absolute_error", "hinge", "quantile")


def draw(seed: int) -> str:
    """Make one drawn call, or several of one kind; gives its kind and how it ended."""
    rng = np.random.default_rng([seed, 99])
    kind = sorted(_KINDS)[seed % len(_KINDS)]
    try:
        with np.errstate(all="ignore"):
            _KINDS[kind](seed // len(_KINDS), rng)
    except REFUSALS as error:
        return f"{kind}: {type(error).__name__}"
    return f"{kind}: done"


# ---- scores -------------------------------------------------------------------------------


def score_together(seed: int, rng: Rng) -> None:
    """One engine, several Python threads, each with rows of its own: all get their own scores."""
    model = draw_model(seed)
    engines = [
        Engine(model, on_unseen="skip", threads=threads, isa=isa)
        for threads, isa in itertools.product((1, 3), Engine.instruction_sets())
    ]
    shared = engines[int(rng.integers(len(engines)))]
    codes = [_codes(model, rng) for _ in range(4)]
    tables = [model.inputs.decode(rows) for rows in codes]
    alone = [shared(table) for table in tables]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(shared, tables * 3))
    for found, expected in zip(together, alone * 3, strict=True):
        assert found.tobytes() == expected.tobytes()
    if model.precision == "float64":
        for other in engines:
            assert other(tables[0]).tobytes() == alone[0].tobytes(), other.isa


def _codes(model: Any, rng: Rng) -> Any:
    n_rows = int(rng.choice([0, 1, 2, 7, 64, 255, 257, 3000, 5000]))
    edges = check_rows(model, 50)
    return edges[rng.integers(len(edges), size=n_rows)]


def score_in_any_layout(seed: int, rng: Rng) -> None:
    """Where numbers lie in memory changes no score."""
    model = draw_model(seed)
    if not model.inputs.is_plain:
        return
    n = len(model.inputs.columns)
    rows = draw_rows(seed, int(rng.integers(1, 3000)), n)
    score = Engine(model, on_unseen=-1.0, threads=2)
    expected = score(rows)
    for X in (
        np.asfortranarray(rows),
        np.repeat(rows, 2, axis=0)[::2],
        np.repeat(rows, 3, axis=1)[:, 1::3],
        np.ascontiguousarray(rows[::-1])[::-1],
        _unaligned(rows),
        {name: rows[:, i] for i, name in enumerate(model.inputs.names)},
    ):
        assert score(X).tobytes() == expected.tobytes()


def _unaligned(array: Any) -> Any:
    """The same numbers, at an address that is no multiple of their size."""
    memory = bytearray(array.nbytes + 1)
    memory[1:] = array.tobytes()
    return np.frombuffer(memory, array.dtype, array.size, 1).reshape(array.shape)


# ---- arguments that lie -------------------------------------------------------------------


def program_of_lies(seed: int, rng: Rng) -> None:
    """Steps in any order, of sizes that now and then do not fit."""
    n, m = (int(k) for k in rng.integers(1, (6, 4)))
    precision, numbers = str(rng.choice(["float32", "float64"])), _numbers(rng)
    program = engine.Program(
        precision,
        _sometimes(rng, [bool(rng.random() < 0.3) for _ in range(n)], [], [True] * (n + 1)),
        _lie(rng, numbers(n, 4)),
        _lie(rng, numbers(n, m)),
        float(rng.choice([1024.0, 0.0, np.inf, np.nan])),
        float(rng.choice([0.0, 2.0**-20, 1e300])),
        int(rng.choice([1, 2, 5, 0])),
        _isa(rng),
    )
    width = n
    for _ in range(int(rng.integers(1, 8))):
        width = _add_step(program, width, m, rng)
    program.dense(numbers(width, m), numbers(m))
    n_rows = int(rng.choice([0, 1, 3, 300, 3000]))
    X = rng.normal(size=(n_rows, n)).astype(rng.choice(["f4", "f8"]))
    out = np.empty((n_rows, m), precision)
    program.score(_lie(rng, X), _lie(rng, out), 0.5)
    program.score([_lie(rng, X[:, i]) for i in range(n)], _lie(rng, out), float("nan"))


def _add_step(program: Any, width: int, m: int, rng: Rng) -> int:
    """Add a step and give the number of units after it; refused ones leave it as it was."""
    numbers, wide = _numbers(rng), int(rng.integers(1, 40))
    steps: list[tuple[Callable[[], object], int]] = [
        (lambda: program.dense(_lie(rng, numbers(width, wide)), _lie(rng, numbers(wide))), wide),
        (lambda: program.sort(int(rng.choice([1, 2, width, wide, 0, -1, 300]))), width),
        (lambda: program.pointwise(str(rng.choice(["abs", "tanh", "relu", "?"])), 0.1), width),
        (program.save, width),
        (lambda: program.merge(0.5, 0.25), width),
        (program.fork, width),
        (lambda: program.part(0.5, bool(rng.random() < 0.5)), width),
        (lambda: _copy(program, width, m, rng), width),
        (lambda: program.look_up(_lie(rng, numbers(2 * width, wide)), numbers(wide)), wide),
    ]
    add, after = steps[int(rng.integers(len(steps)))]
    try:
        add()
    except REFUSALS:
        return width
    return after


def _copy(program: Any, width: int, m: int, rng: Rng) -> None:
    counts = [width] if rng.random() < 0.5 else [1] * width
    ends = [np.sort(rng.normal(size=count - 1)) for count in counts]
    residual = _lie(rng, rng.normal(size=(2 * width, m)))
    program.copies(_sometimes(rng, counts, [0], [2**20], []), ends, residual)


def probabilities_of_lies(seed: int, rng: Rng) -> None:
    shape = tuple(int(k) for k in rng.integers(0, 9, rng.integers(0, 4)))
    logits = rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 300)
    engine.find_probabilities(_lie(rng, logits), _lie(rng, np.empty(shape)), _isa(rng))


def sort_of_lies(seed: int, rng: Rng) -> None:
    """Rows of floats of any size are sorted, with a stable permutation."""
    shape = int(rng.integers(0, 200)), int(rng.choice([0, 1, 2, 3, 8, 17, 40, 200, 300]))
    x = rng.integers(-5, 6, shape).astype(rng.choice(["f4", "f8"]))
    values, index = np.empty_like(x), np.empty(shape, np.int16)
    isa = _isa(rng)
    engine.group_sort_index(x, values, index, isa)
    assert np.array_equal(values, np.sort(x, axis=1))
    assert np.array_equal(index, np.argsort(x, axis=1, kind="stable"))
    back = np.empty_like(x)
    engine.scatter(values, index, back)
    assert np.array_equal(back, x)
    engine.group_sort(_lie(rng, x), _lie(rng, values), isa)
    engine.group_sort_index(_lie(rng, x), _lie(rng, values), _lie(rng, index), isa)


# ---- training -----------------------------------------------------------------------------


def train_together(seed: int, rng: Rng) -> None:
    """The members of a stack end the same on one thread and on several."""
    layers = [int(k) for k in rng.integers(1, 24, rng.integers(2, 5))]
    n_members, n_rows = (int(k) for k in rng.integers(1, (6, 300)))
    loss: Any = str(rng.choice(LOSSES[1:3]))
    x = rng.normal(size=(n_rows, layers[0]))
    y = rng.normal(size=(n_rows, layers[-1]))
    ends = []
    for threads in (1, 4):
        trainer = FusedTrainer(layers, n_members=n_members, loss=loss)
        drawn = np.random.default_rng(seed)
        for array in (*trainer.weights, *trainer.biases):
            array[...] = drawn.normal(size=array.shape)
        trainer.train_epoch(x, y, batch_size=32, learning_rates=0.01, threads=threads)
        ends.append(b"".join(array.tobytes() for array in trainer.weights))
    assert ends[0] == ends[1]


def train_on_lies(seed: int, rng: Rng) -> None:
    """Arrays of the trainer, of which one or another has a wrong shape, type or layout."""
    widths = [int(k) for k in rng.integers(1, 20, rng.integers(2, 5))]
    sizes = [int(rng.choice([1, width, 2, 0])) if rng.random() < 0.3 else 1 for width in widths]
    fields = _sometimes(rng, [], [(widths[0], False)], [(1, True)] * widths[0], [(0, True)])
    chain, loss = str(rng.choice(["one", "inf", "?"])), str(rng.choice(LOSSES))
    stack = engine.Stack(widths, sizes[1:], chain, loss, bool(rng.random() < 0.3), fields)
    given = _training(stack, widths, loss, fields, rng)
    lying = {name: _lie(rng, value, 0.1) for name, value in given.items()}
    engine.train(stack, *lying.values(), **_settings(rng))
    trained = ("first_moment", "second_moment", "order", "batch_size", "schedule", "beta1")
    asked = {
        name: value
        for name, value in lying.items()
        if name not in (*trained, "beta2", "eps", "lipschitz_rate")
    }
    n_rows, n_members = len(given["x"]), len(given["losses"])
    kind = given["x"].dtype
    room = np.empty((n_members, n_rows, widths[-1]), kind)
    engine.evaluate(
        stack,
        gradients=_lie(rng, np.empty_like(given["parameters"])),
        predictions=_lie(rng, room),
        threads=3,
        **asked,
    )


def _training(
    stack: Any, widths: list[int], loss: str, fields: Sequence[tuple[int, bool]], rng: Rng
) -> dict[str, Any]:
    """What fits the stack, in the order in which `train` takes it, but for its settings."""
    kind = str(rng.choice(["f4", "f8"]))
    n_members, n_rows = (int(k) for k in rng.integers(0, (4, 90)))
    n_in, n_out, labels = widths[0], widths[-1], loss == "cross_entropy"
    numbers, n_parameters = _numbers(rng, kind), stack.n_parameters
    n_visits = int(rng.choice([n_rows, 2 * n_rows, 0]))
    batch_size = int(rng.choice([1, 7, 64, 0]))
    usual = _usual(rng, fields, n_rows, numbers) if fields and rng.random() < 0.5 else None
    n_own = len(fields) if usual is None else 0  # fields of which rows have columns
    y = rng.integers(0, 3, (n_rows, 1)) if labels else rng.normal(size=(n_rows, n_out))
    return {
        "bounds": np.abs(numbers(n_members, len(widths) - 1)),
        "feature_scale": numbers(n_members, n_in),
        "residual": numbers(n_members, n_out, n_in),
        "loss_parameter": np.abs(numbers(n_members, n_out)),
        "parameters": numbers(n_members, n_parameters),
        "first_moment": numbers(n_members, n_parameters),
        "second_moment": np.abs(numbers(n_members, n_parameters)),
        "x": numbers(n_rows, n_own if fields else n_in),
        "cells": rng.integers(0, n_in, (n_rows, n_own)).astype("i4") if fields else None,
        "usual": usual,
        "y": y.astype(kind),
        "sample_weight": None if rng.random() < 0.5 else np.abs(numbers(n_rows)),
        "order": rng.integers(0, max(n_rows, 1), n_visits).astype("i4"),
        "batch_size": batch_size,
        "schedule": rng.uniform(size=(-(-n_visits // (batch_size or 1)), 3)),
        "beta1": 0.9,
        "beta2": 0.99,
        "eps": 1e-8,
        "lipschitz_rate": 0.1,
        "losses": np.empty(n_members),
    }


def _usual(
    rng: Rng, fields: Sequence[tuple[int, bool]], n_rows: int, numbers: Callable[..., Any]
) -> tuple[Any, ...]:
    """What most rows have in all fields, and what some have instead."""
    first = np.cumsum([0, *(count for count, _ in fields)])[:-1].astype("i4")
    others = rng.integers(0, len(fields), rng.integers(0, 50)).astype("i4")
    ends = np.sort(rng.integers(0, len(others) + 1, max(n_rows - 1, 0)))
    begins = np.array([0, *ends, len(others)] if n_rows else [0])
    arrays = first, numbers(len(fields)), begins, others, first[others], numbers(len(others))
    return tuple(_lie(rng, array) for array in arrays)


def _settings(rng: Rng) -> dict[str, Any]:
    return {"threads": int(rng.choice([1, 2, 5, 0, -3])), "isa": _isa(rng)}


# ---- numbers ------------------------------------------------------------------------------


def _numbers(rng: Rng, kind: str = "f8") -> Callable[..., Any]:
    """Draws numbers of a shape: now and then huge ones, or NaN."""
    size = float(rng.choice([1.0, 1.0, 1.0, 1e-30, 1e30]))
    spoiled = rng.random() < 0.1

    def draw_numbers(*shape: int) -> Any:
        found = (rng.normal(size=shape) * size).astype(kind)
        if spoiled and found.size:
            found.reshape(-1)[rng.integers(found.size)] = rng.choice([np.nan, np.inf, -np.inf])
        return found

    return draw_numbers


def _isa(rng: Rng) -> str:
    return str(rng.choice(["", *engine.instruction_sets()]))


def _sometimes(rng: Rng, usual: Any, *others: Any) -> Any:
    return others[int(rng.integers(len(others)))] if rng.random() < 0.1 else usual


def _lie(rng: Rng, value: Any, share: float = 0.05) -> Any:
    """An array, or in a share of cases something that is not quite it."""
    if not isinstance(value, np.ndarray) or rng.random() >= share:
        return value
    wrongs: Sequence[Callable[[], Any]] = (
        lambda: value[1:],
        lambda: np.concatenate([value, value]),
        lambda: value.reshape(-1),
        lambda: value[None],
        lambda: np.asfortranarray(value),
        lambda: np.repeat(value, 2, axis=-1)[..., ::2],
        lambda: value[::-1],
        lambda: np.broadcast_to(value[:1], value.shape),
        lambda: np.nan_to_num(value % 8).astype("f4" if value.itemsize == 8 else "f8"),
        lambda: value.astype(value.dtype.newbyteorder()),
        lambda: value.astype("i4"),
        lambda: value.astype("c16"),
        lambda: value.astype(object),
        lambda: _unaligned(value),
        lambda: value.tolist(),
        lambda: memoryview(np.ascontiguousarray(value)),
        lambda: b"bytes",
        lambda: None,
        lambda: np.empty((0, *value.shape[1:]), value.dtype),
        lambda: np.float64(1.0),
    )
    return wrongs[int(rng.integers(len(wrongs)))]()


_KINDS: dict[str, Callable[[int, Rng], None]] = {
    "scores together": score_together,
    "scores in any layout": score_in_any_layout,
    "program of lies": program_of_lies,
    "probabilities of lies": probabilities_of_lies,
    "sort of lies": sort_of_lies,
    "training together": train_together,
    "training on lies": train_on_lies,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="seed, to see one again")
    options = parser.parse_args()
    ends: dict[str, int] = {}
    for seed in range(options.first, options.first + options.runs):
        print(f"\r{seed}", end="", flush=True)
        end = draw(seed)
        ends[end] = ends.get(end, 0) + 1
    print()
    for end, count in sorted(ends.items()):
        print(f"{count:7d}  {end}")


if __name__ == "__main__":
    main()
