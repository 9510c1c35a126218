"""Weighted rates and efficiencies: values, errors, and thresholds, also with negative weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import isotone
from isotone import cli
from isotone.trigger.curve import rate_curve
from isotone.trigger.efficiency import by_bin, by_group
from isotone.trigger.lines import Menu, kept
from isotone.trigger.shares import rates_by
from isotone.trigger.tistos import overlap
from isotone.trigger.working_point import Exposure, at_threshold, choose
from networks import small

EXPOSURE = Exposure(1000, input_rate=1e6)


def test_equal_weights_are_counts() -> None:
    rng = np.random.default_rng(0)
    passed, group = rng.random(500) < 0.7, rng.integers(0, 3, 500)
    plain, weighted = by_group(passed, group), by_group(passed, group, np.full(500, 2.5))
    assert weighted.value == pytest.approx(plain.value)
    binomial = np.sqrt(plain.value * (1 - plain.value) / plain.n)
    assert weighted.error == pytest.approx(binomial)
    assert weighted.n.tolist() == plain.n.tolist()


def test_errors_with_signed_weights_are_those_of_repeated_experiments() -> None:
    rng = np.random.default_rng(1)
    values, errors = [], []
    for _ in range(2000):
        n = rng.poisson(400)
        passed = rng.random(n) < 0.8
        weight = rng.choice([1.5, -0.5], n, p=[0.8, 0.2])
        found = by_group(passed, np.zeros(n), weight)
        values.append(found.value[0])
        errors.append(found.error[0])
    assert np.mean(values) == pytest.approx(0.8, abs=0.005)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.06)


def test_bins_are_weighted_alike() -> None:
    passed = np.array([True, False, True, True])
    weight = np.array([3.0, 1.0, 2.0, -1.0])
    found = by_bin(passed, np.array([0.5, 0.6, 1.5, 9.0]), np.array([0.0, 1.0, 2.0, 3.0]), weight)
    assert found.value.tolist()[:2] == [0.75, 1.0]
    assert np.isnan(found.value[2])
    assert found.error[0] == pytest.approx(np.sqrt(1.0 * 9.0 + 9.0 * 1.0) / 16.0)


def test_a_rate_is_a_sum_of_weights_with_the_error_of_one() -> None:
    best, weight = np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 2.0, -1.0, 4.0])
    point = at_threshold(best, EXPOSURE, 2.0, weight=weight)
    assert point.rate == pytest.approx(1e6 * 5.0 / 1000)
    assert point.rate_error == pytest.approx(1e6 * np.sqrt(4 + 1 + 16) / 1000)
    assert point.n_passed == 3
    blocks = at_threshold(best, EXPOSURE, 2.0, np.array(["a", "a", "b", "b"]), weight)
    assert blocks.rate_error == pytest.approx(1e6 * np.sqrt(2**2 + 3**2) / 1000)


def test_no_tighter_threshold_exceeds_the_rate() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        best, weight = rng.integers(0, 30, 80).astype(float), rng.normal(0.6, 1.0, 80)
        limit = float(rng.uniform(2e3, 2e4))
        point = choose(best, EXPOSURE, limit, weight=weight)
        tighter = np.unique(best[best >= point.threshold])
        rates = [at_threshold(best, EXPOSURE, t, weight=weight).rate for t in tighter]
        assert all(rate <= limit for rate in rates)
        looser = best[best < point.threshold]
        if len(looser):
            assert at_threshold(best, EXPOSURE, looser.max(), weight=weight).rate > limit


def test_unit_weights_choose_the_same_threshold() -> None:
    best = np.random.default_rng(3).normal(size=200)
    plain, weighted = (choose(best, EXPOSURE, 3e4, weight=w) for w in (None, np.ones(200)))
    assert plain == weighted


def test_a_curve_is_weighted_on_both_axes() -> None:
    rng = np.random.default_rng(4)
    best, signal, weight = rng.normal(size=300), rng.normal(1.0, 1.0, 400), rng.normal(1, 1, 400)
    curve = rate_curve(best, signal, EXPOSURE, [2e4, 1e5], None, np.full(300, 0.5), weight)
    for point, value in zip(curve.points, curve.efficiency.value, strict=True):
        passed = signal >= point.threshold
        assert value == pytest.approx(weight[passed].sum() / weight.sum())
        assert point.rate == pytest.approx(500 * (best >= point.threshold).sum())


def test_the_weight_examined_is_at_least_that_of_the_candidates() -> None:
    with pytest.raises(ValueError, match="is less than the total weight of 1500 background"):
        choose(np.ones(3), EXPOSURE, 1e4, weight=np.full(3, 500.0))


def test_events_without_a_weight_leave_an_upper_limit() -> None:
    """They pass and add nothing: the limit is that of a sample in which no event passes."""
    best, weight = np.arange(4.0), np.array([2.0, 1.0, 0.0, 0.0])
    point = at_threshold(best, EXPOSURE, 2.0, weight=weight)
    assert (point.n_passed, point.rate, point.rate_error) == (2, 0.0, 0.0)
    assert point.rate_limit == EXPOSURE.limit(2.0) > 0.0
    assert at_threshold(best, EXPOSURE, 1.0, weight=weight).rate_limit is None
    shares = rates_by(best >= 1.0, np.array(["a", "b", "a", "b"]), EXPOSURE, weight=weight)
    assert shares.n_passed.tolist() == [1, 2]
    assert shares.limit[0] == EXPOSURE.limit(2.0)
    assert np.isnan(shares.limit[1])
    with pytest.raises(ValueError, match=r"event has the weight 0; .* another column of weights"):
        at_threshold(best, EXPOSURE, 2.0, weight=np.zeros(4))


def test_candidates_of_an_event_have_one_weight(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pa.parquet.read_table("t.parquet")
    pair = pa.array(np.arange(300) // 4 * 2)
    pa.parquet.write_table(table.set_column(4, "event", pair), "t.parquet")
    assert run("--weights w") == 2
    assert "the column of weights is -0.5 and 1.5 for two candidates" in capsys.readouterr().err


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    frozen = small()
    frozen.save("m.isotone")
    rng = np.random.default_rng(5)
    columns = {name: rng.normal(size=300) for name in frozen.inputs.names}
    columns |= {"y": np.arange(300) % 2, "event": np.arange(300), "run": np.arange(300) % 3}
    columns["fired"] = (np.arange(300) // 2) % 3 % 2
    columns["w"] = rng.choice([1.5, -0.5], 300, p=[0.8, 0.2])
    pa.parquet.write_table(pa.table(columns), "t.parquet")
    return tmp_path


def run(words: str) -> int:
    base = "trigger m.isotone t.parquet --target y --event event --n-events 1000 --max-rate 1e6"
    with pytest.raises(SystemExit) as exit_:
        cli.main([*base.split(), *words.split()])
    return int(exit_.value.code or 0)


def test_the_command_weighs_events(files: Path) -> None:
    assert run("--weights w --group run --out point.json") == 0
    found = json.loads(Path("point.json").read_text())
    assert found["settings"]["weights"] == "w"
    assert found["rate"] <= 1e6
    assert all(0.0 < error < 0.5 for error in found["groups"]["run"]["error"])


def experiment(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Signal events with signed weights, of which what fires and what is TIS are independent."""
    n = rng.poisson(500)
    weight = rng.choice([1.5, -0.5], n, p=[0.8, 0.2])
    return rng.random(n) < 0.7, rng.random(n) < 0.4, weight


def test_overlaps_with_signed_weights_have_the_errors_of_repeated_experiments() -> None:
    rng, found = np.random.default_rng(6), []
    for _ in range(1500):
        passed, is_tis, weight = experiment(rng)
        each = overlap(passed, is_tis, [np.ones(len(passed), bool)], np.zeros(1), weight)
        found.append((each.tis.value[0], each.tis.error[0], each.bias[0], each.bias_error[0]))
    value, error, bias, bias_error = np.array(found).T
    assert value.mean() == pytest.approx(0.7, abs=0.005)
    assert bias.mean() == pytest.approx(0.0, abs=0.003)
    assert error.mean() == pytest.approx(value.std(), rel=0.07)
    assert bias_error.mean() == pytest.approx(bias.std(), rel=0.07)


def test_a_weighted_bias_is_the_difference_to_all_signal() -> None:
    passed, is_tis, weight = experiment(np.random.default_rng(7))
    found = overlap(passed, is_tis, [np.ones(len(passed), bool)], np.zeros(1), weight)
    whole = by_group(passed, np.zeros(len(passed)), weight)
    assert found.bias[0] == pytest.approx(found.tis.value[0] - whole.value[0])
    none = overlap(passed, is_tis, [np.zeros(len(passed), bool)], np.zeros(1), weight)
    assert np.isnan(none.bias[0])


def test_shares_with_signed_weights_have_the_errors_of_repeated_experiments() -> None:
    rng, rates, errors = np.random.default_rng(8), [], []
    for _ in range(1500):
        n = rng.poisson(300)
        weight = rng.choice([1.5, -0.5], n, p=[0.8, 0.2])
        run_number = rng.choice(3, n, p=[0.6, 0.3, 0.1])
        found = rates_by(rng.random(n) < 0.5, run_number, Exposure(1000, 1e6, 30.0), weight=weight)
        rates.append(found.rate)
        errors.append(found.error)
    assert np.mean(errors, axis=0) == pytest.approx(np.std(rates, axis=0), rel=0.08)


def test_examined_weight_is_that_of_each_group() -> None:
    passed, run_number = np.array([True, False, True]), np.array(["1", "1", "2"])
    weight = np.array([2.0, 1.0, -0.5])
    found = rates_by(passed, run_number, EXPOSURE, None, {"1": 10, "2": 20}, weight)
    assert found.rate.tolist() == [1e6 * 2.0 / 10, 1e6 * -0.5 / 20]
    assert found.error.tolist() == [1e6 * 2.0 / 10, 1e6 * 0.5 / 20]
    with pytest.raises(ValueError, match="2 events are said to be examined for '1', but 3 have"):
        rates_by(passed, run_number, EXPOSURE, None, {"1": 2, "2": 20}, weight)


def test_lines_with_whole_weights_are_lines_of_repeated_events() -> None:
    rng = np.random.default_rng(9)
    passed, times = rng.random((80, 3)) < 0.3, rng.integers(1, 4, 80)
    exposure, block = Exposure(1000, 1e6, 8.0), np.arange(80)
    settings = [1.0, 0.5, 0.1], [3.0, 2.0, 1.0], exposure
    weighted = Menu(passed, *settings, block, times.astype(float))
    plain = Menu(np.repeat(passed, times, axis=0), *settings, np.repeat(block, times))
    for name in ("total", "bandwidth"):
        one, two = getattr(weighted, name), getattr(plain, name)
        assert one.value == pytest.approx(two.value)
        assert weighted.error(one) == pytest.approx(plain.error(two))
    assert weighted.overlap(0, 1).value == pytest.approx(plain.overlap(0, 1).value)
    assert weighted.exclusive(2).value == pytest.approx(plain.exclusive(2).value)


def test_signal_kept_by_lines_is_weighted() -> None:
    rng = np.random.default_rng(10)
    values, errors = [], []
    for _ in range(1000):
        n = rng.poisson(400)
        weight = rng.choice([1.5, -0.5], n, p=[0.8, 0.2])
        found = kept(rng.random((n, 2)) < [0.6, 0.9], [1.0, 0.5], weight)
        values.append(found.value)
        errors.append(found.error)
    assert np.mean(values, axis=0) == pytest.approx([0.6, 0.45, 0.78], abs=0.005)
    assert np.mean(errors, axis=0) == pytest.approx(np.std(values, axis=0), rel=0.08)
    alone = by_group(np.arange(n) % 3 == 0, np.zeros(n), weight)
    same = kept((np.arange(n) % 3 == 0)[:, None], [1.0], weight)
    assert same.error[0] == pytest.approx(alone.error[0])
    assert np.isnan(kept(np.ones((2, 1), bool), [1.0], np.array([1.0, -1.0])).value).all()


def test_the_command_weighs_rates_by_run_and_overlaps(files: Path) -> None:
    assert run("--weights w --rate-by run --tis fired --group run --out point.json") == 0
    found = json.loads(Path("point.json").read_text())
    share, table = found["rates"]["run"], pa.parquet.read_table("t.parquet").to_pandas()
    assert sum(share["rate"]) == pytest.approx(found["rate"])
    some = table[(table.y == 1) & (table.fired == 1)]
    score = isotone.load("m.isotone").score(some)
    passes = score >= found["threshold"]
    expected = some.w[passes].sum() / some.w.sum()
    assert found["overlaps"]["all"]["efficiency"][0] == pytest.approx(expected)


def test_the_command_weighs_lines(files: Path) -> None:
    Path("lines.toml").write_text(
        '[[line]]\nname = "a"\nmodel = "m.isotone"\nmax_rate = 1e6\n'
        '[[line]]\nname = "b"\nmodel = "m.isotone"\nthreshold = 0.0\nprescale = 0.1\n'
    )
    words = "trigger lines.toml t.parquet --target y --event event --n-events 1000 --weights w"
    with pytest.raises(SystemExit) as exit_:
        cli.main([*words.split(), "--out", "menu.json"])
    assert not exit_.value.code
    found = json.loads(Path("menu.json").read_text())
    assert run("--weights w --out point.json") == 0
    alone = json.loads(Path("point.json").read_text())
    first = found["lines"][0]
    assert first["threshold"] == alone["threshold"]
    assert first["rate"]["value"] == pytest.approx(alone["rate"])
    assert first["rate"]["error"] == pytest.approx(alone["rate_error"])
    assert first["efficiency"] == pytest.approx(alone["groups"]["all"]["efficiency"][0])
    assert first["efficiency_error"] == pytest.approx(alone["groups"]["all"]["error"][0])
