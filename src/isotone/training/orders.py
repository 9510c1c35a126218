"""Orders: which row comes when, by nothing but a seed and the number of the epoch."""

from __future__ import annotations

import hashlib
from typing import Literal

import numpy as np
import torch

from isotone.typing import Integers

Orders = Literal["shared", "own", "bootstrap"]


def order_of_rows(n: int, seed: int, epoch: int) -> Integers:
    """A permutation that depends on nothing but its arguments."""
    digest = hashlib.sha256(f"{seed} {epoch}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:7], "little"))
    order: Integers = torch.randperm(n, generator=generator).numpy()
    return order


def orders_of_rows(n: int, n_members: int, orders: Orders, epoch: int, seed: int) -> Integers:
    """One order of the rows for all members (n,), or one for each (n_members, n)."""
    if orders == "shared":
        return order_of_rows(n, seed, epoch)
    seeds = [seed + (s << 32) for s in range(n_members)]
    own = np.stack([order_of_rows(n, seed, epoch) for seed in seeds])
    if orders == "own":
        return own
    # the same rows in every epoch, as many as there are, some of them twice and others never
    drawn = np.stack([np.random.default_rng(seed).integers(n, size=n) for seed in seeds])
    return np.take_along_axis(drawn, own, axis=1)
