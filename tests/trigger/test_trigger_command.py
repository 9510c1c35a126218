"""`isotone trigger`: from a model and a table of candidates to a threshold and efficiencies."""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import isotone
from isotone.cli import main
from isotone.data.table import write_table
from isotone.trigger.candidates import Candidates, read_candidates
from isotone.trigger.record import Point, read_point
from networks import small

FROZEN = small()
N = 3000
N_EVENTS = 4000


def columns() -> dict[str, Any]:
    """Two candidates an event or so; signal has larger features, and the same event numbers."""
    rng = np.random.default_rng(0)
    is_signal = np.arange(N) % 3 == 0
    X = rng.normal(size=(N, 3)) + is_signal[:, None]
    event = rng.integers(0, N // 3, N)
    features = {name: X[:, i] for i, name in enumerate(FROZEN.features)}
    return features | {
        "is_signal": is_signal.astype(np.int64),
        "run": event // 100,
        "event": event % 100,
        "channel": np.where(event % 2, "odd", "even"),
        "number": event.astype(np.int64),
        "lifetime": np.where(is_signal, 0.1 + event / 100.0, np.nan),
    }


COLUMNS = columns()


def write(path: Path, **changes: Any) -> str:
    table = pa.table(COLUMNS | changes)
    if path.suffix == ".root":
        table = table.drop_columns(["channel"])
    write_table(path, table.schema, table.to_batches())
    return str(path)


def run(tmp_path: Path, table: str, *words: str, event: str = "run,event") -> int:
    FROZEN.save(tmp_path / "model.isotone")
    given = ["--target", "is_signal", "--event", event, "--n-events", str(N_EVENTS)]
    limited = "--max-rate" in words or "--threshold" in words
    rates = [] if limited else ["--max-rate", "660e3"]
    with pytest.raises(SystemExit) as exit_:
        main(["trigger", str(tmp_path / "model.isotone"), table, *given, *rates, *words])
    return int(exit_.value.code or 0)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "root"])
def test_every_format_gives_the_threshold_that_a_loop_finds(tmp_path: Path, suffix: str) -> None:
    table, out = write(tmp_path / f"t.{suffix}"), tmp_path / "point.json"
    words = ["--group", "number", "--against", "lifetime", "--edges", "0,2,5,20"]
    assert run(tmp_path, table, *words, "--out", str(out)) == 0
    found = json.loads(out.read_text())
    X = np.stack([COLUMNS[name] for name in FROZEN.features], axis=1)
    score, signal = FROZEN.score(X), COLUMNS["is_signal"] == 1
    best: dict[tuple[int, int], float] = {}
    for key, value in zip(zip(signal, COLUMNS["number"], strict=True), score, strict=True):
        best[key] = max(best.get(key, -math.inf), float(value))
    background = sorted((b for (is_signal, _), b in best.items() if not is_signal), reverse=True)
    n_allowed = int(660e3 / 30e6 * N_EVENTS)
    assert found["threshold"] == math.nextafter(background[n_allowed], math.inf)
    assert found["n_passed"] == n_allowed
    assert found["rate"] == pytest.approx(660e3)
    passed = {n: b >= found["threshold"] for (is_signal, n), b in best.items() if is_signal}
    groups = found["groups"]["number"]
    assert dict(zip(groups["at"], groups["passed"], strict=True)) == {
        str(n): int(value) for n, value in passed.items()
    }
    for i, (low, high) in enumerate(((0, 2), (2, 5), (5, 20))):
        inside = [value for n, value in passed.items() if low <= 0.1 + n / 100.0 < high]
        curve = found["curves"]["all signal"]
        assert curve["events"][i] == len(inside)
        assert curve["efficiency"][i] == pytest.approx(np.mean(inside))


def test_the_command_tells_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write(tmp_path / "t.parquet")
    words = ["--group", "channel", "--against", "lifetime", "--split", "channel"]
    assert run(tmp_path, table, *words, "--pileup", "5.24", "--block", "run") == 0
    said = capsys.readouterr().out
    assert "a candidate passes if its score is at least that" in said
    assert "of 4,000" in said
    assert said.count("±") == 1 + 1 + 2 + 20 + 2 * 6


def test_a_threshold_that_is_given_has_the_rate_that_it_was_chosen_for(tmp_path: Path) -> None:
    table = write(tmp_path / "t.parquet")
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    rates = ["--rates", "200e3,660e3,1e6", "--block", "run"]
    assert run(tmp_path, table, *rates, "--out", str(one)) == 0
    chosen = json.loads(one.read_text())
    given = ["--threshold", repr(chosen["threshold"])]
    assert run(tmp_path, table, *given, *rates, "--out", str(two)) == 0
    found = json.loads(two.read_text())
    for name in ("threshold", "rate", "rate_error", "n_passed", "groups", "rate_curve"):
        assert found[name] == chosen[name]
    curve = chosen["rate_curve"]
    assert curve["max_rate"] == [200e3, 660e3, 1e6]
    assert curve["threshold"][1] == chosen["threshold"]
    assert curve["rate_error"][1] == chosen["rate_error"]
    assert curve["passed"][1] == chosen["groups"]["all"]["passed"][0]
    assert sorted(curve["threshold"], reverse=True) == curve["threshold"]
    assert sorted(curve["efficiency"]) == curve["efficiency"]


@pytest.mark.parametrize("words", [[], ["--weights", "number"]])
def test_where_nothing_passes_the_rate_is_an_upper_limit(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = write(tmp_path / "t.parquet", number=np.ones(N)), tmp_path / "point.json"
    given = ["--threshold", "1e6", "--rate-by", "run", "--out", str(out)]
    assert run(tmp_path, table, *given, *words) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "rate < 23 kHz (with 95 % confidence): 0 of 4,000 background events pass" in said
    assert "0 ± 0 " not in said
    found = json.loads(out.read_text())
    assert found["rate"] == 0.0
    assert found["rate_limit"] == pytest.approx(30e6 * (1 - 0.05 ** (1 / 4000)))
    assert found["rates"]["run"]["limit"] == [found["rate_limit"]] * 10


def test_limits_in_tables_are_explained_where_the_working_point_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One event passes, 7.5 kHz: nine of ten runs have an upper limit."""
    table = write(tmp_path / "t.parquet")
    assert run(tmp_path, table, "--max-rate", "7.6e3", "--rate-by", "run") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "rate 7.5 ± 7.5 kHz, at most 7.6 allowed: 1 of 4,000" in said
    assert "limits < is with 95 % confidence, where no event passes" in said
    assert said.count(" 0 < 23") == 9
    assert run(tmp_path, table, "--rate-by", "run") == 0
    assert "limits" not in capsys.readouterr().out


def test_pictures_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, words = write(tmp_path / "t.parquet"), ["--against", "lifetime", "--split", "channel"]
    assert run(tmp_path, table, *words, "--plot", str(tmp_path / "curves.png")) == 0
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert run(tmp_path, table, "--plot", str(tmp_path / "curve.svg")) == 0
    assert "output rate [kHz]" in (tmp_path / "curve.svg").read_text()
    assert run(tmp_path, table, "--plot", str(tmp_path / "curve.jpg")) == 2
    assert "a picture must end in .png, .pdf or .svg" in capsys.readouterr().err
    assert run(tmp_path, table, "--plot", table) == 2
    assert "outputs must not be inputs" in capsys.readouterr().err


def test_the_result_says_which_model_rule_settings_and_tables(tmp_path: Path) -> None:
    table, out = write(tmp_path / "t.parquet"), tmp_path / "point.json"
    assert run(tmp_path, table, "--group", "channel", "--out", str(out)) == 0
    found = json.loads(out.read_text())
    assert found["fingerprint"] == FROZEN.fingerprint
    assert (found["rule"], found["isotone"]) == (">=", isotone.__version__)
    assert found["settings"]["max_rate"] == 660e3
    assert found["settings"]["group"] == ["channel"]
    assert found["settings"]["event"] == "run,event"
    data = Path(table).read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    assert found["tables"] == [{"path": table, "bytes": len(data), "sha256": digest}]
    point = read_point(out)
    point.check(FROZEN)
    assert point == Point(found["threshold"], FROZEN.fingerprint)
    with pytest.raises(
        ValueError, match=r"was chosen for the model .* but this one is .*run `iso"
    ):
        point.check(small(seed=1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threshold": None}, "has the threshold None, which is not a number"),
        ({"threshold": True}, "has the threshold True, which is not a number"),
        ({"rule": ">"}, "has the rule '>' instead of '>='"),
        ({"fingerprint": 3}, "names no model"),
        ({"format": 2}, "has no format 1"),
    ],
)
def test_a_file_that_is_no_result_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    good = {"format": 1, "threshold": 1, "rule": ">=", "fingerprint": "a"}
    path = tmp_path / "point.json"
    path.write_text(json.dumps(good | change))
    with pytest.raises(ValueError, match=f"{re.escape(message)}; it must be what `isotone trigg"):
        read_point(path)
    path.write_text('{"threshold": NaN}')
    with pytest.raises(ValueError, match=r"is not JSON \(NaN is not a number\)"):
        read_point(path)


def test_candidates_of_signal_and_background_are_never_one_event(tmp_path: Path) -> None:
    table = write(tmp_path / "t.parquet")
    found = read_candidates(FROZEN, table, target="is_signal", event=["run", "event"])
    assert len(found) == N
    assert not set(found.background.event) & set(found.signal.event)
    signal = COLUMNS["is_signal"] == 1
    events = found.signal.best([])
    assert len(events) == len(np.unique(COLUMNS["number"][signal]))
    assert events.score.max() == found.score[signal].max()


ERRORS: list[tuple[str, dict[str, Any], str]] = [
    ("", {"is_signal": np.full(N, 2)}, "column 'is_signal' is 2 in row 0"),
    ("", {"is_signal": np.zeros(N)}, "has no signal (1); both are needed"),
    ("", {"is_signal": np.ones(N)}, "has no background (0); both are needed"),
    ("", {"event": pa.array([None] * N, pa.int64())}, "'event' is missing in row 0"),
    ("", {"event": np.where(np.arange(N) == 7, np.nan, 1.0)}, "'event' is missing in row 7"),
    ("", {"run": np.float32(2**24) + np.zeros(N, np.float32)}, "store the column as integers"),
    ("--group chanel", {}, "did you mean 'channel'?"),
    ("--edges 1,2", {}, "`--edges 1,2` is about bins; add `--against COLUMN`"),
    ("--split channel", {}, "`--split channel` is about bins; add `--against COLUMN`"),
    ("--against lifetime --edges 2,1", {}, "finite numbers that increase"),
    ("--against lifetime --split number", {}, "curves fit a table"),
    ("--against channel", {}, "column 'channel' holds the text"),
    ("--group wrong", {"wrong": np.arange(N)}, "for two candidates of one event"),
    ("--max-rate 40e6", {}, "`--max-rate 4e+07` must lie between 0 and the input rate"),
    ("--max-rate 0", {}, "`--max-rate 0` must lie between 0 and the input rate"),
    ("--max-rate 1", {}, "`--max-rate 1` allows less than one of 4000 events"),
    ("--n-events 10", {}, "`--n-events 10` is less than the"),
    ("--input-rate -1", {}, "`--input-rate -1.0` must be positive"),
    ("--max-rate 660e3 --threshold 0", {}, "and both were given; give one of them"),
    ("--threshold nan", {}, "`--threshold nan` must be finite; choose one among the scores"),
    ("--rates a,b", {}, "`--rates a,b` must be numbers separated by commas"),
    ("--rates 40e6", {}, "`--max-rate 4e+07` must lie between 0 and the input rate"),
]


@pytest.mark.parametrize(
    ("words", "changes", "message"), ERRORS, ids=lambda value: str(value)[:30]
)
def test_what_cannot_be_used_is_refused_with_advice(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: str,
    changes: dict[str, Any],
    message: str,
) -> None:
    table = write(tmp_path / "t.parquet", **changes)
    assert run(tmp_path, table, *words.split()) == 2
    assert message in capsys.readouterr().err


def read(*paths: str) -> Candidates:
    return read_candidates(FROZEN, *paths, target="is_signal", event=["run", "event"])


@pytest.mark.parametrize("words", [("false", "true"), ("False", "True")])
def test_a_target_may_be_true_or_false(tmp_path: Path, words: tuple[str, str]) -> None:
    said = np.array(words)[COLUMNS["is_signal"]]
    one = read(write(tmp_path / "t.csv", is_signal=said))
    two = read(write(tmp_path / "t.parquet", is_signal=COLUMNS["is_signal"] == 1))
    assert one.is_signal.tolist() == two.is_signal.tolist() == (COLUMNS["is_signal"] == 1).tolist()


def test_an_event_may_be_divided_between_tables(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).permutation(N)
    parts = rows[:1000], rows[1000:]
    paths = [tmp_path / "a.parquet", tmp_path / "b.csv"]
    for part, path in zip(parts, paths, strict=True):
        write(path, **{name: column[part] for name, column in COLUMNS.items()})
    one, two = read(write(tmp_path / "t.parquet")), read(*map(str, paths))
    for kind in ("background", "signal"):
        best = [np.sort(getattr(found, kind).best([]).score) for found in (one, two)]
        assert best[0].tolist() == best[1].tolist()
    write(paths[1], is_signal=np.full(N, 2))
    with pytest.raises(ValueError, match=r"in '.*b.csv': column 'is_signal' is 2 in row 0"):
        read(*map(str, paths))


def test_large_event_numbers_stay_apart(tmp_path: Path) -> None:
    event = COLUMNS["event"].astype(np.uint64) + np.uint64(2**63)
    n_events = len(np.unique(read(write(tmp_path / "t.parquet")).event))
    for suffix in ("csv", "parquet", "root"):
        assert len(np.unique(read(write(tmp_path / f"h.{suffix}", event=event)).event)) == n_events


def test_ties_at_the_threshold_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = {name: np.zeros(N) for name in FROZEN.features}
    table = write(tmp_path / "t.parquet", **same)
    n_background = len(read(table).background.best([]))
    assert run(tmp_path, table) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "rate < 23 kHz (with 95 % confidence), at most 660 allowed: 0 of 4,000" in said
    assert f"ties {n_background} background events share the score just below" in said
    assert run(tmp_path, table, "--max-rate", "29e6") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "kHz, at most 29000 allowed" in said
    assert "ties" not in said


def test_groups_that_are_numbers_are_in_their_order(tmp_path: Path) -> None:
    table, out = write(tmp_path / "t.parquet"), tmp_path / "point.json"
    assert run(tmp_path, table, "--group", "number", "--out", str(out)) == 0
    names = json.loads(out.read_text())["groups"]["number"]["at"]
    assert names == sorted(names, key=int)


def test_what_is_read_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write(tmp_path / "t.parquet")
    for name in ("t.parquet", "model.isotone"):
        before = (tmp_path / "t.parquet").read_bytes()
        assert run(tmp_path, table, "--out", str(tmp_path / name)) == 2
        assert "outputs must not be inputs: choose another name" in capsys.readouterr().err
        assert (tmp_path / "t.parquet").read_bytes() == before
    assert run(tmp_path, table, event=",") == 2
    assert "`--event ,` names no column; give at least one" in capsys.readouterr().err


def test_an_empty_table_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = pa.table(COLUMNS).schema
    write_table(tmp_path / "t.parquet", schema, [])
    assert run(tmp_path, str(tmp_path / "t.parquet")) == 2
    assert "has no rows; give a table of candidates" in capsys.readouterr().err


def test_a_model_of_several_outputs_is_refused(tmp_path: Path) -> None:
    frozen = isotone.freeze(isotone.MonotonicNetwork([3, 4, 2], monotonic_cst=[[1, 0, 0]] * 2))
    with pytest.raises(ValueError, match=r"has 2 outputs; a trigger needs one score"):
        read_candidates(frozen, write(tmp_path / "t.csv"), target="is_signal", event=["event"])


@pytest.mark.parametrize("policy", ["skip", "missing"])
def test_a_candidate_without_a_score_never_passes_and_still_counts(
    policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X = np.array(COLUMNS["x0"])
    strange = np.flatnonzero(COLUMNS["is_signal"])[:50]
    X[strange] = np.nan
    table = write(tmp_path / "candidates.parquet", x0=X)
    assert run(tmp_path, table) == 2
    assert "`--on-unseen`" in capsys.readouterr().err
    out = tmp_path / "result.json"
    assert run(tmp_path, table, "--on-unseen", policy, "--out", str(out)) == 0
    complete = write(tmp_path / "complete.parquet")
    assert run(tmp_path, complete, "--out", str(tmp_path / "all.json")) == 0
    found, before = (json.loads(p.read_text()) for p in (out, tmp_path / "all.json"))
    assert found["threshold"] == before["threshold"]
    now, then = (result["groups"]["all"] for result in (found, before))
    assert now["events"] == then["events"]
    assert now["passed"][0] < then["passed"][0]
