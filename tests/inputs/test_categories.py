"""A column of categories is never read as numbers, whatever its categories look like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import isotone
from isotone import cli
from isotone.data.parquet import noted_categories
from isotone.inputs.columns import Category, Ordered
from isotone.losses import Quantile
from isotone.training.streaming import ParquetRows
from people import classifier, people, regressor

N = 60
ZONE = np.arange(N) % 3 + 1


def with_zone(zone: Any) -> pd.DataFrame:
    return people(N)[0].assign(zone=zone)


def encoded(values: Any) -> pa.DictionaryArray:
    return pa.array(values).dictionary_encode()


NUMBERS = with_zone(ZONE)
TEXTS = [str(number) for number in ZONE]
FRAMES: dict[str, Any] = {
    "pandas, integers": with_zone(pd.Categorical(ZONE)),
    "pandas, ordered": with_zone(pd.Categorical(ZONE, ordered=True)),
    "pandas, floats": with_zone(pd.Categorical(ZONE / 2)),
    "pandas, booleans": with_zone(pd.Categorical(ZONE > 1)),
    "pandas, digits": with_zone(pd.Categorical(TEXTS)),
    "pandas, Arrow": with_zone(pd.Series(pd.arrays.ArrowExtensionArray(encoded(ZONE)))),
    "polars, Categorical": pl.from_pandas(NUMBERS).with_columns(
        pl.Series("zone", TEXTS, dtype=pl.Categorical)
    ),
    "polars, Enum": pl.from_pandas(NUMBERS).with_columns(
        pl.Series("zone", TEXTS, dtype=pl.Enum(["1", "2", "3"]))
    ),
    "Arrow": pa.Table.from_pandas(NUMBERS).set_column(3, "zone", encoded(ZONE)),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
@pytest.mark.parametrize("make", [classifier, regressor])
def test_estimators_learn_categories_as_categories(frame: Any, make: Any) -> None:
    y = people(N)[1]
    model = make(max_iter=1).fit(frame, y)
    column = model.network_.inputs.column("zone")
    assert isinstance(column, Category | Ordered)
    assert model.predict(frame).shape == (N,)
    with pytest.raises(ValueError, match=r"column 'zone' is stored as categories.*must hold"):
        make(max_iter=1).fit(NUMBERS, y).predict(frame)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_models_and_scalings_refuse_categories(frame: Any) -> None:
    network = classifier(max_iter=1).fit(NUMBERS, people(N)[1]).network_
    for use in (network.score, network.encode, isotone.Engine(network)):
        with pytest.raises(ValueError, match=r"column 'zone' is stored as categories.*convert it"):
            use(frame)
    with pytest.raises(ValueError, match=r"not a numeric table \(zone hold categories\); conv"):
        isotone.Scaling.fit(frame, "standard")


def test_a_target_of_categories_has_classes() -> None:
    X, _ = people(N)
    model = classifier(max_iter=1).fit(X, pd.Series(pd.Categorical(ZONE)))
    assert model.classes_.tolist() == [1, 2, 3]


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table whose zones are categories, and one in which they are numbers."""
    monkeypatch.chdir(tmp_path)
    income, rating = np.linspace(-1, 1, N), pd.Categorical(np.arange(N) % 2)
    frame = pd.DataFrame({"income": income, "zone": pd.Categorical(ZONE), "rating": rating})
    frame.to_parquet("categories.parquet")
    frame.astype({"zone": int}).to_parquet("numbers.parquet")
    return tmp_path


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main([part for word in words for part in word.split()])
    return int(exit_.value.code or 0)


SMALL = "--n-members 1 --hidden-layer-sizes 8 --lipschitz 2"
QUICK = f"--target rating --increasing income:1 --max-iter 2 {SMALL}"


def test_the_command_line_refuses_categories_as_it_refuses_text(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train categories.parquet --out out", QUICK) == 2
    message = capsys.readouterr().err
    assert "column 'zone' holds categories, such as 1 in 'zone'" in message
    assert "`--categorical zone`" in message


def test_the_command_line_encodes_categories_of_integers(stored: Path) -> None:
    assert run("train categories.parquet --categorical zone --out out", QUICK) == 0
    model = isotone.load("out/model.isotone")
    assert model.features == ("income", "zone=1", "zone=2", "zone=3")
    assert model.classes == ("0", "1")
    assert run("score out/model.isotone categories.parquet --out scores.csv") == 0
    assert run("report out/model.isotone categories.parquet --out report.html") == 0


def test_streams_do_not_take_categories(stored: Path) -> None:
    scaling, columns = isotone.Scaling.identity(2), ["income", "zone"]
    rows = ParquetRows(["categories.parquet"], columns, "income", scaling, Quantile(0.5))
    with pytest.raises(ValueError, match="column 'zone' is stored as categories"):
        next(rows.batches(0, 0, isotone.Recipe()))


def test_categories_of_many_pieces_are_put_together(stored: Path) -> None:
    """The pieces of a column have different dictionaries, the first of them only one zone."""
    n = 70_000
    zone = np.where(np.arange(n) < 66_000, 3, ZONE[np.arange(n) % N])
    y = pd.Categorical(np.where(np.arange(n) < 65_600, "a", np.where(zone == 2, "c", "b")))
    frame = pd.DataFrame({"income": np.arange(n) / n, "zone": pd.Categorical(zone), "y": y})
    frame.to_parquet("large.parquet")
    words = f"--target y --categorical zone --max-iter 1 {SMALL}"
    assert run("train large.parquet --out out", words) == 0
    model = isotone.load("out/model.isotone")
    assert model.features == ("income", "zone=1", "zone=2", "zone=3")
    assert model.classes == ("a", "b", "c")
    assert run("report out/model.isotone large.parquet --out report.html") == 0


@pytest.mark.parametrize("note", [b"", b"e30=", b"not base64", b"{}", b'{"columns": [3]}'])
def test_notes_that_cannot_be_read_say_nothing(note: bytes) -> None:
    assert noted_categories({b"ARROW:schema": note, b"pandas": note}) == frozenset()
    assert noted_categories(None) == frozenset()


@pytest.mark.parametrize(
    "command",
    [
        "score out/model.isotone categories.parquet --out scores.csv",
        "report out/model.isotone categories.parquet --out report.html",
        "transport categories.parquet numbers.parquet --columns zone",
        "sweep categories.parquet --target zone --features income --out grid",
    ],
)
def test_what_learned_from_numbers_does_not_take_categories(
    stored: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train numbers.parquet --out out", QUICK) == 0
    assert run(command) == 2
    assert "column 'zone' is stored as categories" in capsys.readouterr().err


@pytest.mark.parametrize("fill", [-1, 2, 5.0, -0.5])
def test_a_fill_that_is_no_rank_is_refused(fill: float) -> None:
    message = r"fill of column 'g' is .*; it must be a rank.*from 0, 'a', to 1, 'b'"
    with pytest.raises(ValueError, match=message):
        Ordered("g", ("a", "b"), fill=fill)
    assert [Ordered("g", ("a", "b"), fill).fill for fill in (0, 0.5, 1)] == [0, 0.5, 1]


@pytest.mark.parametrize("kind", [Category, Ordered])
def test_one_text_is_no_list_of_categories(kind: Any) -> None:
    with pytest.raises(ValueError, match=r"of column 'c' are 'abc', one string, .* give a tuple"):
        kind("c", "abc")


def test_an_order_is_told_from_the_lowest_on() -> None:
    assert Ordered("g", ("low", "top")).describe() == "ordered: low < top"
    filled = Ordered("g", ("low", "other, unknown"), fill=0.5)
    assert filled.describe() == 'ordered: low < "other, unknown"; missing → rank 0.5 and flag'
    many = Ordered("g", tuple("abcdefghi"))
    assert many.describe() == "ordered: a < b < c < d < e < f < g < h < … (9 in all)"
