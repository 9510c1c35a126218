"""Thresholds by rate, and efficiencies with errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone import certify
from isotone.certificate.robustness import Decisions
from isotone.report.outcomes import Outcomes
from isotone.trigger.curve import rate_curve, usual_rates
from isotone.trigger.efficiency import Efficiency, by_bin, by_group, quantile_edges
from isotone.trigger.working_point import Exposure, at_threshold, best_scores, choose
from networks import by_hand

SCORES = st.lists(st.integers(-5, 20).map(float), min_size=1, max_size=40)


def test_the_allowed_number_of_collisions_gives_the_allowed_rate() -> None:
    exposure = Exposure(10**9, 30e6, 5.24)
    assert exposure.n_allowed(660e3) / 1e9 == pytest.approx(0.00424, abs=1e-5)
    assert exposure.rate(exposure.n_allowed(660e3)) == pytest.approx(660e3)
    assert Exposure(1000, 30e6).n_allowed(660e3) == 22


@given(SCORES, st.floats(1e4, 9.9e5), st.sampled_from([None, 0.5, 5.0]))
def test_the_threshold_is_the_loosest_that_the_rate_allows(
    scores: list[float], max_rate: float, pileup: float | None
) -> None:
    best, exposure = np.array(scores), Exposure(100, 1e6, pileup)
    if exposure.n_allowed(max_rate) == 0:
        return
    point = choose(best, exposure, max_rate)
    assert point.n_passed == (best >= point.threshold).sum()
    assert point.rate == exposure.rate(point.n_passed) <= max_rate * (1 + 1e-12)
    refused = best[best < point.threshold]
    if len(refused):  # ties pass together or not at all
        looser = (best >= refused.max()).sum()
        assert looser > exposure.n_allowed(max_rate)


@given(SCORES, st.floats(1e4, 9.9e5))
def test_the_report_and_the_certificate_decide_as_the_trigger(
    scores: list[float], max_rate: float
) -> None:
    """score ≥ threshold, also for a score that is the threshold."""
    best, exposure = np.array(scores), Exposure(100, 1e6)
    point = choose(best, exposure, max_rate)
    frozen = by_hand(0.5, outputs="logits")
    for threshold in (point.threshold, float(best[0])):
        passed = (best >= threshold).tolist()
        found = Outcomes.of(frozen, threshold, None).decide(best)
        assert found is not None
        assert found.tolist() == passed
        decisions = certify(frozen).decisions(threshold)
        assert isinstance(decisions, Decisions)
        assert decisions.gap(best)[0].tolist() == passed


@given(SCORES, st.floats(1e4, 9.9e5), st.sampled_from([None, 0.5, 5.0]))
def test_a_rate_curve_holds_the_working_points_and_never_falls(
    scores: list[float], max_rate: float, pileup: float | None
) -> None:
    best, exposure = np.array(scores), Exposure(100, 1e6, pileup)
    signal = np.concatenate([best + 1.0, [-math.inf]])
    rates = usual_rates(max_rate, exposure)
    assert all(exposure.n_allowed(rate) > 0 for rate in rates)
    curve = rate_curve(best, signal, exposure, rates)
    for rate, point, k in zip(rates, curve.points, curve.efficiency.n_passed, strict=True):
        assert point == choose(best, exposure, rate)
        assert point == at_threshold(best, exposure, point.threshold)
        assert k == (signal >= point.threshold).sum()
    assert (np.diff(curve.efficiency.n_passed) >= 0).all()
    assert (np.diff(curve.rates) >= 0).all()


def test_the_error_is_that_of_a_bootstrap_of_blocks() -> None:
    rng = np.random.default_rng(0)
    block = np.repeat(np.arange(500), 4)
    best = np.repeat(rng.normal(size=500), 4)
    exposure = Exposure(8000, 1e6)
    point = choose(best, exposure, 5e4, block)
    alone = choose(best, exposure, 5e4)
    assert point.threshold == alone.threshold
    assert point.rate_error == pytest.approx(2 * alone.rate_error)
    counts = np.bincount(block, best >= point.threshold)
    draws = rng.poisson(1.0, (2000, 500)) @ counts / 8000 * 1e6
    assert point.rate_error == pytest.approx(draws.std(), rel=0.1)


def test_pileup_saturates_the_error_too() -> None:
    exposure = Exposure(1000, 1e6, pileup=5.0)
    slope = (exposure.rate(301) - exposure.rate(299)) / 2
    assert exposure.error(300, 1.0) == pytest.approx(slope, rel=1e-4)


def test_an_event_has_its_best_score_in_any_order() -> None:
    rng = np.random.default_rng(1)
    scores, event = rng.normal(size=200), rng.integers(0, 30, 200)
    best, first = best_scores(scores, event)
    for number, score in zip(event[first], best, strict=True):
        assert score == scores[event == number].max()


ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"n_events": 0}, r"`n_events=0` must be positive and finite"),
    ({"input_rate": math.inf}, r"`input_rate=inf` must be positive and finite"),
    ({"pileup": -1.0}, r"`pileup=-1.0` must be positive and finite"),
    ({"max_rate": 2e6}, r"`max_rate=2e\+06` must lie between 0 and the input rate, 1e\+06 Hz"),
    ({"max_rate": 1.0}, r"`max_rate=1` allows less than one of 100 events; give a larger sample"),
    ({"n_events": 3}, r"`n_events=3` is less than the 4 background events with a candidate"),
    ({"best": []}, r"no background event has a candidate"),
    ({"best": [1.0, math.nan]}, r"holds scores that are not finite; drop such candidates"),
]


@pytest.mark.parametrize(("changes", "message"), ERRORS, ids=str)
def test_what_gives_no_working_point_is_refused(changes: dict[str, Any], message: str) -> None:
    given_: dict[str, Any] = {
        "best": [1.0, 2.0, 3.0, 4.0],
        "n_events": 100,
        "input_rate": 1e6,
        "pileup": None,
        "max_rate": 1e5,
        **changes,
    }
    with pytest.raises(ValueError, match=message):
        choose(
            np.array(given_["best"]),
            Exposure(given_["n_events"], given_["input_rate"], given_["pileup"]),
            given_["max_rate"],
        )


def test_efficiencies_are_shares_with_errors_that_never_vanish() -> None:
    found = Efficiency(np.arange(4), np.array([100, 100, 100, 0]), np.array([0, 50, 100, 0]))
    assert found.value[:3].tolist() == [0.0, 0.5, 1.0]
    assert math.isnan(found.value[3])
    assert (found.error > 0).all()
    assert found.error[1] == pytest.approx(math.sqrt(0.25 / 100), rel=0.02)


def test_groups_and_bins_count_everything_once() -> None:
    rng = np.random.default_rng(2)
    passed, group = rng.random(1000) < 0.3, rng.choice(["a", "b", "c"], 1000)
    values = rng.exponential(size=1000)
    groups = by_group(passed, group)
    assert groups.at.tolist() == ["a", "b", "c"]
    assert (groups.n.sum(), groups.n_passed.sum()) == (1000, passed.sum())
    bins = by_bin(passed, values, quantile_edges(values, 8))
    assert bins.n.tolist() == [125] * 8
    assert bins.n_passed.sum() == passed.sum()
    outside = by_bin(passed, np.where(values > 1, np.nan, values), np.array([0.5, 1.0]))
    assert outside.n.tolist() == [((values >= 0.5) & (values < 1.0)).sum()]


def test_bins_of_one_value_hold_it() -> None:
    edges = quantile_edges(np.array([2.0, 2.0, math.nan]), 10)
    assert by_bin(np.array([True, False]), np.array([2.0, 2.0]), edges).n.tolist() == [2]


@pytest.mark.parametrize("edges", [[1.0], [1.0, 1.0], [2.0, 1.0], [0.0, math.inf]])
def test_edges_must_increase(edges: list[float]) -> None:
    with pytest.raises(ValueError, match=r"must be two or more finite numbers that increase"):
        by_bin(np.array([True]), np.array([1.0]), np.array(edges))


def test_bins_need_values() -> None:
    with pytest.raises(ValueError, match=r"no finite values to divide into bins; choose another"):
        quantile_edges(np.array([math.nan]), 10)


@pytest.mark.parametrize("pileup", [None, 5.0])
def test_where_nothing_passes_the_rate_has_an_upper_limit(pileup: float | None) -> None:
    """With the rate of the limit, no event passes in one sample of twenty."""
    exposure = Exposure(400, 30e6, pileup)
    best, block = np.arange(4.0), np.array([0, 0, 0, 1])
    point = at_threshold(best, exposure, 9.0)
    assert (point.rate, point.rate_error, point.n_passed) == (0.0, 0.0, 0)
    assert point.rate_limit is not None
    fraction = exposure.allowed_fraction(point.rate_limit)
    assert (1.0 - fraction) ** 400 == pytest.approx(0.05)
    blocks = at_threshold(best, exposure, 9.0, block)
    weights = at_threshold(best, exposure, 9.0, weight=np.array([1.0, -3.0, 2.0, 1.0]))
    assert blocks.rate_limit == weights.rate_limit  # of three events, or the weight 3, at once
    assert blocks.rate_limit > 2.5 * point.rate_limit / (1.0 if pileup is None else 1.1)
    assert at_threshold(best, exposure, 3.0).rate_limit is None
