"""Losses that suit networks of bounded slope (Sec. 5 of the paper).

Which one to use:

- **Overlapping classes**, the usual case in science: `CrossEntropy`. A bounded slope costs nothing
  there.
- **Separable classes with small margins**: a loss that asks for more than the slope allows keeps
  pulling at rows that are already right, at the expense of those that are not. `CrossEntropy` with
  a large `temperature`, or `Hinge` with a small `margin`, stop pulling early.
- **Separable classes, few dimensions, largest margins**: `DynamicHinge`, whose margin is half the
  distance to the other class. Its minimum is close to the signed distance function.
- **Regression**: `SquaredError`, `AbsoluteError` (outliers), `Quantile`.
- **Distance between two distributions**: `KantorovichRubinstein`.

A loss is called with scores (..., n, n_outputs) and targets, and gives a number per row, (..., n);
leading axes are members of an ensemble. `prepare` makes targets from labels once, before training.
`mean` weighs the rows, `batch_mean` those of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from torch import Tensor

from isotone.checks import check_choice, check_fraction, check_positive
from isotone.typing import Floats, Integers, Metric, Outputs

TINY = 1e-30  # rows that all have weight 0 have loss 0

_ORDER = {"1": 1.0, "2": 2.0, "inf": np.inf}


class Loss(Protocol):
    """What training needs of a loss."""

    @property
    def outputs(self) -> Outputs: ...

    def prepare(self, x: Floats, y: ArrayLike, metric: Metric) -> Tensor:
        """Targets for scaled rows `x` with labels or values `y`."""

    def __call__(self, score: Tensor, target: Tensor) -> Tensor:
        """One number per row."""


def mean(losses: Tensor, weight: Tensor | None = None) -> Tensor:
    """Weighted mean over the rows, the last axis; members may weigh them differently."""
    if weight is None:
        return losses.mean(dim=-1)
    weight = weight.to(losses.dtype)
    return (losses * weight).sum(dim=-1) / weight.sum(dim=-1).clamp(min=TINY)


def batch_mean(losses: Tensor, weight: Tensor | None = None) -> Tensor:
    r"""What a batch minimizes: :math:`\frac1n \sum_i w_i \ell_i`, for weights of mean 1.

    The mean is that of all rows, not of the batch, so that random batches have the gradient of the
    whole as their mean. Divided by its own weight, a batch would count too little wherever it
    is heavy.
    """
    return losses.mean(dim=-1) if weight is None else (losses * weight).mean(dim=-1)


def balanced_weights(y: ArrayLike) -> Floats:
    """Weights with which all classes count equally, 1 on average."""
    _, index, counts = np.unique(np.asarray(y), return_inverse=True, return_counts=True)
    weights: Floats = len(index) / (len(counts) * counts[index])
    return weights


@dataclass(frozen=True)
class CrossEntropy:
    r"""Cross-entropy of logits times `temperature`, Eq. 13.

    .. math:: L_\tau(y, \hat y) = L^{BCE}(y, \tau \hat y)

    Labels are 0 and 1 for one output, 0 to K - 1 for K outputs.
    """

    temperature: float = 1.0
    outputs: Outputs = "logits"

    def __post_init__(self) -> None:
        check_positive("temperature", self.temperature)

    def prepare(self, x: Floats, y: ArrayLike, metric: Metric = "1") -> Tensor:
        return torch.as_tensor(_labels(y))

    def __call__(self, score: Tensor, target: Tensor) -> Tensor:
        logits = self.temperature * score
        if score.shape[-1] == 1:
            z = logits[..., 0]
            return torch.nn.functional.softplus(z) - z * target
        chosen = target.expand(score.shape[:-1])[..., None]
        return -logits.log_softmax(dim=-1).gather(-1, chosen)[..., 0]


@dataclass(frozen=True)
class Hinge:
    r"""Hinge with a fixed margin, Eq. 16: :math:`\max(0, m - y \hat y)` for :math:`y = \pm 1`."""

    margin: float = 1.0
    outputs: Outputs = "logits"

    def __post_init__(self) -> None:
        check_positive("margin", self.margin)

    def prepare(self, x: Floats, y: ArrayLike, metric: Metric = "1") -> Tensor:
        return torch.as_tensor(2.0 * _binary(y) - 1.0)

    def __call__(self, score: Tensor, target: Tensor) -> Tensor:
        sign = target.to(score.dtype)
        return (self.margin - sign * _single(score)).clamp(min=0.0)


@dataclass(frozen=True)
class DynamicHinge:
    r"""Hinge whose margin is half the distance to the other class, Eq. 14 and 15.

    .. math:: \delta(x | y) = d(C^{-y}, x) / 2

    in the metric of the network's inputs. The nearest rows are found with a k-d tree.
    """

    outputs: Outputs = "logits"

    def prepare(self, x: Floats, y: ArrayLike, metric: Metric = "1") -> Tensor:
        """Labels ±1 and margins, (n, 2)."""
        labels = _binary(y, both=True)
        signs = 2.0 * labels - 1.0
        return torch.as_tensor(np.stack([signs, half_distances(x, labels, metric)], axis=1))

    def __call__(self, score: Tensor, target: Tensor) -> Tensor:
        sign, margin = target.to(score.dtype).unbind(dim=-1)
        return (margin - sign * _single(score)).clamp(min=0.0)


def half_distances(x: Floats, labels: Floats, metric: Metric = "1") -> Floats:
    """Half the distance of every row to the nearest row of the other class."""
    distances = np.empty(len(x))
    for label in (0, 1):
        tree = cKDTree(x[labels != label])
        distances[labels == label] = tree.query(x[labels == label], p=_ORDER[metric])[0]
    return distances / 2.0


@dataclass(frozen=True)
class SquaredError:
    """(y - ŷ)², summed over the outputs."""

    outputs: Outputs = "values"

    def prepare(self, x: Floats, y: ArrayLike, metric: Metric = "1") -> Tensor:
        return _values(y)

    def __call__(self, score: Tensor, target: Tensor) -> Tensor:
        return (score - target.to(score.dtype)).square().sum(dim=-1)


@dataclass(frozen=True)
class AbsoluteError:
    r""":math:`|y - \hat y|`, summed over the outputs: outliers count less."""

    outputs: Outputs = "values"

    def prepare(self, x: Floats, y: ArrayLike, metric: Metric = "1") -> Tensor:
        return _values(y)

    def __call__(self, score: Tensor, target: Tensor) -> Tensor:
        return (score - target.to(score.dtype)).abs().sum(dim=-1)


@dataclass(frozen=True)
class Quantile:
    r"""The pinball loss: its minimum is the `level` quantile of y given x.

    .. math:: \max(\alpha (y - \hat y), (\alpha - 1)(y - \hat y))

    With several levels, one per output, y is a single column and the losses are added.
    """

    level: float | tuple[float, ...] = 0.5
    outputs: Outputs = "values"

    def __post_init__(self) -> None:
        for level in np.ravel(self.level):
            check_fraction("level", float(level))

    def prepare(self, x: Floats, y: ArrayLike, metric: Metric = "1") -> Tensor:
        return _values(y)

    def __call__(self, score: Tensor, target: Tensor) -> Tensor:
        gap = target.to(score.dtype) - score
        level = torch.as_tensor(self.level, dtype=score.dtype)
        return torch.maximum(level * gap, (level - 1.0) * gap).sum(dim=-1)


@dataclass(frozen=True)
class KantorovichRubinstein:
    r"""Minus the dual of the Wasserstein distance: :math:`-(E_P[g] - E_Q[g])`.

    Rows with label 1 are drawn from P, those with label 0 from Q. The sum over rows of weight
    1 / n of each class is the mean difference; `prepare` puts that into the targets.
    """

    outputs: Outputs = "values"

    def prepare(self, x: Floats, y: ArrayLike, metric: Metric = "1") -> Tensor:
        labels = _binary(y, both=True)
        return torch.as_tensor((1.0 - 2.0 * labels) * balanced_weights(labels) * 2.0)

    def __call__(self, score: Tensor, target: Tensor) -> Tensor:
        return target.to(score.dtype) * _single(score)


def check_targets(loss: Loss, target: NDArray[Any], n_outputs: int) -> None:
    """Raise `ValueError` unless targets fit a network with this many outputs."""
    if isinstance(loss, CrossEntropy):
        largest, n_classes = int(target.max()), max(n_outputs, 2)
        if largest >= n_classes:
            raise ValueError(
                f"`y` holds the class {largest} but {n_outputs} output(s) can distinguish only "
                f"{n_classes} classes; give the network one output per class"
            )
    elif isinstance(loss, Quantile) and np.size(loss.level) > 1:
        if np.size(loss.level) != n_outputs:
            raise ValueError(
                f"{np.size(loss.level)} levels need one output each; the network has {n_outputs}"
            )
    elif target.ndim == 2 and loss.outputs == "values" and target.shape[1] != n_outputs:
        raise ValueError(
            f"`y` has {target.shape[1]} columns but the network has {n_outputs} outputs; they "
            "must agree"
        )


LOSSES: dict[str, Callable[..., Loss]] = {
    "cross_entropy": CrossEntropy,
    "hinge": Hinge,
    "dynamic_hinge": DynamicHinge,
    "squared_error": SquaredError,
    "absolute_error": AbsoluteError,
    "quantile": Quantile,
}


def parse_loss(text: str) -> Loss:
    """A loss by name, with its parameter after a colon.

    Examples
    --------
    >>> parse_loss("cross_entropy:16")
    CrossEntropy(temperature=16.0, outputs='logits')
    """
    name, colon, parameter = text.partition(":")
    check_choice("loss", name, list(LOSSES))
    if not colon:
        return LOSSES[name]()
    if name not in ("cross_entropy", "hinge", "quantile"):
        raise ValueError(f"loss {name!r} has no parameter; leave out {colon + parameter!r}")
    try:
        return LOSSES[name](float(parameter))
    except ValueError as error:
        raise ValueError(f"loss {text!r} cannot be used: {error}") from error


def _labels(y: ArrayLike) -> Integers:
    values = np.asarray(y)
    labels = values.astype(np.int64)
    if (
        values.ndim != 1
        or not np.array_equal(labels, values)
        or (len(labels) and labels.min() < 0)
    ):
        raise ValueError(
            f"labels have shape {values.shape} and hold {np.unique(values)[:5]}; they must be the "
            "whole numbers 0, 1, ... in one column: encode the classes first"
        )
    return labels


def _binary(y: ArrayLike, both: bool = False) -> Floats:
    """Labels 0 and 1 as numbers; with rows of both classes, if asked for."""
    labels = _labels(y)
    if len(labels) and labels.max() > 1:
        raise ValueError(
            f"labels hold {np.unique(labels)[:5]}; this loss is for the classes 0 and 1: use "
            "CrossEntropy for more"
        )
    if both and len(np.unique(labels)) < 2:
        raise ValueError("all labels are equal; this loss needs rows of both classes")
    return labels.astype(np.float64)


def _values(y: ArrayLike) -> Tensor:
    values = np.asarray(y, dtype=np.float64)
    return torch.as_tensor(values[:, None] if values.ndim == 1 else values)


def _single(score: Tensor) -> Tensor:
    if score.shape[-1] != 1:
        raise ValueError(
            f"the network has {score.shape[-1]} outputs; this loss is for one: use CrossEntropy"
        )
    return score[..., 0]
