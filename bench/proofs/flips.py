"""How many decisions does fixed point change, and how many can it?

Question: how far are the proved distance and the bound on flipped decisions from what happens?
Data: the paper's network 4-20-20-1, λ = 2, trained on two overlapping classes, with sorts of pairs
and of all units; 20,000 normal rows, threshold 0.
Claim: no more decisions change than the bound, which is a worst case over the whole box.
Run time: about a minute.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.proofs.last_bit import trained
from isotone import freeze

BITS = ((8, 6), (10, 8), (12, 10), (14, 12))


def main() -> None:
    X = np.random.default_rng(0).normal(size=(20_000, 4))
    table = Table("sort", "bits", "largest change", "D", "decisions that changed", "bound")
    for group_size in (2, None):
        frozen = freeze(trained(0, group_size))
        for bits in BITS:
            fixed = freeze(frozen, precision="fixed", bits=bits, rows=X, clip=8.0)
            found = fixed.provenance["fixed"]
            table.add_row(
                *("pairs" if group_size else "all", f"{bits[0]}, {bits[1]}"),
                f"{np.abs(fixed.score(X) - frozen.score(X)).max():.2g}",
                *(
                    f"{found['distance']:.3g}",
                    f"{found['flips']:.3%}",
                    f"{found['flip_bound']:.1%}",
                ),
            )
    Console().print(table)


if __name__ == "__main__":
    main()
