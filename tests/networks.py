"""Random networks of every kind, for tests that state theorems about all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isotone import FrozenNetwork, LipschitzNetwork, Log, MonotonicNetwork, Scaling, freeze
from isotone.certificate.bounds import slopes
from isotone.frozen import modelfile
from isotone.frozen.steps import Dense, Members, Pointwise, Sort, Step, residual_block
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Number, Ordered
from isotone.inputs.knots import Knots
from isotone.typing import Floats

GROUP_SIZES = (None, 1, 2, 3, 4, 5, 8, 16)


@dataclass(frozen=True)
class Drawn:
    """A random network and how it was drawn, for the message of a failing test."""

    network: LipschitzNetwork
    options: dict[str, Any]


def content_of(path: Path) -> tuple[dict[str, Any], modelfile.Arrays]:
    """The content and the arrays of a model file."""
    with path.open("rb") as file:
        return modelfile.read(path, file, path.stat().st_size)


def draw_network(seed: int, max_width: int = 256, max_depth: int = 8) -> Drawn:
    """All norms, chains, group sizes, depths, widths, outputs, λᵢ, directions, weight scales."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    n_features, n_outputs = int(rng.integers(1, 9)), int(rng.choice([1, 1, 2, 3]))
    group_size = GROUP_SIZES[rng.integers(len(GROUP_SIZES))]
    step = group_size or 1
    top = int(2 ** rng.uniform(0, np.log2(max_width)))
    hidden = [
        step * int(rng.integers(1, max(top // step, 1) + 1))
        for _ in range(rng.integers(0, max_depth))
    ]
    per_feature = (10.0 ** rng.uniform(-2, 2, n_features)).tolist()
    options: dict[str, Any] = {
        "layers": [n_features, *hidden, n_outputs],
        "group_size": group_size,
        "norm": rng.choice(["columns", "matrix", "rescaled-matrix"]).item(),
        "apply": rng.choice(["direct", "project"]).item(),
        "chain": rng.choice(["one", "inf"]).item(),
        "init": rng.choice(["torch", "bound", "permutation", "orthogonal"]).item(),
        "lipschitz": per_feature if rng.random() < 0.5 else per_feature[0],
    }
    if rng.random() < 0.2:
        options["metric"], options["chain"] = rng.choice([2, np.inf]).item(), "inf"
        network: LipschitzNetwork = LipschitzNetwork(**options)
    else:
        options["monotonic_cst"] = rng.integers(-1, 2, (n_outputs, n_features)).tolist()
        network = MonotonicNetwork(**options)
    _spread_weights(network, rng)
    return Drawn(network, options)


@torch.no_grad()
def _spread_weights(network: LipschitzNetwork, rng: np.random.Generator) -> None:
    """Leave, enlarge or shrink the weights, up to where float32 ends; some columns become zero."""
    factor = float(rng.choice([1.0, 10.0 ** rng.uniform(-30, 30)]))
    for name, parameter in network.named_parameters():
        if name.endswith("weight"):
            parameter.mul_(factor)
            if rng.random() < 0.2:
                parameter[:, 0] = 0.0


@torch.no_grad()
def saturate(network: LipschitzNetwork) -> None:
    """Put every column or row on its bound, so that the network is as steep as it may be."""
    for name, parameter in network.named_parameters():
        if name.endswith("weight"):
            parameter.mul_(1e3)


def small(
    monotonic_cst: tuple[int, ...] = (1, 0, -1),
    lipschitz: float = 1.0,
    seed: int = 0,
    **options: Any,
) -> FrozenNetwork:
    """A frozen network with one output, as steep as it may be."""
    torch.manual_seed(seed)
    layers = [len(monotonic_cst), 8, 8, 1]
    network = MonotonicNetwork(layers, monotonic_cst=monotonic_cst, lipschitz=lipschitz)
    saturate(network)
    return freeze(network, **options)


def by_hand(slope: float, direction: int = 1, **options: Any) -> FrozenNetwork:
    """f(x) = slope · x + direction · x through a sort of two equal units, with λ = 1."""
    steps = (
        Dense(np.array([[0.5], [0.5]]), np.zeros(2)),
        Sort(2),
        Dense(np.array([[slope, slope]]), np.zeros(1)),
    )
    return FrozenNetwork(
        features=("x",),
        scaling=Scaling.identity(1),
        steps=steps,
        residual=np.array([[float(direction)]]),
        lipschitz=np.ones(1),
        monotonic_cst=np.array([[direction]], dtype=np.int8),
        **options,
    )


def every_step(
    n_outputs: int = 1, activation: str = "tanh", seed: int = 0, **options: Any
) -> FrozenNetwork:
    """All kinds of steps, and a feature with a logarithm, an offset and a floor."""
    rng = np.random.default_rng(seed)
    dtype = options.get("precision", "float64")

    def dense(n_out: int, n_in: int) -> Dense:
        weight = rng.normal(size=(n_out, n_in)) / n_in
        return Dense(weight.astype(dtype), rng.normal(size=n_out).astype(dtype))

    third = float(np.dtype(dtype).type(1.0 / 3.0))
    inner = Members((0.75, third), ((dense(8, 8), Sort(8)), (Sort(4),)))
    branch = (dense(8, 8), Pointwise(activation, 0.25), inner, Sort(8))
    before = (dense(8, 3), Sort(2), residual_block(0.5, 0.25, branch), Sort(4))
    members = (
        (dense(n_outputs, 8),),
        (Sort(8), dense(5, 8), Pointwise(activation, 0.25), dense(n_outputs, 5)),
        (residual_block(0.5, -0.5, (Sort(2), dense(8, 8))), dense(n_outputs, 8)),
    )
    steps = (*before, Members((third, -0.25, 0.5), members))
    X = rng.exponential(size=(50, 3)) * [1.0, 100.0, 1e-3]
    return FrozenNetwork(
        features=("pt", "chi2", "a b"),
        scaling=Scaling.fit(X, ["standard", Log(offset=0.5, floor=1e-3), "robust"]),
        steps=steps,
        residual=rng.integers(-4, 5, (n_outputs, 3)) / 4.0,
        lipschitz=np.ones(3),
        monotonic_cst=np.zeros((n_outputs, 3), np.int8),
        **options,
    )


KNOTS = ([0.0, 0.3, 0.7, 1.0, 4.0], [-2.0, 1.0], np.linspace(-1.0, 1.0, 18).tolist())


def copied(n_outputs: int = 1, n_members: int = 1, seed: int = 0, **options: Any) -> FrozenNetwork:
    """A network of five copies of one column, one column as it is, a logarithm and 17 copies."""
    rng = np.random.default_rng(seed)
    codes, dtype = Knots.at(KNOTS), options.get("precision", "float64")
    sources = np.insert(codes.columns, 5, 2)
    sources[6:] += 1
    center, factor = (np.insert(a, 5, 0.5) for a in (codes.scaling.center, codes.scaling.factor))
    log = np.arange(len(sources)) == 5
    scaling = Scaling(log, 0.25 * log, np.full(len(log), 1e-3), center, factor)

    def dense(n_out: int, n_in: int) -> Dense:
        weight = rng.normal(size=(n_out, n_in))
        return Dense(weight.astype(dtype), rng.normal(size=n_out).astype(dtype))

    n, inputs = len(sources), Inputs.numbers(["x0", "x1", "x2", "x3"], sources.tolist())
    widths = [int(width) for width in 2 * rng.integers(1, 19, n_members)]
    members: list[tuple[Step, ...]] = [
        (dense(width, n), Sort(2), dense(n_outputs, width)) for width in widths
    ]
    many = Members(tuple(rng.normal(size=n_members).astype("f4").tolist()), tuple(members))
    return FrozenNetwork(
        features=inputs.features,
        inputs=inputs,
        scaling=scaling,
        steps=(many,) if n_members > 1 else members[0],
        residual=rng.normal(size=(n_outputs, n)).astype("f4"),
        lipschitz=np.ones(n),
        monotonic_cst=np.zeros((n_outputs, n), np.int8),
        **options,
    )


def seams() -> Floats:
    """All knots, their neighbors, and what is around and far beyond them."""
    knots = np.array([knot for column in KNOTS for knot in column])
    near = [np.nextafter(knots, -np.inf), knots, np.nextafter(knots, np.inf)]
    around = [knots + sign * 2.0**-k for k in (10, 20, 21, 22, 40, 50) for sign in (-1, 1)]
    return np.unique(np.concatenate([*near, *around, [-1e300, 1e300, 0.0]]))


RANKS = ("low", "medium", "high", "top")
MIXED = Inputs(
    columns=(
        Number("age", fill=41.5),
        Category("city", ("Oslo", "Rome", None)),
        Ordered("size", RANKS, fill=1.0),
        Number("debt"),
        Number("income", fill=900.0),
    ),
    copies=(0, 0, 0, 0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9),
)
PEOPLE: dict[str, list[Any]] = {  # rows of these columns, with some values missing
    "age": [30.0, None, 60.0, 20.0, 44.0],
    "city": ["Oslo", "Rome", None, "Oslo", "Rome"],
    "size": ["low", "top", None, "medium", "high"],
    "debt": [100.0, 200.0, 300.0, 400.0, 0.0],
    "income": [1000.0, None, 3000.0, 500.0, 1500.0],
}
AGES = [18.0, 30.0, 41.5, 41.75, 90.0]  # knots


def _mixed_scaling() -> Scaling:
    """Knots of age, size and missing(size), a logarithm of income, a linear map of debt."""
    sources = np.array(MIXED.copies)
    knots = Knots.at([AGES, [0.0, 1.0, 3.0], [-0.25, 0.25, 1.25]]).scaling
    center, factor = np.zeros(len(sources)), np.ones(len(sources))
    tiled, debt, income = np.isin(sources, (0, 4, 8)), sources == 5, sources == 6
    center[tiled], factor[tiled] = knots.center, knots.factor
    center[debt], factor[debt] = 300.0, 0.01
    center[income], factor[income] = 6.5, 0.75
    return Scaling(income, 1.0 * income, np.full(len(sources), 0.5), center, factor)


def mixed(
    n_outputs: int = 1, directions: tuple[int, ...] = (), seed: int = 0, **options: Any
) -> FrozenNetwork:
    """Knots on some features, a logarithm, categories, ranks and missing values.

    Parameters
    ----------
    directions : of age, size, debt and income; they hold for one output
    """
    rng = np.random.default_rng(seed)
    dtype, n, sources = options.get("precision", "float64"), len(MIXED.copies), MIXED.copies

    def dense(n_out: int, n_in: int) -> Dense:
        weight = rng.normal(size=(n_out, n_in)) / n_in
        return Dense(weight.astype(dtype), rng.normal(size=n_out).astype(dtype))

    steps = (dense(12, n), Sort(4), dense(n_outputs, 12))
    known = dict(zip((0, 4, 5, 6), directions, strict=False))
    signs = np.array([known.get(source, 0) for source in sources])
    steep = 1.25 * slopes(steps, n) + 0.01
    residual = np.where(signs, signs * steep, rng.normal(size=steep.shape) * steep)
    return FrozenNetwork(
        features=MIXED.features,
        inputs=MIXED,
        scaling=_mixed_scaling(),
        steps=steps,
        residual=residual.astype("f4"),
        lipschitz=np.full(n, 100.0),
        monotonic_cst=np.tile(signs if n_outputs == 1 else 0 * signs, (n_outputs, 1)),
        **({"clip": 64.0} | options),
    )
