"""MonotonicEstimator: what the classifier and the regressor share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, check_X_y
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from isotone.certificate.robustness import Radius
from isotone.checks import check_choice
from isotone.estimators.columns import check_categories, find_inputs, refuse_missing
from isotone.estimators.directions import by_name, directions, joint_directions, spread
from isotone.estimators.fitting.fit import Fit, fit_network
from isotone.estimators.fitting.members import Run
from isotone.estimators.fitting.start import Start
from isotone.estimators.fitting.stream import Options, Stream, in_memory
from isotone.estimators.fitting.trial import Task
from isotone.estimators.importance import importances
from isotone.estimators.interactions import groups_of, refuse_apart, refuse_sorted_sums
from isotone.estimators.notebook import WithBadge
from isotone.estimators.parameters import (
    Categorical,
    Directions,
    Lipschitz,
    Parameters,
    TileCounts,
    Units,
    Watch,
    fixed_parameters,
    refuse_changes,
)
from isotone.estimators.pooling import Rarity
from isotone.estimators.preparation.knots import check_knots
from isotone.estimators.preparation.missing import complete, refuse_directed
from isotone.estimators.preparation.oblique import check_joined
from isotone.estimators.preparation.observations import taught_observations
from isotone.estimators.preparation.units import TargetUnits
from isotone.estimators.validation import (
    SparseTable,
    by_names,
    densified,
    framed,
    refuse_huge,
    refuse_infinite,
    row_weights,
    validate,
    validate_names,
)
from isotone.freezing.margin import certified
from isotone.frozen.joint import JointDirection
from isotone.inputs.chain import Inputs, Policy, has_features, refuse_one_score
from isotone.inputs.columns import Category
from isotone.inputs.frames import column_names, has_names
from isotone.losses import Loss
from isotone.nn.interactions import Interactions
from isotone.training.rows import Rows
from isotone.typing import Bools, Floats, Gaps, Signs


@dataclass(repr=False, eq=False)
class MonotonicEstimator(WithBadge, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: parameters, which are stored untouched, and how they fit."""

    monotonic_cst: Directions = None
    _: KW_ONLY
    joint_cst: Sequence[Mapping[Any, float] | ArrayLike] | None = None
    interaction_cst: Interactions = None
    lipschitz: Lipschitz = "auto"
    lipschitz_max: float = 8.0
    lipschitz_units: Units = "scaled"
    hidden_layer_sizes: int | tuple[int, ...] = (32, 32)
    group_size: int | Literal["auto"] | None = "auto"
    scaling: Any = "auto"
    knots: TileCounts = "auto"
    categorical_features: Categorical = "from_dtype"
    min_frequency: float = 1
    n_members: int = 4
    teacher: Any = None
    signed_weights: bool = False
    missing: Gaps = "error"
    on_unseen: Policy = "error"
    batch_size: int | Literal["auto"] = "auto"
    learning_rate_init: float | Literal["auto"] = "auto"
    max_iter: int = 200
    early_stopping: bool = False
    validation_fraction: float = 0.2
    n_iter_no_change: int = 20
    tol: float = 1e-4
    warm_start: bool = False
    n_jobs: int | None = None
    random_state: Any = None
    verbose: bool = False

    _losses: ClassVar[tuple[str, ...]]
    _labels: list[Any] | None = field(default=None, init=False)
    _checkpoints: Path | None = field(default=None, init=False)
    _inputs: Inputs = field(default_factory=Inputs, init=False)
    _start: Start | None = field(default=None, init=False)
    _started: Mapping[str, str] = field(default_factory=dict, init=False)

    def keep_checkpoints(self, directory: str | Path) -> Self:
        """Let `fit` write checkpoints there, and continue from those of a run that was killed."""
        self._checkpoints = Path(directory).absolute()  # workers may stand elsewhere
        self._checkpoints.mkdir(parents=True, exist_ok=True)
        return self

    def certified_radius(self, X: Any, threshold: float = 0.0) -> Radius:
        """How far every row may move before its decision can change.

        That is score ≥ `threshold` for one output of `network_` (a logit, or the target), and what
        `predict` gives for more classes; see `Certificate.certified_radius`.
        """
        check_is_fitted(self)
        return self.certificate_.certified_radius(self._raw(X), threshold, self.on_unseen)

    def save(self, path: str | Path) -> None:
        """Write `network_` to one `.isotone` file, which `isotone.load` reads without torch."""
        check_is_fitted(self)
        self.network_.save(path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "indicator"
        return tags

    def _score_rows(self, X: Any) -> Floats:
        check_is_fitted(self)
        refuse_one_score(self.on_unseen, self.network_.n_outputs)
        return self.network_.score(self._raw(X), self.on_unseen).astype(np.float64)

    def _score_known(
        self, X: Any, y: Any, weight: ArrayLike | None
    ) -> tuple[Floats, NDArray[Any], NDArray[Any] | None]:
        """Scores, targets and weights of the rows that get a score; see `on_unseen`."""
        scores = self._score_rows(X)
        check_consistent_length(scores, y, weight)
        known = ~lacks_score(scores)
        if not known.any() and len(known):
            raise ValueError(
                f"none of {len(known)} rows gets a score: each holds values never seen in "
                "training; at least one row must have a score: give others, or change `on_unseen`"
            )
        some = None if weight is None else np.asarray(weight)[known]
        return scores[known], np.asarray(y)[known], some

    def _raw(self, X: Any) -> Any:
        """A raw table whose columns are those of the training rows."""
        X = framed(X)
        if has_names(X):
            validate_names(self, X, reset=False)
            return X
        finite = "allow-nan" if self.on_unseen == "error" else False
        if issparse(X):
            rows = validate(self, X, reset=False, accept_sparse="csr", ensure_all_finite=finite)
            return SparseTable(rows, self._names())
        if self.on_unseen != "error":
            return self._named(validate(self, X, reset=False, ensure_all_finite=finite))
        X = validate(self, X, reset=False)
        if self.missing == "error" and np.isnan(X).any():
            refuse_missing(Inputs.numbers(self._names()), X)
        return self._named(X)

    def _named(self, X: Floats) -> Any:
        """An array as it is, or by the names of its columns if some hold categories."""
        if not any(isinstance(column, Category) for column in self._inputs.columns):
            return X
        return by_names(X, self._names())

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

    def _joint_directions(self, missing: Signs) -> tuple[JointDirection, ...]:
        """`joint_cst` by name of the columns, which may not have another meaning."""
        known = joint_directions(self.joint_cst, self._labels, self._names())
        check_joined(known, self._inputs, missing, self._by_name("knots", self.knots))
        return tuple(known)

    def _in_memory(
        self, X: Any, y: Any, weight: Any, groups: Any, workers: Any
    ) -> tuple[Any, Any, Any, Any, Stream | None]:
        """Rows in memory, or a sample of the stream that they come from."""

        def n_held(n_rows: int) -> int:
            return Parameters.of(self).n_held(n_rows)  # checked before anything is read

        signed, verbose = bool(self.signed_weights), bool(self.verbose)
        options = Options(self.categorical_features, n_held, signed, verbose)
        *rows, stream = in_memory(X, y, weight, groups, workers, options)
        if stream is not None:
            self._refuse_streamed(stream)
        return *rows, stream

    def _read(
        self, X: Any, y: Any, sample_weight: Any, stream: Stream | None, **check: Any
    ) -> tuple[Parameters, Rows]:
        """Checked parameters, and rows with a weight each."""
        check_choice("loss", self.loss, self._losses)
        parameters = Parameters.of(self)
        if self._warm() is not None:
            return parameters, self._read_again(X, y, sample_weight, **check)
        self._start = None  # whatever happens now: its networks see what is about to change
        X = framed(densified(X))
        self._labels = column_names(X) if has_names(X) else None
        if self._labels is None:
            X, y = validate(self, X, y, **check)
        else:
            validate_names(self, X, reset=True)
        names = self._names()
        weight = row_weights(self, X, sample_weight)
        categories = check_categories(self.categorical_features, self._labels, names)
        if self._labels is None and not categories:
            self._inputs = Inputs.numbers(names)
        else:
            X = X if has_names(X) else by_names(X, names)
            levels = {} if stream is None else stream.survey.levels
            rarity = Rarity(parameters.min_frequency, np.abs(weight), levels)
            self._inputs = find_inputs(X, names, rarity, categories)
            X, y = self._encode(X, y, **check)
        refuse_huge("X", X, self._inputs.uncompleted)
        return parameters, Rows(X, y, weight)

    def _warm(self) -> Start | None:
        """Where a warm start begins; None if there is none, or nothing to begin with."""
        if self.warm_start and self._start is not None:
            refuse_changes(self, self._started)
        return self._start if self.warm_start else None

    def _read_again(self, X: Any, y: Any, sample_weight: Any, **check: Any) -> Rows:
        """Rows of a warm start, complete, with the inputs of the first fit."""
        policy: Policy = "missing" if self.on_unseen == "missing" else "error"
        X = self._inputs.encode(self._raw(densified(X)), on_unseen=policy)
        X, y = check_X_y(X, y, dtype=np.float64, estimator=self, **check)
        refuse_huge("X", X, self._inputs.encoded)
        weight = row_weights(self, X, sample_weight)
        return Rows(X, y, weight)

    def _encode(self, X: Any, y: Any, **check: Any) -> tuple[Floats, Any]:
        """Features of a table without indicators, NaN where values are missing, and targets."""
        parts = [np.column_stack(self._inputs.read(raw)) for raw in self._inputs.batches(X)]
        table = np.concatenate(parts)
        refuse_infinite(table, self._inputs.uncompleted)
        kind = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "estimator": self}
        return tuple(check_X_y(table, y, **kind, **check))

    def _learn(
        self,
        parameters: Parameters,
        rows: Rows,
        loss: Loss,
        n_outputs: int,
        watch: Watch,
        classes: tuple[str, ...] | None = None,
        stream: Stream | None = None,
        said: Floats | None = None,
    ) -> Self:
        """Fit the network to targets (n_rows, n_targets), or to those of a stream.

        Parameters
        ----------
        said : what a teacher says of the targets
        """
        refuse_one_score(parameters.on_unseen, n_outputs)
        wanted = check_knots(self._by_name("knots", parameters.knots), self._inputs)
        start = self._warm()
        if start is None:
            task = self._task(parameters, rows, loss, n_outputs, wanted, watch, classes, said)
        else:
            task = start.task.of(*taught_observations(rows, said), self._validation(watch))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        run = Run(seed, self._checkpoints, watch.stops)
        lipschitz = self._by_feature("lipschitz", parameters.lipschitz, None)
        parameters = replace(parameters, lipschitz=lipschitz)
        fit = fit_network(task, parameters, wanted, run, stream, start)
        self._keep(fit)
        self.feature_importances_ = importances(self.network_, task.rows, seed)
        return self

    def _task(
        self,
        parameters: Parameters,
        rows: Rows,
        loss: Loss,
        n_outputs: int,
        wanted: Mapping[str, int],
        watch: Watch,
        classes: tuple[str, ...] | None,
        said: Floats | None,
    ) -> Task:
        names = self._names()
        table = self._directions(names, n_outputs)
        cst, missing = table[:, : len(names)], table[:, len(names) :]
        groups = groups_of(self.interaction_cst, self._labels, names)
        refuse_sorted_sums(groups, loss)
        if parameters.missing == "error":
            refuse_missing(self._inputs, rows.x)
            refuse_directed(missing, names)
        joint = self._joint_directions(missing)
        refuse_apart(groups, joint, names)
        completed = complete(self._inputs, rows.x, rows.weights(), cst, missing, wanted)
        self._inputs = completed.inputs
        distinct, said = taught_observations(replace(rows, x=completed.X), said)
        return Task(
            rows=distinct,
            inputs=completed.inputs,
            directions=cst,
            missing=missing,
            loss=loss,
            units=self._units(distinct, n_outputs),
            kinds=self._by_feature("scaling", parameters.scaling, "auto"),
            knots=completed.knots,
            groups=groups,
            classes=classes,
            validation=self._validation(watch),
            said=said,
            joint_cst=joint,
        )

    def _refuse_streamed(self, stream: Stream) -> None:
        """Raise `ValueError` for missing values, and for what needs all rows in memory."""
        if self.missing == "error":
            stream.refuse_missing()  # counts all rows, not only those of the sample
        wanted = {"teacher": self.teacher is not None, "warm_start": bool(self.warm_start)}
        for name in (name for name, is_wanted in wanted.items() if is_wanted):
            raise ValueError(
                f"`{name}` needs rows in memory but the data set is too large for that; leave it "
                "out, or give fewer rows"
            )

    def _keep(self, fit: Fit) -> None:
        """Certify what was learned, and make it public."""
        self.network_, self.certificate_ = certified(fit.network)
        if not all(verdict.computed for verdict in self.certificate_.missing):
            raise RuntimeError("the direction of a missing value is not proved; report a bug")
        self._start, self._started = fit.start, fixed_parameters(self)
        self.history_, self.n_iter_ = fit.history, fit.history.n_epochs
        self.lipschitz_ = fit.lipschitz

    def _validation(self, watch: Watch) -> Rows | None:
        """Complete features and targets of the rows to validate on, if they get a score."""
        if watch.validation is None:
            return None
        X, y = watch.validation
        features = self._inputs.encode(self._raw(X), on_unseen=self.on_unseen)
        refuse_huge("eval_set", features, self._inputs.encoded)
        check_consistent_length(features, y)
        known = has_features(features)
        if not known.any():
            raise ValueError(
                f"none of {len(known)} rows of `eval_set` gets a score; at least one must: give "
                "rows whose values training has, or change `on_unseen`"
            )
        return Rows(features[known], self._targets("eval_set", np.asarray(y))[known])

    @abstractmethod
    def _targets(self, name: str, y: NDArray[Any]) -> Floats:
        """Raw targets as a network learns them, (n_rows, n_targets); `name` is for messages."""

    def _units(self, rows: Rows, n_outputs: int) -> TargetUnits:
        """Units of the outputs; those of logits are their own."""
        return TargetUnits(np.ones(n_outputs), np.zeros(n_outputs))


def lacks_score(scores: Floats) -> Bools:
    """The rows that hold what no training row held, if such rows get no score."""
    return np.asarray(np.isnan(scores.reshape(len(scores), -1)[:, 0]))
