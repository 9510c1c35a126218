"""Rows: what is learned from, all the way from a table to a trainer; NumPy only.

An estimator merges raw rows, scales them and turns their targets into what a loss wants; members
of a stack may weigh them differently. It is the same container all the way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.checks import check_finite, check_fraction, check_weights
from isotone.typing import Bools, Floats, Indices, Metric, Reals

if TYPE_CHECKING:
    from isotone.losses import Loss

Labels = Literal["binary", "classes"]

_ROUNDING = 1.0 - 2.0**-20  # weights that are alike but for rounding are alike


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with targets and, if they do not all count equally, weights.

    Parameters
    ----------
    x : (n_rows, n_features), raw or scaled; or what counts in scaled rows
    y : (n_rows,) or (n_rows, n_targets): values, numbers of classes, or what a loss made of them
    weight : (n_rows,), or (n_members, n_rows) if members weigh the rows differently
    group : (n_rows,), numbers; rows of one group are learned from together, or left out together
    """

    x: Any
    y: NDArray[Any]
    weight: NDArray[Any] | None = None
    group: Indices | None = None

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: Any) -> Rows:
        weight = self.weight
        if weight is not None and np.ndim(index) == 2 and weight.ndim == 2:  # rows per member
            weight = np.take_along_axis(weight, index, axis=1)
        elif weight is not None:
            weight = weight[..., index]
        group = None if self.group is None or np.ndim(index) == 2 else self.group[index]
        return Rows(self.x[index], self.y[index], weight, group)

    def weights(self) -> NDArray[Any]:
        """A weight for every row."""
        return np.ones(len(self)) if self.weight is None else self.weight

    def mass(self) -> Floats:
        """Sum of the weights, or number of rows; of every member, if they differ."""
        if self.weight is None:
            return np.array(float(self.x.shape[-2]))
        return np.asarray(self.weight.sum(axis=-1, dtype=np.float64))

    def spread(self) -> Rows:
        """The same weighted set, in which a row of more than the mean weight comes several times.

        A row of weight w comes ⌈w⌉ times with weight w / ⌈w⌉, at most twice as many rows in all.
        No row then dominates the batches it is in, and rows without weight are left out.
        """
        return self if self.weight is None else self.repeated(self.weight)

    def repeated(self, weight: NDArray[Any]) -> Rows:
        """Row i ⌈weight_i⌉ times, its weights divided by that."""
        times = np.ceil(weight.astype(np.float64) * _ROUNDING).astype(np.intp)
        rows = self[np.repeat(np.arange(len(self)), times)]
        share = rows.weights() / np.repeat(times, times).astype(weight.dtype)
        return replace(rows, weight=share / share.mean(axis=-1, keepdims=True))

    def identity(self) -> bytes:
        """What tells these rows from others: all their numbers."""
        arrays = (self.x, self.y, self.weight)
        return b"".join(array.tobytes() for array in arrays if array is not None)

    @classmethod
    def of(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        loss: Loss,
        *,
        sample_weight: ArrayLike | None = None,
        metric: Metric = "1",
        dtype: type[np.floating[Any]] = np.float32,
    ) -> Rows:
        """Check and convert a scaled table (n, n_features), its labels or values, and weights."""
        table = check_features(x, dtype)
        check_not_empty(table)
        target = np.asarray(loss.prepare(np.asarray(x, dtype=np.float64), y, metric))
        if len(target) != len(table):
            raise ValueError(f"`x` has {len(table)} rows but `y` has {len(target)}")
        target = target.astype(dtype) if target.dtype.kind == "f" else target
        check_finite("y", target)
        if sample_weight is None:
            return cls(table, target)
        weight = check_weights("sample_weight", sample_weight, len(table))
        share = weight / weight.max()  # whose sum cannot overflow
        return cls(table, target, (share / share.mean()).astype(np.float32))


def split(
    n_rows: int, fraction: float, *, groups: ArrayLike | None = None, seed: int = 0
) -> tuple[Bools, Bools]:
    """Which rows to train on and which to validate on, as two boolean arrays.

    Rows of one group stay together; the validation part has about `fraction` of the groups.
    """
    check_fraction("fraction", fraction)
    names = np.arange(n_rows) if groups is None else np.asarray(groups)
    if names.shape != (n_rows,):
        raise ValueError(f"`groups` has shape {names.shape}; give one for each of {n_rows} rows")
    unique, member = np.unique(names, return_inverse=True)
    if len(unique) < 2:
        raise ValueError(
            f"{len(unique)} group(s) cannot be split in two; give more rows or groups"
        )
    n_held = min(max(round(fraction * len(unique)), 1), len(unique) - 1)
    chosen = np.random.default_rng(seed).permutation(len(unique))[:n_held]
    held_out = np.isin(member, chosen)
    return ~held_out, held_out


def check_features(x: ArrayLike, dtype: Any, n_features: int | None = None) -> Reals:
    """A table of finite numbers (n_rows, n_features), as torch and the engine read it."""
    table: Reals = np.require(x, dtype, ["C", "W", "A", "E"])
    wanted = "n_features" if n_features is None else str(n_features)
    if table.ndim != 2 or (n_features is not None and table.shape[1] != n_features):
        raise ValueError(
            f"`x` has shape {table.shape}; give (n_rows, {wanted}), one column per feature"
        )
    check_finite("x", table)
    return table


def check_not_empty(x: Reals) -> None:
    """Raise `ValueError` if there is no row."""
    if len(x) == 0:
        raise ValueError("`x` has no rows; the mean loss needs at least one")


def check_targets(y: ArrayLike, x: Reals, n_outputs: int, labels: Labels | None) -> Reals:
    """Targets for checked features; `labels` says if they are classes, and which."""
    check_not_empty(x)
    targets: Reals = np.require(y, x.dtype, ["C", "A", "E"])
    n_rows, n_targets = len(x), 1 if labels == "classes" else n_outputs
    shapes = [(n_rows, n_targets)] + [(n_rows,)] * (n_targets == 1)
    if targets.shape not in shapes:
        raise ValueError(
            f"`y` has shape {targets.shape}; give {' or '.join(map(str, shapes))}, targets for "
            "each row of `x`"
        )
    check_finite("y", targets)
    if labels == "binary" and np.any((targets < 0) | (targets > 1)):
        raise ValueError("`y` must hold labels 0 and 1; map the two classes to them")
    whole = targets == np.floor(targets)
    if labels == "classes" and not np.all((targets >= 0) & (targets < n_outputs) & whole):
        raise ValueError(f"`y` must hold class numbers from 0 to {n_outputs - 1}")
    return targets


def check_order(order: ArrayLike, n_members: int, n_rows: int) -> NDArray[np.int32]:
    """Numbers of rows, (n_visits,) or (n_members, n_visits)."""
    rows = np.asarray(order)
    if not np.issubdtype(rows.dtype, np.integer):
        raise TypeError(f"`order` holds {rows.dtype}; give row numbers, as int32")
    if rows.size == 0 or (rows.ndim != 1 and rows.shape[:-1] != (n_members,)):
        raise ValueError(
            f"`order` has shape {rows.shape}; give (n_visits,), or ({n_members}, n_visits) with "
            "one row per member"
        )
    if rows.min() < 0 or rows.max() >= n_rows:
        raise ValueError(
            f"`order` holds numbers from {rows.min()} to {rows.max()} but `x` has {n_rows} rows; "
            "give row numbers from 0 on"
        )
    return np.require(rows, np.int32, ["C", "A", "E"])
