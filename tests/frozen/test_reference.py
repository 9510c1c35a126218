"""The reference has the bits of the compiled engine, which is written in another language."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from isotone import Engine
from isotone.frozen import reference
from isotone.frozen.reference import parts_of, sums_in_parts
from isotone.frozen.steps import Dense
from networks import small
from programs import MODELS, draw_table

GRIDS = {
    f"{name}_{grid}": replace(MODELS[name], grid=grid, clip=64.0)
    for name in ("wide_single", "narrow_single", "fused_single", "several", "knots_single")
    for grid in (None, 2.0**-10)
}


@pytest.mark.parametrize("name", [*MODELS, *GRIDS])
def test_the_reference_has_the_bits_of_the_engine(name: str) -> None:
    """Without fused multiply-add; in float32 the order of long sums depends on the grid."""
    frozen = (MODELS | GRIDS)[name]
    X = draw_table(frozen)
    X = X[np.isfinite(X).all(axis=1)]
    assert np.array_equal(reference.score(frozen, X), Engine(frozen, isa="baseline")(X))


@pytest.mark.parametrize("n_rows", [1023, 1024, 1025, 2500])
def test_blocks_of_rows_are_not_seen_in_scores(n_rows: int) -> None:
    X = np.random.default_rng(0).normal(size=(n_rows, 3)) * 3
    assert np.array_equal(reference.score(small(), X), small().score(X))


def test_long_sums_are_formed_in_parts_in_float32_with_a_grid() -> None:
    has_parts = {name: sums_in_parts(frozen) for name, frozen in GRIDS.items()}
    assert has_parts["wide_single_0.0009765625"]
    assert not has_parts["wide_single_None"]
    assert not has_parts["several_0.0009765625"]


def test_a_sum_has_as_few_parts_of_one_size_as_may_be() -> None:
    for n_in, n_out in product(range(1, 100), (1, 2, 20)):
        assert parts_of(n_in, n_out, in_parts=False) == [slice(0, n_in)]
        sizes = [part.stop - part.start for part in parts_of(n_in, n_out, in_parts=True)]
        most = 8 if n_out == 1 else 32
        n_parts = 1 if n_in <= 8 else next(n for n in range(2, 100) if -(-n_in // n) <= most)
        assert sum(sizes) == n_in
        assert len(set(sizes[:-1]) | {max(sizes)}) == 1
        assert max(sizes) == -(-n_in // n_parts)


def test_zeros_of_scores_have_one_sign() -> None:
    """Sorting may mix up both, so that a score of -0.0 is written as 0.0, copies or not."""
    for frozen in (small(), MODELS["knots"]):
        weight, n_outputs = -np.zeros_like(frozen.residual), frozen.n_outputs
        nothing = Dense(weight.astype(frozen.precision), -np.zeros(n_outputs, frozen.precision))
        frozen = replace(frozen, steps=(nothing,), residual=weight)
        X = np.abs(np.random.default_rng(0).normal(size=(9, len(frozen.inputs.columns)))) + 5.0
        scores = reference.score(frozen, X)
        assert not np.any(scores)
        assert not np.signbit(scores).any()
