"""How many decisions does fixed point change, and how many can it?

Question: how far are the proved distance, the limit of 99 % confidence on decisions that change
among such rows, and the share of scores within the distance from what happens?
Data: the paper's network 4-20-20-1, λ = 2, with sorts of pairs and of all units. First trained on
two overlapping classes, for 20,000 normal rows, threshold 0; then on the candidates of the small
trigger sample, unscaled, for those of its validation part, with a threshold that 2 % of the
background pass.
Claim: no more decisions change than the limit, nor than scores are within the distance, which is
a worst case over the whole box.
Run time: about a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from bench.proofs.last_bit import trained
from isotone import FrozenNetwork, MonotonicClassifier, freeze
from isotone.typing import Bools, Floats

BITS = ((8, 6), (10, 8), (12, 10), (14, 12))
SAMPLE = Path("studies/trigger/small")
FEATURES = ("ln_fd_chi2", "sum_pt", "vertex_chi2", "ln_min_ip_chi2")


def candidates() -> tuple[Floats, Floats, Bools]:
    """Features and classes of the small sample, and whether a row is of its validation part."""
    tables = [pq.read_table(SAMPLE / f"{name}.parquet") for name in ("collisions", "signal")]
    X = np.concatenate([np.column_stack([t[name] for name in FEATURES]) for t in tables])
    y = np.repeat([0.0, 1.0], [len(table) for table in tables])
    number = np.concatenate([table["collision"].to_numpy() for table in tables])
    return X, y, number % 4 == 0


def cases(group_size: int | None) -> Iterator[tuple[str, FrozenNetwork, Floats, dict[str, Any]]]:
    """Networks with the rows that they decide on, and how."""
    X = np.random.default_rng(0).normal(size=(20_000, 4))
    yield "two classes", freeze(trained(0, group_size)), X, {"clip": 8.0}
    X, y, left = candidates()
    model = MonotonicClassifier(
        [1, 1, 0, 1],
        lipschitz=2.0,
        hidden_layer_sizes=(20, 20),
        group_size=group_size,
        scaling="identity",
        knots=None,
        n_members=1,
        max_iter=5,
        random_state=0,
    ).fit(X[~left], y[~left])
    score = model.network_.score(X[left & (y == 0)])
    yield "trigger", model.network_, X[left], {"threshold": float(np.quantile(score, 0.98))}


def main() -> None:
    table = Table("data", "sort", "bits", "largest change", "D", "changed", "limit", "within D")
    for group_size in (2, None):
        for name, frozen, X, how in cases(group_size):
            for bits in BITS:
                fixed = freeze(frozen, precision="fixed", bits=bits, rows=X, **how)
                found = fixed.provenance["fixed"]
                table.add_row(
                    *(name, "pairs" if group_size else "all", f"{bits[0]}, {bits[1]}"),
                    f"{np.abs(fixed.score(X) - frozen.score(X)).max():.2g}",
                    f"{found['distance']:.3g}",
                    f"{found['flips']:.3%}",
                    f"{found['flip_limit']:.2%}",
                    f"{found['flip_bound']:.1%}",
                )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
