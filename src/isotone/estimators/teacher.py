"""Teacher: another model, from whose predictions members learn.

What a teacher says of the training rows has less noise than their targets, unless it memorizes
them, and trees find interactions of sharp columns that networks of bounded slope learn slowly. The
result holds networks and nothing else: its promises do not depend on the teacher. A teacher that
learned from rows on which members are judged makes them look a little better than they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from isotone.typing import Floats

_FARTHEST, _LEAST = 1e6, 1e-290  # from the targets, in units of the largest


def refuse_loss(loss: str, *known: str) -> None:
    """Raise `ValueError` for a loss with which a teacher cannot help."""
    if loss not in known:
        raise ValueError(
            f"`teacher` gives expected values, which `loss={loss!r}` does not use; choose "
            f"loss={known[0]!r}, or leave the teacher out"
        )


def fitted(teacher: Any, X: Any, y: Any, sample_weight: ArrayLike | None) -> Any:
    """The teacher if it is fitted, or a copy of it that has learned from these rows."""
    try:
        check_is_fitted(teacher)
    except NotFittedError:
        if sample_weight is None:
            return clone(teacher).fit(X, y)
        if not has_fit_parameter(teacher, "sample_weight"):
            raise ValueError(
                f"`teacher` is a {type(teacher).__name__}, whose `fit` takes no `sample_weight`, "
                "but rows have weights; give a teacher that takes them, or fit it yourself first"
            ) from None
        return clone(teacher).fit(X, y, sample_weight=sample_weight)
    return teacher


def values(teacher: Any, X: Any, y: Any, sample_weight: ArrayLike | None) -> Floats:
    """What a regressor says of rows, (n_rows, n_targets)."""
    if not hasattr(teacher, "fit") or not is_regressor(teacher):
        raise _unsuitable(teacher, "a regressor")
    said = np.asarray(fitted(teacher, X, y, sample_weight).predict(X), np.float64)
    most = _FARTHEST * max(float(np.abs(np.asarray(y, np.float64)).max()), _LEAST)
    _check(said, len(y), -most, most)
    return said.reshape(len(said), -1)


def probabilities(
    teacher: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    classes: NDArray[Any],
    class_weight: Floats,
) -> Floats:
    """The probability of the second of two classes that a classifier gives rows, (n_rows, 1).

    A teacher does not know of weights of the classes, which multiply the odds.
    """
    if not hasattr(teacher, "predict_proba") or not is_classifier(teacher):
        raise _unsuitable(teacher, "a classifier with probabilities")
    if len(classes) != 2:
        raise ValueError(
            f"`teacher` is for two classes but `y` holds {len(classes)}; leave it out, or learn "
            "one class against the others"
        )
    wise = fitted(teacher, X, y, sample_weight)
    known = np.asarray(wise.classes_)
    if not np.array_equal(known, classes):
        raise ValueError(
            f"`teacher` knows the classes {known.tolist()!r:.100} but `y` holds "
            f"{classes.tolist()!r:.100}; they must be the same: fit the teacher on these"
        )
    said = np.asarray(wise.predict_proba(X), np.float64)
    _check(said, len(y), 0.0, 1.0)
    weighted: Floats = said * class_weight
    second: Floats = weighted[:, 1:] / weighted.sum(axis=1, keepdims=True)
    return second


def _check(said: Floats, n_rows: int, low: float, high: float) -> None:
    """Raise `ValueError` unless there is a sound prediction for every row."""
    if len(said) != n_rows or not np.all((said >= low) & (said <= high)):
        raise ValueError(
            f"`teacher` says {said.ravel()[:3].tolist()!r:.60}, ... of {n_rows} rows; there must "
            f"be a number between {low:g} and {high:g} for each: look at its predictions"
        )


def _unsuitable(teacher: Any, wanted: str) -> ValueError:
    return ValueError(
        f"`teacher` is {teacher!r:.60}; it must be {wanted}, fitted or not: give "
        "HistGradientBoostingRegressor(...) or HistGradientBoostingClassifier(...), for example"
    )
