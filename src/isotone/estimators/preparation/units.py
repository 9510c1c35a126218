"""Units of the targets of a regression, removed before training and restored after freezing.

Scales are powers of two. Multiplying stored numbers by them is exact, so every inequality that
`freeze` established among them still holds. The center goes into the last bias before freezing,
so that the rounding it causes is part of the margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from isotone.freezing.margin import with_margin
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import Dense, Sort, change_last
from isotone.nn.layers import BoundedLayer
from isotone.nn.network import LipschitzNetwork
from isotone.typing import Floats

_FARTHEST = 2.0**36  # deviations between the mean of a target and zero
_CONSTANT = 2.0**-30  # deviation of a constant target, in units of its size
_MOST = 2.0**400  # keeps products of stored numbers far from overflow


@dataclass(frozen=True, eq=False)
class TargetUnits:
    """Per output :math:`y = s (y' + c)` with a power of two s; y' is what a network learns.

    Parameters
    ----------
    scale, center : s and c of every column of targets
    deviation : largest standard deviation of y', near 1; λ is counted in it
    """

    scale: Floats
    center: Floats
    deviation: float = 1.0

    @classmethod
    def fit(cls, y: Floats, weight: Floats) -> TargetUnits:
        """Scale and center of every column of `y`; one that is constant stays so, nearly.

        >>> TargetUnits.fit(np.array([[10.0], [18.0]]), np.ones(2)).scale
        array([4.])
        """
        mean = np.average(y, axis=0, weights=weight)
        alike = y.max(axis=0) == y.min(axis=0)
        unit = np.where(alike, 1.0, np.abs(y - mean).max(axis=0))  # its square must not vanish
        spread = unit * np.sqrt(np.average(((y - mean) / unit) ** 2, axis=0, weights=weight))
        if np.any(~alike & (spread < 1.0 / _MOST)):
            raise ValueError(
                f"`y` has deviation {spread[~alike].min():g}; it must be at least "
                f"{1.0 / _MOST:.1g} so that slopes are not lost in rounding: choose other units"
            )
        constant = np.where(mean == 0, 1.0, np.abs(mean)) * _CONSTANT
        usable = np.clip(np.where(alike, constant, spread), 1.0 / _MOST, _MOST)
        scale = np.exp2(np.rint(np.log2(usable)))
        center = mean / scale
        if np.any(np.abs(center) > _FARTHEST):
            raise ValueError(
                f"`y` has mean {mean.max():g} but deviation {spread.min():g}; rounding would "
                "leave nothing to certify: subtract a constant from `y` first"
            )
        return cls(scale, center, float((usable / scale).max()))

    def standardize(self, y: Floats) -> Floats:
        return y / self.scale - self.center

    @torch.no_grad()
    def add_center(self, networks: Sequence[LipschitzNetwork]) -> None:
        """Add the center to the last bias, in float64."""
        for network in networks:
            network.double()
            last = [layer for layer in network.layers if isinstance(layer, BoundedLayer)][-1]
            assert last.bias is not None
            last.bias.add_(torch.as_tensor(self.center))

    def restore(self, frozen: FrozenNetwork) -> FrozenNetwork:
        """The frozen network in the units of y."""
        if np.all(self.scale == 1.0):
            return frozen
        scale = np.broadcast_to(self.scale, (frozen.n_outputs,))  # quantiles have one target
        return replace(
            frozen,
            steps=change_last(
                frozen.steps, lambda step: Dense(step.weight * scale[:, None], step.bias * scale)
            ),
            residual=frozen.residual * scale[:, None],
            lipschitz=frozen.lipschitz * scale.max(),
        )


def sort_outputs(frozen: FrozenNetwork) -> FrozenNetwork:
    """The network with its outputs in increasing order, for quantiles that must not cross.

    All outputs have the same residual, so sorting g sorts f; order statistics of functions with
    slope at most λ have slope at most λ. Sorted quantiles have no larger pinball loss. What is
    proved of all outputs together may be a little weaker than of each, hence the new margin.
    """
    ordered = replace(frozen, steps=(*frozen.steps, Sort(frozen.n_outputs)))
    return with_margin(ordered, frozen.grid)
