"""MonotonicEstimator: what the classifier and the regressor share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_random_state,
)

from isotone.certificate.robustness import Radius
from isotone.checks import check_choice
from isotone.estimators.directions import by_name, directions
from isotone.estimators.fit import Task, fit_network
from isotone.estimators.observations import observations
from isotone.estimators.parameters import Directions, Parameters, Slopes, Units
from isotone.estimators.units import TargetUnits
from isotone.estimators.validation import refuse_huge, validate
from isotone.freezing.margin import certified
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.frames import column_names, has_names
from isotone.inputs.missing import Missing, refuse_gaps
from isotone.losses import Loss
from isotone.training.rows import Rows
from isotone.typing import Floats, Gaps, Signs


@dataclass(repr=False, eq=False)
class MonotonicEstimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: parameters, which are stored untouched, and how they fit."""

    monotonic_cst: Directions = None
    _: KW_ONLY
    lipschitz: Slopes = "auto"
    lipschitz_units: Units = "scaled"
    hidden_layer_sizes: int | tuple[int, ...] = (32, 32)
    group_size: int | Literal["auto"] | None = "auto"
    scaling: Any = "auto"
    n_members: int = 4
    missing: Gaps = "error"
    batch_size: int | Literal["auto"] = "auto"
    learning_rate_init: float = 0.02
    max_iter: int = 200
    early_stopping: bool = False
    validation_fraction: float = 0.2
    n_iter_no_change: int = 20
    tol: float = 1e-4
    random_state: Any = None
    verbose: bool = False

    _losses: ClassVar[tuple[str, ...]]
    _labels: list[Any] | None = field(default=None, init=False)
    _checkpoints: Path | None = field(default=None, init=False)
    _rename: Callable[[FrozenNetwork], FrozenNetwork] | None = field(default=None, init=False)

    def keep_checkpoints(self, directory: str | Path) -> Self:
        """Let `fit` write checkpoints there, and continue from those of a run that was killed."""
        self._checkpoints = Path(directory)
        self._checkpoints.mkdir(parents=True, exist_ok=True)
        return self

    def rename(self, rename: Callable[[FrozenNetwork], FrozenNetwork]) -> Self:
        """Let `fit` give the network other names, by a function, before it is certified."""
        self._rename = rename
        return self

    def certified_radius(self, X: Any, threshold: float = 0.0) -> Radius:
        """How far every row may move before its decision can change.

        That is score ≥ `threshold` for one output (the logit of the second of two classes, or the
        target), and what `predict` gives for more classes; see `Certificate.certified_radius`.
        A value that is missing cannot move: the distances of its feature are NaN.
        """
        check_is_fitted(self)
        raw = validate(self, X, reset=False)
        radius = self.certificate_.certified_radius(self._complete(raw), threshold)
        down, up = (
            np.where(np.isnan(raw), np.nan, distance[:, : self.n_features_in_])
            for distance in (radius.down, radius.up)
        )
        return Radius(radius.scaled, down, up)

    def save(self, path: str | Path) -> None:
        """Write `network_` to one `.isotone` file, which `isotone.load` reads without torch."""
        check_is_fitted(self)
        self.network_.save(path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "indicator"
        return tags

    def _score_rows(self, X: Any) -> Floats:
        table = self._table(X)
        return self.network_.score(table).astype(np.float64)

    def _table(self, X: Any) -> Floats:
        """Complete raw rows, as `network_` takes them."""
        check_is_fitted(self)
        return self._complete(validate(self, X, reset=False))

    def _complete(self, X: Floats) -> Floats:
        if self.missing_ is not None:
            return self.missing_.complete(X)
        refuse_gaps(X, self._names())
        return X

    def _names(self) -> list[str]:
        """Names of the features: those of a frame, numbers as text, or x0, x1, ..."""
        if self._labels is None:
            return [f"x{i}" for i in range(self.n_features_in_)]
        return [str(label) for label in self._labels]

    def _by_name(self, name: str, value: Any) -> Any:
        """A parameter whose dictionary, if it is one, is by the names of the features."""
        return by_name(name, value, self._labels, self._names())

    def _directions(self, names: list[str], n_outputs: int) -> Signs:
        return directions(self._by_name("monotonic_cst", self.monotonic_cst), names, n_outputs)

    def _read(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, **check: Any
    ) -> tuple[Parameters, Rows]:
        """Checked parameters, and rows with a weight each."""
        check_choice("loss", self.loss, self._losses)
        parameters = Parameters.of(self)
        self._labels = column_names(X) if has_names(X) else None
        X, y = validate(self, X, y, **check)
        refuse_huge("X", X, self._names())
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return parameters, Rows(X, y, weight)

    def _learn(
        self,
        parameters: Parameters,
        rows: Rows,
        loss: Loss,
        n_outputs: int,
        classes: tuple[str, ...] | None = None,
    ) -> Self:
        """Fit the network to targets (n_rows, n_targets)."""
        names, fill = self._names(), parameters.missing == "indicator"
        self.missing_ = Missing.fit(rows.x, rows.weights(), names) if fill else None
        indicators = [] if self.missing_ is None else self.missing_.indicators
        distinct = observations(replace(rows, x=self._complete(rows.x)))
        task = Task(
            rows=distinct,
            features=(*names, *indicators),
            n_indicators=len(indicators),
            directions=self._directions(names, n_outputs),
            loss=loss,
            units=self._units(distinct, n_outputs),
            classes=classes,
        )
        parameters = replace(
            parameters,
            lipschitz=self._by_name("lipschitz", parameters.lipschitz),
            scaling=self._by_name("scaling", parameters.scaling),
        )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        fit = fit_network(task, parameters, seed, self._checkpoints)
        named = fit.network if self._rename is None else self._rename(fit.network)
        self.network_, self.certificate_ = certified(named)
        self.history_, self.lipschitz_ = fit.history, fit.lipschitz
        self.n_iter_ = fit.history.n_epochs
        return self

    def _units(self, rows: Rows, n_outputs: int) -> TargetUnits:
        """Units of the outputs; those of logits are their own."""
        return TargetUnits(np.ones(n_outputs), np.zeros(n_outputs))
