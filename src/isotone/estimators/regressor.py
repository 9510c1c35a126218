"""MonotonicRegressor: a scikit-learn estimator whose predictions have directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score, r2_score

from isotone.checks import check_finite
from isotone.estimators.directions import is_table
from isotone.estimators.estimator import MonotonicEstimator
from isotone.estimators.parameters import Watch
from isotone.estimators.preparation.observations import with_groups
from isotone.estimators.preparation.signed import mean_weights
from isotone.estimators.preparation.units import TargetUnits
from isotone.estimators.teacher import refuse_loss, values
from isotone.estimators.validation import refuse_huge
from isotone.losses import LOSSES, Quantile
from isotone.training.recipe import History
from isotone.training.rows import Rows
from isotone.typing import Floats, RegressionLoss


@dataclass(repr=False, eq=False)
class MonotonicRegressor(RegressorMixin, MonotonicEstimator):  # type: ignore[misc]
    """Regressor whose predictions rise or fall with the features you choose, certified.

    Targets are standardized in training; `network_` gives them in their own units. With several
    columns of targets the network has several outputs.

    Parameters
    ----------
    monotonic_cst : -1, 0 or +1 per feature, a dictionary by feature name, which may also name
        "missing(income)", or a table (n_targets, n_features); None leaves all features free
    loss : "squared_error", "absolute_error" or "quantile"
    quantile : level, or several increasing levels, for loss="quantile". `predict` then gives one
        column per level, and those never cross; only one level goes with `interaction_cst`
    interaction_cst, lipschitz, ... : as for `MonotonicClassifier`; λ is in standard deviations of
        the target

    Examples
    --------
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = MonotonicRegressor(monotonic_cst=[1], lipschitz=2.0, random_state=0)
    >>> bool(model.fit(X, X[:, 0] ** 2).score(X, X[:, 0] ** 2) > 0.99)
    True
    """

    _: KW_ONLY
    loss: RegressionLoss = "squared_error"
    quantile: float | tuple[float, ...] = 0.5

    _losses = get_args(RegressionLoss)

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | str | None = None,
        *,
        groups: ArrayLike | str | Sequence[str] | None = None,
        eval_set: Any = None,
        callbacks: Sequence[Callable[[int, History], Any]] | None = None,
        workers: Any = None,
    ) -> Self:
        """Learn from raw rows and their targets, (n_rows,) or (n_rows, n_targets).

        `X` may be a `pyarrow.dataset.Dataset` of Parquet files, or the path of a directory of
        them, of any size; `y`, `sample_weight` and `groups` are then names of columns. The other
        arguments are those of `MonotonicClassifier.fit`.
        """
        watch = Watch.of(eval_set, callbacks)
        watch.refuse_workers(workers)
        X, y, sample_weight, groups, stream = self._in_memory(X, y, sample_weight, groups, workers)
        check = {"multi_output": True, "y_numeric": True}
        parameters, rows = self._read(X, y, sample_weight, stream, **check)
        rows = with_groups(rows, groups)
        if self._warm() is None:
            self._one_column = rows.y.ndim == 1
            self._n_targets = 1 if self._one_column else rows.y.shape[1]
        table = self._targets("y", rows.y)
        if self.signed_weights and stream is not None:
            rows, stream = stream.positive(replace(rows, y=table), None)
        elif self.signed_weights:
            sample_weight = mean_weights(replace(rows, y=table), None)
            rows = replace(rows, weight=sample_weight)
        levels = self._levels(table)
        loss = Quantile(levels) if self.loss == "quantile" else LOSSES[self.loss]()
        n_outputs = max(table.shape[1], len(levels))
        said = None
        if self.teacher is not None:
            refuse_loss(self.loss, "squared_error", "absolute_error")
            said = self._targets("teacher", values(self.teacher, X, y, sample_weight))
        return self._learn(
            parameters, replace(rows, y=table), loss, n_outputs, watch, stream=stream, said=said
        )

    def predict(self, X: Any) -> Floats:
        """The target of every row; with several quantiles a column for each."""
        prediction = self._score_rows(X)
        return prediction[:, None] if prediction.ndim < 2 - self._one_column else prediction

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """R², or for several quantiles the mean of their D² (the share of pinball loss saved).

        Rows that get no score are left out; see `on_unseen`.
        """
        prediction, y, weight = self._score_known(X, y, sample_weight)
        if self.loss != "quantile" or np.ndim(self.quantile) == 0:
            return float(r2_score(y, prediction, sample_weight=weight))
        columns = prediction.reshape(len(prediction), -1).T
        levels = np.asarray(self.quantile, dtype=np.float64).tolist()
        each = [
            d2_pinball_score(y, column, alpha=level, sample_weight=weight)
            for column, level in zip(columns, levels, strict=True)
        ]
        return float(np.mean(each))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _targets(self, name: str, y: NDArray[Any]) -> Floats:
        table = y.reshape(len(y), -1).astype(np.float64)
        if table.shape[1] != self._n_targets:
            raise ValueError(
                f"`{name}` has {table.shape[1]} targets but the model has {self._n_targets}; they "
                "must be the same: give as many columns of targets"
            )
        check_finite(name, table)
        refuse_huge(name, table, [f"column {k}" for k in range(table.shape[1])])
        return table

    def _levels(self, y: Floats) -> tuple[float, ...]:
        """Levels of the quantiles; none for another loss."""
        if self.loss != "quantile":
            return ()
        levels = np.atleast_1d(np.asarray(self.quantile))
        rising = levels.dtype.kind == "f" and levels.ndim == 1 and levels.size > 0
        if not rising or not np.all(np.diff([0.0, *levels, 1.0]) > 0):
            raise ValueError(
                f"`quantile={self.quantile}` must be a level between 0 and 1, or several in "
                "increasing order; choose (0.1, 0.5, 0.9), for example"
            )
        if len(levels) > 1 and (y.shape[1] > 1 or is_table(self.monotonic_cst)):
            raise ValueError(
                f"{len(levels)} quantiles of {y.shape[1]} targets cannot be ordered unless there "
                "is one target and one direction per feature: fit one target at a time, with "
                "`monotonic_cst` for features alone"
            )
        return tuple(levels.tolist())

    def _units(self, rows: Rows, n_outputs: int) -> TargetUnits:
        return TargetUnits.fit(rows.y, rows.weights())
