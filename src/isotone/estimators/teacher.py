"""Teacher: another model, from whose predictions members learn.

What a teacher says of the training rows has less noise than their targets, and trees find
interactions of sharp columns that networks of bounded slope learn slowly. The result holds
networks and nothing else: its promises do not depend on the teacher.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from isotone.typing import Floats


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
    return said.reshape(len(said), -1)


def probabilities(
    teacher: Any, X: Any, y: Any, sample_weight: ArrayLike | None, classes: NDArray[Any]
) -> Floats:
    """The probability of the second of two classes that a classifier gives rows, (n_rows, 1)."""
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
    return np.asarray(wise.predict_proba(X), np.float64)[:, 1:]


def _unsuitable(teacher: Any, wanted: str) -> ValueError:
    return ValueError(
        f"`teacher` is {teacher!r:.60}; it must be {wanted}, fitted or not: give "
        "HistGradientBoostingRegressor(...) or HistGradientBoostingClassifier(...), for example"
    )
