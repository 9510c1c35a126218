"""Networks for LHCb's evaluators: what to train, so that Allen or HLT2 can compute it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from isotone.checks import check_choice
from isotone.frozen.lhcb import DEEPEST, WIDEST
from isotone.inputs.scaling import Log

_FIXED = {
    "group_size": (2, "sorts pairs"),
    "knots": (None, "has no knots"),
    "n_members": (1, "computes one network"),
    "missing": ("error", "takes no missing values"),
    "categorical_features": (None, "takes numbers alone"),
}


def parameters_for(evaluator: str, **given: Any) -> dict[str, Any]:
    """Arguments of an estimator that give a network for an evaluator of LHCb.

    Pairs are sorted, there is one member and neither knots nor, by default, a scaling, so that λ
    is per raw unit.

    Parameters
    ----------
    evaluator : "allen" (up to 32 units in a layer) or "hlt2" (up to 128, and 8 layers)
    given : arguments of your own; `lipschitz` must be among them. `ValueError` for one that does
        not fit

    Examples
    --------
    >>> chosen = parameters_for("allen", lipschitz=2.0)
    >>> chosen["hidden_layer_sizes"], chosen["group_size"], chosen["scaling"]
    ((20, 20), 2, 'identity')
    """
    check_choice("evaluator", evaluator, sorted(WIDEST))
    for name, (value, does) in _FIXED.items():
        if name in given and given[name] != value:
            raise _refused(evaluator, name, given[name], f"{does}: leave it out")
    fixed = {name: value for name, (value, _) in _FIXED.items()}
    chosen = fixed | {"scaling": "identity", "hidden_layer_sizes": (20, 20)} | given
    _check_lipschitz(evaluator, chosen)
    _check_scaling(evaluator, chosen["scaling"])
    _check_sizes(evaluator, chosen["hidden_layer_sizes"])
    return chosen


def _check_lipschitz(evaluator: str, chosen: dict[str, Any]) -> None:
    value = chosen.get("lipschitz")
    if value is None or isinstance(value, str):
        raise _refused(evaluator, "lipschitz", value, "needs a known λ: give a number, such as 2")
    every = np.unique(list(value.values()) if isinstance(value, Mapping) else value)
    if evaluator == "hlt2" and len(every) > 1:
        raise _refused(evaluator, "lipschitz", value, "has one λ: give one number")


def _check_scaling(evaluator: str, scaling: Any) -> None:
    kinds = scaling.values() if isinstance(scaling, Mapping) else scaling
    every = [scaling] if isinstance(scaling, str | Log) else list(kinds)
    allowed = ("identity",) if evaluator == "hlt2" else ("identity", "standard", "robust")
    for kind in every:
        if kind not in allowed:
            advice = f"can hold {', '.join(allowed)}: choose one, and take logarithms before"
            raise _refused(evaluator, "scaling", kind, advice)


def _check_sizes(evaluator: str, sizes: Any) -> None:
    widths, most, deepest = np.atleast_1d(sizes).tolist(), WIDEST[evaluator], DEEPEST[evaluator]
    fits = all(width % 2 == 0 and 0 < width <= most for width in widths)
    if not fits or len(widths) >= deepest:
        room = f"takes even widths of at most {most}, in fewer than {deepest} hidden layers"
        raise _refused(evaluator, "hidden_layer_sizes", sizes, f"{room}: choose (20, 20)")


def _refused(evaluator: str, name: str, value: Any, why: str) -> ValueError:
    return ValueError(f"`{name}={value!r:.100}` does not fit; the evaluator of {evaluator} {why}")
