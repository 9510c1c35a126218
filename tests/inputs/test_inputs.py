"""Inputs: names, places and numbers of features, and what is said of rows that have none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from isotone import Category, Inputs, Number, Ordered
from isotone.inputs.chain import (
    Policy,
    check_policy,
    for_all_rows,
    has_features,
    refuse_one_score,
)

INPUTS = Inputs(
    (
        Number("n", fill=0.5),
        Category("c", ("u", "v", None)),
        Ordered("o", ("l", "m", "h"), fill=1.0),
        Category("d", ("x", "y"), pooled=3),
        Number("plain"),
    )
)
NAMES = ("n", "c=u", "c=v", "missing(c)", "o", "d=x", "d=y", "other(d)", "plain")
ROWS: dict[str, list[Any]] = {
    "n": [1.0, None, 2.0],
    "c": ["u", None, "v"],
    "o": ["h", "l", None],
    "d": ["x", "z", "y"],
    "plain": [7.0, 8.0, 9.0],
}


def test_features_are_those_of_the_columns_and_then_the_indicators() -> None:
    assert INPUTS.encoded == (*NAMES, "missing(n)", "missing(o)")
    assert INPUTS.uncompleted == NAMES
    assert INPUTS.places == [0, 1, 4, 5, 8]
    assert INPUTS.owners == [0, 1, 1, 1, 2, 3, 3, 3, 4, 0, 2]
    assert INPUTS.encode(ROWS).tolist() == [
        [1, 1, 0, 0, 2, 1, 0, 0, 7, 0, 0],
        [0.5, 0, 0, 1, 0, 0, 0, 1, 8, 1, 0],
        [2, 0, 1, 0, 1, 0, 1, 0, 9, 0, 1],
    ]


def test_only_numbers_without_a_fill_are_features_as_they_are() -> None:
    a, filled, category = Number("a"), Number("b", fill=0.0), Category("c", ("u",))
    assert Inputs((a,)).is_plain
    for columns in ((filled,), (a, filled), (category,), (a, category)):
        assert not Inputs(columns).is_plain


def test_several_copies_are_numbered_and_one_is_not() -> None:
    inputs = Inputs.numbers(["a", "b", "c"], (0, 0, 0, 1, 2, 2))
    assert inputs.features == ("a[0]", "a[1]", "a[2]", "b", "c[0]", "c[1]")
    assert inputs.counts.tolist() == [3, 1, 2]
    assert inputs.firsts.tolist() == [0, 3, 4]
    assert inputs.sources == (0, 0, 0, 1, 2, 2)
    assert Inputs.numbers(["a", "b"]).sources == (0, 1)


@pytest.mark.parametrize("copies", [(1, 0), (0, 1, 0), (0, 2), (0,), (1, 1), (0, 1, 2), (-1, 0)])
def test_copies_name_every_feature_in_ascending_order(copies: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="it must name each of 2 features by its number"):
        Inputs.numbers(["a", "b"], copies)


def test_rows_with_a_pooled_category_are_counted_in_whatever_column() -> None:
    assert INPUTS.count_pooled(INPUTS.read([ROWS[name] for name in INPUTS.names])) == 1
    both = Inputs((Number("a"), Category("b", ("x",), 1), Category("c", ("x", "y"), 1)))
    raw = [[1.0] * 4, ["x", "?", "x", "?"], ["y", "x", "?", "?"]]
    assert both.count_pooled(both.read(raw)) == 3
    assert Inputs.numbers(["a"]).count_pooled([np.ones(3)]) == 0


@pytest.mark.parametrize(
    "data", [None, [], {}, {"columns": {}, "copies": []}, {"columns": "ab", "copies": []}]
)
def test_inputs_in_a_file_have_a_list_of_columns(data: Any) -> None:
    with pytest.raises(ValueError, match="the inputs must have a list of columns"):
        Inputs.from_dict(data)


@pytest.mark.parametrize("copies", [None, {}, "01", (0,), [0.0], [True], ["0"]])
def test_copies_in_a_file_are_a_list_of_whole_numbers(copies: Any) -> None:
    with pytest.raises(ValueError, match="`copies` must be a list of whole numbers"):
        Inputs.from_dict({"columns": [{"kind": "number", "name": "a"}], "copies": copies})


def test_a_table_that_has_a_column_twice_or_not_at_all_is_refused() -> None:
    inputs, frame = Inputs.numbers(["a", "b"]), pd.DataFrame([[1.0, 2.0, 3.0]])
    for names, message in (("aab", "has 2 columns 'a'; the"), ("acd", "has no column 'b'; the")):
        with pytest.raises(ValueError, match=message):
            inputs.encode(frame.set_axis(list(names), axis=1))
    assert inputs.encode(frame.set_axis(list("bca"), axis=1)).tolist() == [[3.0, 1.0]]


PIECES = [pa.table({"a": rows}) for rows in ([1.0], [2.0, 3.0, 4.0], [5.0, None, 7.0, None])]


@pytest.mark.parametrize("first_row", [0, 100])
def test_the_first_row_without_features_is_named_by_its_place_in_the_table(first_row: int) -> None:
    inputs, table = Inputs.numbers(["a"]), pa.concat_tables(PIECES)
    with pytest.raises(ValueError, match=f"'a' is missing in row {first_row + 5} "):
        inputs.encode(table, first_row)
    known = has_features(inputs.encode(table, on_unseen="skip"))
    assert known.tolist() == [True] * 5 + [False, True, False]


def test_a_table_of_no_pieces_has_no_rows() -> None:
    empty = pa.table({"a": pa.chunked_array([], pa.float64()), "b": pa.chunked_array([], "f8")})
    assert Inputs.numbers(["a", "b"]).encode(empty).shape == (0, 2)


def test_numbers_and_ranks_that_are_present_can_move_and_nothing_else() -> None:
    features = INPUTS.encode(ROWS)
    assert INPUTS.movable(features).tolist() == [
        [True, False, True, False, True],
        [False, False, True, False, True],
        [True, False, False, False, True],
    ]
    amounts = np.array([10.0, 20.0, 30.0, 40.0, 50.0])
    moved = INPUTS.shift(features, amounts) - features
    assert np.nonzero(moved.any(axis=0))[0].tolist() == [0, 4, 8]
    assert moved[:, [0, 4, 8]].tolist() == [[10, 30, 50], [0, 30, 50], [10, 0, 50]]
    assert np.array_equal(features, INPUTS.encode(ROWS))


def test_values_of_known_rows_are_put_where_these_are() -> None:
    known = np.array([True, False, True])
    np.testing.assert_array_equal(for_all_rows(np.array([1.0, 2.0]), known), [1, math.nan, 2])
    found = for_all_rows(np.array([[1.0, 2.0], [3.0, 4.0]]), known)
    np.testing.assert_array_equal(found, [[1, 2], [math.nan, math.nan], [3, 4]])


@pytest.mark.parametrize("policy", ["error", "missing", "skip", -7.5, 0.0])
def test_one_number_is_the_score_of_one_output_at_most(policy: Policy) -> None:
    assert check_policy(policy) == policy
    refuse_one_score(policy, 1)
    if isinstance(policy, str):
        refuse_one_score(policy, 2)
    else:
        with pytest.raises(ValueError, match="is one score, but there are 2 outputs"):
            refuse_one_score(policy, 2)


def test_ten_categories_are_named_at_most() -> None:
    for n in (9, 10, 11):
        texts = tuple(f"t{k}" for k in range(n))
        shown = ", ".join(texts[:10])
        with pytest.raises(ValueError, match=f"its categories are {shown}: correct"):
            Inputs((Category("c", texts),)).encode({"c": ["?"]})


def test_what_a_column_lacks_is_filled_or_stays() -> None:
    raw = [[None, math.inf], ["?", None], [None, "?"], ["x", "?"], [None, math.inf]]
    uncompleted = INPUTS.read(raw)
    kept = np.column_stack(INPUTS.complete(uncompleted))
    nan, inf = math.nan, math.inf
    np.testing.assert_array_equal(
        kept,
        [
            [0.5, inf, inf, inf, 1, 1, 0, 0, nan, 1, 1],
            [inf, 0, 0, 1, inf, 0, 0, 1, inf, 0, 0],
        ],
    )
    as_missing = np.column_stack(INPUTS.complete(uncompleted, unseen_as_missing=True))
    np.testing.assert_array_equal(
        as_missing,
        [
            [0.5, 0, 0, 1, 1, 1, 0, 0, nan, 1, 1],
            [0.5, 0, 0, 1, 1, 0, 0, 1, nan, 1, 1],
        ],
    )
