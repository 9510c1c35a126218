"""Neural networks that are provably monotonic and provably robust, down to the last bit.

Names are resolved on first use, so that scoring and certifying never load torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotone.names import by_name as _by_name
from isotone.names import load as _load
from isotone.names import resolver as _resolver

if TYPE_CHECKING:
    from isotone.certificate.certify import Certificate as Certificate
    from isotone.certificate.certify import certify as certify
    from isotone.estimators.classifier import MonotonicClassifier as MonotonicClassifier
    from isotone.estimators.regressor import MonotonicRegressor as MonotonicRegressor
    from isotone.freezing.freeze import freeze as freeze
    from isotone.frozen.engine import Engine as Engine
    from isotone.frozen.loading import load as load
    from isotone.frozen.network import FrozenNetwork as FrozenNetwork
    from isotone.inputs.chain import Inputs as Inputs
    from isotone.inputs.columns import Category as Category
    from isotone.inputs.columns import Number as Number
    from isotone.inputs.columns import Ordered as Ordered
    from isotone.inputs.knots import Knots as Knots
    from isotone.inputs.scaling import Log as Log
    from isotone.inputs.scaling import Scaling as Scaling
    from isotone.nn.layers import Abs as Abs
    from isotone.nn.layers import Center as Center
    from isotone.nn.layers import GroupSort as GroupSort
    from isotone.nn.layers import LipschitzConv1d as LipschitzConv1d
    from isotone.nn.layers import LipschitzConv2d as LipschitzConv2d
    from isotone.nn.layers import LipschitzLinear as LipschitzLinear
    from isotone.nn.layers import Residual as Residual
    from isotone.nn.network import LipschitzNetwork as LipschitzNetwork
    from isotone.nn.network import MonotonicNetwork as MonotonicNetwork
    from isotone.training.ensemble import Ensemble as Ensemble
    from isotone.training.recipe import Recipe as Recipe
    from isotone.training.train import train as train
    from isotone.transport.wasserstein import wasserstein as wasserstein

__version__ = "0.2.0"

_HOME = _by_name(
    {
        "inputs.scaling": ("Scaling", "Log"),
        "inputs.knots": ("Knots",),
        "inputs.chain": ("Inputs",),
        "inputs.columns": ("Number", "Category", "Ordered"),
        "frozen.network": ("FrozenNetwork",),
        "frozen.loading": ("load",),
        "frozen.engine": ("Engine",),
        "certificate.certify": ("Certificate", "certify"),
        "nn.layers": (
            "LipschitzLinear",
            "LipschitzConv1d",
            "LipschitzConv2d",
            "GroupSort",
            "Abs",
            "Center",
            "Residual",
        ),
        "nn.network": ("LipschitzNetwork", "MonotonicNetwork"),
        "freezing.freeze": ("freeze",),
        "training.recipe": ("Recipe",),
        "training.train": ("train",),
        "training.ensemble": ("Ensemble",),
        "estimators.classifier": ("MonotonicClassifier",),
        "estimators.regressor": ("MonotonicRegressor",),
        "transport.wasserstein": ("wasserstein",),
    }
)

__all__ = list(_HOME)


# Reached as `isotone.plot`; packages among them say in `__all__` what is public.
_MODULES = (
    *("bundle", "estimators", "explanation", "export", "files", "integrations", "losses"),
    *(
        "monitoring",
        "nn",
        "plot",
        "report",
        "selftest",
        "signature",
        "training",
        "transport",
        "trigger",
    ),
    "typing",
)
_resolve = _resolver(__name__, _HOME)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _load(f"isotone.{name}", f"isotone.{name}")
    return _resolve(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
