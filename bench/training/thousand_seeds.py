"""A thousand seeds of the paper's network, trained at once.

Question: how long do 1000 seeds x 50 epochs x 100 000 events take on two cores?
Data: four standard normal features, two overlapping classes; every fifth row is for validation.
Claim: below ten minutes; the spread of the validation loss over seeds is small.
Run time: about four minutes when the machine is quiet; `--epochs 2` takes seconds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from isotone import Ensemble, MonotonicNetwork, Recipe, certify, freeze
from isotone.losses import CrossEntropy


def member(seed: int) -> MonotonicNetwork:
    torch.manual_seed(seed)
    return MonotonicNetwork([4, 20, 20, 1], monotonic_cst=[1, 1, 0, 1], lipschitz=2.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(125_000, 4))
    y = (np.tanh(x[:, [0, 1, 3]]).sum(axis=1) + rng.normal(size=len(x)) > 0).astype(int)
    held_out = np.arange(len(x)) % 5 == 0
    ensemble = Ensemble([member(seed) for seed in range(options.seeds)])
    start = time.perf_counter()
    ensemble.train(
        x[~held_out],
        y[~held_out],
        CrossEntropy(),
        Recipe(epochs=options.epochs, batch_size=256),
        validation=(x[held_out], y[held_out]),
        threads=options.threads,
        progress=True,
    )
    print(f"{options.seeds} seeds, {options.epochs} epochs: {time.perf_counter() - start:.0f} s")
    summary = ensemble.summary()
    print(f"validation loss {summary.mean:.5f}, spread over seeds {summary.spread:.5f}")
    best = freeze(ensemble.networks[summary.best])
    print(f"best: seed {summary.best}, {summary.best_loss:.5f}; holds: {certify(best).holds}")


if __name__ == "__main__":
    main()
