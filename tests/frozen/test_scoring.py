"""A directory of tables is scored file by file, on workers that may die, and goes on."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from distributed import Client

from clusters import cluster
from isotone.cli import main
from isotone.frozen.engine import Engine
from isotone.frozen.scoring import NOTE, Scoring, score_directory
from isotone.typing import Floats
from isotone.workers import Processes
from networks import RANKS, every_step, mixed, small

FROZEN = small()
N_FILES, N_ROWS = 6, 200
HERE = Processes(1)


def draw(seed: int) -> Floats:
    return np.random.default_rng(seed).normal(size=(N_ROWS, 3))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Six files in two folders."""
    for k in range(N_FILES):
        path = tmp_path / "in" / f"part{k % 2}" / f"{k}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = {name: draw(k)[:, i] for i, name in enumerate(FROZEN.features)}
        pa.parquet.write_table(pa.table(columns | {"id": np.arange(N_ROWS)}), path)
    return tmp_path / "in"


def check(target: Path) -> None:
    for k in range(N_FILES):
        table = pa.parquet.read_table(target / f"part{k % 2}" / f"{k}.parquet")
        assert table.column_names == ["id", "score"]
        assert np.array_equal(table["score"].to_numpy(), FROZEN.score(draw(k)))


def test_every_file_gets_its_scores_once(source: Path, tmp_path: Path) -> None:
    scoring, target = Scoring(FROZEN, ("id",)), tmp_path / "out"
    steps: list[tuple[int, int]] = []
    assert score_directory(scoring, source, target, HERE, lambda *n: steps.append(n)).n == 6
    assert steps == [(k, N_FILES) for k in range(N_FILES + 1)]
    check(target)
    assert score_directory(scoring, source, target, HERE).n == 0
    (target / "part0" / "2.parquet").unlink()
    assert score_directory(scoring, source, target, HERE).n == 1
    os.utime(source / "part1" / "3.parquet")  # newer than its scores, but the same
    assert score_directory(scoring, source, target, HERE).n == 0
    check(target)


@pytest.mark.parametrize("same_size", [True, False])
def test_a_table_that_is_replaced_by_an_older_one_is_scored_again(
    source: Path, tmp_path: Path, same_size: bool
) -> None:
    target, replaced = tmp_path / "out", source / "part1" / "3.parquet"
    score_directory(Scoring(FROZEN), source, target, HERE)
    before = replaced.stat()
    other = draw(99) if same_size else draw(99)[:50]
    columns = {name: other[:, i] for i, name in enumerate(FROZEN.features)}
    pa.parquet.write_table(pa.table(columns | {"id": np.arange(len(other))}), replaced)
    assert (replaced.stat().st_size == before.st_size) == same_size
    os.utime(replaced, ns=(before.st_atime_ns - 10**12, before.st_mtime_ns - 10**12))
    assert score_directory(Scoring(FROZEN), source, target, HERE).n == 1
    scores = pa.parquet.read_table(target / "part1" / "3.parquet")["score"].to_numpy()
    assert np.array_equal(scores, FROZEN.score(other))


def test_scores_that_are_damaged_are_written_again(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    score_directory(Scoring(FROZEN, ("id",)), source, target, HERE)
    (target / "part0" / "2.parquet").write_text("junk")
    pa.parquet.write_table(pa.table({"score": [1.0]}), target / "part1" / "3.parquet")
    assert score_directory(Scoring(FROZEN, ("id",)), source, target, HERE).n == 2
    check(target)


def test_a_table_that_changes_while_it_is_read_has_no_scores(source: Path, tmp_path: Path) -> None:
    table, out = source / "part0" / "2.parquet", tmp_path / "scores.parquet"
    with pytest.raises(ValueError, match="changed while it was being read; it must stay"):
        Scoring(FROZEN).score(str(table), str(out), lambda n: os.utime(table, (1, 1)))
    assert not out.exists()


def test_scores_of_two_models_are_not_mixed(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    score_directory(Scoring(FROZEN), source, target, HERE)
    assert json.loads((target / NOTE).read_text())["fingerprint"] == FROZEN.fingerprint
    for other in (Scoring(small(seed=1)), Scoring(FROZEN, ("id",))):
        with pytest.raises(ValueError, match="was not written with this model and these columns"):
            score_directory(other, source, target, HERE)


def test_a_foreign_file_is_not_taken_for_scores(source: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "out" / "part0" / "2.parquet"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("junk")
    with pytest.raises(ValueError, match="exists but was not written with this model"):
        score_directory(Scoring(FROZEN), source, tmp_path / "out", HERE)
    foreign.unlink()
    (source / "part1" / "1.PARQUET").hardlink_to(source / "part1" / "1.parquet")
    assert score_directory(Scoring(FROZEN), source, tmp_path / "out", HERE).n == N_FILES + 1


def test_a_table_that_is_read_is_never_replaced(tmp_path: Path) -> None:
    inner = tmp_path / "d" / "d"
    inner.mkdir(parents=True)
    for path in (tmp_path / "d" / "x.parquet", inner / "x.parquet"):
        pa.parquet.write_table(pa.table({"x0": [1.0], "x1": [1.0], "x2": [1.0]}), path)
    with pytest.raises(ValueError, match=r"would replace .*outputs must not be inputs"):
        score_directory(Scoring(FROZEN), tmp_path / "d", tmp_path, HERE)


def test_a_bad_file_is_named(source: Path, tmp_path: Path) -> None:
    bad = source / "part0" / "4.parquet"
    pa.parquet.write_table(pa.table({"x0": [1.0], "x1": [None], "x2": [1.0]}), bad)
    with pytest.raises(ValueError, match=r"4\.parquet: .*'x1'"):
        score_directory(Scoring(FROZEN), source, tmp_path / "out", HERE)
    assert not (tmp_path / "out" / "part0" / "4.parquet").exists()


def test_directories_are_checked(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is inside the directory that is read"):
        score_directory(Scoring(FROZEN), source, source / "out", HERE)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="there are no Parquet files in"):
        score_directory(Scoring(FROZEN), tmp_path / "empty", tmp_path / "out", HERE)


def test_a_worker_killed_in_the_middle_is_tolerated(source: Path, tmp_path: Path) -> None:
    FROZEN.save(tmp_path / "model.isotone")
    with cluster(tmp_path, 2) as (address, workers), Client(address, timeout=60) as remote:

        def kill(done: int, total: int) -> None:
            if done == 2:
                workers[0].send_signal(signal.SIGKILL)

        score_directory(Scoring(FROZEN, ("id",)), source, tmp_path / "out", remote, kill)
        check(tmp_path / "out")
        again = ["score", str(tmp_path / "model.isotone"), str(source), "--keep", "id"]
        with pytest.raises(SystemExit, match="0"):
            main([*again, "--out", str(tmp_path / "again"), "--scheduler", address])
    check(tmp_path / "again")


def test_columns_to_keep_may_be_separated_by_commas(tmp_path: Path) -> None:
    table = pa.table({"x0": [1.0], "x1": [1.0], "x2": [1.0], "a": [1], "b": [2], "a,b": [3]})
    (tmp_path / "d").mkdir()
    for path in (tmp_path / "t.parquet", tmp_path / "d" / "t.parquet"):
        pa.parquet.write_table(table, path)
    FROZEN.save(tmp_path / "m.isotone")

    def columns(*keep: str, directory: bool = False) -> list[str]:
        name, out = ("d", "out") if directory else ("t.parquet", "out.parquet")
        words = ["score", str(tmp_path / "m.isotone"), str(tmp_path / name), "--workers", "1"]
        options = [word for text in keep for word in ("--keep", text)]
        with pytest.raises(SystemExit, match="0"):
            main([*words, *options, "--out", str(tmp_path / out)])
        written = tmp_path / "out" / "t.parquet" if directory else tmp_path / out
        return list(pa.parquet.read_schema(written).names)

    assert columns("b,a") == ["b", "a", "score"]
    assert columns("b, a", "x0") == ["b", "a", "x0", "score"]
    assert columns("a,b") == ["a,b", "score"]  # there is a column of that name
    assert columns("b,a", directory=True) == ["b", "a", "score"]


def test_rows_unlike_any_in_training_cost_no_other_row_its_score(tmp_path: Path) -> None:
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    columns = {name: [1.0, 2.0, 3.0] for name in FROZEN.features}
    strange = columns | {FROZEN.features[0]: [1.0, None, 3.0]}
    pyarrow.parquet.write_table(pa.table(strange), source)
    for policy, expected in (("skip", None), ("missing", None), (-7.5, -7.5)):
        scored = Scoring(FROZEN, on_unseen=policy).score(str(source), str(target))  # type: ignore[arg-type]
        assert scored == (3, 1, 1 if expected is None else 0, 0)
        found = pyarrow.parquet.read_table(target)["score"].to_pylist()
        assert found[1] == expected
        assert [found[0], found[2]] == FROZEN.score(columns)[[0, 2]].tolist()
    with pytest.raises(ValueError, match="is missing in row 1"):
        Scoring(FROZEN).score(str(source), str(target))


def test_rows_are_counted_that_a_missing_value_cannot_help() -> None:
    """A new city is scored like a missing one; nothing stands in for a debt that never lacked."""
    engine = Engine(mixed(), on_unseen="missing")
    table: dict[str, list[Any]] = {
        "age": [40.0, 40.0, 40.0],
        "city": ["Oslo", "Paris", "Oslo"],
        "size": [RANKS[0]] * 3,
        "debt": [300.0, 300.0, None],
        "income": [400.0, 400.0, 400.0],
    }
    scores = engine(table)
    assert np.isnan(scores).tolist() == [False, False, True]
    assert (engine.n_unseen, engine.n_unscored) == (2, 1)


@pytest.mark.parametrize(
    ("n_outputs", "classes", "expected"),
    [
        (1, None, ["probability"]),
        (1, ("no", "yes"), ["probability(yes)"]),
        (3, ("a", "b", "c"), ["probability(a)", "probability(b)", "probability(c)"]),
    ],
)
def test_probabilities_are_named_after_the_classes_that_they_are_of(
    n_outputs: int, classes: Any, expected: list[str]
) -> None:
    frozen = every_step(n_outputs, outputs="logits", classes=classes)
    scores = frozen.score(np.random.default_rng(0).exponential(size=(20, 3)))
    outputs = Scoring(frozen, probability=True).outputs(scores)
    added = {name: values for name, values in outputs.items() if name.startswith("probability")}
    assert list(added) == expected
    probability = frozen.to_probability(scores)
    np.testing.assert_array_equal(np.column_stack(list(added.values())).squeeze(), probability)


def test_a_kept_column_cannot_be_called_like_the_scores(tmp_path: Path) -> None:
    table = pa.table({name: [0.5] for name in FROZEN.features} | {"score": [1.0]})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="`--keep score` has the name of an output column; they"):
        Scoring(FROZEN, ("score",)).score(str(tmp_path / "t.parquet"), str(tmp_path / "s.parquet"))
    assert not (tmp_path / "s.parquet").exists()


@pytest.mark.parametrize(("suffix", "kept"), [(".csv", "7.50"), (".parquet", 7.5)])
def test_text_is_kept_as_it_is_only_from_csv_to_csv(
    tmp_path: Path, suffix: str, kept: Any
) -> None:
    source, target = tmp_path / "t.csv", tmp_path / f"s{suffix}"
    source.write_text(",".join([*FROZEN.features, "id"]) + "\n0.5,1,2,7.50\n")
    Scoring(FROZEN, ("id",)).score(str(source), str(target))
    if suffix == ".csv":
        assert target.read_text().splitlines()[1].split(",")[0].strip('"') == kept
    else:
        assert pa.parquet.read_table(target)["id"].to_pylist() == [kept]
