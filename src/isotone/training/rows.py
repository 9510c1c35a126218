"""Rows: what a network learns from, checked and converted once, and how they are split."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from isotone.losses import Loss, check_targets
from isotone.nn.network import LipschitzNetwork
from isotone.typing import Bools, Metric

_ROUNDING = 1.0 - 2.0**-20  # weights that are alike but for rounding are alike


@dataclass(frozen=True, eq=False)
class Rows:
    """Scaled rows with targets and, if they do not all count alike, weights of mean 1."""

    x: Tensor
    target: Tensor
    weight: Tensor | None = None

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: Any) -> Rows:
        weight = None if self.weight is None else self.weight[index]
        return Rows(self.x[index], self.target[index], weight)

    def mass(self) -> Tensor:
        """Sum of the weights, or number of rows; along the last axis of them."""
        if self.weight is None:
            return torch.tensor(float(self.x.shape[-2]), dtype=torch.float64)
        return self.weight.double().sum(dim=-1)

    def spread(self) -> Rows:
        """The same weighted set, in which a row of more than the mean weight comes several times.

        A row of weight w comes ⌈w⌉ times with weight w / ⌈w⌉, at most twice as many rows in all.
        No row then dominates the batches it is in, and rows without weight are left out.
        """
        return self if self.weight is None else self.repeated(self.weight)

    def repeated(self, weight: Tensor) -> Rows:
        """Row i ⌈weight_i⌉ times, its weights divided by that."""
        times = torch.ceil(weight.double() * _ROUNDING).long()
        index = torch.repeat_interleave(times)
        rows = self[index]
        assert rows.weight is not None
        share = rows.weight / times[index].reshape(-1, *[1] * (rows.weight.ndim - 1))
        return replace(rows, weight=share / share.mean(dim=0))

    def identity(self) -> bytes:
        """What tells these rows from others: all their numbers."""
        tensors = (self.x, self.target, self.weight)
        return b"".join(t.contiguous().numpy().tobytes() for t in tensors if t is not None)

    @classmethod
    def of(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        loss: Loss,
        *,
        sample_weight: ArrayLike | None = None,
        metric: Metric = "1",
        dtype: torch.dtype = torch.float32,
    ) -> Rows:
        """Check and convert a scaled table (n, n_features), its labels or values, and weights."""
        kind = np.float64 if dtype == torch.float64 else np.float32
        table = torch.as_tensor(np.require(x, kind, ["C", "W"])).to(dtype)
        if table.ndim != 2 or len(table) == 0 or not bool(torch.isfinite(table).all()):
            raise ValueError(
                f"`x` has shape {tuple(table.shape)}; training needs a table of finite numbers "
                "with at least one row: drop or fill others, and scale it first"
            )
        target = loss.prepare(np.asarray(x, dtype=np.float64), y, metric)
        if len(target) != len(table):
            raise ValueError(f"`x` has {len(table)} rows but `y` has {len(target)}")
        if target.is_floating_point():
            target = target.to(dtype)
        if not bool(torch.isfinite(target).all()):
            raise ValueError("`y` holds NaN or infinity; drop or fill such rows")
        return cls(table, target, _weights(sample_weight, len(table)))


def check_rows(network: LipschitzNetwork, loss: Loss, *parts: Rows | None) -> None:
    """Raise `ValueError` unless all rows fit a network and a loss."""
    for rows in parts:
        if rows is None:
            continue
        if rows.x.shape[1] != network.n_features:
            raise ValueError(
                f"`x` has {rows.x.shape[1]} columns; the network takes {network.n_features} "
                "features"
            )
        check_targets(loss, rows.target, network.n_outputs)


def order_of_rows(n: int, seed: int, epoch: int) -> Tensor:
    """A permutation that depends on nothing but its arguments."""
    digest = hashlib.sha256(f"{seed} {epoch}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))
    return torch.randperm(n, generator=generator)


def split(
    n_rows: int, fraction: float, *, groups: ArrayLike | None = None, seed: int = 0
) -> tuple[Bools, Bools]:
    """Which rows to train on and which to validate on, as two boolean arrays.

    Rows of one group stay together; the validation part has about `fraction` of the groups.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"`fraction={fraction}` must lie between 0 and 1, as 0.2 does")
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


def _weights(sample_weight: ArrayLike | None, n_rows: int) -> Tensor | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,) or not np.all(weight >= 0) or not 0 < weight.max() < np.inf:
        raise ValueError(
            f"`sample_weight` has shape {weight.shape}; it must hold one finite weight of at least"
            f" 0 for each of {n_rows} rows, not all of them 0"
        )
    share = weight / weight.max()  # whose sum cannot overflow
    return torch.as_tensor((share / share.mean()).astype(np.float32))
