"""`isotone explain` writes what the library finds, for tables of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isotone.cli import main
from isotone.explanation import Background, Points, explain, find_recourse, table, usual_changes
from networks import PEOPLE, mixed

FROZEN = mixed(directions=(1, -1, -1, 1), outputs="logits")


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(table, "_ROWS", 16)  # several pieces
    FROZEN.save("m.isotone")
    frame = pd.DataFrame({name: cells * 10 for name, cells in PEOPLE.items()})
    frame["debt"] += np.arange(50)
    frame.to_parquet("people.parquet")
    return frame


def run(words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(words.split())
    return int(stop.value.code or 0)


def contributions(found: pd.DataFrame) -> Any:
    return found[[f"contribution({name})" for name in PEOPLE]].to_numpy()


def test_reasons_are_those_of_python(people: pd.DataFrame) -> None:
    words = "explain m.isotone people.parquet --background-rows 20 --keep debt --out r.parquet"
    assert run(words) == 0
    found, expected = (
        pd.read_parquet("r.parquet"),
        explain(FROZEN, people, people, n_background=20),
    )
    np.testing.assert_allclose(contributions(found), expected.contributions, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(found["score"], FROZEN.score(people))
    np.testing.assert_array_equal(found["row"], np.arange(50))
    np.testing.assert_array_equal(found["debt"], people["debt"])
    np.testing.assert_array_equal(found["proved(debt)"], expected.proved.signs[:, 3])
    np.testing.assert_allclose(found["error(age)"], expected.errors[:, 0])
    assert run(f"{words} --rows 3,40,41") == 0
    some = pd.read_parquet("r.parquet")
    np.testing.assert_allclose(contributions(some), contributions(found)[[3, 40, 41]], atol=1e-15)
    assert some["row"].tolist() == [3, 40, 41]


def test_named_reasons_have_texts_and_points(people: pd.DataFrame) -> None:
    Path("t.toml").write_text("[income]\nlowers = 'only {value:,.0f}'\nmissing = 'no income'\n")
    words = "explain m.isotone people.parquet --background-rows 50 --points 600@50:1,20"
    assert run(f"{words} --texts t.toml --side lowers --top 2 --out r.csv") == 0
    found = pd.read_csv("r.csv")
    expected = explain(FROZEN, people, people).in_points(Points.parse("600@50:1,20"))
    np.testing.assert_allclose(contributions(found), expected.contributions, atol=1e-12)
    np.testing.assert_allclose(found["points"], expected.score, atol=1e-9)
    assert "error(age)" not in found  # all rows of the background: exact
    ranked = expected.ranked(2, "lowers")
    names = [None if k < 0 else expected.columns[k] for k in ranked[:, 0]]
    assert found["reason_1"].replace({np.nan: None}).tolist() == names
    told = found[found["reason_1"] == "income"]
    assert set(told["text_1"]) <= {"only 1,000", "only 500", "no income", "only 1,500"}


def test_recourse_is_that_of_python(people: pd.DataFrame, capsys: Any) -> None:
    words = "explain m.isotone people.parquet --out r.parquet --rows 0:9 --threshold 1.7"
    assert run(f"{words} --recourse debt-,income+,city") == 0
    said = capsys.readouterr().out
    found = pd.read_parquet("r.parquet")
    background = Background.of(FROZEN, people)
    changes = usual_changes(FROZEN, background, ["debt-", "income+", "city"])
    expected = find_recourse(FROZEN, people[:9], changes, threshold=1.7)
    np.testing.assert_allclose(found["recourse_cost"], expected.cost)
    np.testing.assert_allclose(found["recourse_bound"], expected.bound)
    turned = people[:9].assign(
        **{name: found[f"recourse({name})"] for name in ("debt", "income", "city")}
    )
    rows = expected.found
    assert np.all(FROZEN.score(turned[rows]) >= 1.7)
    n = int((expected.needed & expected.found).sum())
    assert f"{int(expected.needed.sum())} rows need it, {n} can be turned" in said
    Path("c.toml").write_text("[debt]\nup = false\ncost = 0.5\nlow = 0\n")
    assert run(f"{words} --recourse c.toml") == 0
    assert list(pd.read_parquet("r.parquet").filter(like="recourse")) == [
        "recourse_cost",
        "recourse_bound",
        "recourse(debt)",
    ]


def test_strange_rows_follow_the_policy(people: pd.DataFrame, capsys: Any) -> None:
    people.loc[37, "city"] = "Nowhere"
    people.to_parquet("people.parquet")
    words = "explain m.isotone people.parquet --background-rows 9 --out r.parquet"
    assert run(words) == 2
    assert "holds 'Nowhere' in row 37" in " ".join(capsys.readouterr().err.split())
    assert not Path("r.parquet").exists()
    assert run(f"{words} --on-unseen skip") == 0
    assert "1 row held values never seen in training" in capsys.readouterr().out
    assert np.isnan(pd.read_parquet("r.parquet")["score"]).sum() == 1
    assert run(f"{words} --on-unseen missing") == 0
    assert not np.isnan(contributions(pd.read_parquet("r.parquet"))).any()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--side up", "`--side up` is unknown; choose from both, raises, lowers"),
        ("--method fast", "`--method fast` is unknown"),
        ("--to flip", "`--to flip` is unknown"),
        ("--rows 49:60", "`--rows` asks for row 59 (data rows, counted from 0) but the table has"),
        ("--rows=-3:2", "`--rows -3:2` has a negative number; give numbers from 0 on, such as"),
        ("--rows=-1", "`--rows -1` has a negative number"),
        ("--keep score", "no column 'score'"),
        ("--recourse a.toml --recourse income+", "is a file, which must say all that may change"),
        ("--recourse incom+", "names 'incom', which is not a column of the model"),
        ("--recourse city+", "'city+' asks for column 'city' to rise, but its categories have no"),
        ("--points 600", "must be points@odds"),
        ("--output b", "`output='b'` must name one of the 1 outputs"),
        ("--threshold 1 --point p.json", "both give a threshold; give one of them"),
    ],
)
def test_errors_name_the_option(people: Any, words: str, message: str, capsys: Any) -> None:
    assert run(f"explain m.isotone people.parquet --out r.parquet {words}") == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_kept_column_must_not_have_the_name_of_a_result(people: Any, capsys: Any) -> None:
    people.assign(baseline=1.0).to_parquet("people.parquet")
    assert run("explain m.isotone people.parquet --keep baseline --out r.parquet") == 2
    assert "has the name of an output column" in capsys.readouterr().err
