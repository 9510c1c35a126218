"""CertifiedEstimator: what the estimators of this library share, whatever they predict."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_random_state,
    validate_data,
)

from isotone.certificate.certify import Certificate
from isotone.certificate.robustness import Radius
from isotone.estimators.columns import (
    by_name,
    directions,
    na_as_nan,
    refuse_categories,
    refuse_huge,
    text_columns,
)
from isotone.estimators.examples import Examples
from isotone.estimators.fit import Task, fit_network
from isotone.estimators.settings import check_settings
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.frames import column_names, has_names
from isotone.inputs.missing import Missing, refuse_gaps
from isotone.losses import Loss
from isotone.training.recipe import History
from isotone.typing import Floats, Signs


class CertifiedEstimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share."""

    network_: FrozenNetwork
    certificate_: Certificate
    history_: History
    lipschitz_: Floats
    missing_: Missing | None
    n_iter_: int
    _losses: tuple[str, ...]
    _labels: list[Any] | None = None
    _checkpoints: Path | None = None

    def keep_checkpoints(self, directory: str | Path) -> Self:
        """Let `fit` write checkpoints there, and continue from those of a run that was killed."""
        self._checkpoints = Path(directory)
        self._checkpoints.mkdir(parents=True, exist_ok=True)
        return self

    def certified_radius(self, X: Any, threshold: float = 0.0) -> Radius:
        """How far every row may move before its decision can change.

        That is score ≥ `threshold` for one output (the logit of the second of two classes, or the
        target), and what `predict` gives for more classes; see `Certificate.certified_radius`.
        A value that is missing cannot move: the distances of its feature are NaN.
        """
        check_is_fitted(self)
        raw = self._validate(X, reset=False)
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
        return self._complete(self._validate(X, reset=False))

    def _validate(self, X: Any, *args: Any, **options: Any) -> Any:
        """What `validate_data` gives, with advice for categories and text."""
        refuse_categories(X)
        try:
            return validate_data(
                self,
                na_as_nan(X),
                *args,
                dtype=np.float64,
                ensure_all_finite="allow-nan",
                **options,
            )
        except (TypeError, ValueError) as error:
            names = text_columns(X)
            text = "could not convert string" in str(error)
            if not names and not text:
                raise
            which = f"the columns {', '.join(names)}" if names else "some columns"
            raise ValueError(
                f"{which} of `X` are not numeric ({str(error)[:80]}); features must be: leave "
                "them out, or encode them, as with OneHotEncoder in a ColumnTransformer"
            ) from error

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
        self, X: Any, y: Any, sample_weight: Any, **check: Any
    ) -> tuple[Floats, Any, Floats]:
        """Checked rows, targets and weights."""
        check_settings(self.get_params(deep=False), self._losses)
        self._labels = column_names(X) if has_names(X) else None
        X, y = self._validate(X, y, **check)
        refuse_huge("X", X, self._names())
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return X, y, weight

    def _learn(
        self, X: Floats, y: Floats, weight: Floats, loss: Loss, n_outputs: int, **more: Any
    ) -> Self:
        """Fit the network to targets (n_rows, n_targets)."""
        names = self._names()
        self.missing_ = Missing.fit(X, weight, names) if self.missing == "indicator" else None
        indicators = [] if self.missing_ is None else self.missing_.indicators
        examples = Examples.of(self._complete(X), y, weight)
        task = Task(
            examples=examples,
            features=(*names, *indicators),
            n_indicators=len(indicators),
            directions=self._directions(names, n_outputs),
            loss=loss,
            targets=self._targets(examples, n_outputs),
            **more,
        )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        settings = self.get_params(deep=False)
        settings |= {n: self._by_name(n, settings[n]) for n in ("lipschitz", "scaling")}
        fit = fit_network(task, settings, seed, self._checkpoints)
        self.network_, self.certificate_ = fit.network, fit.certificate
        self.history_, self.lipschitz_ = fit.history, fit.lipschitz
        self.n_iter_ = fit.history.n_epochs
        return self
