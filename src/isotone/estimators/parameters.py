"""Parameters: what an estimator was told, checked when it is fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
import torch
from joblib import effective_n_jobs
from joblib import hash as hashed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from isotone.checks import (
    check_choice,
    check_count,
    check_fraction,
    check_frequency,
    check_least,
    check_positive,
    is_count,
)
from isotone.inputs.chain import Policy, check_policy
from isotone.training.recipe import History
from isotone.typing import Gaps
from isotone.workers import ALONE, workers_from

Directions = ArrayLike | Mapping[Any, Any] | None  # by feature; or by class, then by feature
Lipschitz = float | ArrayLike | Mapping[str, float]  # or "auto", or "learned"
TileCounts = int | Sequence[int | None] | Mapping[str, int] | Literal["auto"] | None
Categorical = Literal["from_dtype"] | Sequence[Any] | None  # names, positions, or a mask
Units = Literal["scaled", "raw"]

_OF_TRAINING = {  # may change between fits of which one continues the other
    "teacher",
    "signed_weights",
    "on_unseen",
    "batch_size",
    "learning_rate_init",
    "max_iter",
    "early_stopping",
    "validation_fraction",
    "n_iter_no_change",
    "tol",
    "class_weight",
    "warm_start",
    "n_jobs",
    "random_state",
    "verbose",
}


@dataclass(frozen=True)
class Parameters:
    """What both estimators are told besides directions and loss; see `MonotonicClassifier`."""

    lipschitz: Lipschitz
    lipschitz_max: float
    lipschitz_units: Units
    hidden_layer_sizes: tuple[int, ...]
    group_size: int | Literal["auto"] | None
    scaling: Any
    knots: Any
    min_frequency: float
    n_members: int
    signed_weights: bool
    missing: Gaps
    on_unseen: Policy
    batch_size: int | Literal["auto"]
    learning_rate_init: float | Literal["auto"]
    max_iter: int
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float
    warm_start: bool
    n_jobs: int | None
    verbose: bool
    temperature: float = 1.0

    @classmethod
    def of(cls, estimator: BaseEstimator) -> Parameters:
        """The parameters of an estimator; `ValueError` for one that no fit can use."""
        given = estimator.get_params(deep=False)
        given["hidden_layer_sizes"] = _sizes(given["hidden_layer_sizes"])
        return cls(**{f.name: given[f.name] for f in fields(cls) if f.name in given})

    def __post_init__(self) -> None:
        check_choice("lipschitz_units", self.lipschitz_units, get_args(Units))
        if self.group_size not in ("auto", None):
            check_count("group_size", self.group_size, also=", 'auto', or None for a full sort")
        check_frequency("min_frequency", self.min_frequency)
        check_count("n_members", self.n_members)
        check_positive("lipschitz_max", self.lipschitz_max)
        check_choice("signed_weights", self.signed_weights, (True, False))
        check_choice("missing", self.missing, get_args(Gaps))
        check_policy(self.on_unseen)
        if self.batch_size != "auto":
            check_count("batch_size", self.batch_size, also=", or 'auto'")
        if self.learning_rate_init != "auto":
            check_positive("learning_rate_init", self.learning_rate_init)
        check_count("max_iter", self.max_iter)
        check_choice("early_stopping", self.early_stopping, (True, False))
        check_fraction("validation_fraction", self.validation_fraction)
        check_count("n_iter_no_change", self.n_iter_no_change)
        check_least("tol", self.tol)
        check_choice("warm_start", self.warm_start, (True, False))
        _check_jobs(self.n_jobs)
        check_positive("temperature", self.temperature)

    @property
    def is_open(self) -> bool:
        """Whether λ are to be chosen, all of them."""
        return isinstance(self.lipschitz, str) and self.lipschitz == "auto"

    @property
    def is_automatic(self) -> bool:
        """Whether λ, knots and scaling are to be chosen, all of them."""
        chosen = (self.lipschitz, self.knots, self.scaling)
        return all(isinstance(value, str) and value == "auto" for value in chosen)

    def n_held(self, n_rows: int) -> int:
        """How many rows of a stream are held out to validate members on."""
        return round(self.validation_fraction * n_rows) if self.early_stopping else 0

    def threads(self) -> int:
        """How many threads may train: `n_jobs`, where -1 is one per core, or as many as torch."""
        if self.n_jobs is None:
            return torch.get_num_threads()
        return int(effective_n_jobs(int(self.n_jobs)))


def fixed_parameters(estimator: BaseEstimator) -> dict[str, str]:
    """What must stay the same if a fit is to continue with networks of the last one, hashed."""
    given = estimator.get_params(deep=False)
    return {name: hashed(value) for name, value in given.items() if name not in _OF_TRAINING}


def refuse_changes(estimator: BaseEstimator, before: Mapping[str, str]) -> None:
    """Raise `ValueError` if networks of the last fit are not those that are asked for now."""
    for name, value in fixed_parameters(estimator).items():
        if value != before[name]:
            raise ValueError(
                f"`{name}` is not what it was at the last fit, with whose networks "
                "`warm_start=True` continues; it must stay the same: set it back, or set "
                "warm_start=False to start over"
            )


@dataclass(frozen=True, eq=False)
class Watch:
    """What watches members while they are trained.

    Parameters
    ----------
    validation : raw rows and their targets, or None
    callbacks : called after every epoch with its number, from 0, and the history so far
    """

    validation: tuple[Any, Any] | None = None
    callbacks: tuple[Callable[[int, History], Any], ...] = ()

    @classmethod
    def of(cls, eval_set: Any, callbacks: Any) -> Watch:
        """What `fit` was given; `ValueError` if it cannot be used."""
        listed = [] if callbacks is None else callbacks
        if not isinstance(listed, Iterable) or not all(map(callable, found := list(listed))):
            raise ValueError(
                f"`callbacks={callbacks!r:.100}` must be a list of functions of an epoch and the "
                "history; give a list, even of one"
            )
        return cls(_pair(eval_set), tuple(found))

    def refuse_workers(self, workers: Any) -> None:
        """Raise `ValueError` if there are callbacks, and members learn apart from each other."""
        if self.callbacks and workers_from(workers) != ALONE:
            raise ValueError(
                "`callbacks` are called after an epoch of all members but `workers` train each on "
                "its own; leave out one of the two"
            )

    def stops(self, history: History) -> bool:
        """Whether a callback wants no further epoch; each of them is called."""
        answers = [callback(history.n_epochs - 1, history) for callback in self.callbacks]
        return any(answers)


def _pair(eval_set: Any) -> tuple[Any, Any] | None:
    """The only pair of rows and targets; LightGBM takes a list of such."""
    if eval_set is None:
        return None
    is_list = isinstance(eval_set, list) and all(isinstance(pair, tuple) for pair in eval_set)
    pairs = eval_set if is_list else [eval_set]
    if len(pairs) != 1 or not isinstance(pairs[0], tuple | list) or len(pairs[0]) != 2:
        several = len(pairs) != 1
        found = f"list of {len(pairs)} pairs" if several else type(pairs[0]).__name__
        raise ValueError(
            f"`eval_set` is a {found}; it must be one pair, since one loss decides when to stop: "
            "give (X_val, y_val), or a list with one such pair"
        )
    return tuple(pairs[0])


def _check_jobs(value: Any) -> None:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if value is not None and not (is_whole and value != 0):
        raise ValueError(
            f"`n_jobs={value!r}` must be None, a number of threads, or -1 for one per core, -2 "
            "for one less, and so on; choose -1"
        )


def _sizes(value: Any) -> tuple[int, ...]:
    sizes = [value] if isinstance(value, Integral) else value
    if not isinstance(sizes, Sequence | np.ndarray) or not all(map(is_count, sizes)):
        raise ValueError(
            f"`hidden_layer_sizes={value!r}` must be whole numbers of at least 1, such as (32, 32)"
        )
    return tuple(int(size) for size in sizes)
