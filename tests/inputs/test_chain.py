"""Inputs: the raw row is all that a model needs, whatever holds it, and its file says how."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import isotone
from isotone import FrozenNetwork, certify
from isotone.frozen import modelfile
from isotone.frozen.engine import Engine
from isotone.inputs.cells import code, is_blank, labels
from isotone.inputs.chain import Inputs, refuse_one_score
from isotone.inputs.columns import Category, Number, Ordered
from networks import small

INPUTS = Inputs(
    (
        Number("age", fill=35.0),
        Category("city", ("Oslo", "Rome", None)),
        Ordered("size", ("S", "M", "L"), fill=1.0),
        Number("member"),
    )
)
COLUMNS: dict[str, list[Any]] = {
    "member": [True, False, True, True],
    "size": ["L", " M", None, "S"],
    "city": ["Rome", " Oslo", None, "Rome"],
    "age": [31.0, None, 2.5, 40.0],
}
FEATURES = np.array(
    [
        [31, 0, 1, 0, 2, 1, 0, 0],
        [35, 1, 0, 0, 1, 0, 1, 0],
        [2.5, 0, 0, 1, 1, 1, 0, 1],
        [40, 0, 1, 0, 0, 1, 0, 0],
    ]
)
IN_ORDER = pd.CategoricalDtype(["S", "M", "L"], ordered=True)
TABLES = {
    "dictionary": COLUMNS,
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, categories": pd.DataFrame(COLUMNS)
    .assign(size=["L", "M", None, "S"])
    .astype({"city": "category", "size": IN_ORDER}),
    "polars": pl.DataFrame(COLUMNS),
    "Arrow": pa.table(COLUMNS),
    "Arrow, in pieces": pa.concat_tables([pa.table(COLUMNS)[:1], pa.table(COLUMNS)[1:]]),
    "text": pa.table(COLUMNS | {"age": ["31", "NA", " 2.5 ", "4e1"], "member": list("1011")}),
}


def model(inputs: Inputs = INPUTS) -> FrozenNetwork:
    directions = [int(name in ("age", "size")) for name in inputs.features]
    return replace(small(tuple(directions)), features=inputs.features, inputs=inputs)


@pytest.mark.parametrize("kind", TABLES)
def test_one_raw_table_has_one_score_whatever_holds_it(kind: str) -> None:
    frozen = model()
    np.testing.assert_array_equal(frozen.encode(TABLES[kind]), FEATURES)
    np.testing.assert_array_equal(frozen.score(TABLES[kind]), frozen.score_features(FEATURES))


def test_names_of_features_tell_where_they_come_from() -> None:
    names = "age", "city=Oslo", "city=Rome", "missing(city)", "size", "member"
    assert INPUTS.features == (*names, "missing(age)", "missing(size)")
    assert [INPUTS.owner(i).name for i in range(8)] == [
        *("age", "city", "city", "city", "size", "member", "age", "size")
    ]


def test_an_array_holds_the_columns_in_order_if_all_are_numbers() -> None:
    frozen = model(Inputs((Number("age", fill=35.0), Number("debt"))))
    X = [[math.nan, 1.0], [20.0, 2.0]]
    np.testing.assert_array_equal(frozen.encode(X), [[35, 1, 1], [20, 2, 0]])
    np.testing.assert_array_equal(
        frozen.score(X), frozen.score({"debt": [1, 2], "age": [None, 20]})
    )
    with pytest.raises(ValueError, match="'city' of the model holds text; give a data frame"):
        model().score(np.zeros((2, 4)))


def test_the_file_alone_scores_the_raw_table(tmp_path: Path) -> None:
    frozen = model()
    frozen.save(tmp_path / "model.isotone")
    loaded = isotone.load(tmp_path / "model.isotone")
    assert loaded.inputs == INPUTS
    assert loaded.fingerprint == frozen.fingerprint
    np.testing.assert_array_equal(loaded.score(COLUMNS), frozen.score(COLUMNS))


@pytest.mark.parametrize(
    "changed",
    [
        Number("age", fill=36.0),
        Ordered("size", ("S", "M", "L"), fill=2.0),
        Ordered("size", ("L", "M", "S"), fill=1.0),
    ],
)
def test_every_fill_and_order_is_in_the_fingerprint(changed: Number | Ordered) -> None:
    columns = [changed if c.name == changed.name else c for c in INPUTS.columns]
    assert model(Inputs(tuple(columns))).fingerprint != model().fingerprint


def test_directions_hold_along_ordered_categories_and_filled_columns() -> None:
    frozen = model()
    assert certify(frozen).holds
    sizes = frozen.score(
        {name: cells[:1] * 3 for name, cells in COLUMNS.items()} | {"size": list("SML")}
    )
    assert np.all(np.diff(sizes) >= 0)
    ages = frozen.score(
        {name: cells[:1] * 50 for name, cells in COLUMNS.items()} | {"age": list(range(50))}
    )
    assert np.all(np.diff(ages) >= 0)


UNSEEN = {
    "city": ("Paris", r"column 'city' holds 'Paris' in row 1 .*its categories are Oslo, Rome"),
    "size": ("XL", r"column 'size' holds 'XL' in row 1 .*its categories are S, M, L"),
    "member": (None, r"column 'member' is missing in row 1 .*has not learned what a missing"),
    "age": (math.inf, r"column 'age' is inf in row 1 .*finite number, or none: correct"),
}


def with_unseen(column: str) -> dict[str, list[Any]]:
    cells = list(COLUMNS[column])
    cells[1] = UNSEEN[column][0]
    return COLUMNS | {column: cells}


@pytest.mark.parametrize("column", UNSEEN)
def test_what_training_never_saw_is_an_error_that_names_row_and_column(column: str) -> None:
    with pytest.raises(ValueError, match=UNSEEN[column][1]):
        model().score(with_unseen(column))
    with pytest.raises(ValueError, match=UNSEEN[column][1]):
        model().encode(with_unseen(column))


def test_views_of_text_are_read_and_refused_as_texts_are() -> None:
    view = pa.string_view()
    table = COLUMNS | {"city": pa.array(COLUMNS["city"], view)}
    assert model().score(table).tolist() == model().score(COLUMNS).tolist()
    numbers = pa.array([str(age) for age in COLUMNS["age"]], view)
    assert model().score(COLUMNS | {"age": numbers}).tolist() == model().score(COLUMNS).tolist()
    unseen = pa.chunked_array([pa.array(with_unseen("city")["city"], view)])
    with pytest.raises(ValueError, match=UNSEEN["city"][1]):
        model().score(COLUMNS | {"city": unseen})


@pytest.mark.parametrize("column", UNSEEN)
def test_one_strange_row_costs_no_other_its_score(column: str) -> None:
    frozen = model()
    expected = frozen.score(COLUMNS)
    for policy, score in (("skip", math.nan), (-7.5, -7.5)):
        with pytest.warns(UserWarning, match="1 of 4 rows contain values never seen in training"):
            scores = frozen.score(with_unseen(column), on_unseen=policy)  # type: ignore[arg-type]
        np.testing.assert_array_equal(scores[1], score)
        np.testing.assert_array_equal(np.delete(scores, 1), np.delete(expected, 1))


@pytest.mark.parametrize("column", ["city", "size", "age"])
def test_the_unseen_can_count_as_missing(column: str) -> None:
    frozen, blank = model(), COLUMNS | {column: [*COLUMNS[column]]}
    blank[column][1] = None
    with pytest.warns(UserWarning, match="1 of 4 rows"):
        scores = frozen.score(with_unseen(column), on_unseen="missing")
    np.testing.assert_array_equal(scores, frozen.score(blank))


@pytest.mark.parametrize("cell", ["Paris", None])
def test_a_category_of_a_complete_column_can_be_none_of_those_known(cell: str | None) -> None:
    frozen = model(Inputs((Category("city", ("Oslo", "Rome")), Number("age"))))
    with pytest.warns(UserWarning, match="1 of 2 rows"):
        scores = frozen.score({"city": [cell, "Rome"], "age": [1, 2]}, on_unseen="missing")
    np.testing.assert_array_equal(scores, frozen.score_features(np.array([[0, 0, 1], [0, 1, 2]])))


@pytest.mark.parametrize("cell", [None, "many", math.inf])
def test_a_number_that_nothing_stands_in_for_costs_its_row_alone_the_score(cell: Any) -> None:
    frozen = model(Inputs((Number("age"), Ordered("size", ("S", "M", "L")))))
    expected = frozen.score({"age": [1, 2], "size": ["M", "M"]})
    for strange in (
        {"age": pa.array([str(cell), "2"]), "size": ["M", "M"]},
        {"age": [1, 2], "size": pa.array([str(cell), "M"])},
    ):
        engine = Engine(frozen, on_unseen="missing")
        scores = engine(strange)
        assert math.isnan(scores[0])
        assert scores[1] == expected[1]
        assert engine.n_unseen == 1


def test_rows_that_a_policy_decided_about_are_counted() -> None:
    engine = Engine(model(), on_unseen="skip")
    for column in UNSEEN:
        engine(with_unseen(column))
    assert engine.n_unseen == len(UNSEEN)


@pytest.mark.parametrize("policy", ["ignore", None, True, [1.0]])
def test_unknown_policies_are_refused(policy: Any) -> None:
    with pytest.raises(ValueError, match="is unknown; choose 'error', 'missing', 'skip'"):
        model().score(COLUMNS, on_unseen=policy)


@pytest.mark.parametrize("policy", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_the_score_of_unseen_rows_is_finite(policy: float) -> None:
    """The note beside the scores of a directory is JSON, which has no other numbers."""
    with pytest.raises(ValueError, match="is not a score; give a finite number, or choose 'skip'"):
        model().score(COLUMNS, on_unseen=policy)


@pytest.mark.parametrize("policy", ["skip", "missing", -1.0])
def test_no_warning_is_given_where_a_policy_decides_about_no_row(policy: Any) -> None:
    np.testing.assert_array_equal(model().score(COLUMNS, policy), model().score(COLUMNS))


def test_one_number_is_not_the_score_of_several_outputs() -> None:
    for policy in (0.0, np.float32(0.5), -1):
        with pytest.raises(ValueError, match="is one score, but there are 2 outputs"):
            refuse_one_score(policy, 2)
        refuse_one_score(policy, 1)
    for policy in ("skip", "error", "missing"):
        refuse_one_score(policy, 2)


def test_files_of_version_1_still_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = model(Inputs((Number("age", fill=35.0), Category("city", ("Oslo", "Rome", None)))))
    old = frozen._definition() | {"certificate": None}
    del old["inputs"]
    stored = {"columns": ["age", "city"], "categories": {"city": ["Oslo", "Rome", None]}}
    old["provenance"] = {"encoding": stored | {"fills": {"age": 35.0}}}
    monkeypatch.setattr(modelfile, "FORMAT_VERSION", 1)
    modelfile.write(tmp_path / "old.isotone", old, frozen._arrays)
    loaded = isotone.load(tmp_path / "old.isotone")
    assert loaded.inputs == frozen.inputs
    assert loaded.provenance == {"format": 1}
    np.testing.assert_array_equal(loaded.score(COLUMNS), frozen.score(COLUMNS))


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ([{"kind": "number", "name": "a"}], "must have a list of columns"),
        ({"columns": [], "copies": None}, "`copies` must be a list of whole numbers"),
        ({"columns": [], "copies": [True]}, "`copies` must be a list of whole numbers"),
    ],
)
def test_damaged_inputs_are_refused(stored: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Inputs.from_dict(stored)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([{"kind": [], "name": "a"}], "its kind must be one of number, category, ordered"),
        ([{"kind": "ordered", "name": "a", "categories": [" x"]}], "has spaces around it"),
        ([{"kind": "ordered", "name": "a", "categories": ["x", ""]}], "is empty or has spaces"),
        ([{"kind": "category", "name": "a", "categories": ["\ud800"]}], "must be different texts"),
        ([{"kind": "number", "name": "\ud800"}], "it must be text"),
        ([{"kind": "ordered", "name": "a", "categories": list(map(str, range(20000)))}], "16384"),
        ([{"kind": "number", "name": "a"}] * 2, "two columns are called 'a'"),
        ([1], "its kind must be one of number, category, ordered"),
        ([{"kind": "number", "name": "a", "order": 1}], "unexpected keyword"),
        ([{"kind": "number", "name": 3}], "the name of an input column is 3"),
        ([{"kind": "number", "name": "a", "fill": math.inf}], "the fill of column 'a' is inf"),
        ([{"kind": "number", "name": "a", "fill": True}], "the fill of column 'a' is True"),
        ([{"kind": "ordered", "name": "a", "categories": ["x", "x"]}], "must be different texts"),
        ([{"kind": "ordered", "name": "a", "categories": [None]}], "must be different texts"),
        ([{"kind": "category", "name": "a", "categories": "xy"}], "must be a list"),
    ],
)
def test_damaged_columns_are_refused(columns: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Inputs.from_dict({"columns": columns, "copies": []})


def test_no_name_means_two_things() -> None:
    with pytest.raises(ValueError, match="two columns are called 'c'"):
        Inputs((Number("c"), Category("c", ("1", "2", "3"))))
    with pytest.raises(ValueError, match=r"two features are called 'x\[0\]'"):
        Inputs((Number("x"), Number("x[0]")), (0, 0, 1, 1))
    assert Inputs((Number("x"), Number("x[0]")), (0, 1)).features == ("x", "x[0]")


@pytest.mark.parametrize("column", UNSEEN)
def test_a_policy_decides_about_features_too(column: str) -> None:
    frozen, known = model(), [0, 2, 3]
    skipped = frozen.encode(with_unseen(column), "skip")
    assert np.isnan(skipped[1]).all()
    np.testing.assert_array_equal(skipped[known], FEATURES[known])
    filled = frozen.encode(with_unseen(column), "missing")
    np.testing.assert_array_equal(filled[known], FEATURES[known])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = frozen.score(with_unseen(column), on_unseen="missing")
    np.testing.assert_array_equal(frozen.score_features(filled), expected)


def test_inputs_of_other_features_are_refused() -> None:
    with pytest.raises(ValueError, match="`inputs` give the features 'a, b'"):
        replace(model(), inputs=Inputs.numbers(["a", "b"]))


def test_a_table_without_a_column_is_refused() -> None:
    with pytest.raises(ValueError, match="the table has no column 'age'; the model needs one"):
        model().score({name: cells for name, cells in COLUMNS.items() if name != "age"})


def test_fills_are_for_what_has_no_category_of_missing_values() -> None:
    found = INPUTS.with_fills({"age": 36.0, "city": 1.0})
    assert found.columns == (Number("age", 36.0), *INPUTS.columns[1:])


def test_columns_that_hold_no_text_are_refused() -> None:
    with pytest.raises(ValueError, match="list<item: int64> cannot be read as text"):
        labels(pa.array([[1], [2]]))


def test_blanks() -> None:
    column = pa.array([None, "", " n/a", "NaN", "0", "Nancy"])
    assert is_blank(column).tolist() == [True, True, True, True, False, False]
    assert is_blank(pa.array([1, None])).tolist() == [False, True]
    assert is_blank(pa.array([1.0, np.nan])).tolist() == [False, True]


def test_equal_fills_are_one_model() -> None:
    fills = 0, 0.0, -0.0, np.float64(0.0)
    assert len({repr(Number("a", fill)) for fill in fills}) == 1  # type: ignore[arg-type]


def test_columns_in_another_order_than_the_features_are_refused() -> None:
    frozen = small((1, 0))
    turned = Inputs.numbers(frozen.features[::-1])
    with pytest.raises(ValueError, match="which are not the 2 of the network"):
        replace(frozen, inputs=turned)


def test_a_category_that_looks_blank_is_new_and_not_missing() -> None:
    inputs = Inputs((Category("city", ("Oslo", None)),))
    with pytest.raises(ValueError, match="column 'city' holds 'n/a' in row 0"):
        inputs.encode({"city": ["n/a"]})
    with pytest.raises(ValueError, match="column 'city' holds 'true' in row 0"):
        inputs.encode({"city": [True]})


def test_integers_beyond_64_bits_are_numbers() -> None:
    found = Inputs.numbers(["x"]).encode({"x": [2**70, 1, -(2**64)]})
    assert found[:, 0].tolist() == [2.0**70, 1.0, -(2.0**64)]


MIXED = pd.Series(["abc", 1.5, None, np.float32(0.1), 7, True, " 2 ", "NA"], dtype=object)


def test_cells_of_several_kinds_are_read_one_by_one() -> None:
    found = code(Number("x"), MIXED)
    expected = [math.inf, 1.5, math.nan, float(np.float32(0.1)), 7, 1, 2, math.nan]
    np.testing.assert_array_equal(found, expected)


def test_a_number_among_texts_is_its_label() -> None:
    cities = pd.Series(["Rome", 1.0, 2, None, 3.5], dtype=object)
    found = code(Category("city", ("1", "2", "Rome", None)), cities)
    np.testing.assert_array_equal(found, [2, 0, 1, 3, math.inf])


@pytest.mark.parametrize("column", ["age", "city"])
def test_complex_numbers_are_refused(column: str) -> None:
    with pytest.raises(ValueError, match=f"{column}' has type complex128; it must hold real num"):
        model().score(COLUMNS | {column: np.arange(4) * 1j})


def test_text_among_numbers_gets_what_unseen_rows_get() -> None:
    mixed = COLUMNS | {"age": pd.Series(["abc", 1.0, 2.0, 3.0], dtype=object)}
    with pytest.raises(ValueError, match="column 'age' holds the text 'abc' in row 0 "):
        model().score(mixed)
    with pytest.warns(UserWarning, match="1 of 4 rows"):
        scores = model().score(mixed, on_unseen="skip")
    np.testing.assert_array_equal(scores[1:], model().score(COLUMNS | {"age": [9, 1, 2, 3]})[1:])
    assert math.isnan(scores[0])


NO_TABLES: list[tuple[Any, type[Exception], str]] = [
    (pl.LazyFrame({"x": [1.0]}), TypeError, "LazyFrame, which holds no rows yet; .*: collect"),
    ([{"x": 1.0}], TypeError, "list of records; a table must come column by column: give a data"),
    (
        pd.Series([1.0]),
        TypeError,
        "one column or one row, of type Series; .*: give X.to_frame",
    ),
    (pl.Series("x", [1.0]), TypeError, "one row, of type Series; it must be a table"),
    ({"x": 1.0}, ValueError, "'x' is 1.0; a column must hold one value per row: give a list"),
    ({"x": "abc"}, ValueError, "'x' is 'abc'; a column must hold one value per row"),
    ({"x": np.ones((2, 2))}, ValueError, "(?s)'x' is array.*; a column must hold one value"),
    ({"x": [1, 2], "y": [1]}, ValueError, "'y' has 1 values but column 'x' has 2; a row needs"),
    ({"x": pd.cut([1, 5, 9], 3), "y": [1] * 3}, ValueError, "'x' is stored as categories"),
]


@pytest.mark.parametrize(("X", "kind", "message"), NO_TABLES)
def test_what_is_not_a_table_is_refused_with_advice(
    X: Any, kind: type[Exception], message: str
) -> None:
    inputs = Inputs.numbers(["x", "y"] if isinstance(X, dict) and "y" in X else ["x"])
    with pytest.raises(kind, match=message):
        inputs.encode(X)
    with pytest.raises(kind, match=message):
        model(inputs).score(X)


def test_intervals_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"column 'x' of type .* cannot be read as text; choose"):
        Inputs((Category("x", ("a",)),)).encode({"x": pd.cut([1, 5, 9], 3)})


@pytest.mark.parametrize("name", ["columns", "column_names", "schema"])
def test_a_column_may_be_called_like_an_attribute_of_tables(name: str) -> None:
    columns = {"x": [1.0, 2.0], name: [3.0, 4.0]}
    inputs, expected = Inputs.numbers([name, "x"]), [[3.0, 1.0], [4.0, 2.0]]
    frame, table = pd.DataFrame(columns), pa.table(columns)
    for X in (columns, frame, pl.DataFrame(columns), table, table.to_batches()[0]):
        assert inputs.encode(X).tolist() == expected
