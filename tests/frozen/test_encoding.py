"""Encoding: columns of a table become features, the same in training and in scoring."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from isotone.data.table import open_table
from isotone.frozen.encoding import MAX_CATEGORIES, Encoding, is_blank, labels
from networks import small

TABLE = pa.table({"city": ["Rome", " Oslo", None, "Rome"], "age": ["31", "NA", "", " 40 "]})
ENCODING = Encoding(("age", "city"), {"city": ("Oslo", "Rome", None)}, {"age": 35.0})


def batch(table: pa.Table = TABLE) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]


def test_categories_become_features_and_gaps_are_filled_and_flagged() -> None:
    names = ("age", "city=Oslo", "city=Rome", "missing(city)", "missing(age)")
    assert ENCODING.features == names
    expected = [[31, 0, 1, 0, 0], [35, 1, 0, 0, 1], [35, 0, 0, 1, 1], [40, 0, 1, 0, 0]]
    np.testing.assert_array_equal(ENCODING.encode(batch()), expected)


def test_what_is_fitted_is_read_back_from_a_model(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pa.parquet.write_table(TABLE.set_column(0, "city", TABLE["city"].dictionary_encode()), path)
    fitted = Encoding.fit(open_table(path), ["age", "city"], ["city"])
    assert replace(fitted, fills={"age": 35.0}) == ENCODING
    frozen = replace(
        small((1, 0, 0, 0, 0)),
        features=ENCODING.features,
        provenance={"encoding": ENCODING.to_dict()},
    )
    assert Encoding.of(frozen) == ENCODING
    assert Encoding.of(replace(frozen, provenance={})) == Encoding(frozen.features)


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"columns": ["a"]}, "encoding cannot be read"),
        ([1], "encoding cannot be read"),
        (Encoding(("a", "b")).to_dict(), "gives 2 features, which are not the 5"),
    ],
)
def test_a_damaged_encoding_is_refused(stored: object, message: str) -> None:
    frozen = replace(small((1, 0, 0, 0, 0)), provenance={"encoding": stored})
    with pytest.raises(ValueError, match=message):
        Encoding.of(frozen)


@pytest.mark.parametrize(
    ("column", "cells", "message"),
    [
        ("city", ["Rome", "Paris"], r"'city' holds 'Paris' in row 11 .* which no training row"),
        ("age", ["1", "many"], r"'age' holds the text 'many' in row 11 .* correct or drop"),
        ("age", [1.0, np.inf], r"'age' is inf in row 11"),
    ],
)
def test_strange_cells_are_named(column: str, cells: list[object], message: str) -> None:
    columns = {"city": ["Rome", "Oslo"], "age": ["1", "2"]} | {column: cells}
    with pytest.raises(ValueError, match=message):
        ENCODING.encode(batch(pa.table(columns)), first_row=10)


def test_gaps_that_were_not_learned_about_are_refused() -> None:
    encoding = Encoding(("age", "city"), {"city": ("Oslo", "Rome")})
    with pytest.raises(ValueError, match="'city' is missing in row 2"):
        encoding.encode(batch())
    with pytest.raises(ValueError, match=r"'age' is missing in row 1 .* has not learned"):
        Encoding(("age",)).encode(batch())


def test_too_many_categories_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pa.parquet.write_table(pa.table({"id": [str(i) for i in range(MAX_CATEGORIES + 1)]}), path)
    with pytest.raises(ValueError, match=r"'id' holds more than 64 categories.* leave it out"):
        Encoding.fit(open_table(path), ["id"], ["id"])


def test_columns_that_hold_no_text_are_refused() -> None:
    with pytest.raises(ValueError, match="list<item: int64> cannot be read as text"):
        labels(pa.array([[1], [2]]))


def test_blanks() -> None:
    column = pa.array([None, "", " n/a", "NaN", "0", "Nancy"])
    assert is_blank(column).tolist() == [True, True, True, True, False, False]
    assert is_blank(pa.array([1, None])).tolist() == [False, True]
    assert is_blank(pa.array([1.0, np.nan])).tolist() == [False, True]
