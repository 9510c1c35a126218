"""Automatic choices: the scaling that fits a column, and λ that nobody gave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from isotone import Log
from isotone.estimators.directions import check_lipschitz
from isotone.estimators.fitting.automatic import choose_scaling

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (RNG.normal(size=500), "standard"),
        (RNG.uniform(size=500), "standard"),
        (np.zeros(500), "standard"),
        ((RNG.random(500) < 0.1).astype(float), "standard"),
        (RNG.lognormal(size=500), Log()),
        (RNG.standard_cauchy(size=500), "robust"),
        (RNG.standard_cauchy(size=500) * (RNG.random(500) < 0.1), "standard"),
    ],
)
def test_the_scaling_fits_the_column(x: Any, kind: Any) -> None:
    assert choose_scaling(x, np.ones(500)) == kind


def test_counts_with_zeros_get_a_logarithm_with_an_offset() -> None:
    kind = choose_scaling(np.floor(RNG.lognormal(1.0, 1.5, 500)), np.ones(500))
    assert isinstance(kind, Log)
    assert kind.offset > 0


def test_what_a_dictionary_of_slopes_leaves_out_is_to_be_chosen() -> None:
    given = check_lipschitz({"a": 2.0, "b": 0.5}, ["a", "b", "c"])
    np.testing.assert_array_equal(given, [2.0, 0.5, np.nan])
