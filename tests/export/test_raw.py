"""Exports take the raw table: text, orders and missing values score there as they do here."""

from __future__ import annotations

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

from isotone import Engine, FrozenNetwork, export
from isotone.export import parity
from isotone.export.sql import select
from isotone.export.sql.select import Sql
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Number, Ordered
from networks import small

INPUTS = Inputs(
    (
        Number("age", fill=35.0),
        Category("city", ("Oslo", 'O\'Brien "?" \\', None)),
        Ordered("size", ("S", "M", "L"), fill=1.0),
        Number("member"),
        Category("zone", ("1", "2")),
    )
)
RAW: dict[str, list[Any]] = {
    "zone": ["2", "1", " 1 ", "2", "3"],
    "member": [1.0, 0.0, 1.0, 1.0, 0.0],
    "size": ["L", "M", None, "S", "S"],
    "city": ["Oslo", 'O\'Brien "?" \\', None, "", "Oslo"],
    "age": [31.0, None, 2.5, 40.0, 41.0],
}


def model(precision: Any = "float64") -> FrozenNetwork:
    directions = tuple(int(name in ("age", "size")) for name in INPUTS.features)
    return replace(small(directions, precision=precision), features=INPUTS.features, inputs=INPUTS)


def expected() -> np.ndarray[Any, Any]:
    scores = Engine(model(), on_unseen="skip")(RAW)
    assert np.isnan(scores).tolist() == [False] * 4 + [True]  # no training row has zone 3
    return scores


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("json", {}),
        ("sql", {}),
        ("sql", {"dialect": "duckdb", "keep": ("size", "id")}),
        ("onnx", {}),
        ("onnx", {"categories": "codes"}),
        ("onnx", {"precision": "float32"}),
        ("torch", {}),
        ("cpp", {"name": "raw"}),
        ("cuda", {"name": "raw"}),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else value,
)
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_every_export_agrees_on_raw_rows(
    target: str, options: dict[str, Any], precision: str, tmp_path: Path
) -> None:
    """Missing and unseen values included: the check after an export compares them."""
    export.write(model(precision), target, tmp_path / "raw", **options)


def test_the_check_has_rows_of_every_kind() -> None:
    codes = parity.check_rows(model(), 500)
    for i, column in enumerate(INPUTS.columns):
        known = codes[:, i][np.isfinite(codes[:, i])]
        assert np.isnan(codes[:, i]).any() == (column.fill is not None)
        if not isinstance(column, Number):
            assert np.isinf(codes[:, i]).any()
            assert set(known) == set(range(len(column.categories)))
    scores = Engine(model(), on_unseen="skip")(INPUTS.decode(codes))
    assert 0 < np.isnan(scores).sum() < 0.2 * len(scores)


def test_sqlite_scores_the_raw_table(tmp_path: Path) -> None:
    export.write(model(), "sql", tmp_path / "m.sql", table="clients")
    with closing(sqlite3.connect(":memory:")) as connection:
        names = ", ".join(f'"{name}"' for name in RAW)
        connection.execute(f"CREATE TABLE clients ({names})")
        rows = zip(*RAW.values(), strict=True)
        connection.executemany("INSERT INTO clients VALUES (?,?,?,?,?)", rows)
        found = connection.execute((tmp_path / "m.sql").read_text()).fetchall()
    np.testing.assert_array_equal(np.array(found, float)[:, 0], expected())


def test_duckdb_scores_the_raw_table(tmp_path: Path) -> None:
    export.write(model(), "sql", tmp_path / "m.sql", table="clients", dialect="duckdb")
    with closing(duckdb.connect()) as connection:
        connection.register("clients", pa.table(RAW))
        found = connection.execute((tmp_path / "m.sql").read_text()).fetchall()
    np.testing.assert_array_equal(np.array(found, float)[:, 0], expected())


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
@pytest.mark.parametrize(
    "cells",
    [
        ["1", "\t2\n", "\u00a0x\u3000", "1.0", " ", "-12"],
        [1.0, 2.0, -0.5, -12.0, None, 1e6],
        [1, 2, 3, -12, None, 1000000],
    ],
)
def test_databases_read_categories_as_isotone_does(cells: list[Any], dialect: Any) -> None:
    """White space of any kind is not part of a text, and 1.0 is the category 1."""
    inputs = Inputs((Category("zone", ("-12", "1", "2", "x", "-0.5")),))
    frozen = replace(small((0,) * 5), features=inputs.features, inputs=inputs)
    found = select._RUN[dialect](Sql(dialect, "t").select(frozen), "t", {"zone": cells})
    expected = Engine(frozen, on_unseen="skip")({"zone": cells})
    np.testing.assert_array_equal(np.array(found, float)[:, 0], expected)
    assert 1 < np.isnan(expected).sum() < 4


def test_onnx_takes_strings_and_numbers(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    export.write(model(), "onnx", tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    kinds = {entry.name: entry.type for entry in session.get_inputs()}
    assert kinds == {
        name: "tensor(double)" if name in ("age", "member") else "tensor(string)" for name in RAW
    }
    feeds = {
        name: np.array(cells, np.float64)
        if name in ("age", "member")
        else np.array([(cell or "").strip() for cell in cells], object)
        for name, cells in RAW.items()
    }
    np.testing.assert_array_equal(session.run(["score"], feeds)[0], expected())


def test_a_header_names_columns_and_categories(tmp_path: Path) -> None:
    export.write(model(), "cpp", tmp_path / "raw", check=False)
    text = (tmp_path / "raw" / "raw.hpp").read_text()
    assert "n_columns = 5;" in text
    assert 'column_names[] = {"age", "city", "size", "member", "zone"}' in text
    assert re.search(r'categories_2\[\] = \{"S", "M", "L"\}', text)


@pytest.mark.parametrize("target", ["cpp", "cuda"])
@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\u2028", "\x85", " \\", "??/"])
def test_no_name_leaves_its_comment(target: Any, end: str, tmp_path: Path) -> None:
    evil = f"a{end}"
    inputs = Inputs((Number(evil, fill=1.0), Category(f"b{end}", (f"c{end}int", None))))
    frozen = replace(small((1, 0, 0, 0)), features=inputs.features, inputs=inputs)
    export.write(frozen, target, tmp_path / "raw", check=False)
    (path,) = (tmp_path / "raw").glob("raw.[hc]*")
    head, _, code = path.read_text(encoding="utf-8").partition("#pragma once")
    assert all(line.startswith("//") or not line for line in head.splitlines())
    assert not any(line.endswith(("\\", "??/")) for line in head.splitlines())
    named = [line for line in code.splitlines() if "categories_1[]" in line]
    assert len(named) == 1
    assert not named[0].endswith(("\\", "??/"))


def test_onnx_takes_the_code_of_the_missing_category(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    export.write(model(), "onnx", tmp_path / "m.onnx", categories="codes")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    codes = {"age": 31.0, "size": 2.0, "member": 1.0, "zone": 0.0}
    feeds = {name: np.full(2, code) for name, code in codes.items()}
    scores = session.run(["score"], feeds | {"city": np.array([2.0, np.nan])})[0]
    assert np.isfinite(scores[0])
    assert scores[0] == scores[1]


def test_the_json_export_holds_the_inputs(tmp_path: Path) -> None:
    from isotone.export import json

    export.write(model(), "json", tmp_path / "m.json")
    assert json.read(tmp_path / "m.json").inputs == INPUTS


def test_strings_need_a_recent_opset(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`opset=18` cannot compare strings, which needs 19"):
        export.write(model(), "onnx", tmp_path / "m.onnx", opset=18)
    export.write(model(), "onnx", tmp_path / "m.onnx", opset=18, categories="codes")
