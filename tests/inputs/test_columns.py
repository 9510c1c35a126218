"""Columns: which are refused, what their codes are, and how cells of any kind are read."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from isotone import Category, Number, Ordered
from isotone.inputs import cells
from isotone.inputs.cells import class_numbers, finite_or_blank, holds_text, numbers_of, places_of
from isotone.inputs.columns import Column, _shown, cell_of, decode, missing_code

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("name", [1, None, b"a", "\ud800", ["a"]])
def test_a_name_is_text_that_can_be_written(name: Any) -> None:
    for make in (Number, lambda n: Category(n, ("a",)), lambda n: Ordered(n, ("a",))):
        with pytest.raises(ValueError, match=r"the name of an input column is .* must be text"):
            make(name)


@pytest.mark.parametrize("fill", [NAN, INF, -INF, True, False, "1", 1j, [1.0]])
def test_a_fill_is_one_finite_number(fill: Any) -> None:
    for make in (lambda f: Number("a", f), lambda f: Ordered("a", ("l", "h"), f)):
        with pytest.raises(ValueError, match=r"fill of column 'a' is .* must be finite or None"):
            make(fill)


def test_a_fill_becomes_a_float_that_is_no_negative_zero() -> None:
    for fill in (0, -0.0, np.float32(0), np.int8(0)):
        for column in (Number("a", fill), Ordered("a", ("l", "h"), fill)):  # type: ignore[arg-type]
            assert type(column.fill) is float
            assert math.copysign(1.0, column.fill) == 1.0
    assert Number("a").fill is None


def test_the_fill_of_ranks_is_one_of_them_or_between_two() -> None:
    for n in (1, 2, 4):
        texts = tuple("abcd"[:n])
        for fill in (0.0, (n - 1) / 2, n - 1.0):
            assert Ordered("o", texts, fill).fill == fill
        for fill in (-0.25, n - 0.75, float(n)):
            with pytest.raises(ValueError, match=rf"give a number from 0, 'a', to {n - 1}, "):
                Ordered("o", texts, fill)


@pytest.mark.parametrize(
    "categories", [("a", "a"), (1,), ("a", 2), ("a", None, "a"), ("\ud800",), ((),)]
)
def test_categories_are_different_texts(categories: Any) -> None:
    with pytest.raises(ValueError, match="they must be different texts, at least one"):
        Category("c", categories)
    with pytest.raises(ValueError, match="they must be different texts, at least one"):
        Ordered("c", categories)


def test_there_is_a_category_unless_some_are_pooled() -> None:
    for make in (
        lambda: Category("c", ()),
        lambda: Category("c", (None,)),
        lambda: Ordered("c", ()),
    ):
        with pytest.raises(ValueError, match=r"different texts, at least one$"):
            make()
    assert Category("c", (), pooled=1).features == ("other(c)",)
    with pytest.raises(ValueError, match=r"different texts$"):
        Category("c", ("a", "a"), pooled=1)


def test_one_text_is_not_several_categories() -> None:
    for make in (Category, Ordered):
        with pytest.raises(ValueError, match="one string, whose letters would be categories"):
            make("c", "abc")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", " ", " a", "a ", "\ta"])
def test_a_category_that_no_cell_could_have_is_refused(text: str) -> None:
    for make in (Category, Ordered):
        with pytest.raises(ValueError, match="is empty or has spaces around it"):
            make("c", ("b", text))


def test_a_number_of_pooled_categories_is_one_that_floats_count() -> None:
    for pooled in (0, 1, 2**53, np.int64(3)):
        assert Category("c", ("a",), pooled=pooled).pooled == pooled  # type: ignore[arg-type]
    for bad in (-1, 2**53 + 1, 1.0, True, None):
        with pytest.raises(ValueError, match=r"`pooled` of column 'c' is .* a whole number"):
            Category("c", ("a",), pooled=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *(("a b", "a b"), (" a", '" a"'), ("a ", '"a "'), ("missing", '"missing"'), ("", '""')),
        *(("a,b", '"a,b"'), ("<", '"<"'), (";", '";"'), ("…", '"…"'), ('"', '"""')),
    ],
)
def test_a_text_that_could_be_something_else_is_in_quotes(text: str, shown: str) -> None:
    assert _shown(text) == shown


@pytest.mark.parametrize(
    ("column", "codes", "expected", "missing"),
    [
        (Number("a"), [1.5, NAN, -2.0], [1.5, None, -2.0], None),
        (Number("a", 3.0), [NAN], [None], 3.0),
        (Ordered("a", ("l", "h"), 0.5), [1.0, 0.0, NAN], ["h", "l", None], 0.5),
        (Category("a", ("u", None, "v")), [0.0, 1.0, 2.0, NAN], ["u", None, "v", None], 1.0),
        (
            Category("a", ("u",)),
            [0.0, INF, 1.0],
            ["u", "no category of u", "no category of u"],
            None,
        ),
        (Category("a", (None, "u"), 2), [1.0, 2.0], ["u", "no category of Noneu"], 0.0),
    ],
)
def test_codes_are_decoded(column: Column, codes: Any, expected: Any, missing: Any) -> None:
    assert decode(column, np.array(codes)) == expected
    assert missing_code(column) == missing


def test_the_cell_of_a_row_is_named_and_no_other() -> None:
    texts, found = ["x", None, " y ", "z" * 50], []
    for column in (Category("c", ("u",)), Ordered("c", ("u",))):
        found = [cell_of(column, texts, row) for row in range(4)]
        assert found == ["holds 'x'", "is missing", "holds 'y'", f"holds '{'z' * 40}'"]
    numbers = pa.array(["1", None, "na", "many", "inf"])
    found = [cell_of(Number("c"), numbers, row) for row in range(5)]
    assert found[1:3] == ["is missing"] * 2
    assert found[3:] == ["holds the text 'many'", "holds the text 'inf'"]
    assert cell_of(Number("c"), np.array([1.0, INF, NAN]), 1) == "is inf"
    assert cell_of(Number("c"), np.array([1.0, INF, NAN]), 2) == "is missing"


class TestCells:
    @pytest.mark.parametrize("values", ["abc", b"abc", 3.0, None])
    def test_a_column_holds_one_value_per_row(self, values: Any) -> None:
        with pytest.raises(ValueError, match="must hold one value per row"):
            cells.arrow_of(values, "x")

    def test_floats_stay_where_they_are(self) -> None:
        for kind in ("f8", "f4"):
            x = np.array([1.0, NAN, INF], kind)
            assert numbers_of(x, "x") is x
        for kind in ("i8", "u1", "?", "f2"):
            found = numbers_of(np.array([0, 1], kind), "x")
            assert (found.dtype, found.tolist()) == (np.float64, [0.0, 1.0])

    def test_what_is_masked_is_missing(self) -> None:
        x = np.ma.MaskedArray([1.0, 2.0, 3.0], [False, True, False])
        np.testing.assert_array_equal(numbers_of(x, "x"), [1.0, NAN, 3.0])
        np.testing.assert_array_equal(numbers_of([1, None, 2**60 + 1], "x"), [1, NAN, 2.0**60])
        np.testing.assert_array_equal(numbers_of((1.5, NAN), "x"), [1.5, NAN])

    def test_rows_of_arrays_are_no_numbers(self) -> None:
        with pytest.raises(ValueError, match="must hold one value per row"):
            numbers_of(np.ones((2, 1)), "x")

    @pytest.mark.parametrize(
        "values",
        [
            pd.Categorical([1, 2]),
            pd.Series([1.0, 2.0], dtype="category"),
            pa.array(["1", "2"]).dictionary_encode(),
            pa.array([1, 2]).dictionary_encode(),
        ],
    )
    def test_categories_are_no_numbers_even_if_they_look_so(self, values: Any) -> None:
        for read in (numbers_of, lambda v, name: cells.floats(cells.arrow_of(v, name), name)):
            with pytest.raises(
                ValueError, match=r"'x' is stored as categories .* are not numbers"
            ):
                read(values, "x")

    @pytest.mark.parametrize(
        "values",
        [
            np.array(["u", NAN, " v ", None, "w", ""], object),
            pa.array(["u", None, " v ", "", "w", " "]),
            ["u", None, "v ", NAN, "w", None],
        ],
    )
    def test_the_place_of_a_category_is_not_finite_where_there_is_none(self, values: Any) -> None:
        found = places_of(values, "c", ["u", "v"])
        np.testing.assert_array_equal(found, [0, NAN, 1, NAN, INF, NAN])
        known = places_of(values, "c", ["u", None, "v"])
        np.testing.assert_array_equal(known, [0, 1, 2, 1, INF, 1])

    def test_cells_of_several_kinds_are_read_one_by_one(self) -> None:
        mixed = np.array(["u", 1, NAN, NAN, 2.5, None, True, 2**70], object)
        texts = ["u", "1", "2.5", "true", str(2**70)]
        np.testing.assert_array_equal(places_of(mixed, "c", texts), [0, 1, NAN, NAN, 2, NAN, 3, 4])
        np.testing.assert_array_equal(
            numbers_of(mixed, "c"), [INF, 1, NAN, NAN, 2.5, NAN, 1, 2.0**70]
        )

    @pytest.mark.parametrize(
        ("column", "expected"),
        [
            (pa.array([1.0, 2.0]), [1.0, 2.0]),
            (pa.array([1.0, None, NAN]), [1.0, NAN, NAN]),
            (pa.array(["1", " ", "na"]), [1.0, NAN, NAN]),
            (pa.array([1, None]), [1.0, NAN]),
            (pa.chunked_array([[1.0], [None, 3.0]]).combine_chunks(), [1.0, NAN, 3.0]),
        ],
    )
    def test_blank_cells_are_nan(self, column: pa.Array, expected: list[float]) -> None:
        np.testing.assert_array_equal(finite_or_blank(column, "x"), expected)

    @pytest.mark.parametrize(
        ("column", "cell"),
        [
            (pa.array([1.0, INF, 2.0]), "is inf"),
            (pa.array([1.0, -INF, INF]), "is -inf"),
            (pa.array(["1", "many", "2"]), "holds the text 'many'"),
            (pa.array([None, "inf", None]), "holds the text 'inf'"),
        ],
    )
    def test_the_first_cell_that_is_no_number_is_named(self, column: pa.Array, cell: str) -> None:
        for first_row in (0, 10):
            with pytest.raises(ValueError, match=f"'x' {cell} in row {first_row + 1} "):
                finite_or_blank(column, "x", first_row)

    @pytest.mark.parametrize(
        ("column", "expected"),
        [
            (pa.array(["a", "b"]), True),
            (pa.array(["a", None]), True),
            (pa.array(["a", "1"]), False),
            (pa.array(["a", "true"]), False),
            (pa.array(["1", None]), False),
            (pa.array([None, "na", ""]), False),
            (pa.array([1.0, NAN]), False),
            (pa.array([None, None], pa.float64()), False),
            (pa.array([datetime.date(2020, 1, 1)]), True),
            (pa.array([[1.0]]), True),
            (pa.array(["1", "2"]).dictionary_encode(), True),
            (pa.DictionaryArray.from_arrays([0, 1], ["l", "h"], ordered=True), False),
        ],
    )
    def test_a_column_holds_text_if_no_cell_is_a_number(
        self, column: pa.Array, expected: bool
    ) -> None:
        assert holds_text(column, "x") is expected

    @pytest.mark.parametrize(
        ("column", "classes", "expected"),
        [
            (pa.array(["no", " yes", "?", None]), ("no", "yes"), [0, 1, INF, NAN]),
            (pa.array(["1.0", "0", "2", "x"]), ("0", "1"), [1, 0, INF, INF]),
            (pa.array([1.0, 0.0, NAN]), ("0", "1"), [1, 0, NAN]),
            (pa.array([True, False, None]), ("0", "1"), [1, 0, NAN]),
            (pa.array(["TRUE", "false", "1"]), ("0", "1"), [1, 0, 1]),
            (pa.array([1, 0]), ("False", "True"), [1, 0]),
            (pa.array(["a", "b"]).dictionary_encode(), ("b", "a"), [1, 0]),
            (pa.array(["2", "7.0"]), ("7", "2"), [1, 0]),
        ],
    )
    def test_classes_are_matched_as_texts_and_then_as_numbers(
        self, column: pa.Array, classes: Any, expected: Any
    ) -> None:
        np.testing.assert_array_equal(class_numbers(column, "y", classes), expected)
