"""`isotone transport`: tables in, bounds out, refusals that say what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import isotone
from isotone.cli import main
from isotone.data.table import write_table

QUICK = ("--steps", "60")


def write(path: Path, **columns: Any) -> Path:
    batch = pa.RecordBatch.from_pydict({name: np.asarray(c) for name, c in columns.items()})
    write_table(path, batch.schema, [batch])
    return path


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    rng = np.random.default_rng(0)
    x, y, w = rng.normal(size=(3, 40))
    P = write(tmp_path / "P.parquet", x=x, y=y, w=np.abs(w))
    return P, write(tmp_path / "Q.csv", y=y, x=x + 3.0, w=np.abs(w))


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main(["transport", *map(str, arguments)])
    out, err = capsys.readouterr()
    assert isinstance(stop.value.code, int)
    return stop.value.code, " ".join((out + err).split())


def test_a_shift_is_found_and_written(
    tables: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "found"
    code, text = run(capsys, *tables, "--weights", "w", "--upper", "--out", out, "--steps", "300")
    assert code == 0
    assert "40 and 40 in x, y; metric 2" in text
    assert "at most 3.00" in text
    found = json.loads((out / "distance.json").read_text())
    assert 2.8 < found["lower_bound"] <= 3.0 <= found["upper_bound"] < 3.1
    assert isotone.load(out / "critic.isotone").features == ("x", "y")


def test_options_reach_the_library(
    tables: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = run(
        capsys, *tables, *QUICK, "--columns", "x", "--metric", "inf", "--validation", "0.5"
    )
    assert code == 0
    assert "in x; metric inf" in text
    assert "on points that the critic did not see" in text


def test_tables_that_cannot_be_used_are_refused(
    tables: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    P, Q = tables
    other = write(tmp_path / "other.csv", x=[1.0], z=[1.0])
    text = write(tmp_path / "text.csv", x=[1.0], y=["a"], w=[1.0])
    bare = write(tmp_path / "bare.csv", x=[1.0])
    empty = write(tmp_path / "empty.csv", x=np.empty(0), y=np.empty(0), w=np.empty(0))
    gap = write(tmp_path / "gap.parquet", x=[1.0, np.nan], y=[0.0, 0.0], w=[1.0, 1.0])
    negative = write(tmp_path / "negative.parquet", x=[1.0, 2.0], y=[0.0, 0.0], w=[1.0, -1.0])
    cases = [
        ((P, other), "differ in the column 'w'; both must have the same coordinates"),
        ((P, other, "--columns", "x,y"), "has no column 'y'"),
        ((P, Q, "--columns", ","), "`--columns` names no column"),
        ((P, Q, "--columns", "x,x"), "names a column twice; give each once"),
        ((P, text), "column 'y' holds the text 'a' in row 0"),
        ((P, bare, "--columns", "x", "--weights", "w"), "has no column 'w'"),
        ((P, Q, "--columns", "x,w", "--weights", "w"), "it cannot be both"),
        ((P, empty), "has no rows; a cloud needs at least one point"),
        ((P, gap), "column 'x' is nan in row 1"),
        ((P, negative, "--weights", "w"), "the weight of point 1 of `Q` is -1.0"),
        ((P, Q, "--weights", "mass"), "has no column 'mass'"),
        ((P, Q, "--metric", "3"), "`--metric 3` is unknown; choose from 1, 2, inf"),
        ((P, Q, "--out", P), "is a file; give the name of a directory"),
        ((P, tmp_path / "none.csv"), "there is no file"),
        ((P, Q, "--steps", "0"), "greater than or equal to 1"),
    ]
    for arguments, message in cases:
        code, text = run(capsys, *arguments)
        assert code == 2
        assert message in text, text
