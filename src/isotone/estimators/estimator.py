"""MonotonicEstimator: what the classifier and the regressor share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    check_X_y,
)

from isotone.certificate.robustness import Radius
from isotone.checks import check_choice
from isotone.estimators.columns import (
    fills_of,
    find_inputs,
    refuse_missing,
    spread_directions,
)
from isotone.estimators.directions import by_name, directions, spread
from isotone.estimators.fit import Task, fit_network
from isotone.estimators.observations import observations
from isotone.estimators.parameters import Directions, Parameters, Slopes, Units
from isotone.estimators.units import TargetUnits
from isotone.estimators.validation import refuse_huge, validate, validate_names
from isotone.freezing.margin import certified
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category
from isotone.inputs.frames import column_names, has_names
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
    _inputs: Inputs = field(default_factory=Inputs, init=False)
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
        X, inputs = self._raw(X, reset=False), self.network_.inputs
        radius = self.certificate_.certified_radius(X, threshold)
        parts = [self._numbers(raw) for raw in inputs.batches(X)]
        numbers = np.concatenate(parts)
        first = [self.network_.features.index(column.features[0]) for column in inputs.columns]
        down, up = (
            np.where(np.isnan(numbers), np.nan, distance[:, first])
            for distance in (radius.down, radius.up)
        )
        return Radius(radius.scaled, down, up)

    def _numbers(self, raw: list[Any]) -> Floats:
        """What can move: numbers and ranks; NaN for categories and missing values."""
        inputs = self.network_.inputs
        pairs = zip(inputs.columns, inputs.code(raw), strict=True)
        moving = [np.full(len(x), np.nan) if isinstance(c, Category) else x for c, x in pairs]
        return np.column_stack(moving)

    def save(self, path: str | Path) -> None:
        """Write `network_` to one `.isotone` file, which `isotone.load` reads without torch."""
        check_is_fitted(self)
        self.network_.save(path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "indicator"
        return tags

    def _score_rows(self, X: Any) -> Floats:
        check_is_fitted(self)
        return self.network_.score(self._raw(X, reset=False)).astype(np.float64)

    def _raw(self, X: Any, reset: bool) -> Any:
        """A raw table whose columns are those of the training rows."""
        if has_names(X):
            validate_names(self, X, reset)
            return X
        X = validate(self, X, reset=reset)
        if not reset and self.missing == "error":
            refuse_missing(self.network_.inputs, X)
        return X

    def _names(self) -> list[str]:
        """Names of the features: those of a frame, numbers as text, or x0, x1, ..."""
        if self._labels is None:
            return [f"x{i}" for i in range(self.n_features_in_)]
        return [str(label) for label in self._labels]

    def _by_name(self, name: str, value: Any) -> Any:
        """A parameter whose dictionary, if it is one, is by the names of the features."""
        return by_name(name, value, self._labels, self._names())

    def _by_feature(self, name: str, value: Any, default: Any) -> Any:
        """A parameter per column or by name as one per feature; categories are not scaled."""
        value = self._by_name(name, value)
        several = isinstance(value, Mapping) or (np.ndim(value) > 0 and not isinstance(value, str))
        if self._inputs.is_plain or (name == "lipschitz" and not several):
            return value
        columns, names = self._inputs.columns, self._names()
        entries = spread(name, value, names, default) if several else [value] * len(names)
        return [
            "identity" if name == "scaling" and isinstance(column, Category) else entry
            for column, entry in zip(columns, entries, strict=True)
            for _ in column.features
        ]

    def _directions(self, names: list[str], n_outputs: int) -> Signs:
        return directions(self._by_name("monotonic_cst", self.monotonic_cst), names, n_outputs)

    def _read(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, **check: Any
    ) -> tuple[Parameters, Rows]:
        """Checked parameters, and rows with a weight each."""
        check_choice("loss", self.loss, self._losses)
        parameters = Parameters.of(self)
        self._labels = column_names(X) if has_names(X) else None
        if self._labels is None:
            X, y = validate(self, X, y, **check)
            self._inputs = Inputs.numbers(self._names())
        else:
            X, y = self._encode(X, y, **check)
        refuse_huge("X", X, self._inputs.uncompleted)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return parameters, Rows(X, y, weight)

    def _encode(self, X: Any, y: Any, **check: Any) -> tuple[Floats, Any]:
        """Features of a table without indicators, NaN where values are missing, and targets."""
        validate_names(self, X, reset=True)
        self._inputs = find_inputs(X, self._names())
        parts = [np.column_stack(self._inputs.read(raw)) for raw in self._inputs.batches(X)]
        finite = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "estimator": self}
        features, y = check_X_y(np.concatenate(parts), y, **finite, **check)
        return features, y

    def _learn(
        self,
        parameters: Parameters,
        rows: Rows,
        loss: Loss,
        n_outputs: int,
        classes: tuple[str, ...] | None = None,
    ) -> Self:
        """Fit the network to targets (n_rows, n_targets)."""
        names, inputs = self._names(), self._inputs
        if parameters.missing == "indicator":
            inputs = inputs.with_fills(fills_of(inputs, rows.x, rows.weights()))
        else:
            refuse_missing(inputs, rows.x)
        complete = np.column_stack(inputs.complete(list(rows.x.T)))
        distinct = observations(replace(rows, x=complete))
        owners = inputs.owners[: len(inputs.uncompleted)]
        task = Task(
            rows=distinct,
            features=inputs.features,
            n_indicators=len(inputs.features) - len(owners),
            directions=spread_directions(self._directions(names, n_outputs), inputs),
            loss=loss,
            units=self._units(distinct, n_outputs),
            classes=classes,
        )
        parameters = replace(
            parameters,
            lipschitz=self._by_feature("lipschitz", parameters.lipschitz, None),
            scaling=self._by_feature("scaling", parameters.scaling, "auto"),
        )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        fit = fit_network(task, parameters, seed, self._checkpoints)
        network = replace(fit.network, inputs=inputs)
        named = network if self._rename is None else self._rename(network)
        self.network_, self.certificate_ = certified(named)
        self.history_, self.lipschitz_ = fit.history, fit.lipschitz
        self.n_iter_ = fit.history.n_epochs
        return self

    def _units(self, rows: Rows, n_outputs: int) -> TargetUnits:
        """Units of the outputs; those of logits are their own."""
        return TargetUnits(np.ones(n_outputs), np.zeros(n_outputs))
