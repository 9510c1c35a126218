"""Neural networks that are provably monotonic and provably robust, down to the last bit.

Names are resolved on first use, so that scoring and certifying never load torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotone.certificate import Certificate, certify
    from isotone.codes import Codes
    from isotone.engine import Engine
    from isotone.ensemble import Ensemble
    from isotone.estimators import MonotonicClassifier, MonotonicRegressor
    from isotone.freezing import freeze
    from isotone.frozen import FrozenNetwork, load
    from isotone.layers import (
        Abs,
        Center,
        GroupSort,
        LipschitzConv1d,
        LipschitzConv2d,
        LipschitzLinear,
        Residual,
    )
    from isotone.loop import Recipe
    from isotone.network import LipschitzNetwork, MonotonicNetwork
    from isotone.scaling import Log, Scaling
    from isotone.training import train
    from isotone.transport import wasserstein

__version__ = "0.1.0"

_HOME = {
    "Scaling": "scaling",
    "Log": "scaling",
    "Codes": "codes",
    "FrozenNetwork": "frozen",
    "load": "frozen",
    "Engine": "engine",
    "Certificate": "certificate",
    "certify": "certificate",
    "LipschitzLinear": "layers",
    "LipschitzConv1d": "layers",
    "LipschitzConv2d": "layers",
    "GroupSort": "layers",
    "Abs": "layers",
    "Center": "layers",
    "Residual": "layers",
    "LipschitzNetwork": "network",
    "MonotonicNetwork": "network",
    "freeze": "freezing",
    "Recipe": "loop",
    "train": "training",
    "Ensemble": "ensemble",
    "MonotonicClassifier": "estimators",
    "MonotonicRegressor": "estimators",
    "wasserstein": "transport",
}

__all__ = [  # noqa: RUF022 (in the order of the table)
    "Scaling",
    "Log",
    "Codes",
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


_MODULES = ("export", "losses", "plot")  # that users reach as `isotone.plot`


def __getattr__(name: str) -> Any:
    if name not in _HOME and name not in _MODULES:
        raise AttributeError(f"module 'isotone' has no attribute {name!r}")
    try:
        module = importlib.import_module(f"isotone.{_HOME.get(name, name)}")
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in ("torch", "sklearn"):
            raise
        from isotone.extras import lacking

        job = f"`isotone.{name}` trains networks and"
        raise ImportError(lacking(job, missing, "train")) from error
    return module if name in _MODULES else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, *_MODULES])
