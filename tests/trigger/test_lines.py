"""Several lines: rates are those of a simulation of crossings and prescales."""

from __future__ import annotations

import json
import math
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from test_trigger_command import COLUMNS, N_EVENTS, write

from isotone.cli import main
from isotone.trigger.efficiency import Efficiency
from isotone.trigger.linefile import read_lines
from isotone.trigger.lines import Menu, kept
from isotone.trigger.working_point import Exposure, at_threshold
from networks import small

PASSED = st.integers(1, 4).flatmap(lambda k: arrays(bool, (30, k)))
RNG = np.random.default_rng(0)


@given(PASSED, st.sampled_from([None, 0.7, 5.0]), st.data())
def test_rates_are_those_of_all_ways_in_which_prescales_can_decide(
    passed: Any, pileup: float | None, data: Any
) -> None:
    n = passed.shape[1]
    prescales = [data.draw(st.sampled_from([1.0, 0.5, 0.1])) for _ in range(n)]
    menu = Menu(passed, prescales, [10.0 * (k + 1) for k in range(n)], Exposure(100, 1e6, pileup))
    expected = 0.0
    for alive in product([0, 1], repeat=n):
        chance = math.prod(p if a else 1 - p for p, a in zip(prescales, alive, strict=True))
        fired = int((passed & np.array(alive, bool)).any(axis=1).sum())
        expected += chance * menu.exposure.rate(fired)
    assert menu.total.value == pytest.approx(expected, abs=1e-6)
    assert sum(menu.exclusive(i).value for i in menu.lines) <= menu.total.value + 1e-6
    for i, j in product(menu.lines, repeat=2):
        if i != j:
            both = menu.overlap(i, j).value
            assert -1e-6 <= both <= min(menu.rate([i]).value, menu.rate([j]).value) + 1e-6
    largest, smallest = 10.0 * n, 10.0
    width = menu.bandwidth.value
    assert smallest * menu.total.value - 1e-3 <= width <= largest * menu.total.value + 1e-3


def test_a_simulation_of_crossings_finds_the_same() -> None:
    rng = np.random.default_rng(1)
    pool = rng.random((1000, 3)) < [0.05, 0.1, 0.2]
    prescales, sizes = np.array([1.0, 0.5, 0.2]), np.array([100.0, 10.0, 1.0])
    menu = Menu(pool, prescales.tolist(), sizes.tolist(), Exposure(1000, 1e6, 2.0))
    n = 60_000
    counts = rng.poisson(2.0, n)
    drawn, owner = pool[rng.integers(0, 1000, counts.sum())], np.repeat(np.arange(n), counts)
    fired = np.zeros((n, 3), bool)
    np.logical_or.at(fired, owner, drawn)
    fired &= rng.random((n, 3)) < prescales
    rate = 1e6 * fired.any(axis=1).mean()
    assert menu.total.value == pytest.approx(rate, rel=0.03)
    both = 1e6 * (fired[:, 0] & fired[:, 1]).mean()
    assert menu.overlap(0, 1).value == pytest.approx(both, rel=0.1)
    alone = 1e6 * (fired[:, 1] & ~fired[:, 0] & ~fired[:, 2]).mean()
    assert menu.exclusive(1).value == pytest.approx(alone, rel=0.05)
    written = 1e6 * (fired * sizes).max(axis=1).mean()
    assert menu.bandwidth.value == pytest.approx(written, rel=0.03)


def test_errors_are_those_of_a_bootstrap_of_blocks() -> None:
    rng = np.random.default_rng(2)
    block = np.repeat(np.arange(400), 3)
    passed = np.repeat(rng.random((400, 2)) < [0.1, 0.15], 3, axis=0)
    exposure = Exposure(5000, 1e6, 1.0)
    menu = Menu(passed, [1.0, 0.5], [3.0, 1.0], exposure, block)
    found: dict[str, list[float]] = {name: [] for name in ("total", "overlap", "exclusive")}
    for _ in range(400):
        times = rng.poisson(1.0, 400)[block]
        again = Menu(np.repeat(passed, times, axis=0), [1.0, 0.5], [3.0, 1.0], exposure)
        found["total"].append(again.total.value)
        found["overlap"].append(again.overlap(0, 1).value)
        found["exclusive"].append(again.exclusive(0).value)
    assert menu.error(menu.total) == pytest.approx(np.std(found["total"]), rel=0.12)
    assert menu.error(menu.overlap(0, 1)) == pytest.approx(np.std(found["overlap"]), rel=0.12)
    assert menu.error(menu.exclusive(0)) == pytest.approx(np.std(found["exclusive"]), rel=0.12)


def test_where_no_event_adds_to_a_rate_it_has_an_upper_limit() -> None:
    passed = np.zeros((50, 3), bool)
    passed[:10, 0] = passed[:20, 1] = True  # all of the first pass the second, none the third
    menu = Menu(passed, [1.0, 1.0, 0.3], [1.0, 1.0, 1.0], Exposure(1000, 1e6, 2.0))
    limit = menu.exposure.limit()
    assert menu.limit(menu.exclusive(0)) == limit
    assert menu.limit(menu.rate([2])) == menu.limit(menu.overlap(0, 2)) == limit
    for some in (menu.total, menu.rate([0]), menu.exclusive(1), menu.overlap(0, 1)):
        assert menu.limit(some) is None


def test_one_line_is_a_working_point() -> None:
    best, block = RNG.normal(size=300), RNG.integers(0, 100, 300)
    exposure = Exposure(1000, 30e6, 5.24)
    point = at_threshold(best, exposure, 1.0, block)
    menu = Menu((best >= 1.0)[:, None], [1.0], [0.0], exposure, block)
    assert menu.total.value == pytest.approx(point.rate)
    assert menu.error(menu.total) == pytest.approx(point.rate_error)
    assert menu.bandwidth.value == 0.0


def test_signal_that_is_kept_has_the_error_of_an_efficiency() -> None:
    passed = RNG.random((200, 2)) < 0.6
    found = kept(passed, [1.0, 0.5])
    alone = Efficiency(np.zeros(1), np.array([200]), np.array([passed[:, 0].sum()]))
    assert found.value[0] == pytest.approx(alone.value[0])
    assert found.error[0] == pytest.approx(alone.error[0])
    assert found.value[1] == pytest.approx(0.5 * passed[:, 1].mean())
    other = Efficiency(np.zeros(1), np.array([200]), np.array([passed[:, 1].sum()]))
    assert found.error[1] == pytest.approx(0.5 * other.error[0])
    chance = 1 - (1 - passed[:, 0]) * (1 - 0.5 * passed[:, 1])
    assert found.value[2] == pytest.approx(chance.mean())
    assert (found.error > 0).all()


def test_too_many_lines_and_wrong_prescales_are_refused() -> None:
    exposure = Exposure(10, 1e6)
    with pytest.raises(ValueError, match=r"there are 13 lines, 13 of them prescaled; at most 60"):
        Menu(np.ones((1, 13), bool), [0.5] * 13, [1.0] * 13, exposure)
    with pytest.raises(
        ValueError, match=r"`prescale=10` must be the share of events that is kept"
    ):
        Menu(np.ones((1, 1), bool), [10.0], [1.0], exposure)


FILE = """
[[line]]
name = "loose"
model = "model.isotone"
max_rate = 660e3
event_size = 100e3

[[line]]
name = "tight"
model = "other.isotone"
threshold = 1.5
prescale = 0.5
event_size = 20e3
"""


def run(tmp_path: Path, text: str, *words: str, name: str = "lines.toml") -> int:
    for seed, model in enumerate(("model.isotone", "other.isotone")):
        small(seed=seed).save(tmp_path / model)
    (tmp_path / name).write_text(text)
    table = write(tmp_path / "t.parquet")
    given_ = ["--target", "is_signal", "--event", "run,event", "--n-events", str(N_EVENTS)]
    with pytest.raises(SystemExit) as exit_:
        main(["trigger", str(tmp_path / name), table, *given_, *words])
    return int(exit_.value.code or 0)


def test_the_command_judges_a_file_of_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "lines.json"
    assert run(tmp_path, FILE, "--block", "run", "--out", str(out)) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("loose", "tight", "overlap, kHz", "bandwidth", "GB/s"))
    found = json.loads(out.read_text())
    assert [line["fingerprint"] for line in found["lines"]] == [
        small(seed=seed).fingerprint for seed in (0, 1)
    ]
    rate = [line["rate"]["value"] for line in found["lines"]]
    assert rate[0] == pytest.approx(660e3)
    best = {}
    X = np.stack([COLUMNS[name] for name in small().features], axis=1)
    background = COLUMNS["is_signal"] == 0
    for seed in (0, 1):
        scores: dict[int, float] = {}
        for event, score in zip(
            COLUMNS["number"][background], small(seed=seed).score(X[background]), strict=True
        ):
            scores[event] = max(scores.get(event, -math.inf), float(score))
        best[seed] = scores
    n = sum(score >= 1.5 for score in best[1].values())
    assert rate[1] == pytest.approx(0.5 * 30e6 * n / N_EVENTS)
    limit = found["lines"][0]["threshold"]
    both = sum(best[0][event] >= limit and best[1][event] >= 1.5 for event in best[0])
    assert found["overlaps"][0]["value"] == pytest.approx(0.5 * 30e6 * both / N_EVENTS)
    total = rate[0] + rate[1] - found["overlaps"][0]["value"]
    assert found["total_rate"]["value"] == pytest.approx(total)
    width = 100e3 * rate[0] + 20e3 * (total - rate[0])
    assert found["bandwidth"]["value"] == pytest.approx(width)
    lines = {"line": [{"name": "a", "model": "model.isotone", "threshold": 1}]}
    assert run(tmp_path, json.dumps(lines), name="lines.json") == 0


ERRORS = [
    ("", "has no lines; it must hold a list `line`"),
    ("[[line]]\nname = 'a'", "it must have a name and a model, and may have threshold"),
    ("[[line]]\nname = 'a'\nmodel = 1\nthreshold = 1", "name and model must be text"),
    ("[[line]]\nname='a'\nmodel='m'\ncut=1", "it must have a name and a model"),
    ("[[line]]\nname='a'\nmodel='m'", "must have a threshold or a max_rate, and only one"),
    ("[[line]]\nname='a'\nmodel='m'\nthreshold='1'", "has threshold = '1', which is not a number"),
    ("[[line]]\nname='a'\nmodel='m'\nthreshold=nan", "which is not a number"),
    ("[[line]]\nname='a'\nmodel='m'\nthreshold=1\nprescale=10", "(for one event in ten 0.1)"),
    ("[[line]]\nname='a'\nmodel='m'\nthreshold=1\n" * 2, "two lines are called 'a'; names must"),
    ("= 3", "cannot be read ("),
]


@pytest.mark.parametrize(("text", "message"), ERRORS, ids=[m for _, m in ERRORS])
def test_files_that_are_no_lines_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "lines.toml").write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)):
        read_lines(tmp_path / "lines.toml")


def test_options_of_one_model_are_refused_with_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["--max-rate", "1e5"], ["--threshold", "1"], ["--group", "channel"]):
        assert run(tmp_path, FILE, *words) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"`{words[0]}` is about one model" in said


def test_lines_that_nothing_passes_are_told_with_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"name": "a", "model": "model.isotone", "threshold": 1e6, "event_size": 1e5}
    out = tmp_path / "menu.json"
    assert run(tmp_path, json.dumps({"line": [line]}), "--out", str(out), name="l.json") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert " 0 ± 0 " not in said
    assert "limits < is with 95 % confidence, where no event passes" in said
    assert "bandwidth < " in said
    content = json.loads(out.read_text())
    assert content["total_rate"]["limit"] > content["total_rate"]["value"] == 0.0
    width = content["bandwidth"]
    assert width["limit"] == content["total_rate"]["limit"] * 1e5 > width["value"] == 0.0
