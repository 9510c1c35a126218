"""Efficiencies by overlap and rates by group, in Python and from the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from test_trigger_command import COLUMNS, N, run, write

from isotone.data.table import write_table
from isotone.trigger.shares import rates_by, read_examined
from isotone.trigger.tistos import overlap
from isotone.trigger.working_point import Exposure, at_threshold, choose

RNG = np.random.default_rng(0)


def everything(n: int) -> Any:
    return [np.ones(n, bool)], np.array(["all"])


def test_the_overlap_finds_the_efficiency_of_independent_triggers() -> None:
    pulls = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        passed, is_tis = rng.random(400) < 0.6, rng.random(400) < 0.3
        found = overlap(passed, is_tis, *everything(400))
        assert found.tis.n[0] == is_tis.sum()
        assert found.tis.n_passed[0] == (is_tis & passed).sum()
        assert found.bias[0] == pytest.approx(found.tis.value[0] - passed.mean())
        pulls.append(found.bias[0] / found.bias_error[0])
    assert abs(np.mean(pulls)) < 0.2
    assert np.std(pulls) == pytest.approx(1.0, abs=0.12)


def test_a_dependence_shows_as_bias_that_bins_remove() -> None:
    rng, n = np.random.default_rng(1), 20_000
    hard = rng.random(n) < 0.5  # both triggers like hard events
    passed = rng.random(n) < np.where(hard, 0.9, 0.3)
    is_tis = rng.random(n) < np.where(hard, 0.4, 0.1)
    whole = overlap(passed, is_tis, *everything(n))
    assert whole.bias[0] > 10 * whole.bias_error[0]
    split = overlap(passed, is_tis, [hard, ~hard], np.array(["hard", "soft"]))
    assert (np.abs(split.bias) < 4 * split.bias_error).all()
    none = overlap(passed, np.zeros(n, bool), *everything(n))
    assert np.isnan(none.tis.value[0])


def test_shares_of_the_rate_sum_up_to_it_with_errors_of_blocks() -> None:
    best, run_number = RNG.normal(size=600), np.repeat(["1", "2", "3"], 200)
    block = np.repeat(np.arange(150), 4)
    exposure = Exposure(2000, 30e6, 1.5)
    point = choose(best, exposure, 1e6, block)
    passed = best >= point.threshold
    found = rates_by(passed, run_number, exposure, block)
    assert found.rate.sum() == pytest.approx(point.rate)
    rng, drawn = np.random.default_rng(2), []
    for _ in range(600):
        times = rng.poisson(1.0, 150)[block]
        again = (np.repeat(each, times) for each in (passed, run_number))
        drawn.append(rates_by(*again, exposure).rate)
    assert np.allclose(found.error, np.std(drawn, axis=0), rtol=0.1)
    nothing = rates_by(np.zeros(600, bool), run_number, exposure)
    assert nothing.rate.tolist() == [0.0, 0.0, 0.0]
    assert (nothing.limit == exposure.limit()).all()
    assert np.isnan(found.limit).all()


@pytest.mark.parametrize("pileup", [None, 40.0])
def test_the_share_of_a_single_group_is_the_working_point(pileup: float | None) -> None:
    best, block = RNG.normal(size=300), RNG.integers(0, 100, 300)
    weight, exposure = RNG.normal(1.0, 1.0, 300), Exposure(1000, 30e6, pileup)
    for weights in (None, weight):
        for blocks in (None, block):
            point = at_threshold(best, exposure, 1.0, blocks, weights)
            found = rates_by(best >= 1.0, np.zeros(300), exposure, blocks, weight=weights)
            assert found.rate[0] == pytest.approx(point.rate)
            assert found.error[0] == pytest.approx(point.rate_error)
            assert found.n_passed[0] == point.n_passed


def test_with_examined_events_a_rate_is_that_of_its_own_crossings() -> None:
    passed, n_pv = RNG.random(500) < 0.2, RNG.choice(["1", "2"], 500)
    exposure = Exposure(5000, 30e6)
    found = rates_by(passed, n_pv, exposure, examined={"1": 4000, "2": 1000})
    for i, (name, n) in enumerate((("1", 4000), ("2", 1000))):
        k = int((passed & (n_pv == name)).sum())
        assert found.rate[i] == pytest.approx(30e6 * k / n)
        assert found.error[i] == pytest.approx(30e6 * np.sqrt(k) / n)
    with pytest.raises(ValueError, match=r"0 events are said to be examined for '2', but"):
        rates_by(passed, n_pv, exposure, examined={"1": 4000})


def counts(path: Path, **columns: Any) -> str:
    table = pa.table(columns)
    write_table(path, table.schema, table.to_batches())
    return str(path)


def test_examined_events_are_summed_over_other_columns(tmp_path: Path) -> None:
    path = counts(tmp_path / "n.csv", run=[1, 1, 2], n_pv=[1, 2, 1], n_events=[10, 20, 30])
    assert read_examined(path, ["run", "n_pv"]) == {
        "run": {"1": 30, "2": 30},
        "n_pv": {"1": 40, "2": 20},
    }
    path = counts(tmp_path / "n.csv", run=[1], n_events=[0.5])
    with pytest.raises(ValueError, match=r"'n_events' of .* must hold numbers of events, whole"):
        read_examined(path, ["run"])


def test_the_command_tells_rates_by_run_and_overlaps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = (COLUMNS["number"] % 3 == 0).astype(np.int64)
    table, out = write(tmp_path / "t.parquet", fired=flags), tmp_path / "point.json"
    examined = counts(tmp_path / "n.csv", run=list(range(10)), n_events=[400] * 10)
    words = ["--tis", "fired", "--group", "channel", "--against", "lifetime", "--edges", "0,5,20"]
    words += ["--rate-by", "run", "--examined", examined, "--out", str(out)]
    assert run(tmp_path, table, *words) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "efficiency by overlap" in said
    assert "firing without the signal says nothing about the signal" in said
    assert "run examined pass rate, kHz" in said
    found = json.loads(out.read_text())
    share = found["rates"]["run"]
    assert sum(share["n_passed"]) == found["n_passed"]
    assert np.mean(share["rate"]) == pytest.approx(found["rate"])  # 4000 events in all
    whole, parts = found["overlaps"]["all"], found["overlaps"]["channel"]
    assert sum(parts["events"]) == whole["events"][0]
    assert sum(parts["passed"]) == whole["passed"][0]
    assert set(found["overlaps"]) == {"all", "channel", "lifetime"}
    signal = COLUMNS["is_signal"] == 1
    assert whole["events"][0] == len(np.unique(COLUMNS["number"][signal & (flags == 1)]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tis", "lifetime"], "`--tis lifetime` must be 1 for signal events that fired"),
        (["--examined", "n.csv"], "`--examined n.csv` is about rates by column; add `--rate-by"),
    ],
)
def test_columns_that_do_not_fit_are_refused(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, write(tmp_path / "t.parquet"), *words) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert len(COLUMNS["event"]) == N
