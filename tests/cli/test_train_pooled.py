"""`isotone train --min-frequency`: rare categories are learned as one, and new ones are scored."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotone
from isotone import Category, cli
from isotone.data import survey
from isotone.training.streaming import chunks

N = 400
RNG = np.random.default_rng(0)
CITY = RNG.choice(["Rome", "Oslo", "Bonn", "Bern", "Genf"], N, p=[0.5, 0.45, 0.03, 0.01, 0.01])
FRAME = pd.DataFrame({"city": CITY, "debt": RNG.normal(size=N)})
FRAME["y"] = (CITY == "Rome") - FRAME["debt"] + 0.1 * RNG.normal(size=N)
QUICK = "--target y --decreasing debt --max-iter 2 --n-members 1 --hidden-layer-sizes 8"
WORDS = f"train rows.csv {QUICK} --lipschitz 2 --categorical city --out out"
POOLED = Category("city", ("Oslo", "Rome"), pooled=3)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("rows.csv", index=False)
    FRAME[:20].assign(city="Nowhere").to_csv("other.csv", index=False)


def run(words: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main(shlex.split(words))
    return int(exit_.value.code or 0)


@pytest.mark.parametrize("least", ["30", "0.1"])
def test_rare_categories_are_pooled(least: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{WORDS} --min-frequency {least}") == 0
    assert isotone.load("out/model.isotone").inputs.column("city") == POOLED
    capsys.readouterr()
    assert run("show out/model.isotone") == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "others pooled" in words
    assert "other(city)" in words


def test_scores_of_new_categories_need_no_policy_and_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(f"{WORDS} --min-frequency 30") == 0
    capsys.readouterr()
    assert run("score out/model.isotone other.csv --out scores.csv") == 0
    assert "20 rows held rare or new categories, which the model pools" in capsys.readouterr().out
    assert np.isfinite(pd.read_csv("scores.csv")["score"]).all()
    Path("tables").mkdir()
    for k in range(2):
        FRAME[k : 100 + k].assign(city="Nowhere").to_parquet(f"tables/{k}.parquet")
    assert run("score out/model.isotone tables --out scored") == 0
    assert "200 rows held rare or new categories" in capsys.readouterr().out
    assert run("score out/model.isotone rows.csv --out scores.csv") == 0
    n_rare = int(np.isin(CITY, ["Bonn", "Bern", "Genf"]).sum())
    assert f"{n_rare} rows held rare or new" in capsys.readouterr().out


def test_rows_to_validate_on_may_hold_new_categories(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{WORDS} --min-frequency 30 --validation other.csv") == 0
    assert run(f"{WORDS} --min-frequency 1 --validation other.csv") == 2
    assert "column 'city' holds 'Nowhere' in row 0" in capsys.readouterr().err


def test_a_directory_pools_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((survey, "SMALL_ROWS"), (survey, "SAMPLE_ROWS")):
        monkeypatch.setattr(module, name, 100)
    monkeypatch.setattr(chunks, "CHUNK_NUMBERS", 1000)
    Path("rows").mkdir()
    classes = FRAME.assign(y=np.where(FRAME["y"] > 0, "yes", "no"))
    classes[:200].to_parquet("rows/0.parquet")
    classes[200:].to_parquet("rows/1.parquet")
    classes[:20].assign(city="Nowhere").to_csv("other.csv", index=False)
    words = WORDS.replace("rows.csv", "rows").replace("debt", "debt:yes")
    for rest in ("", "--validation other.csv"):
        assert run(f"{words} --min-frequency 60 {rest}") == 0
        assert isotone.load("out/model.isotone").inputs.column("city") == POOLED


@pytest.mark.parametrize("least", ["0", "-1", "1.5", "some", "nan", "1.0", "9" * 5000])
def test_what_is_neither_rows_nor_a_share_is_refused(
    least: str, capsys: pytest.CaptureFixture[Any]
) -> None:
    assert run(f"{WORDS} --min-frequency={least}") == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "--min-frequency" in message
    assert "must be a number of rows" in message


def test_too_many_categories_name_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    FRAME.assign(city=[f"city {i}" for i in range(N)]).to_csv("rows.csv", index=False)
    assert run(f"{WORDS} --min-frequency 1") == 2
    assert "`--min-frequency`" in " ".join(capsys.readouterr().err.split())
