"""Weighted rates and efficiencies: values, errors, and thresholds, also with negative weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from isotone import cli
from isotone.trigger.curve import rate_curve
from isotone.trigger.efficiency import by_bin, by_group
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


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    frozen = small()
    frozen.save("m.isotone")
    rng = np.random.default_rng(5)
    columns = {name: rng.normal(size=300) for name in frozen.inputs.names}
    columns |= {"y": np.arange(300) % 2, "event": np.arange(300), "run": np.arange(300) % 3}
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


def test_what_counts_events_takes_no_weights(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--weights w --rate-by run") == 2
    assert "`weights` are not used for rates by column" in " ".join(
        capsys.readouterr().err.split()
    )
