"""MonotonicClassifier and MonotonicRegressor: the networks of this library as estimators.

They behave like any other estimator of scikit-learn. What `fit` learns is one certified
`FrozenNetwork`, which takes raw features; no torch module is kept, so estimators pickle.

What is learned depends on the weighted set of training rows alone: not on their order, and not on
whether a row is repeated or has a larger weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import d2_pinball_score, r2_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from isotone.estimators.certified import CertifiedEstimator
from isotone.estimators.columns import (
    class_directions,
    directions,
    opposite_directions,
    refuse_huge,
)
from isotone.estimators.examples import Examples
from isotone.estimators.targets import Targets
from isotone.losses import (
    AbsoluteError,
    CrossEntropy,
    DynamicHinge,
    Hinge,
    Loss,
    Quantile,
    SquaredError,
)
from isotone.typing import Floats, Signs

Directions = ArrayLike | Mapping[Any, Any] | None  # by feature; or by class, then by feature
Slopes = float | ArrayLike | Mapping[str, float]  # or "auto"
Units = Literal["scaled", "raw"]

_CLASSIFICATION: dict[str, Loss] = {
    "log_loss": CrossEntropy(),
    "hinge": Hinge(),
    "dynamic_hinge": DynamicHinge(),
}
_REGRESSION: dict[str, Loss] = {
    "squared_error": SquaredError(),
    "absolute_error": AbsoluteError(),
}


def _has_probabilities(estimator: Any) -> bool:
    if estimator.loss == "log_loss":
        return True
    raise AttributeError(
        f"`loss={estimator.loss!r}` gives no probabilities; use loss='log_loss', or calibrate "
        "with CalibratedClassifierCV"
    )


class MonotonicClassifier(ClassifierMixin, CertifiedEstimator):  # type: ignore[misc]
    r"""Classifier whose probabilities rise or fall with the features you choose, certified.

    Parameters
    ----------
    monotonic_cst : -1, 0 or +1 per feature, or a dictionary by feature name; for two classes it
        is about the probability of the second, ``classes_[1]``. A table (n_classes, n_features),
        in the order of `classes_`, or a dictionary by class, {"good": {"income": 1}}, is about
        that of each, and needed for more classes. None leaves all features free
    lipschitz : λ: per unit of a feature a logit changes by at most λ, along a feature with a
        direction by at most 2λ. One number, one per feature,
        a dictionary by feature name, or "auto", which takes the best of a ladder on rows that
        are left out. So does a dictionary for features that it does not name
    lipschitz_units : "scaled" for λ per scaled unit (about a standard deviation of the column),
        "raw" for λ per raw unit (and per unit of the target)
    hidden_layer_sizes : widths of the hidden layers
    group_size : size of the groups that are sorted; None sorts whole layers; "auto" takes the
        largest up to 8 that divides all widths
    loss : "log_loss", or for two classes "hinge" or "dynamic_hinge", which give no probabilities
    temperature : τ of Eq. 13: the logit is τ times a score of slope λ
    class_weight : None, "balanced" or a dictionary by class
    scaling : "identity", "standard", "robust", "log", `isotone.Log(...)`, or "auto", which takes
        the logarithm of skewed columns; one for all, one per feature or a dictionary by name
    n_members : networks that are trained; their average is frozen into one
    missing : "error", or "indicator": learn from missing values (NaN); directions hold among the
        rows where a value is present
    batch_size : "auto" is an eighth of the distinct rows, but between 32 and 512
    learning_rate_init : at the start; a cosine takes it to a fiftieth
    max_iter : epochs; half as many to choose λ
    early_stopping : keep the best epoch on a `validation_fraction` of the rows, and stop after
        `n_iter_no_change` epochs without a loss lower by `tol`
    random_state, verbose : as everywhere; `verbose` shows progress and the λ that was picked

    Attributes
    ----------
    classes_ : names of the classes, sorted; the score of two is the logit of the second,
        ``classes_[1]``, and a dictionary by class gives directions of either
    network_ : the certified `FrozenNetwork`, raw features in, logits out
    certificate_ : what it guarantees
    lipschitz_ : λ per feature, in `lipschitz_units`
    history_ : losses of every epoch and member
    n_iter_ : epochs trained

    Examples
    --------
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> y = np.where(X[:, 0] > 0.2, "yes", "no")
    >>> model = MonotonicClassifier(monotonic_cst=[1], lipschitz=8.0, max_iter=50, random_state=0)
    >>> model.fit(X, y).predict([[-0.5], [0.9]])
    array(['no', 'yes'], dtype='<U3')
    >>> model.certificate_.holds
    True
    """

    _losses = ("log_loss", "hinge", "dynamic_hinge")

    def __init__(
        self,
        monotonic_cst: Directions = None,
        *,
        lipschitz: Slopes = "auto",
        lipschitz_units: Units = "scaled",
        hidden_layer_sizes: int | tuple[int, ...] = (32, 32),
        group_size: int | Literal["auto"] | None = "auto",
        loss: Literal["log_loss", "hinge", "dynamic_hinge"] = "log_loss",
        temperature: float = 1.0,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        scaling: Any = "auto",
        n_members: int = 4,
        missing: Literal["error", "indicator"] = "error",
        batch_size: int | Literal["auto"] = "auto",
        learning_rate_init: float = 0.02,
        max_iter: int = 200,
        early_stopping: bool = False,
        validation_fraction: float = 0.2,
        n_iter_no_change: int = 20,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.monotonic_cst = monotonic_cst
        self.lipschitz = lipschitz
        self.lipschitz_units = lipschitz_units
        self.hidden_layer_sizes = hidden_layer_sizes
        self.group_size = group_size
        self.loss = loss
        self.temperature = temperature
        self.class_weight = class_weight
        self.scaling = scaling
        self.n_members = n_members
        self.missing = missing
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from raw rows (n_rows, n_features) and their classes."""
        X, y, weight = self._read(X, y, sample_weight)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        self._check_classes()
        weight = weight * self._class_weights(y, weight)[labels]
        return self._learn(
            X,
            labels[:, None].astype(np.float64),
            weight,
            loss=_CLASSIFICATION[self.loss],
            n_outputs=self._n_logits,
            classes=tuple(str(name) for name in self.classes_),
        )

    def decision_function(self, X: Any) -> Floats:
        """Logit of the second class (n_rows,), or those of all classes (n_rows, n_classes)."""
        return self._score_rows(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely class of every row."""
        score = self.decision_function(X)
        index = (score >= 0).astype(int) if score.ndim == 1 else score.argmax(axis=1)
        classes: NDArray[Any] = self.classes_[index]
        return classes

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probability of every class, (n_rows, n_classes)."""
        logits = self.decision_function(X)
        probability = self.network_.to_probability(logits)
        if probability.ndim == 2:
            return probability
        return np.column_stack([1.0 - probability, probability])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithm of `predict_proba`."""
        log: Floats = np.log(self.predict_proba(X))
        return log

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.loss == "log_loss"
        return tags

    @property
    def _n_logits(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _check_classes(self) -> None:
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(
                f"`y` holds {n_classes} class, {self.classes_.tolist()[0]!r}; a classifier needs "
                "rows of at least 2 classes: give such rows"
            )
        if n_classes > 2 and self.loss != "log_loss":
            raise ValueError(
                "Only binary classification is supported. "  # the words that scikit-learn expects
                f"`loss={self.loss!r}` is for 2 classes but `y` holds {n_classes}; use 'log_loss'"
            )
        cst = self.monotonic_cst
        if n_classes > 2 and not (cst is None or isinstance(cst, Mapping) or np.ndim(cst) == 2):
            raise ValueError(
                f"`monotonic_cst` has one direction per feature but `y` holds {n_classes} "
                f"classes; give a table ({n_classes}, n_features), a row for every class, or a "
                "dictionary by class"
            )

    def _directions(self, names: list[str], n_outputs: int) -> Signs:
        value: Any = self.monotonic_cst
        if isinstance(value, Mapping) and (n_outputs > 1 or not _is_flat(value)):
            value = {k: self._by_name(f"monotonic_cst[{k!r}]", v) for k, v in value.items()}
            value = class_directions(value, names, self.classes_.tolist())
        value = self._by_name("monotonic_cst", value)
        if n_outputs == 1 and _is_table(value) and len(value) == 2:
            return opposite_directions(directions(value, names, 2), names)
        return directions(value, names, n_outputs)

    def _class_weights(self, y: NDArray[Any], weight: Floats) -> Floats:
        order = np.argsort(weight)  # so that the order of the rows changes no sum of weights
        weights: Floats = compute_class_weight(
            self.class_weight, classes=self.classes_, y=y[order], sample_weight=weight[order]
        )
        if not np.all((weights >= 0) & np.isfinite(weights)) or not weights.any():
            raise ValueError(
                f"`class_weight={self.class_weight}` must be finite and not negative, and "
                "positive for some class; give such weights, or 'balanced'"
            )
        return weights

    def _targets(self, examples: Examples, n_outputs: int) -> Targets:
        return Targets(np.ones(n_outputs), np.zeros(n_outputs))


class MonotonicRegressor(RegressorMixin, CertifiedEstimator):  # type: ignore[misc]
    """Regressor whose predictions rise or fall with the features you choose, certified.

    Targets are standardized in training; `network_` gives them in their own units. With several
    columns of targets the network has several outputs.

    Parameters
    ----------
    monotonic_cst : -1, 0 or +1 per feature, a dictionary by feature name, or a table
        (n_targets, n_features); None leaves all features free
    loss : "squared_error", "absolute_error" or "quantile"
    quantile : level, or several increasing levels, for loss="quantile". `predict` then gives one
        column per level, and those never cross
    lipschitz, ... : as for `MonotonicClassifier`; λ is in standard deviations of the target

    Examples
    --------
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = MonotonicRegressor(monotonic_cst=[1], lipschitz=2.0, random_state=0)
    >>> bool(model.fit(X, X[:, 0] ** 2).score(X, X[:, 0] ** 2) > 0.99)
    True
    """

    _losses = ("squared_error", "absolute_error", "quantile")

    def __init__(
        self,
        monotonic_cst: Directions = None,
        *,
        lipschitz: Slopes = "auto",
        lipschitz_units: Units = "scaled",
        hidden_layer_sizes: int | tuple[int, ...] = (32, 32),
        group_size: int | Literal["auto"] | None = "auto",
        loss: Literal["squared_error", "absolute_error", "quantile"] = "squared_error",
        quantile: float | tuple[float, ...] = 0.5,
        scaling: Any = "auto",
        n_members: int = 4,
        missing: Literal["error", "indicator"] = "error",
        batch_size: int | Literal["auto"] = "auto",
        learning_rate_init: float = 0.02,
        max_iter: int = 200,
        early_stopping: bool = False,
        validation_fraction: float = 0.2,
        n_iter_no_change: int = 20,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.monotonic_cst = monotonic_cst
        self.lipschitz = lipschitz
        self.lipschitz_units = lipschitz_units
        self.hidden_layer_sizes = hidden_layer_sizes
        self.group_size = group_size
        self.loss = loss
        self.quantile = quantile
        self.scaling = scaling
        self.n_members = n_members
        self.missing = missing
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from raw rows and their targets, (n_rows,) or (n_rows, n_targets)."""
        X, y, weight = self._read(X, y, sample_weight, multi_output=True, y_numeric=True)
        self._one_column = y.ndim == 1
        table = y.reshape(len(y), -1).astype(np.float64)
        refuse_huge("y", table, [f"column {k}" for k in range(table.shape[1])])
        levels = self._levels(table)
        loss = Quantile(levels) if self.loss == "quantile" else _REGRESSION[self.loss]
        return self._learn(X, table, weight, loss, max(table.shape[1], len(levels)))

    def predict(self, X: Any) -> Floats:
        """The target of every row; with several quantiles a column for each."""
        prediction = self._score_rows(X)
        return prediction[:, None] if prediction.ndim < 2 - self._one_column else prediction

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """R², or for several quantiles the mean of their D² (the share of pinball loss saved)."""
        prediction = self.predict(X)
        if self.loss != "quantile" or np.ndim(self.quantile) == 0:
            return float(r2_score(y, prediction, sample_weight=sample_weight))
        columns = prediction.reshape(len(prediction), -1).T
        levels = np.asarray(self.quantile, dtype=np.float64).tolist()
        each = [
            d2_pinball_score(y, column, alpha=level, sample_weight=sample_weight)
            for column, level in zip(columns, levels, strict=True)
        ]
        return float(np.mean(each))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _levels(self, y: Floats) -> tuple[float, ...]:
        """Levels of the quantiles; none for another loss."""
        if self.loss != "quantile":
            return ()
        levels = np.atleast_1d(np.asarray(self.quantile))
        rising = levels.dtype.kind == "f" and levels.ndim == 1 and levels.size > 0
        if not rising or not np.all(np.diff([0.0, *levels, 1.0]) > 0):
            raise ValueError(
                f"`quantile={self.quantile}` must lie between 0 and 1, several levels in "
                "increasing order; choose (0.1, 0.5, 0.9), for example"
            )
        if len(levels) > 1 and (y.shape[1] > 1 or _is_table(self.monotonic_cst)):
            raise ValueError(
                f"{len(levels)} quantiles of {y.shape[1]} targets cannot be ordered unless there "
                "is one target and one direction per feature: fit one target at a time, with "
                "`monotonic_cst` for features alone"
            )
        return tuple(levels.tolist())

    def _targets(self, examples: Examples, n_outputs: int) -> Targets:
        return Targets.fit(examples.y, examples.weight)


def _is_table(value: Any) -> bool:
    return not isinstance(value, Mapping) and np.ndim(value) == 2


def _is_flat(value: Mapping[Any, Any]) -> bool:
    """Whether a dictionary holds directions, not further dictionaries or lists of them."""
    return not any(isinstance(entry, Mapping) or np.ndim(entry) for entry in value.values())
