"""The extension takes any arguments: it does what they say, or refuses them in words."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from crafted import REFUSALS, draw
from isotone.compiled import engine
from isotone.frozen.engine import Engine
from isotone.training.fused import FusedTrainer
from networks import small


def unaligned(values: np.ndarray) -> np.ndarray:
    memory = bytearray(values.nbytes + 1)
    memory[1:] = values.tobytes()
    return np.frombuffer(memory, values.dtype, values.size, 1).reshape(values.shape)


def test_drawn_calls_end_well_or_are_refused() -> None:
    ends = Counter(draw(seed) for seed in range(140))
    kinds = {end.partition(":")[0] for end in ends}
    assert len(kinds) == 7
    assert {f"{kind}: done" for kind in kinds} <= set(ends)
    assert {end.partition(": ")[2] for end in ends} - {"done"} <= {r.__name__ for r in REFUSALS}
    assert ends["program of lies: ValueError"] > 5


@pytest.mark.parametrize("name", ["logits", "out"])
def test_numbers_at_odd_addresses_are_refused_by_kernels(name: str) -> None:
    given = {"logits": np.zeros(3), "out": np.zeros(3)}
    given[name] = unaligned(given[name])
    with pytest.raises(
        ValueError, match=f"`{name}` is not aligned: .* no multiple of 8, .*; copy it"
    ):
        engine.find_probabilities(**given)
    with pytest.raises(ValueError, match="`values` is not aligned"):
        engine.group_sort(np.zeros((2, 3)), unaligned(np.zeros((2, 3))))


def test_scores_are_not_written_to_odd_addresses() -> None:
    frozen = small()
    program = Engine(frozen)._program
    with pytest.raises(ValueError, match="`out` must be aligned for its numbers: allocate it"):
        program.score(np.zeros((4, 3)), unaligned(np.zeros(4)), 0.0)


def test_rows_at_odd_addresses_train_and_score_as_others_do() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)).astype("f4"), rng.normal(size=40).astype("f4")
    losses = []
    for read in (np.copy, unaligned):
        trainer = FusedTrainer([3, 4, 1], n_members=2, loss="squared_error")
        trainer.weights[0][...] = trainer.weights[1][...] = 0.5
        order = read(np.arange(40, dtype="i4"))
        options = {"batch_size": 8, "learning_rates": 0.01}
        found = trainer.train_epoch(read(x), read(y), read(np.ones(40, "f4")), order, **options)
        losses.append(found.tolist())
    assert losses[0] == losses[1]
    rows = rng.normal(size=(500, 3))
    assert np.array_equal(small().score(unaligned(rows)), small().score(rows))
