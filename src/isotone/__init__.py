"""Neural networks that are provably monotonic and provably robust, down to the last bit.

Names are resolved on first use, so that scoring and certifying never load torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotone.names import load as _load
from isotone.names import resolver as _resolver

if TYPE_CHECKING:
    from isotone.certificate.certify import Certificate, certify
    from isotone.estimators.classifier import MonotonicClassifier
    from isotone.estimators.regressor import MonotonicRegressor
    from isotone.freezing.freeze import freeze
    from isotone.frozen.engine import Engine
    from isotone.frozen.loading import load
    from isotone.frozen.network import FrozenNetwork
    from isotone.inputs.chain import Inputs
    from isotone.inputs.columns import Category, Number, Ordered
    from isotone.inputs.knots import Knots
    from isotone.inputs.scaling import Log, Scaling
    from isotone.nn.layers import (
        Abs,
        Center,
        GroupSort,
        LipschitzConv1d,
        LipschitzConv2d,
        LipschitzLinear,
        Residual,
    )
    from isotone.nn.network import LipschitzNetwork, MonotonicNetwork
    from isotone.training.ensemble import Ensemble
    from isotone.training.recipe import Recipe
    from isotone.training.train import train
    from isotone.transport.wasserstein import wasserstein

__version__ = "0.2.0"

_HOME = {
    "Scaling": "inputs.scaling",
    "Log": "inputs.scaling",
    "Knots": "inputs.knots",
    "Inputs": "inputs.chain",
    "Number": "inputs.columns",
    "Category": "inputs.columns",
    "Ordered": "inputs.columns",
    "FrozenNetwork": "frozen.network",
    "load": "frozen.loading",
    "Engine": "frozen.engine",
    "Certificate": "certificate.certify",
    "certify": "certificate.certify",
    "LipschitzLinear": "nn.layers",
    "LipschitzConv1d": "nn.layers",
    "LipschitzConv2d": "nn.layers",
    "GroupSort": "nn.layers",
    "Abs": "nn.layers",
    "Center": "nn.layers",
    "Residual": "nn.layers",
    "LipschitzNetwork": "nn.network",
    "MonotonicNetwork": "nn.network",
    "freeze": "freezing.freeze",
    "Recipe": "training.recipe",
    "train": "training.train",
    "Ensemble": "training.ensemble",
    "MonotonicClassifier": "estimators.classifier",
    "MonotonicRegressor": "estimators.regressor",
    "wasserstein": "transport.wasserstein",
}

__all__ = [  # noqa: RUF022 (in the order of the table)
    "Scaling",
    "Log",
    "Knots",
    "Inputs",
    "Number",
    "Category",
    "Ordered",
    "FrozenNetwork",
    "load",
    "Engine",
    "Certificate",
    "certify",
    "LipschitzLinear",
    "LipschitzConv1d",
    "LipschitzConv2d",
    "GroupSort",
    "Abs",
    "Center",
    "Residual",
    "LipschitzNetwork",
    "MonotonicNetwork",
    "freeze",
    "Recipe",
    "train",
    "Ensemble",
    "MonotonicClassifier",
    "MonotonicRegressor",
    "wasserstein",
]


# Reached as `isotone.plot`; packages among them say in `__all__` what is public.
_MODULES = (
    *("estimators", "export", "files", "losses", "nn", "plot", "report"),
    *("training", "transport", "trigger", "typing"),
)
_resolve = _resolver(__name__, _HOME)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _load(f"isotone.{name}", f"isotone.{name}")
    return _resolve(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, *_MODULES])
