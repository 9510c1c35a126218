"""`isotone train` gives directions to missing values, and what it writes keeps them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest

import isotone
from isotone import cli

QUICK = "--target paid --max-iter 3 --n-members 2 --hidden-layer-sizes 8 --lipschitz 2"


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    income = np.where(rng.random(200) < 0.2, np.nan, rng.normal(size=200))
    city = rng.choice(["Oslo", "Rome", None], 200)
    paid = np.nan_to_num(income, nan=-1.0) + rng.normal(size=200) > 0
    frame = pd.DataFrame({"income": income, "city": city, "paid": paid.astype(int)})
    frame.to_csv("table.csv", index=False)
    return frame


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["train", "table.csv", *QUICK.split(), "--out", "m.isotone", *arguments])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("increasing", [[], ["--increasing", "income"]])
def test_a_missing_value_is_never_better_than_any(
    increasing: list[str], table: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--decreasing", "missing(income),missing(city)", "--categorical", "city"]
    assert run("--missing", "indicator", *increasing, *asked) == 0
    frozen = isotone.load("m.isotone")
    certificate = isotone.certify(frozen)
    assert {verdict.column for verdict in certificate.missing if verdict.computed} == {
        *("income", "city")
    }
    features = table[["income", "city"]]
    for column, values in (("income", [-1e9, -1.0, 0.0, 1.0, 1e9]), ("city", ["Oslo", "Rome"])):
        lowest = frozen.score(features.assign(**{column: None}).astype(features.dtypes))
        for value in values:
            assert np.all(lowest <= frozen.score(features.assign(**{column: value})))
    assert cli_output("certify", capsys).count("never gives a higher") == 1


def cli_output(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit):
        cli.main([command, "m.isotone"])
    return " ".join(capsys.readouterr().out.split())


def test_missing_values_without_a_meaning_have_no_direction(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("--decreasing", "missing(income)", "--categorical", "city") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "missing(income)'` is about missing values, which are refused here; add" in said


def test_tables_are_scored_with_knots(capsys: pytest.CaptureFixture[str]) -> None:
    """A free column gets knots where its missing values have a direction."""
    asked = ["--missing", "indicator", "--decreasing", "missing(income)", "--categorical", "city"]
    assert run(*asked) == 0
    frozen = isotone.load("m.isotone")
    assert frozen.inputs.copies
    assert "seen through knots, in place of a scaling: income\n" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        cli.main(["score", "m.isotone", "table.csv", "--out", "scores.csv"])
    assert not ended.value.code
    scores = pyarrow.csv.read_csv("scores.csv")["score"].to_numpy()
    assert np.array_equal(scores, frozen.score(pyarrow.csv.read_csv("table.csv")))
