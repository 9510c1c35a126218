"""Scaling: increasing, invertible, and honest about its slopes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isotone import Log, Scaling
from isotone.inputs.scaling import as_numbers, finite_table, without_na

KINDS: list[Any] = ["identity", "standard", "robust", "log", Log(offset=2.0, floor=1e-3)]


def table(n: int = 500, seed: int = 0) -> Any:
    return np.random.default_rng(seed).lognormal(1.0, 1.5, (n, len(KINDS)))


def test_inverse_after_transform_is_the_identity_up_to_slip() -> None:
    X = table()
    scaling = Scaling.fit(X, KINDS)
    x = scaling.transform(X)
    assert np.all(np.abs(scaling.transform(scaling.inverse(x)) - x) <= scaling.slip(np.abs(x)))


def test_computed_map_is_monotone_for_one_ulp_and_for_large_steps() -> None:
    X = table(20_000)
    scaling = Scaling.fit(X, KINDS)
    for higher in (np.nextafter(X, np.inf), X * (1 + 1e-7), X + 1e-3, X * 2):
        assert np.all(scaling.transform(X) <= scaling.transform(higher))


def test_slopes_lie_between_flattest_and_steepest() -> None:
    X = table()
    scaling = Scaling.fit(X, KINDS)
    step = 1e-3 * (X + 1)
    slope = (scaling.transform(X + step) - scaling.transform(X)) / step
    assert np.all(slope <= scaling.steepest() * (1 + 1e-3))
    assert np.all(slope >= scaling.flattest() * (1 - 1e-3))


def test_standard_has_mean_zero_and_spread_one_on_training_rows() -> None:
    x = Scaling.fit(table(), "standard").transform(table())
    assert np.allclose(x.mean(axis=0), 0)
    assert np.allclose(x.std(axis=0), 1)


def test_constant_column_is_only_shifted() -> None:
    scaling = Scaling.fit(np.full((5, 2), 7.0), ["standard", "robust"])
    assert np.array_equal(scaling.transform([[7.0, 8.0]]), [[0.0, 1.0]])


def test_log_below_its_floor_is_flat() -> None:
    scaling = Scaling.fit([[0.0], [3.0]], [Log(floor=0.5)])
    assert scaling.transform([[-9.0]]) == scaling.transform([[0.5]])


def test_the_largest_number_has_a_logarithm() -> None:
    scaling = Scaling.fit([[1.0], [3.0]], ["log"])
    assert np.isfinite(scaling.transform([[np.finfo(float).max]])).all()


def test_log_without_standardizing_is_the_plain_logarithm() -> None:
    scaling = Scaling.fit([[1.0], [3.0]], [Log(standardize=False)])
    assert scaling.transform([[2.0]])[0, 0] == pytest.approx(np.log(2.0), abs=1e-12)


def test_dictionary_round_trip() -> None:
    scaling = Scaling.fit(table(), KINDS)
    copy = Scaling.from_dict(scaling.to_dict())
    assert copy.to_dict() == scaling.to_dict()
    assert np.array_equal(copy.transform(table()), scaling.transform(table()))


@pytest.mark.parametrize("shape", [(5, 1), (3,), (5, 2, 3)])
def test_a_table_of_another_shape_is_not_broadcast(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="the scaling has 3 columns"):
        Scaling.identity(3).transform(np.zeros(shape))


def test_arrays_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Scaling.identity(2).center[0] = 1.0


@pytest.mark.parametrize(
    ("X", "kinds", "message"),
    [
        ([[0.0], [1.0]], "log", "column 0 has a minimum of 0.0"),
        ([[0.0], [1.0]], "cubic", "'cubic' for column 0; choose 'identity'"),
        ([[0.0], [np.nan]], "standard", "column 0 is nan in row 1"),
        ([[0.0, 1.0]], ["standard"], "names 1 columns but `X` has 2"),
        (np.empty((0, 2)), "standard", "at least one"),
        ([1.0, 2.0], "standard", "must have rows and columns"),
        ([[1.0]], Log(floor=-1.0), "`floor=-1.0` of column 0 must be positive"),
        ([["a"]], "standard", "not a numeric table"),
        (np.ma.array([[1.0]], mask=True), "standard", "not a numeric table"),
        ([[1j]], "standard", "not a numeric table"),
        ([[10**400]], "standard", "not a numeric table"),
    ],
)
def test_bad_input_is_explained(X: Any, kinds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Scaling.fit(X, kinds)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"factor": [-1.0]}, "`factor` of column 0 is -1.0; it must be positive"),
        ({"factor": [np.inf]}, "finite numbers"),
        ({"log": [True], "floor": [0.0]}, "`floor` of column 0"),
        ({"center": [0.0, 1.0]}, "arrays of one length"),
        ({"center": ["x"]}, "a list of numbers was expected"),
        ({"center": [True]}, "a list of numbers was expected"),
        ({"center": 1.0}, "a list of numbers was expected"),
        ({"log": ["a"]}, "must hold true or false"),
        ({"log": [True, 1]}, "must hold true or false"),
    ],
)
def test_a_map_that_is_not_increasing_cannot_be_made(change: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Scaling.from_dict(Scaling.identity(1).to_dict() | change)


def test_describe_is_a_formula() -> None:
    assert Scaling.identity(1).describe(0) == "x"
    change = {"log": [True], "factor": [2.0], "offset": [-0.5], "center": [-3.0]}
    scaling = Scaling.from_dict(Scaling.identity(1).to_dict() | change)
    assert scaling.describe(0) == "(log(max(x - 0.5, 1)) + 3) / 0.5"


def test_a_weight_is_a_number_of_repetitions() -> None:
    X = table(50)
    weight = np.random.default_rng(1).integers(1, 4, len(X))
    weighted = Scaling.fit(X, KINDS, sample_weight=weight)
    repeated = Scaling.fit(
        np.repeat(X, weight, axis=0), KINDS, sample_weight=np.ones(weight.sum())
    )
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), rtol=1e-12)
    equal = Scaling.fit(X, ["standard"] * len(KINDS), sample_weight=np.full(len(X), 3.0))
    np.testing.assert_allclose(equal.center, X.mean(axis=0))
    np.testing.assert_allclose(equal.factor, 1 / X.std(axis=0))


def arrays(**changed: Any) -> dict[str, Any]:
    """Two columns, the second with a logarithm."""
    fixed = {"log": [False, True], "offset": [0.0, 0.0], "floor": [0.0, 0.5]}
    return fixed | {"center": [1.0, 2.0], "factor": [3.0, 4.0]} | changed


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"factor": [3.0, 0.0]}, "`factor` of column 1 is 0.0; it must be positive"),
        ({"factor": [-0.5, 4.0]}, "`factor` of column 0 is -0.5; it must be positive"),
        ({"floor": [0.0, 0.0]}, "`floor` of column 1 is 0.0; it must be positive"),
        ({"center": [1.0]}, "arrays of one length"),
        ({"center": [1.0, math.nan]}, "needs finite numbers"),
        ({name: [[value] * 2] for name, value in arrays().items()}, None),
    ],
)
def test_one_bad_number_is_enough_to_refuse_a_scaling(
    changed: dict[str, Any], match: str | None
) -> None:
    Scaling(**arrays())
    with pytest.raises(ValueError, match=match):
        Scaling(**arrays(**changed))


def test_slopes_of_a_scaling() -> None:
    scaling = Scaling(**arrays())
    assert scaling.steepest().tolist() == [3.0, 8.0]
    assert scaling.flattest().tolist() == [3.0, 0.0]


def test_slip_grows_with_reach_and_center_and_is_infinite_where_a_difference_overflows() -> None:
    reach = np.full(2, 16.0)
    for center in (-1e6, 0.0, 1e6):
        scaling = Scaling(**arrays(center=[center, center]))
        linear = 2.0**-48 * (16.0 + abs(center) * scaling.factor)
        expected = [linear[0], linear[1] + 2.0**-22 * 4.0]
        np.testing.assert_allclose(scaling.slip(reach), expected, rtol=1e-12)
    for center, bounded in ((0.0, True), (0.5, False), (1.0, False), (-1.0, False)):
        flat = Scaling(**arrays(center=[center, 0.0], factor=[1e-308, 1.0]))
        assert (flat.slip(reach)[0] < 1.0) == bounded
        assert (flat.slip(reach)[0] == np.inf) == (not bounded)
    assert np.isfinite(Scaling(**arrays(center=[1.0, 0.0], factor=[1e-306, 1.0])).slip(reach)[0])


def test_scaled_numbers_slip_by_no_more_than_the_bound() -> None:
    """Of (x - c)·a, two roundings: against exact arithmetic."""
    rng = np.random.default_rng(0)
    for center in (0.1, -3.7, 1e5 / 3):
        scaling = Scaling(**arrays(log=[False] * 2, center=[center] * 2, factor=[0.3, 7.7]))
        x = rng.normal(size=(200, 2)) * 10 + center
        found = scaling.transform(x)
        slip = scaling.slip(np.abs(found).max(axis=0))
        for j, factor in enumerate(scaling.factor.tolist()):
            for value, scaled in zip(x[:, j].tolist(), found[:, j].tolist(), strict=True):
                exact = (Fraction(value) - Fraction(center)) * Fraction(factor)
                assert abs(Fraction(scaled) - exact) <= Fraction(slip[j])


def test_kinds_of_scaling_are_what_they_are_called() -> None:
    x = np.arange(1.0, 102.0)
    kinds: list[Any] = ["identity", "standard", "robust", Log(offset=2.0, floor=5.0)]
    found = Scaling.fit(np.tile(x, (4, 1)).T, kinds)
    logs = np.log(np.maximum(x + 2.0, 5.0))
    assert found.log.tolist() == [False, False, False, True]
    assert found.offset.tolist() == [0.0, 0.0, 0.0, 2.0]
    assert found.floor.tolist() == [1.0, 1.0, 1.0, 5.0]
    np.testing.assert_allclose(found.center, [0.0, 51.0, 51.0, logs.mean()], rtol=1e-6)
    factors = [1.0, 1 / x.std(), 1.349 / 50, 1 / logs.std()]
    np.testing.assert_allclose(found.factor, factors, rtol=1e-6)
    assert Scaling.fit(np.full((5, 1), 7.0), "standard").factor.tolist() == [1.0]
    assert Scaling.fit(x[:, None] / 128, "standard").factor[0] == pytest.approx(128 / x.std())
    for floor in (0.0, math.inf, -1.0):
        with pytest.raises(ValueError, match="must be positive and finite"):
            Scaling.fit(x[:, None], Log(floor=floor))
    with pytest.raises(ValueError, match=r"where log\(x \+ -1.0\) is undefined"):
        Scaling.fit(x[:, None], Log(offset=-1.0))
    with pytest.raises(ValueError, match=r"where log\(x \+ inf\) is undefined"):
        Scaling.fit(x[:, None], Log(offset=math.inf))


def test_a_column_that_hardly_varies_is_only_shifted() -> None:
    """Nor is there a warning: the reciprocal of so small a number is infinite."""
    x = np.array([[0.0], [5e-324], [1e-323], [1.5e-323]])
    assert Scaling.fit(x, "robust").factor.tolist() == [1.0]
    assert Scaling.fit(x * 2.0**60, "robust").factor[0] > 2.0**1000


def test_what_a_file_holds_may_be_whole_numbers_and_others() -> None:
    data = arrays(center=[1, 2.5], offset=[0, 0], factor=[0.5, 3])
    assert Scaling.from_dict(data).center.tolist() == [1.0, 2.5]
    assert Scaling.from_dict(data).factor.tolist() == [0.5, 3.0]


def test_the_missing_values_of_pandas_are_nan() -> None:
    table = np.array([[1, pd.NA], [True, 2.5]], dtype=object)
    np.testing.assert_array_equal(as_numbers(table), [[1.0, np.nan], [1.0, 2.5]])
    assert without_na(np.array(["NAType", pd.NA], dtype=object))[0] == "NAType"
    with pytest.raises(ValueError, match="not a numeric table"):
        as_numbers(np.array([["NAType"]], dtype=object))


def test_categories_are_no_numbers_whatever_they_look_like() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Categorical([1, 2])})
    with pytest.raises(ValueError, match=r"not a numeric table \(.*hold categories\)"):
        as_numbers(frame)


def test_a_table_has_the_columns_that_are_named() -> None:
    assert as_numbers([[1, 2]], ["a", "b"]).tolist() == [[1.0, 2.0]]
    for X in ([[1]], [[1, 2, 3]], [1, 2]):
        with pytest.raises(ValueError, match="must have rows and 2 columns: a, b"):
            as_numbers(X, ["a", "b"])


def test_the_first_number_that_is_not_finite_is_named() -> None:
    X = np.zeros((4, 3))
    X[1, 2], X[2, 0], X[1, 1] = np.inf, np.nan, np.nan
    with pytest.raises(ValueError, match="column 1 is nan in row 1 "):
        finite_table(X)
    with pytest.raises(ValueError, match="feature 'b' is nan in row 1 "):
        finite_table(X, ["a", "b", "c"])
