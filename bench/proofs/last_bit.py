"""Is the computed score monotone? A billion comparisons of a row with a raised one.

Question: does raising a constrained feature ever move the computed score the wrong way?
Data: trained networks, and adversarial ones whose slope -λ cancels the residual; one of them, an
average of several, and one with knots; as the model file says, and as the exported C++ computes.
Claim: never by default (float64, snapped inputs), and never in float32 with `exact=True`; without
snapping, and in float32 otherwise, it does.
Run time: four minutes on a core that others used as well.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

import isotone
from isotone import FrozenNetwork, Knots, LipschitzLinear, MonotonicNetwork, Scaling, freeze

BATCH = 100_000
DIRECTIONS = [1, 1, 0, -1]
Raise = Callable[[Any, FrozenNetwork, np.random.Generator], Any]
Score = Callable[[Any], Any]
_LIBRARY = """#include "{name}.hpp"
extern "C" void score(const double* x, std::size_t n, double* out) {{ {name}::score(x, n, out); }}
"""


@dataclass
class Count:
    """How many comparisons went wrong, and by how much at most."""

    comparisons: int = 0
    violations: int = 0
    worst: float = 0.0

    def add(self, drop: Any) -> None:
        self.comparisons += len(drop)
        self.violations += int(np.sum(drop > 0))
        self.worst = max(self.worst, float(drop.max()))


def adversarial(
    widths: list[int],
    seed: int,
    group_size: int | None = None,
    signs: Sequence[int] = DIRECTIONS,
) -> MonotonicNetwork:
    """g = -λ Σ sᵢ xᵢ + const in exact arithmetic: f does not depend on constrained features."""
    torch.manual_seed(seed)
    network = MonotonicNetwork(
        widths, monotonic_cst=signs, lipschitz=2.0, group_size=group_size, init="torch"
    )
    layers = [m for m in network.modules() if isinstance(m, LipschitzLinear)]
    with torch.no_grad():
        for layer in layers:
            layer.weight.abs_().mul_(1e3)  # beyond the bound: normalizing puts it there
        layers[0].weight.mul_(torch.tensor(signs))
        layers[-1].weight.neg_()
    return network


def trained(seed: int, group_size: int | None = None) -> MonotonicNetwork:
    """The paper's network, trained on two overlapping classes."""
    torch.manual_seed(seed)
    x = torch.randn(4096, 4)
    y = (x @ torch.tensor([1.0, 0.7, 0.0, -1.0]) + torch.sin(3 * x[:, 2]) > 0.3).float()
    network = MonotonicNetwork(
        [4, 20, 20, 1], monotonic_cst=DIRECTIONS, lipschitz=2.0, group_size=group_size
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(400):
        rows = torch.randint(len(x), (256,))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            network(x[rows])[:, 0], y[rows]
        )
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return network


@dataclass(frozen=True)
class Case:
    """Networks to freeze, and how."""

    name: str
    network: MonotonicNetwork | list[MonotonicNetwork]
    scaling: Scaling | None = None
    knots: Knots | None = None

    def freeze(self, **options: Any) -> FrozenNetwork:
        return freeze(self.network, scaling=self.scaling, knots=self.knots, **options)


def cases() -> Iterator[Case]:
    X = np.random.default_rng(0).lognormal(1, 2, (1000, 4))
    mixed = Scaling.fit(X, ["log", "standard", "robust", "log"])
    knots = Knots.fit(np.random.default_rng(1).normal(size=(1000, 4)), n_tiles=16)
    yield Case("trained", trained(0))
    yield Case("trained, log scaling", trained(1), mixed)
    yield Case("adversarial, full sort", adversarial([4, 20, 20, 1], 0))
    yield Case("adversarial, pairs, deep", adversarial([4, 16, 16, 16, 16, 1], 1, 2))
    yield Case("adversarial, log scaling", adversarial([4, 20, 20, 1], 2), mixed)
    several = [adversarial([4, 20, 20, 1], seed) for seed in (3, 4, 5)]
    yield Case("adversarial, average of three", several)
    signs = np.take(DIRECTIONS, knots.columns).tolist()
    yield Case("adversarial, knots", adversarial([64, 20, 1], 6, signs=signs), knots=knots)


def by_ulp(x: Any, frozen: FrozenNetwork, rng: np.random.Generator) -> Any:
    return np.nextafter(x, np.inf)


def by_float32_ulp(x: Any, frozen: FrozenNetwork, rng: np.random.Generator) -> Any:
    return np.maximum(x + np.abs(x) * 2.0**-23, np.nextafter(x, np.inf))


def by(step: float) -> Raise:
    return lambda x, frozen, rng: np.maximum(x + step, np.nextafter(x, np.inf))


def by_random(x: Any, frozen: FrozenNetwork, rng: np.random.Generator) -> Any:
    return x + 10.0 ** rng.uniform(-12, 1, x.shape)


RAISES: dict[str, Raise] = {
    "1 ulp": by_ulp,
    "1 float32 ulp": by_float32_ulp,
    "1e-9": by(1e-9),
    "1e-7": by(1e-7),
    "1e-6": by(1e-6),
    "1e-4": by(1e-4),
    "random": by_random,
}


def base_rows(frozen: FrozenNetwork, rng: np.random.Generator, n: int) -> Any:
    """Raw rows: ordinary ones, ones near the clip, and ones on the edges of cells."""
    if len(frozen.inputs.names) < frozen.n_features:
        return _around_knots(frozen, rng, n)
    width = rng.choice([1.0, 30.0, 900.0], (n, 1), p=[0.6, 0.3, 0.1]) * frozen.clip / 1024
    x = np.clip(rng.normal(size=(n, frozen.n_features)) * width, -frozen.clip, frozen.clip)
    grid = 2.0**-20 if frozen.grid is None else frozen.grid
    on_edge = np.rint(x / grid) * grid + grid / 2
    x = np.where(rng.random((n, 1)) < 0.5, x, np.nextafter(on_edge, -np.inf))
    # a logarithm takes e^1000 for infinity: keep its exponent within reach
    x = np.where(frozen.scaling.log, np.clip(x, -200, 200), x)
    return frozen.scaling.inverse(x)


def _around_knots(frozen: FrozenNetwork, rng: np.random.Generator, n: int) -> Any:
    """Raw rows, half of their numbers at knots and a few units in the last place beside them."""
    knots = frozen.scaling.center + rng.choice([-1, 1], (n, 1)) / frozen.scaling.factor
    columns = np.split(np.arange(frozen.n_features), len(frozen.inputs.names))
    at = np.column_stack([knots[np.arange(n), rng.choice(own, n)] for own in columns])
    near = at + np.spacing(at) * rng.integers(-2, 3, at.shape)
    return np.where(rng.random(at.shape) < 0.5, rng.normal(size=at.shape), near)


def compare(frozen: FrozenNetwork, score: Score, n: int, seed: int) -> dict[str, Count]:
    """Raise one constrained column in each of `n` rows, in every way of `RAISES`."""
    rng = np.random.default_rng(seed)
    counts = {name: Count() for name in RAISES}
    signs = np.array(DIRECTIONS)
    constrained = np.flatnonzero(signs)
    for start in range(0, n, BATCH):
        X = base_rows(frozen, rng, min(BATCH, n - start))
        rows, column = np.arange(len(X)), rng.choice(constrained, len(X))
        before = score(X).astype(float)
        for name, raised in RAISES.items():
            higher = X.copy()
            higher[rows, column] = raised(X[rows, column], frozen, rng)
            counts[name].add(signs[column] * (before - score(higher)))
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=float, default=1e9, help="default 1e9")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    table = Table("network", "arithmetic", "rows", *RAISES, "largest drop")
    total, start = Count(), time.perf_counter()
    every = list(cases())
    n = int(np.ceil(options.comparisons / len(every) / len(RAISES)))
    for case in track(every, "comparing"):
        for label, frozen, score, rows in variants(case, n):
            counts = compare(frozen, score, rows, options.seed)
            table.add_row(case.name, label, f"{rows:,}", *summary(counts))
            if frozen.grid is not None:
                total.comparisons += sum(count.comparisons for count in counts.values())
                total.violations += sum(count.violations for count in counts.values())
    console = Console(width=165)
    console.print(table)
    console.print(
        f"default and exact: {total.violations} of {total.comparisons:,} comparisons went the "
        f"wrong way ({time.perf_counter() - start:.0f} s)"
    )
    raise SystemExit(1 if total.violations else 0)


def variants(case: Case, n: int) -> Iterator[tuple[str, FrozenNetwork, Score, int]]:
    """What is monotone to the last bit, and fewer rows of what it is compared with."""
    few, fewer = max(n // 4, 1), max(n // 20, 1)
    default = stored(case.freeze())
    yield "default, from its file", default, default.score, n - few
    yield "default, C++", default, compiled(default), few
    if case.knots is None:
        exact = case.freeze(precision="float32", exact=True)
        yield "float32, exact", exact, exact.score, few
    for label, options in (
        ("float64, not snapped", {"grid": None}),
        ("float32", {"precision": "float32"}),
    ):
        other = case.freeze(**options)
        yield label, other, other.score, fewer


def stored(frozen: FrozenNetwork) -> FrozenNetwork:
    """The network as its file has it."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "a.isotone"
        frozen.save(path)
        return isotone.load(path)


def compiled(frozen: FrozenNetwork) -> Score:
    """The exported C++, compiled and called for rows of doubles."""
    name = f"proof_{frozen.fingerprint[:12]}"  # two models of one name would share their numbers
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / name
        isotone.export.write(frozen, "cpp", folder, check=False)
        (folder / "library.cpp").write_text(_LIBRARY.format(name=name))
        command = ["c++", "-std=c++17", "-O3", "-march=native", "-shared", "-fPIC"]
        subprocess.run(
            [*command, str(folder / "library.cpp"), "-o", str(folder / "a.so")], check=True
        )
        library = ctypes.CDLL(str(folder / "a.so"))
    doubles = ctypes.POINTER(ctypes.c_double)

    def score(X: Any) -> Any:
        rows, out = np.ascontiguousarray(X), np.empty(len(X))
        library.score(
            rows.ctypes.data_as(doubles), ctypes.c_size_t(len(X)), out.ctypes.data_as(doubles)
        )
        return out

    return score


def summary(counts: dict[str, Count]) -> list[str]:
    """Share of wrong comparisons for every way to raise, and the largest drop of all."""
    shares = [100 * c.violations / c.comparisons for c in counts.values()]
    worst = max(c.worst for c in counts.values())
    return [*(f"{s:.3g} %" if s else "0" for s in shares), f"{worst:.2g}" if worst > 0 else "–"]


if __name__ == "__main__":
    main()
