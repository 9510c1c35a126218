"""The check after an export: the same rows through the file and through `FrozenNetwork.score`.

The rows stand where arithmetic goes wrong first: the edges of the clip, ties of the grid and of
the snapped logarithm, their neighbors one unit in the last place away, floors, zeros of both
signs, subnormal and huge numbers; and there are random ones. Where the model knows them, values
are missing. Some categories are new, and where others are pooled some are missing: these rows must
have no score, unless the model has one for them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from isotone.elementary import snap_mantissa
from isotone.export.claim import Target
from isotone.frozen.engine import Engine
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.columns import Category, Column, Number
from isotone.typing import Floats, Indices

_STRANGE, _MISSING = 0.02, 0.1  # shares of rows
_MOST_EDGES = 500  # of a feature with copies
_LARGEST = float(np.finfo(np.float64).max)
_ANYWHERE = (0.0, -0.0, 5e-324, -5e-324, 2.3e-308, 1e-300, 1.0, -1.0, 1e300, _LARGEST, -_LARGEST)


def compare(frozen: FrozenNetwork, target: Target, path: Path, n_rows: int = 2000) -> None:
    """Raise `ValueError` where a score by `path` is further off than `target` promises."""
    allowed = target.tolerance(frozen)
    if not np.all(np.isfinite(allowed)):
        raise ValueError(
            f"{str(path)!r} was written but cannot be checked: no bound on the rounding error of "
            "this network is known (its weights, its clip or the offset of a logarithm are too "
            "large); leave the check out (check=False, --no-check) if you trust it"
        )
    X = target.admit(frozen, check_rows(frozen, n_rows))
    engine = Engine(frozen, on_unseen="skip")
    expected = engine(frozen.inputs.decode(X)).astype(np.float64).reshape(len(X), -1)
    found = np.asarray(target.score(frozen, path, X), np.float64).reshape(len(X), -1)
    # written so that NaN agrees with NaN alone
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    wrong = ~(same | (np.abs(found - expected) <= allowed))
    if np.any(wrong):
        row, output = np.argwhere(wrong)[0]
        n_wrong = np.count_nonzero(wrong.any(axis=1))
        raise ValueError(
            f"{str(path)!r} does not score as the model does: {n_wrong} of {len(X)} rows differ "
            f"by more than {allowed[output]:.3g}; output {output} is {found[row, output]} instead "
            f"of {expected[row, output]} for {X[row].tolist()}; "
            "do not use the file, and report this with the model"
        )


def check_rows(frozen: FrozenNetwork, n_rows: int, seed: int = 0) -> Floats:
    """Codes of raw rows, (n_rows, n_columns): edge cases, missing and new ones, random ones."""
    rng, inputs = np.random.default_rng(seed), frozen.inputs
    X = _feature_rows(frozen, n_rows, rng)
    if inputs.is_plain:
        return X
    return np.column_stack([_codes(frozen, column, X, rng) for column in inputs.columns])


def _codes(frozen: FrozenNetwork, column: Column, X: Floats, rng: np.random.Generator) -> Floats:
    if isinstance(column, Number):
        codes = X[:, frozen.inputs.encoded.index(column.name)].copy()
    else:
        other = column.other if isinstance(column, Category) else None
        n_places = len(column.categories) + (other is not None)
        codes = rng.integers(n_places, size=len(X)).astype(np.float64)
        codes[rng.random(len(X)) < _STRANGE] = np.inf
        if other is not None:  # which no missing value is
            codes[rng.random(len(X)) < _STRANGE] = np.nan
    if column.fill is not None:
        codes[rng.random(len(X)) < _MISSING] = np.nan
    return codes


def _feature_rows(frozen: FrozenNetwork, n_rows: int, rng: np.random.Generator) -> Floats:
    """Edge cases of every feature, one at a time and mixed, and `n_rows` random rows."""
    copies = _copies(frozen)
    edges = [_edges_of_copies(frozen, k, own, rng) for k, own in enumerate(copies)]
    single = _random_rows(frozen, sum(len(values) for values in edges), copies, rng)
    start = 0
    for i, values in enumerate(edges):
        single[start : start + len(values), i] = values
        start += len(values)
    mixed = np.column_stack([rng.choice(values, 200) for values in edges])
    return np.concatenate([single, mixed, _random_rows(frozen, n_rows, copies, rng)])


def _copies(frozen: FrozenNetwork) -> list[Indices]:
    """The inputs of the network that every feature enters as."""
    inputs = frozen.inputs
    sources = np.array(inputs.sources)
    return [np.flatnonzero(sources == k) for k in range(len(inputs.encoded))]


def _random_rows(
    frozen: FrozenNetwork, n_rows: int, copies: list[Indices], rng: np.random.Generator
) -> Floats:
    """Half within a few scaled units, half all over the clip and a bit beyond."""
    x = rng.normal(scale=3.0, size=(n_rows, frozen.n_features))
    wide = rng.random(n_rows) < 0.5
    x[wide] = rng.uniform(-1.1, 1.1, (np.count_nonzero(wide), frozen.n_features)) * frozen.clip
    raw, rows = _raw(frozen, x), np.arange(n_rows)
    return np.column_stack([raw[rows, rng.choice(own, n_rows)] for own in copies])


def _edges_of_copies(
    frozen: FrozenNetwork, feature: int, own: Indices, rng: np.random.Generator
) -> Floats:
    """Edges of a feature; of one with many copies some, and where one copy hands over."""
    edges = np.concatenate([_edges(frozen, int(i), rng) for i in own])
    if frozen.copies is None or len(own) == 1:
        return edges
    ends = frozen.copies.ends[feature]
    seams = _with_neighbors(ends[np.isfinite(ends)])
    return np.concatenate([rng.choice(edges, min(len(edges), _MOST_EDGES)), seams])


def _edges(frozen: FrozenNetwork, column: int, rng: np.random.Generator) -> Floats:
    clip, grid = frozen.clip, frozen.grid or frozen.clip * 2.0**-30
    ties = (rng.integers(-8, 8, 8) + 0.5) * grid
    far = (np.rint(rng.uniform(-1, 1, 4) * clip / grid) + 0.5) * grid
    around = np.array([clip, clip - 0.5 * grid, clip - grid, clip + grid])
    x = np.zeros((24, frozen.n_features))
    x[:, column] = np.concatenate([ties, far, around, -around, grid * np.arange(-2, 2)])
    values = _with_neighbors(_raw(frozen, x)[:, column])
    scaling = frozen.scaling
    own = [scaling.center[column]]
    if scaling.log[column]:
        offset, floor = scaling.offset[column], scaling.floor[column]
        between = snap_mantissa(floor * 10.0 ** rng.uniform(0, 6, 16)) * (1.0 + 2.0**-25)
        own += [floor - offset, -offset, 0.5 * floor - offset, *(between - offset)]
    return np.concatenate([values, _with_neighbors(np.array(own)), _ANYWHERE])


def _with_neighbors(values: Floats) -> Floats:
    return np.concatenate([values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)])


def _raw(frozen: FrozenNetwork, x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        raw = frozen.scaling.inverse(x)
    return np.clip(raw, -_LARGEST, _LARGEST)
