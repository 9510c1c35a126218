"""Of two classes, `positive` is the one that the model file scores; predictions are as ever."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from isotone import MonotonicClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=80) > 0, "good", "bad")
QUICK: dict[str, Any] = {"max_iter": 5, "n_members": 1, "hidden_layer_sizes": (8,), "lipschitz": 2}


def fitted(**options: Any) -> MonotonicClassifier:
    return MonotonicClassifier(random_state=0, **QUICK, **options).fit(X, Y)


@pytest.mark.parametrize("cst", [[-1, 0], [[-1, 0], [1, 0]], [[0, 0], [1, 0]]])
def test_the_network_is_about_the_positive_class(cst: Any) -> None:
    model = fitted(positive="bad", monotonic_cst=cst)
    assert model.classes_.tolist() == ["bad", "good"]
    assert model.network_.classes == ("good", "bad")
    assert model.network_.monotonic_cst.tolist() == [[-1, 0]]
    score = model.decision_function(X)
    np.testing.assert_array_equal(score, -model.network_.score(X))
    np.testing.assert_array_equal(model.predict(X), np.where(score >= 0, "good", "bad"))
    probability = model.network_.probability(X)
    np.testing.assert_array_equal(
        model.predict_proba(X), np.column_stack([probability, 1 - probability])
    )
    assert model.score(X, Y) == np.mean(model.predict(X) == Y) > 0.6


def test_only_a_fit_turns_the_network() -> None:
    model = fitted(positive="bad")
    before = model.decision_function(X)
    np.testing.assert_array_equal(model.set_params(positive=None).decision_function(X), before)
    with pytest.raises(NotFittedError):
        MonotonicClassifier(positive="bad").decision_function(X)


def test_the_second_class_is_the_default() -> None:
    one, two = fitted(), fitted(positive="good")
    assert one.network_.fingerprint == two.network_.fingerprint


@pytest.mark.parametrize(("positive", "y"), [("fine", Y), ("bad", np.arange(80) % 3)])
def test_it_must_be_one_of_two_classes(positive: str, y: Any) -> None:
    with pytest.raises(ValueError, match=r"`positive='.*'` must be one of two classes but `y`"):
        MonotonicClassifier(positive=positive, **QUICK).fit(X, y)
