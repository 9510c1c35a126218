"""Of two classes, everything says which one a score is about, and users choose it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest
import uproot

import isotone
from isotone import cli
from isotone.data.table import open_table, read_numbers

N = 80
DEBT = np.linspace(-1, 1, N)
IS_BAD = DEBT + 0.3 * np.sin(40 * DEBT) > 0
QUICK = "--features debt --max-iter 20 --n-members 1 --hidden-layer-sizes 8 --lipschitz 2"


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(
        {
            "debt": DEBT,
            "rating": np.where(IS_BAD, "bad", "good"),
            "default": IS_BAD.astype(int),
            "grade": np.where(IS_BAD, "low", np.where(DEBT > -0.5, "fair", "high")),
            "late": IS_BAD,
        }
    )
    frame.to_csv("loans.csv", index=False)
    frame.to_parquet("loans.parquet")
    frame.assign(late=np.where(IS_BAD, "True", "false")).to_csv("mixed.csv", index=False)
    with uproot.recreate("loans.root") as file:
        file.mktree("tree", {"debt": "f8", "late": "?"}).extend({"debt": DEBT, "late": IS_BAD})


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main([part for word in words for part in word.split()])
    return int(exit_.value.code or 0)


@pytest.mark.parametrize("direction", ["debt:bad", "debt"])
def test_the_positive_class_is_what_scores_and_probabilities_are_about(direction: str) -> None:
    words = f"loans.csv --target rating --positive bad --increasing {direction} --out out"
    assert run("train", words, QUICK) == 0
    model = isotone.load("out/model.isotone")
    assert model.classes == ("good", "bad")
    assert model.monotonic_cst.tolist() == [[1]]
    assert run("score out/model.isotone loans.csv --probability --out scores.csv") == 0
    scores = pyarrow.csv.read_csv("scores.csv")
    assert scores.column_names == ["score", "probability(bad)"]
    probability = scores["probability(bad)"].to_numpy()
    assert probability[IS_BAD].mean() > probability[~IS_BAD].mean() + 0.3


def test_by_default_it_is_the_last_class_and_everything_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("train loans.csv --target rating --increasing debt:bad --out out", QUICK) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "probability of rating = good, rather than bad (or: --positive bad)" in told
    assert run("score out/model.isotone loans.csv --probability --out scores.csv") == 0
    scores = pyarrow.csv.read_csv("scores.csv")
    assert scores.column_names == ["score", "probability(good)"]
    probability = scores["probability(good)"].to_numpy()
    assert np.all(np.diff(probability) <= 0)
    assert probability[IS_BAD].mean() < probability[~IS_BAD].mean() - 0.3


def test_both_choices_are_the_same_problem_turned_around() -> None:
    for positive in ("good", "bad"):
        words = f"loans.csv --target rating --positive {positive} --increasing debt:bad"
        assert run("train", words, QUICK, f"--out {positive}") == 0
        words = f"{positive}/model.isotone loans.csv --probability --out {positive}.csv"
        assert run("score", words) == 0
    good, bad = (
        pyarrow.csv.read_csv(f"{name}.csv")[f"probability({name})"] for name in ("good", "bad")
    )
    assert np.abs(1 - good.to_numpy() - bad.to_numpy()).mean() < 0.1


def test_a_model_of_several_classes_names_them_in_the_same_way() -> None:
    assert run("train loans.csv --target grade --out out", QUICK) == 0
    assert run("score out/model.isotone loans.csv --probability --out scores.csv") == 0
    names = pyarrow.csv.read_csv("scores.csv").column_names
    assert names[3:] == ["probability(fair)", "probability(high)", "probability(low)"]


@pytest.mark.parametrize(
    ("words", "classes"),
    [
        ("loans.csv --target default --positive 0", ("1", "0")),
        ("loans.csv --target default --positive 1.0", ("0", "1")),
        ("loans.parquet --target late --positive False", ("true", "false")),
        ("loans.parquet --target late --increasing debt:true", ("false", "true")),
        ("loans.parquet --target late --increasing debt", ("false", "true")),
        ("loans.csv --target late --increasing debt", ("False", "True")),
        ("loans.csv --target late --positive false", ("True", "False")),
        ("loans.root --target late --increasing debt", ("false", "true")),
        ("mixed.csv --target late --increasing debt", ("false", "True")),
        ("loans.csv --target rating --positive Bad", ("good", "bad")),
    ],
)
def test_classes_are_found_by_name_also_if_that_is_a_number(
    words: str, classes: tuple[str, str]
) -> None:
    assert run("train", words, QUICK, "--out out") == 0
    assert isotone.load("out/model.isotone").classes == classes


def test_truths_are_one_target_in_every_format_and_loss() -> None:
    """The same numbers are learned; a report finds the classes however a table writes them."""
    words = "--target late --increasing debt --out"
    for kind in ("csv", "parquet", "root"):
        assert run(f"train loans.{kind}", words, f"{kind}.isotone", QUICK) == 0
        loss = "--loss squared_error"
        assert run(f"train loans.{kind}", words, f"{kind}_values.isotone", loss, QUICK) == 0
    models = [isotone.load(f"{kind}.isotone") for kind in ("csv", "parquet", "root")]
    values = [isotone.load(f"{kind}_values.isotone") for kind in ("csv", "parquet", "root")]
    assert len({tuple(model.score(DEBT[:, None])) for model in models}) == 1
    assert len({model.fingerprint for model in values}) == 1
    for model in ("csv", "parquet"):
        for table in ("csv", "parquet"):
            words = f"{model}.isotone loans.{table} --target late --out report.html"
            assert run("report", words) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--target rating --positive goood", "'rating' does not hold; did you mean 'good'?"),
        ("--target grade --positive low", "is for two classes but 'grade' holds fair, high, low"),
        ("--target debt --positive 1 --features default", "'debt' is learned as a number; leave"),
    ],
)
def test_a_positive_class_that_does_not_fit_is_explained(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    features = "" if "--features" in words else "--features debt"
    assert run("train loans.csv --out out", words, features) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_the_name_survives_every_format() -> None:
    assert run("train loans.csv --target rating --out out", QUICK) == 0
    for name in ("a.csv", "a.parquet", "a.root"):
        assert run(f"score out/model.isotone loans.csv --probability --out {name}") == 0
        assert open_table(name).columns == ("score", "probability(good)")
        assert len(read_numbers(name, ["probability(good)"])) == N
