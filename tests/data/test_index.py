"""An index of pandas is no feature, unless somebody asks for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import isotone
from isotone.cli import main
from isotone.data.table import index_columns, open_table

N = 200
RNG = np.random.default_rng(0)
#: goods, then bads: the number of a row tells its class
FRAME = pd.DataFrame(
    {"a": RNG.normal(size=N), "b": RNG.normal(size=N), "y": np.arange(N) >= N / 2}
)
FRAME["y"] = FRAME["y"].astype(int)
SORTED = np.sort(RNG.uniform(size=N))
QUICK = ["--max-iter", "1", "--n-members", "1", "--lipschitz", "1"]


def shuffled(index: Any) -> pd.DataFrame:
    return FRAME.set_index(index)


INDEXES: dict[str, tuple[Any, list[str]]] = {
    "numbers": (pd.Index(SORTED), ["__index_level_0__"]),
    "a name": (pd.Index(np.arange(N) + 7.5, name="customer"), ["customer"]),
    "two levels": (
        pd.MultiIndex.from_arrays([np.arange(N), np.arange(N) * 2], names=[None, "second"]),
        ["__index_level_0__", "second"],
    ),
    "times": (pd.date_range("2020", periods=N, name="when"), ["when"]),
    "a counter, which is no column": (pd.RangeIndex(N), []),
}


@pytest.mark.parametrize("kind", INDEXES)
def test_the_index_of_a_parquet_file_is_found(tmp_path: Path, kind: str) -> None:
    index, expected = INDEXES[kind]
    shuffled(index).to_parquet(tmp_path / "t.parquet")
    assert list(index_columns(open_table(tmp_path / "t.parquet"))) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (",a,y", [""]),
        ('"",a,y', [""]),
        ("Unnamed: 0,a,y", ["Unnamed: 0"]),
        ("__index_level_0__,a,y", ["__index_level_0__"]),
        ("Unnamed,a,y", []),
        ("index,a,y", []),
    ],
)
def test_the_index_of_a_csv_file_is_found(
    tmp_path: Path, header: str, expected: list[str]
) -> None:
    (tmp_path / "t.csv").write_text(f"{header}\n1,2,3\n")
    assert list(index_columns(open_table(tmp_path / "t.csv"))) == expected


@pytest.mark.parametrize(
    "metadata", [b"", b"{", b"[]", b"null", b'{"index_columns": 3}', b'{"index_columns": [{}, 1]}']
)
def test_metadata_of_another_kind_is_no_obstacle(tmp_path: Path, metadata: bytes) -> None:
    table = pa.table({"a": [1.0]}).replace_schema_metadata({b"pandas": metadata})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    assert index_columns(open_table(tmp_path / "t.parquet")) == ()


def train(path: Path, *words: str) -> tuple[str, ...]:
    """Features of a model that is trained on a table."""
    out = path.parent / "out"
    with pytest.raises(SystemExit, match="0"):
        main(["train", str(path), "--target", "y", "--out", str(out), *QUICK, *words])
    return isotone.load(out / "model.isotone").features


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_an_index_is_left_out_of_training_and_that_is_said(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, frame = tmp_path / f"t{suffix}", FRAME.set_index(pd.Index(SORTED))
    frame.to_csv(path) if suffix == ".csv" else frame.to_parquet(path)
    name = "" if suffix == ".csv" else "__index_level_0__"
    assert train(path) == ("a", "b")
    said = " ".join(capsys.readouterr().err.split())
    assert f"left out {name!r}, which pandas wrote as the index of the rows" in said
    assert "to use such a column, name it in `--features`" in said
    assert json.loads((tmp_path / "out" / "metrics.json").read_text())["AUC"] < 0.9


@pytest.mark.parametrize(
    ("words", "features"),
    [
        (["--features", "a,customer"], ("a", "customer")),
        (["--increasing", "customer"], ("a", "b", "customer")),
        (["--decreasing", "customer:1"], ("a", "b", "customer")),
        (["--log", "customer=1"], ("a", "b", "customer")),
    ],
)
def test_an_index_that_is_asked_for_is_used(
    tmp_path: Path, words: list[str], features: tuple[str, ...], capsys: Any
) -> None:
    FRAME.set_index(pd.Index(np.arange(N) + 7.5, name="customer")).to_parquet(
        tmp_path / "t.parquet"
    )
    assert train(tmp_path / "t.parquet", *words) == features
    said = capsys.readouterr().err
    assert "left out" not in said
    assert "warning: column 'customer' counts the rows (7.5, 8.5, 9.5, ...)" in said


def test_an_index_may_be_the_target_or_the_weights(tmp_path: Path) -> None:
    FRAME.set_index("y").to_parquet(tmp_path / "t.parquet")
    assert train(tmp_path / "t.parquet") == ("a", "b")
    FRAME.assign(w=1.0).set_index("w").to_parquet(tmp_path / "t.parquet")
    assert train(tmp_path / "t.parquet", "--weights", "w") == ("a", "b")


def test_an_index_is_no_coordinate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FRAME.to_csv(tmp_path / "p.csv")
    FRAME.to_csv(tmp_path / "q.csv", index=False)
    with pytest.raises(SystemExit, match="0"):
        main(["transport", str(tmp_path / "p.csv"), str(tmp_path / "q.csv"), "--steps", "2"])
    printed = capsys.readouterr()
    assert "200 and 200 in a, b, y;" in printed.out
    assert "left out ''" in printed.err
    assert "name it in `--columns`" in printed.err
