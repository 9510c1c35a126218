"""Reading keeps order: exact values that are sorted in a file get scores that are sorted."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import uproot
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.cli import main
from isotone.data.table import numbers, open_table, read_numbers
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import Dense
from isotone.inputs.cells import (
    class_numbers,
    describe_cell,
    finite_or_blank,
    truths_as_numbers,
)
from isotone.inputs.scaling import Scaling

decimal.setcontext(decimal.Context(prec=90))


def scaled(number: int, scale: int) -> Decimal:
    return Decimal(number).scaleb(-scale)


def neighbors(precision: int, scale: int, step: int = 1) -> list[Decimal]:
    """Sorted decimals, in threes that differ in the last digit: around powers, and any."""
    rng, largest = np.random.default_rng(precision), 10**precision - 1
    anywhere = [int("".join(map(str, rng.integers(0, 10, precision)))) for _ in range(200)]
    around = [k * 10**e for e in range(precision) for k in (1, 2, 5)]
    found = {n + i * step for n in anywhere + around for i in (-1, 0, 1)}
    both = {sign * n for n in found if 0 <= n <= largest for sign in (1, -1)}
    return [scaled(n, scale) for n in sorted(both)]


DECIMALS = [
    pa.decimal128(38, 25),
    pa.decimal128(38, 38),
    pa.decimal128(38, 0),
    pa.decimal128(20, -5),
    pa.decimal128(10, 2),
    pa.decimal256(76, 40),
    pa.decimal256(76, 70),
    pa.decimal64(18, 17),
    pa.decimal32(9, 8),
]
WHOLE = sorted(
    {sign * (2**e + i) for e in range(50, 63) for i in range(-3, 4) for sign in (1, -1)}
)
UNSIGNED = sorted({2**e + i for e in range(50, 64) for i in range(-3, 4)} | {2**64 - 1, 0})
HALVES = np.sort(np.random.default_rng(0).normal(size=300).astype(np.float16))
COLUMNS: dict[str, tuple[list[Any], pa.Array]] = {
    **{
        str(kind): (values := neighbors(kind.precision, kind.scale), pa.array(values, kind))
        for kind in DECIMALS
    },
    "int64": (WHOLE, pa.array(WHOLE, pa.int64())),
    "uint64": (UNSIGNED, pa.array(UNSIGNED, pa.uint64())),
    "half": ([float(h) for h in HALVES], pa.array(HALVES)),
    "text": (neighbors(30, 25), pa.array([str(d) for d in neighbors(30, 25)])),
    "large text": (neighbors(30, 29), pa.array(map(str, neighbors(30, 29)), pa.large_string())),
}
TEXTS = [
    *("-1e308", "-1E+30", "-9007199254740993", "-1e-400", "0", "1e-400", "4.9e-324", "1e-323"),
    *("0.99999999999999999999999999", "1", "1.00000000000000000000000001", "1.0000000000000001"),
    *("9007199254740992", "9007199254740993", "9007199254740993.0000000000000000000000000001"),
    *(
        "18446744073709551615",
        "18446744073709551616",
        "9" * 40,
        "9" * 300,
        "1.7976931348623157e308",
    ),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The score is the raw number itself, as far as the clip and the grid let it be."""
    path = tmp_path_factory.mktemp("model") / "m.isotone"
    frozen = FrozenNetwork(
        features=("x",),
        scaling=Scaling.fit([[-1.0], [1.0]], ["identity"]),
        steps=(Dense(np.zeros((1, 1)), np.zeros(1)),),
        residual=np.ones((1, 1)),
        lipschitz=np.ones(1),
        monotonic_cst=np.ones((1, 1), np.int8),
        clip=2.0**64,
        grid=None,
    )
    frozen.save(path)
    return path


def scores(model: Path, table: Path) -> Any:
    out = table.with_name("scores.parquet")
    with pytest.raises(SystemExit, match="0"):
        main(["score", str(model), str(table), "--out", str(out)])
    return pa.parquet.read_table(out)["score"].to_numpy()


def check(model: Path, table: Path, exact: list[Any]) -> None:
    """What is read is the nearest float64, and scores are in the order of the file."""
    assert read_numbers(table, ["x"])[:, 0].tolist() == [float(value) for value in exact]
    assert np.all(np.diff([Fraction(value) for value in exact]) >= 0)
    assert np.all(np.diff(scores(model, table)) >= 0)


@pytest.mark.parametrize("kind", [kind for kind in COLUMNS if "-" not in kind])
def test_scores_are_sorted_as_the_values_of_a_parquet_file(
    tmp_path: Path, model: Path, kind: str
) -> None:
    exact, column = COLUMNS[kind]
    pa.parquet.write_table(pa.table({"x": column}), tmp_path / "t.parquet")
    check(model, tmp_path / "t.parquet", exact)


def test_the_decimal_below_one_does_not_score_above_one(tmp_path: Path, model: Path) -> None:
    values = pa.array([Decimal("0.9999999999999999999999999"), Decimal(1)], pa.decimal128(38, 25))
    pa.parquet.write_table(pa.table({"x": values}), tmp_path / "t.parquet")
    assert scores(model, tmp_path / "t.parquet").tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", COLUMNS)
def test_scores_are_sorted_as_the_values_of_a_csv_file(
    tmp_path: Path, model: Path, kind: str
) -> None:
    exact, _ = COLUMNS[kind]
    (tmp_path / "t.csv").write_text("x\n" + "\n".join(map(str, exact)) + "\n")
    check(model, tmp_path / "t.csv", exact)


def test_numbers_of_any_length_in_a_csv_file(tmp_path: Path, model: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n" + "\n".join(TEXTS) + "\n")
    check(model, tmp_path / "t.csv", [Decimal(text) for text in TEXTS])


@pytest.mark.parametrize("text", ["1e400", "-1e400", "9" * 400, "1.8e308"])
def test_numbers_beyond_all_floats_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(f"x\n1\n{text}\n")
    with pytest.raises(ValueError, match=f"'x' holds the text '{text[:40]}' in row 1 "):
        read_numbers(tmp_path / "t.csv", ["x"])


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_scores_are_sorted_as_the_values_of_a_root_file(
    tmp_path: Path, model: Path, kind: str
) -> None:
    exact, _ = COLUMNS[kind]
    with uproot.recreate(tmp_path / "t.root") as file:
        file.mktree("tree", {"x": kind}).extend({"x": np.array(exact, kind)})
    check(model, tmp_path / "t.root", exact)


FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "Arrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "pandas with Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("kind", ["decimal128(38, 25)", "int64", "uint64", "half"])
def test_frames_in_memory_are_read_the_same_way(model: Path, frame: str, kind: str) -> None:
    from isotone import load

    exact, column = COLUMNS[kind]
    X = FRAMES[frame](pa.table({"x": column}))
    assert load(model).encode(X)[:, 0].tolist() == [float(value) for value in exact]
    assert np.all(np.diff(load(model).score(X)) >= 0)


@settings(deadline=None, max_examples=300)
@given(
    st.integers(-(10**38) + 1, 10**38 - 1), st.integers(1, 10**9), st.integers(0, 38), st.data()
)
def test_decimals_keep_their_order(number: int, step: int, scale: int, data: Any) -> None:
    pair = [scaled(number, scale), scaled(min(number + step, 10**38 - 1), scale)]
    column = pa.array(pair, pa.decimal128(38, scale))
    low, high = numbers(pa.record_batch({"x": column}), ["x"])[:, 0]
    assert low <= high
    assert [low, high] == [float(value) for value in pair]
    assert math.isfinite(high)


# Booleans and times


def test_true_and_false_are_read_as_booleans_are(tmp_path: Path) -> None:
    cells = ["true", "False", " TRUE ", "0.5", "1e5"]
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{cell},1\n" for cell in cells))
    assert read_numbers(tmp_path / "t.csv", ["x"])[:, 0].tolist() == [1, 0, 1, 0.5, 1e5]
    column = pa.array(["true", None, "tru", "untrue"], pa.large_string())
    assert truths_as_numbers(column).to_pylist() == ["1", None, "tru", "untrue"]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            pa.array(["yes", "no"] * 30),
            "replace yes and no with 1 and 0, or true and false, or declare",
        ),
        (
            pa.array([1, 2] * 30, pa.timestamp("us")),
            "column 'x' holds non-numeric values, such as "
            "datetime.datetime(1970, 1, 1, 0, 0, 0, 1 in 'x'; "
            "a feature must hold numbers: leave out such columns with `--features a`, or convert "
            "times to numbers, such as days since some date",
        ),
        (pa.array([1, 2] * 30, pa.date32()), "convert times to numbers, such as days since"),
        (
            pa.array([[1.0], [2.0]] * 30),
            "column 'x' holds non-numeric values, such as [1.0] in 'x'",
        ),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value.type),
)
def test_columns_that_are_no_numbers_are_explained(
    tmp_path: Path, column: pa.Array, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pa.table({"a": np.arange(60.0) % 7, "x": column, "y": np.arange(60) % 2})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(SystemExit, match="2"):
        main(["train", str(tmp_path / "t.parquet"), "--target", "y", "--out", str(tmp_path / "o")])
    assert message in capsys.readouterr().err


def test_times_are_refused_with_a_hint_when_scored(tmp_path: Path, model: Path) -> None:
    table = pa.table({"x": pa.array([1, 2], pa.timestamp("us"))})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(
        ValueError, match=r"has type timestamp\[us\]; it must hold numbers: leave it"
    ):
        read_numbers(tmp_path / "t.parquet", ["x"])
    assert open_table(tmp_path / "t.parquet").columns == ("x",)


@pytest.mark.parametrize("cells", [[1.0, None, 2.5], ["1", "", " 2.5 "], ["1.0", "NA", "2.5"]])
def test_a_finite_number_or_a_blank_is_read_from_numbers_and_from_text(cells: list[Any]) -> None:
    found = finite_or_blank(pa.array(cells), "x")
    np.testing.assert_array_equal(found, [1.0, math.nan, 2.5])


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([1.0, math.inf, -math.inf], "is inf"),
        ([1.0, -math.inf, math.nan], "is -inf"),
        (["1", "inf", "2"], "holds the text 'inf'"),
        (["1", "ten", "2"], "holds the text 'ten'"),
    ],
)
def test_what_is_neither_finite_nor_blank_is_named_with_its_row(
    cells: list[Any], said: str
) -> None:
    with pytest.raises(ValueError, match=f"column 'x' {said} in row 8 .*counted from 0"):
        finite_or_blank(pa.array(cells), "x", first_row=7)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (None, "is missing"),
        (math.nan, "is nan"),
        (0, "is 0"),
        ("", "holds the text ''"),
        (b"ten", "holds the text b'ten'"),
        ("x" * 41, f"holds the text '{'x' * 40}'"),
    ],
)
def test_a_cell_is_told_in_words_and_a_long_text_is_cut(cell: Any, said: str) -> None:
    assert describe_cell(cell) == said


@pytest.mark.parametrize(
    ("cells", "classes", "expected"),
    [
        (["0", "1", " 1 "], ("0", "1"), [0, 1, 1]),
        ([0.0, 1.0, 0.5, 2.0], ("0", "1"), [0, 1, None, None]),
        ([True, False, None], ("0", "1"), [1, 0, None]),
        ([1.0, 0.0], ("false", "true"), [1, 0]),
        (["1.0", "yes", ""], ("0", "1"), [1, None, None]),
        (["b", "a", "1"], ("a", "b"), [1, 0, None]),
    ],
)
def test_a_class_is_found_as_a_text_or_as_the_number_that_it_stands_for(
    cells: list[Any], classes: tuple[str, ...], expected: list[int | None]
) -> None:
    """What is no class gets none, rather than the nearest."""
    found = class_numbers(pa.array(cells), "y", classes)
    known = [None if not math.isfinite(number) else int(number) for number in found]
    assert known == expected


def test_true_and_false_are_names_of_classes_in_a_target(tmp_path: Path) -> None:
    from isotone import load

    rows = "".join(
        f"{k},{str(k > 30).lower()},{'True' if k % 2 else 'False'}\n" for k in range(60)
    )
    (tmp_path / "t.csv").write_text(f"a,paid,owner\n{rows}")
    words = ["train", str(tmp_path / "t.csv"), "--target", "paid", "--increasing", "owner:true"]
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--max-iter", "1", "--n-members", "1", "--out", str(tmp_path / "out")])
    frozen = load(tmp_path / "out" / "model.isotone")
    assert frozen.classes == ("false", "true")
    assert frozen.inputs.names == ("a", "owner")
