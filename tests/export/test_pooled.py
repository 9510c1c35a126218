"""Exports pool rare and new categories as the engine does, and never a missing value."""

from __future__ import annotations

import math
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from isotone import Engine, FrozenNetwork, certify, export
from isotone.export import json, parity
from isotone.export.sql import databases, postgresql, select
from isotone.export.sql.select import Sql
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Number
from networks import small

INPUTS = Inputs(
    (
        Number("age"),
        Category("city", ("Oslo", 'O\'Brien "?" \\', None), pooled=12),
        Category("zone", ("1", "2"), pooled=1),
        Category("code", (), pooled=300),
        Category("kind", ("a", "b")),
    )
)
RAW: dict[str, list[Any]] = {
    "age": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
    "city": ["Oslo", "Bonn", None, " ", "new", 'O\'Brien "?" \\', "Rome"],
    "zone": ["2", " 1 ", "3", "1.0", "1", "", None],
    "code": ["x", "y", " z", "1", "x", "x", "x"],
    "kind": ["a", "b", "a", "b", "c", "a", "b"],
}
TARGETS: list[tuple[str, dict[str, Any]]] = [
    ("json", {}),
    ("sql", {}),
    ("sql", {"dialect": "duckdb"}),
    ("onnx", {}),
    ("onnx", {"categories": "codes"}),
    ("onnx", {"precision": "float32"}),
    ("torch", {}),
    ("cpp", {"name": "raw"}),
    ("cuda", {"name": "raw"}),
]


def model(precision: Any = "float64", inputs: Inputs = INPUTS) -> FrozenNetwork:
    frozen = small((0,) * len(inputs.features), precision=precision)
    return replace(frozen, features=inputs.features, inputs=inputs)


def expected() -> np.ndarray[Any, Any]:
    scores = Engine(model(), on_unseen="skip")(RAW)
    # kind pools nothing, and zone was never missing
    assert np.isnan(scores).tolist() == [False] * 4 + [True] * 3
    return scores


@pytest.mark.parametrize(("target", "options"), TARGETS, ids=str)
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_every_export_pools_as_the_model_does(
    target: str, options: dict[str, Any], precision: str, tmp_path: Path
) -> None:
    export.write(model(precision), target, tmp_path / "raw", **options)


def test_the_check_has_pooled_new_and_missing_rows() -> None:
    codes = parity.check_rows(model(), 500)
    for i, column in enumerate(INPUTS.columns):
        if isinstance(column, Category) and column.pooled:
            assert {float(column.other or 0), math.inf} <= set(codes[:, i])
            assert np.isnan(codes[:, i]).any()
    scores = Engine(model(), on_unseen="skip")(INPUTS.decode(codes))
    assert 0 < np.isnan(scores).sum() < 0.2 * len(scores)


@pytest.mark.parametrize("known", [("false",), ("false", "true"), ("false", "true", "1")])
def test_sqlite_reads_its_booleans(known: tuple[str, ...]) -> None:
    """Which are 1 and 0, unless a category is called so."""
    frozen = model(inputs=Inputs((Number("age"), Category("on", known, pooled=1))))
    cells = {"age": [1.0, 1.0, 1.0], "on": [True, False, "x"]}
    texts = cells | {"on": ["1", "0", "x"] if "1" in known else ["true", "false", "x"]}
    rows = databases.run_sqlite(Sql().select(frozen), "data", cells)
    assert [row[0] for row in rows] == Engine(frozen)(texts).tolist()


def test_databases_score_the_raw_table() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (age, city, zone, code, kind)")
        rows = zip(*RAW.values(), strict=True)
        connection.executemany("INSERT INTO t VALUES (?,?,?,?,?)", rows)
        found = connection.execute(Sql("sqlite", "t").select(model())).fetchall()
    np.testing.assert_array_equal(np.array(found, float)[:, 0], expected())
    with closing(duckdb.connect()) as connection:
        connection.register("t", pa.table(RAW))
        found = connection.execute(Sql("duckdb", "t").select(model())).fetchall()
    np.testing.assert_array_equal(np.array(found, float)[:, 0], expected())


ZONE = Inputs((Category("zone", ("-12", "1", "2", "x", "-0.5"), pooled=4),))
KNOWN = Inputs((Category("zone", ("-12", "1", "2", "x", None), pooled=4),))
CELLS: list[list[Any]] = [
    ["1", "\t2\n", "\u00a0x\u3000", "1.0", " ", "-12", "nan", "NaN"],
    [1.0, 2.0, -0.5, -12.0, None, 1e6, math.nan, math.inf],
    [1, 2, 3, -12, None, 1000000, 0, -1],
]


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
@pytest.mark.parametrize("inputs", [ZONE, KNOWN], ids=["never missing", "missing"])
@pytest.mark.parametrize("cells", CELLS, ids=["text", "float", "int"])
def test_databases_read_categories_as_isotone_does(
    cells: list[Any], inputs: Inputs, dialect: Any
) -> None:
    """NaN is a missing value in a column of numbers, and a name in one of text."""
    frozen = model(inputs=inputs)
    found = select._RUN[dialect](Sql(dialect, "t").select(frozen), "t", {"zone": cells})
    scores = Engine(frozen, on_unseen="skip")({"zone": cells})
    np.testing.assert_array_equal(np.array(found, float)[:, 0], scores)


def test_postgresql_pools_as_well(server: postgresql.Run) -> None:
    found = server(Sql("postgresql", "t").select(model()), "t", RAW)
    np.testing.assert_array_equal(np.array(found, np.float64)[:, 0], expected())
    codes = parity.check_rows(model(), 300)
    X = INPUTS.decode(codes)
    found = server(Sql("postgresql", "t").select(model()), "t", X)
    scores = Engine(model(), on_unseen="skip")(X)
    np.testing.assert_array_equal(np.array(found, np.float64)[:, 0], scores)
    for inputs in (ZONE, KNOWN):
        frozen, cells = model(inputs=inputs), CELLS[1]
        found = server(Sql("postgresql", "t").select(frozen), "t", {"zone": cells})
        scores = Engine(frozen, on_unseen="skip")({"zone": cells})
        np.testing.assert_array_equal(np.array(found, np.float64)[:, 0], scores)


def test_onnx_takes_new_strings(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    export.write(model(), "onnx", tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    feeds = {
        name: np.array(cells if name == "age" else [(c or "").strip() for c in cells])
        for name, cells in RAW.items()
    }
    feeds |= {name: cells.astype(object) for name, cells in feeds.items() if name != "age"}
    np.testing.assert_array_equal(session.run(["score"], feeds)[0], expected())


@pytest.mark.parametrize(("target", "options"), [("onnx", {"categories": "codes"}), ("torch", {})])
def test_any_number_that_is_no_place_is_the_code_of_the_others(
    target: str, options: dict[str, Any], tmp_path: Path
) -> None:
    frozen, scorer = model(), export._target(target, options)
    scorer.write(frozen, tmp_path / "m")
    X = np.tile([1.0, 0.0, 0.0, 0.0, 0.0], (5, 1))
    X[:, 2] = 2.0, 7.0, -1.0, 0.5, math.inf
    scores = np.asarray(scorer.score(frozen, tmp_path / "m", X))
    assert np.isfinite(scores).all()
    assert np.ptp(scores) < 1e-12  # torch may sum the rows of one batch differently
    X[:, 2] = math.nan
    assert np.isnan(scorer.score(frozen, tmp_path / "m", X)).all()


@pytest.mark.parametrize("target", ["cpp", "cuda"])
def test_headers_name_the_code_of_the_others(target: Any, tmp_path: Path) -> None:
    export.write(model(), target, tmp_path / "raw", check=False)
    (path,) = (tmp_path / "raw").glob("raw.[hc]*")
    text = path.read_text(encoding="utf-8")
    other = "or any number that is no place, is every other category"
    assert re.search(rf'categories_2\[\] = {{"1", "2"}};  // of "zone"; 2, {other}\n', text)
    assert re.search(rf'\n// of "code"; 0, {other}\n', text)
    assert re.search(r'categories_4\[\] = {"a", "b"};  // of "kind"\n', text)


def test_json_holds_the_pool_and_its_fingerprint(tmp_path: Path) -> None:
    export.write(model(), "json", tmp_path / "m.json")
    again = json.read(tmp_path / "m.json")
    assert again.inputs == INPUTS
    assert again.fingerprint == model().fingerprint == certify(again).fingerprint
    text = (tmp_path / "m.json").read_text()
    (tmp_path / "m.json").write_text(text.replace('"pooled": 12', '"pooled": 13'))
    with pytest.raises(ValueError, match="it was altered"):
        json.read(tmp_path / "m.json")
