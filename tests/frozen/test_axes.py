"""Axes of features: where values lie, and which values are usual."""

from __future__ import annotations

import numpy as np

from isotone.elementary import log
from isotone.frozen.axes import along, usual_values
from networks import every_step, small


def test_a_feature_scaled_by_its_logarithm_lies_at_that_and_others_at_themselves() -> None:
    frozen = every_step()
    offset, floor = frozen.scaling.offset[1], frozen.scaling.floor[1]
    values = np.array([-1e300, floor - offset, 0.0, 1.0, 1e300])
    places = along(frozen, 1, values)
    np.testing.assert_array_equal(places, log(np.array([floor, floor, offset, 1.5, 1e300])))
    assert np.all(np.diff(places) >= 0)
    for feature in (0, 2):
        np.testing.assert_array_equal(along(frozen, feature, values), values)


def test_usual_values_are_in_order_and_where_the_scaling_says() -> None:
    for frozen in (every_step(), small()):
        low, middle, high = usual_values(frozen)
        assert np.all(low < middle)
        assert np.all(middle < high)
        np.testing.assert_allclose(frozen.snap(middle[None]), 0.0, atol=1e-6)
        np.testing.assert_allclose(frozen.snap(high[None]), 3.0, atol=1e-6)
