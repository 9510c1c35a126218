"""Settings: the parameters of an estimator, checked when it is fitted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from isotone.checks import check_count, is_count

_WHOLE = ("max_iter", "n_members", "n_iter_no_change")
_POSITIVE = ("learning_rate_init", "temperature")
_CHOICES: dict[str, tuple[object, ...]] = {
    "lipschitz_units": ("scaled", "raw"),
    "missing": ("error", "indicator"),
    "early_stopping": (True, False),
}


def check_settings(settings: dict[str, Any], losses: Sequence[str]) -> None:
    """Raise `ValueError` for a parameter that no fit can use; the others are checked with data.

    Parameters
    ----------
    settings : what `get_params` gives
    losses : the names of losses that the estimator knows
    """
    for name in _WHOLE:
        check_count(name, settings[name])
    if settings["group_size"] not in ("auto", None):
        check_count("group_size", settings["group_size"], also=", 'auto', or None for a full sort")
    if settings["batch_size"] != "auto":
        check_count("batch_size", settings["batch_size"], also=", or 'auto'")
    for name in _POSITIVE:
        value = settings.get(name, 1.0)
        if not _is_number(value) or not 0 < value < math.inf:
            raise ValueError(f"`{name}={value!r}` must be a positive finite number; choose one")
    if not _is_number(settings["tol"]) or not settings["tol"] >= 0:
        raise ValueError(f"`tol={settings['tol']!r}` must be a number of at least 0; choose one")
    _check_fraction(settings["validation_fraction"])
    for name, choices in (_CHOICES | {"loss": tuple(losses)}).items():
        if settings[name] not in choices:
            raise ValueError(f"`{name}={settings[name]!r}` is unknown; choose from {choices}")
    _check_widths(settings["hidden_layer_sizes"])


def _check_fraction(value: Any) -> None:
    if not _is_number(value) or not 0 < value < 1:
        raise ValueError(
            f"`validation_fraction={value!r}` must lie between 0 and 1; choose 0.2, for example"
        )


def _check_widths(value: Any) -> None:
    widths = [value] if isinstance(value, Integral) else value
    if not isinstance(widths, Sequence | np.ndarray) or not all(
        is_count(width) for width in widths
    ):
        raise ValueError(
            f"`hidden_layer_sizes={value!r}` must hold whole numbers of at least 1, as (32, 32) "
            "does"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
