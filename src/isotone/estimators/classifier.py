"""MonotonicClassifier: a scikit-learn estimator whose probabilities have directions.

What `fit` learns is one certified `FrozenNetwork`, which takes raw features; no torch module is
kept, so estimators pickle. What is learned depends on the weighted set of training rows alone: not
on their order, and not on whether a row is repeated or has a larger weight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from isotone.checks import refuse_rivals
from isotone.estimators.directions import (
    class_directions,
    directions,
    is_table,
    missing_names,
    opposite_directions,
)
from isotone.estimators.estimator import MonotonicEstimator, lacks_score
from isotone.estimators.parameters import Watch
from isotone.estimators.preparation.observations import with_groups
from isotone.estimators.preparation.signed import mean_weights
from isotone.estimators.teacher import probabilities, refuse_loss
from isotone.estimators.validation import refuse_missing_classes
from isotone.losses import LOSSES
from isotone.training.recipe import History
from isotone.typing import ClassificationLoss, Floats, Indices, Signs


def _has_probabilities(estimator: Any) -> bool:
    if estimator.loss == "cross_entropy":
        return True
    raise AttributeError(
        f"`loss={estimator.loss!r}` gives no probabilities; use loss='cross_entropy', or "
        "calibrate with CalibratedClassifierCV"
    )


@dataclass(repr=False, eq=False)
class MonotonicClassifier(ClassifierMixin, MonotonicEstimator):  # type: ignore[misc]
    r"""Classifier whose probabilities rise or fall with the features you choose, certified.

    Parameters
    ----------
    monotonic_cst : -1, 0 or +1 per feature, or a dictionary by feature name; for two classes it
        is about the probability of the `positive` one. A table (n_classes, n_features),
        in the order of `classes_`, or a dictionary by class, {"good": {"income": 1}}, is about
        that of each class, and is needed for more than two. None leaves all features free. In a
        dictionary "missing(income)" is -1 if a missing income is never better than any income,
        all else being equal, and +1 if it is never worse; this needs missing="indicator"
    joint_cst : directions of several columns together, each a dictionary of rates in raw units.
        The score never falls along them: {"income": 1, "debt": -1} says that income matters at
        least as much as debt. Columns in them have no knots and no logarithm; needs one target or
        two classes
    interaction_cst : groups of columns that may interact, by name or position, such as
        [["age", "income"], ["city"]], "no_interactions" or "pairwise", as for HistGradientBoosting
        of scikit-learn. A logit is then a sum of functions of one group each, which `certificate_`
        proves. Groups may overlap; columns in no group form one more. None lets all interact
    lipschitz : λ: per unit of a feature a logit changes by at most λ, along a feature with a
        direction by at most 2λ. "auto" learns one for every feature and chooses knots and epochs
        on rows that members leave out; see `isotone.estimators.fitting.search`. One number, one
        per feature or a dictionary by feature name gives them; features that a dictionary does not
        name share one that is chosen from a ladder. "learned" learns them from all rows, without a
        search
    lipschitz_max : the largest λ that may be learned
    lipschitz_units : "scaled" for λ per scaled unit (about a standard deviation of the column),
        "raw" for λ per raw unit (and per unit of the target)
    hidden_layer_sizes : widths of the hidden layers. With `interaction_cst` every group of columns
        gets its share of the units, rounded up to whole sorts: layers may become wider
    group_size : size of the groups that are sorted; None sorts whole layers; "auto" takes the
        largest up to 8 that divides all widths. With `interaction_cst` it takes 8 if every group
        of columns can have such a sort in layers as wide as asked for, otherwise 4, or 2 for more
        than 64 groups
    loss : "cross_entropy", or for two classes "hinge" or "dynamic_hinge", which give no
        probabilities
    temperature : τ of Eq. 13: the logit is τ times a score of slope λ
    class_weight : None, "balanced" or a dictionary by class
    positive : of two classes, the one that `network_` scores; None is the second, ``classes_[1]``.
        What `decision_function` and `predict_proba` give does not depend on it
    scaling : "identity", "standard", "robust", "log", `isotone.Log(...)`, or "auto", which takes
        the logarithm of skewed columns; one for all, one per feature or a dictionary by name
    knots : pieces that a column of numbers is divided into; the network may have another slope on
        each, and is constant beyond the training values. "auto" tries 16 and 64 and none, if λ is
        "auto", too; one number, one per feature, a dictionary by feature name, or None. Replaces
        the scaling of these columns
    categorical_features : columns whose numbers are names, besides those whose type says so: a
        list of names or positions, or True and False for every column. "from_dtype" leaves it to
        the types; None refuses all categories without an order
    min_frequency : the fewest training rows, or the least share of them (between 0 and 1), of a
        category that is learned on its own. Rarer ones share one feature, "other(city)", and a
        new category is scored as one of them, whatever `on_unseen` says. 1 pools nothing; ordered
        categories are never pooled
    n_members : number of networks to train; their average is frozen into one. Where λ is
        "auto", each leaves out a part of the rows, on which it is judged
    missing : "error", or "indicator": learn from missing values (NaN); directions hold among the
        rows where a value is present, and between a missing value and any other only where
        `monotonic_cst` says so
    on_unseen : what `predict` and others do with a row that contains values never seen in
        training, such as a new category: raise an "error", treat them as "missing", give no score
        ("skip", NaN; None for a class; `score` leaves it out) or this logit; see `isotone.Engine`
    batch_size : "auto" is an eighth of the distinct rows, but between 32 and 512; where λ is
        "auto", 64, from 4000 rows on 128, and from 16 000 on 256
    learning_rate_init : at the start; a cosine schedule takes it to a fiftieth. "auto" is 0.005
        where λ are learned and 0.02 elsewhere
    teacher : None, or a classifier for two classes (for `MonotonicRegressor` a regressor), such as
        a boosted one with the same directions, from whose predictions members learn; they are
        judged by the true targets. It gets the table as `fit` does. One that is not fitted learns
        from that first; to keep one fitted where scikit-learn clones estimators, as in
        cross-validation, wrap it in `sklearn.frozen.FrozenEstimator`
    signed_weights : whether a `sample_weight` may be negative, as sWeights are. The loss would
        then have no lower bound; so weights are replaced by an estimate of their mean given
        features and class, which is never negative, and every class keeps its total, which must be
        positive; see `isotone.estimators.preparation.signed`. Needs rows in memory
    warm_start : whether `fit` continues with the networks of the last fit. Inputs, scaling, knots
        classes and the units of the target stay those of the first fit, and so do all parameters
        but those of training; `random_state` no longer counts. Rows may be others, but what only
        the old ones said may be forgotten. Set it before the first fit, in which members then
        leave out rows by their values, so that more rows do not change which these are. Not for
        data sets that are streamed
    max_iter : most epochs. Where λ is "auto", large tables take fewer, and training ends when the
        loss on left-out rows stops falling, unless the table is streamed from disk
    early_stopping : where λ is not "auto": keep the best epoch on a `validation_fraction` of the
        rows, or on the `eval_set` of `fit`, and stop after `n_iter_no_change` epochs in which the
        loss has not fallen by `tol`
    n_jobs : threads that train, among which members are shared out, -1 for one per core; the
        result is the same, bit for bit, with any number. None means as many as torch has, one per
        core unless OMP_NUM_THREADS says otherwise: like HistGradientBoosting, and unlike most of
        scikit-learn, where None is one
    random_state, verbose : as in scikit-learn; `verbose` shows progress and the chosen λ

    Attributes
    ----------
    classes_ : names of the classes, sorted
    network_ : the certified `FrozenNetwork`, raw features in, logits out; for two classes that of
        the `positive` one
    certificate_ : what it guarantees
    lipschitz_ : λ per feature, in `lipschitz_units`
    history_ : losses of every epoch and member; of a mixture those of its largest part
    n_iter_ : epochs trained, likewise
    feature_importances_ : by how much the score changes, on average over the training rows, when a
        column has the value of another row; shares of 1, one per raw column

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

    _: KW_ONLY
    loss: ClassificationLoss = "cross_entropy"
    temperature: float = 1.0
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
    positive: Any = None

    _losses = get_args(ClassificationLoss)

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
        """Learn from raw rows (n_rows, n_features), dense or sparse, and their classes.

        `X` may be a `pyarrow.dataset.Dataset` of Parquet files, or the path of a directory of
        them, of any size; `y` and `sample_weight` are then names of columns, and `groups` is one
        name or a list of several.

        Parameters
        ----------
        groups : (n_rows,), a label for every row, such as the number of its event. Wherever rows
            are left out to judge members, all of a group are: λ, knots and epochs are then chosen
            on groups that were not learned from
        eval_set : (X_val, y_val), or a list with one such pair. Their losses, all rows counting
            alike, are in `history_.validation`. Where λ is "auto", and for `early_stopping`, they
            decide in place of rows that are left out, and all rows of X are learned from
        callbacks : functions of an epoch, counted from 0, and the history so far, called after
            every epoch of members that may be kept; the training of these stops if one returns
            True. Where λ is "auto", small tables have several candidates, one after the other, and
            `history.validation` is empty where nothing is validated
        workers : for a data set on disk: a number of processes, or a `dask.distributed.Client`
            whose workers see the files under the same paths. They train members, and candidates of
            a search, one each at a time; the model is the same, bit for bit. A data set of up to
            262,144 rows is read and trained in this process
        """
        watch = Watch.of(eval_set, callbacks)
        watch.refuse_workers(workers)
        X, y, sample_weight, groups, stream = self._in_memory(X, y, sample_weight, groups, workers)
        refuse_missing_classes(y)
        parameters, rows = self._read(X, y, sample_weight, stream)
        rows = with_groups(rows, groups)
        check_classification_targets(rows.y)
        if self._warm() is None:
            self.classes_ = np.unique(rows.y)
            self._check_classes()
        turned = self.positive is not None and self.positive == self.classes_.tolist()[0]
        self._sign = -1 if turned else 1  # whether the network scores the first of two classes
        labels = self._places("y", rows.y)
        if self.signed_weights and stream is not None:
            rows, stream = stream.positive(rows, labels, self.classes_.tolist())
        elif self.signed_weights:
            sample_weight = mean_weights(rows, labels, self.classes_.tolist())
            rows = replace(rows, weight=sample_weight)
        counted = (rows.y, rows.weights()) if stream is None else stream.totals()
        class_weight = self._class_weights(*counted)
        if stream is not None:
            stream = stream.of_classes(self.classes_, class_weight, self._sign)
        weight = rows.weights() * class_weight[labels]
        said = None
        if self.teacher is not None:
            refuse_loss(self.loss, "cross_entropy")
            second = probabilities(self.teacher, X, y, sample_weight, self.classes_, class_weight)
            said = second if self._sign > 0 else 1.0 - second
        return self._learn(
            parameters,
            replace(rows, y=self._numbered(labels), weight=weight),
            loss=LOSSES[self.loss](),
            n_outputs=self._n_logits,
            watch=watch,
            classes=tuple(str(name) for name in self.classes_[:: self._sign]),
            stream=stream,
            said=said,
        )

    def decision_function(self, X: Any) -> Floats:
        """Logit of the second class (n_rows,), or those of all classes (n_rows, n_classes)."""
        score = self._score_rows(X)
        return self._sign * score

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely class of every row."""
        score = self.decision_function(X)
        classes, unknown = self._decide(score), lacks_score(score)
        if unknown.any():
            classes = classes.astype(object)
            classes[unknown] = None
        return classes

    def _decide(self, score: Floats) -> NDArray[Any]:
        index = (score >= 0).astype(int) if score.ndim == 1 else score.argmax(axis=1)
        classes: NDArray[Any] = self.classes_[index]
        return classes

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy among the rows that get a score; see `on_unseen`."""
        score, y, weight = self._score_known(X, y, sample_weight)
        return float(accuracy_score(y, self._decide(self._sign * score), sample_weight=weight))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probability of every class, (n_rows, n_classes)."""
        score = self._score_rows(X)
        probability = self.network_.to_probability(score)
        if probability.ndim == 2:
            return probability
        return np.column_stack([1.0 - probability, probability][:: self._sign])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithm of `predict_proba`."""
        log: Floats = np.log(self.predict_proba(X))
        return log

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.loss == "cross_entropy"
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
        if n_classes > 2 and self.loss != "cross_entropy":
            raise ValueError(
                "Only binary classification is supported. "  # the words that scikit-learn expects
                f"`loss={self.loss!r}` is for 2 classes but `y` holds {n_classes}; use "
                "'cross_entropy'"
            )
        if self.positive is not None and (
            n_classes > 2 or self.positive not in self.classes_.tolist()
        ):
            raise ValueError(
                f"`positive={self.positive!r}` must be one of two classes but `y` holds "
                f"{self.classes_.tolist()!r:.100}; name one of these, or leave it out"
            )
        cst = self.monotonic_cst
        if n_classes > 2 and not (cst is None or isinstance(cst, Mapping) or np.ndim(cst) == 2):
            raise ValueError(
                f"`monotonic_cst` has one direction per feature but `y` holds {n_classes} "
                f"classes; give a table ({n_classes}, n_features), a row for every class, or a "
                "dictionary by class"
            )

    def _targets(self, name: str, y: NDArray[Any]) -> Floats:
        return self._numbered(self._places(name, y))

    def _places(self, name: str, y: NDArray[Any]) -> Indices:
        """The place of every label among the classes."""
        found, place = np.unique(column_or_1d(y), return_inverse=True)
        places = {label: k for k, label in enumerate(self.classes_.tolist())}
        for label in found.tolist():
            if label not in places:
                raise ValueError(
                    f"`{name}` holds the class {label!r}, which was not learned; a model knows "
                    f"only {', '.join(map(repr, places))!s:.100}: drop such rows"
                )
        return np.array([places[label] for label in found.tolist()], np.intp)[place]

    def _numbered(self, labels: Indices) -> Floats:
        """Numbers of the classes, (n_rows, 1); of two, 1 is the one that is scored."""
        return (labels if self._sign > 0 else 1 - labels)[:, None].astype(np.float64)

    def _directions(self, names: list[str], n_outputs: int) -> Signs:
        value: Any = self.monotonic_cst
        if isinstance(value, Mapping) and (n_outputs > 1 or not _is_flat(value)):
            value = {k: self._by_name(f"monotonic_cst[{k!r}]", v) for k, v in value.items()}
            table = class_directions(value, names, self.classes_.tolist())
        else:
            value = self._by_name("monotonic_cst", value)
            of_both = n_outputs == 1 and is_table(value) and len(value) == 2
            table = directions(value, names, 2 if of_both else n_outputs)
        if n_outputs > 1:
            refuse_rivals(table, [*names, *missing_names(names)], self.classes_.tolist())
        of_pair = len(table) > n_outputs
        return self._sign * opposite_directions(table, names) if of_pair else table

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


def _is_flat(value: Mapping[Any, Any]) -> bool:
    """Whether a dictionary holds directions, not further dictionaries or lists of them."""
    return not any(isinstance(entry, Mapping) or np.ndim(entry) for entry in value.values())
