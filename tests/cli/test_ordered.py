"""Categories with an order are learned by it, from Parquet and from CSV, to the score and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import isotone
from isotone import cli
from isotone.cli.console import terminal
from isotone.cli.console.options import orders_of
from isotone.inputs.columns import Ordered

N = 200
RNG = np.random.default_rng(0)
SIZES = ["small", "medium", "large"]  # whose alphabetical order is another
RANK = RNG.choice(3, N, p=[0.2, 0.4, 0.4])
RANK[:3] = 2, 0, 1  # the first row has the last category
FRAME = pd.DataFrame(
    {
        "size": pd.Categorical.from_codes(RANK, SIZES, ordered=True),
        "debt": RNG.normal(size=N),
        "paid": (RANK + RNG.normal(size=N) > 1).astype(int),
    }
)
ORDER = ["--ordered", "size=small<medium<large"]
QUICK = "--target paid --max-iter 3 --n-members 2 --hidden-layer-sizes 8 --lipschitz 2"


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(terminal.output, "_width", 200)  # fixed where $COLUMNS was, at its start
    FRAME.to_parquet("t.parquet", row_group_size=70)
    FRAME.to_csv("t.csv", index=False)


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main(list(words))
    return int(exit_.value.code or 0)


def train(table: str, *words: str) -> int:
    return run("train", table, *QUICK.split(), *words, "--out", "m.isotone")


def refusal(capsys: pytest.CaptureFixture[str], table: str, *words: str) -> str:
    assert train(table, *words) == 2
    return " ".join(capsys.readouterr().err.split())


def model_of_python() -> isotone.FrozenNetwork:
    """What an estimator learns from the rows that the command trains on."""
    from isotone.training.rows import split

    training, _ = split(N, 0.2)
    model = isotone.MonotonicClassifier(
        {"size": 1}, max_iter=3, n_members=2, hidden_layer_sizes=(8,), lipschitz=2, random_state=0
    )
    return model.fit(FRAME[["size", "debt"]][training], FRAME["paid"][training]).network_


@pytest.mark.parametrize(("table", "words"), [("t.parquet", []), ("t.csv", ORDER)])
def test_an_order_is_kept_from_the_table_to_the_score(
    table: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(table, *words, "--increasing", "size") == 0
    model = isotone.load("m.isotone")
    assert model.inputs.column("size") == Ordered("size", tuple(SIZES))
    assert model.fingerprint == model_of_python().fingerprint
    assert run("certify", "m.isotone") == 0
    assert run("show", "m.isotone") == 0
    assert "ordered: small < medium < large" in capsys.readouterr().out
    assert run("score", "m.isotone", table, "--out", "s.csv") == 0
    scores = pa.csv.read_csv("s.csv")["score"].to_numpy()
    np.testing.assert_array_equal(scores, model.score(FRAME))
    rows: dict[str, Any] = {"size": SIZES, "debt": [0.0] * 3}
    assert np.all(np.diff(model.score(rows)) > 0)


def test_ranks_may_be_missing() -> None:
    FRAME.assign(size=FRAME["size"].where(np.arange(N) % 9 > 0)).to_csv("t.csv", index=False)
    assert train("t.csv", *ORDER, "--increasing", "size", "--missing", "indicator") == 0
    model = isotone.load("m.isotone")
    assert model.features == ("size", "debt", "missing(size)")
    assert isotone.certify(model).holds


def test_validation_rows_may_come_from_another_kind_of_file() -> None:
    assert train("t.parquet", "--increasing", "size", "--validation", "t.csv") == 0


def test_polars_keeps_an_order_too() -> None:
    sizes = pl.Series("size", FRAME["size"].astype(str), dtype=pl.Enum(SIZES))
    pl.from_pandas(FRAME[["debt", "paid"]]).with_columns(sizes).write_parquet("t.parquet")
    assert train("t.parquet", "--increasing", "size") == 0
    assert isotone.load("m.isotone").inputs.column("size") == Ordered("size", tuple(SIZES))


def test_an_order_that_the_file_has_lost_is_not_guessed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without dictionaries the file says that there is an order, but has that of the rows."""
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    pa.parquet.write_table(table, "t.parquet", use_dictionary=False)
    assert "column 'size' holds categories, such as 'large'" in refusal(capsys, "t.parquet")
    assert train("t.parquet", *ORDER, "--increasing", "size") == 0
    assert isotone.load("m.isotone").fingerprint == model_of_python().fingerprint


def test_parts_of_a_file_must_agree(capsys: pytest.CaptureFixture[str]) -> None:
    other = FRAME.assign(size=FRAME["size"].cat.reorder_categories(SIZES[::-1]))
    parts = [pa.Table.from_pandas(frame, preserve_index=False) for frame in (FRAME, other)]
    with pa.parquet.ParquetWriter("t.parquet", parts[0].schema) as writer:
        for part in parts:
            writer.write_table(part)
    assert "are stored in different orders in different parts" in refusal(capsys, "t.parquet")
    assert train("t.parquet", *ORDER) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--ordered", "size=small<medium"], "holds 'large' in row 0 (data rows, counted from 0)"),
        (["--ordered", "size=small<medium"], "not in its order small < medium; correct or drop"),
        (["--ordered", "size=small"], "must name a column once, and at least two different"),
        (["--ordered", "size"], "write `--ordered 'size=small<medium<large'`, for example"),
        (["--ordered", "size=a<a"], "at least two different categories from the lowest"),
        (["--ordered", "size=a<b,size=b<a"], "must name a column once"),
        (["--ordered", "sise=a<b"], "did you mean 'size'?"),
        (["--ordered", "paid=a<b"], "names the target, which cannot be a feature"),
        ([*ORDER, "--categorical", "size"], "both categorical, without an order, and ordered"),
        ([*ORDER, "--log", "size"], "only numbers have logarithms; leave it out of `--log`"),
        (["--categorical", "size", "--increasing", "size"], "give their order with `--ordered`"),
    ],
)
def test_orders_that_do_not_fit_are_explained(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refusal(capsys, "t.csv", *words)
    assert not Path("m.isotone").exists()


def test_marks_in_names_are_quoted() -> None:
    assert orders_of(['"a, b"=x<y', 'age="<30"<30-50<">50", z= p <q=r']) == {
        "a, b": ("x", "y"),
        "age": ("<30", "30-50", ">50"),
        "z": ("p", "q=r"),
    }
