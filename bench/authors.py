"""The network of the paper's authors, in their own library."""

from collections.abc import Sequence
from itertools import pairwise

import monotonicnetworks
from torch import nn


def authors_network(
    widths: Sequence[int], group_size: int | None = None, lipschitz: float = 1.0
) -> nn.Module:
    """As the README of `monotonicnetworks` builds it, with the norm of Eq. 8."""
    bound = lipschitz ** (1 / (len(widths) - 1))
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        linear = nn.Linear(n_in, n_out)
        layers.append(monotonicnetworks.direct_norm(linear, kind="one", max_norm=bound))
        layers.append(monotonicnetworks.GroupSort(n_out // group_size if group_size else 1))
    network: nn.Module = monotonicnetworks.MonotonicWrapper(
        nn.Sequential(*layers[:-1]), lipschitz_const=lipschitz
    )
    return network
