"""Importance is measured: mean sizes of contributions, and effects as estimators state them."""

from __future__ import annotations

import numpy as np
import pytest

from isotone.estimators.importance import importances
from isotone.explanation import explain, measure_importance
from isotone.explanation.importance import effects
from isotone.training.rows import Rows
from networks import PEOPLE, mixed, small


def test_it_is_the_mean_size_of_contributions() -> None:
    frozen = mixed()
    reasons = explain(frozen, PEOPLE, PEOPLE)
    found = measure_importance(frozen, reasons, PEOPLE)
    assert found.columns == frozen.inputs.names
    np.testing.assert_allclose(found.contribution, np.abs(reasons.contributions).mean(axis=0))
    assert found.effect.sum() == pytest.approx(1.0)


def test_effects_are_those_of_estimators() -> None:
    frozen, x = small(), np.random.default_rng(0).normal(size=(2048, 3))
    shares = importances(frozen, Rows(x, np.zeros((2048, 1)), np.ones(2048)), seed=3)
    np.testing.assert_array_equal(shares, effects(frozen, x, seed=3))


def test_rows_without_contributions_do_not_count() -> None:
    frozen = mixed()
    strange = PEOPLE | {"city": ["Oslo", "Nowhere", None, "Oslo", "Rome"]}
    reasons = explain(frozen, strange, PEOPLE, on_unseen="skip")
    found = measure_importance(frozen, reasons, strange)
    known = np.isfinite(reasons.score)
    expected = np.abs(reasons.contributions[known]).mean(axis=0)
    np.testing.assert_allclose(found.contribution, expected)
