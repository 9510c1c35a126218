"""A newcomer's hour: text, gaps and misspelt names, and every message says what to do next."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import isotone
from isotone import cli

N = 240
RNG = np.random.default_rng(0)
INCOME, DEBT = RNG.lognormal(10, 0.5, N), RNG.lognormal(8, 1, N)
LOGIT = 2 * (np.log(INCOME) - 10) - 0.7 * (np.log(DEBT) - 8) + RNG.logistic(size=N) / 2
COLUMNS: dict[str, Any] = {
    "name": [f"client {i}" for i in range(N)],
    "city": ["" if i % 20 == 0 else "Rome" if i % 3 else "Oslo" for i in range(N)],
    "incme": ["NA" if i % 30 == 7 else f"{value:.0f}" for i, value in enumerate(INCOME)],
    "debt": DEBT,
    "delays": RNG.poisson(1.0, N),
    "paid": np.where(LOGIT > 0, "yes", "no"),
    "grade": np.where(LOGIT > 0.7, "good", np.where(LOGIT > -0.7, "fair", "bad")),
    "late": (LOGIT < 0).astype(int),
}
CHOSEN = "--features city,incme,debt,delays --categorical city --missing indicator"
QUICK = "--max-iter 4 --n-members 2 --hidden-layer-sizes 8 --lipschitz 2"


@pytest.fixture
def clients(tmp_path: Path) -> Path:
    path = tmp_path / "clients.csv"
    pa.csv.write_csv(pa.table(COLUMNS), path)
    return path


def run(command: str, *words: object) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main([command, *(part for word in words for part in str(word).split())])
    return int(exit_.value.code or 0)


# Each line is what the message above it told to do.
WALK = [
    ("clinets.csv --target paid", "did you mean 'clients.csv'?"),
    ("clients.csv --target payed", "did you mean 'paid'?"),
    ("clients.csv --target paid", "columns name, city, grade hold text, such as 'client 0'"),
    ("clients.csv --target paid", "or declare categories with `--categorical city,grade`"),
    ("clients.csv --target paid", "`--features incme,debt,delays,late`"),
    ("clients.csv --target paid --features city,income", "did you mean 'incme'"),
    (
        "clients.csv --target paid --features city,incme,debt --categorical city",
        "values are missing in city (12), incme (8) of",
    ),
    (
        "clients.csv --target paid --features city,incme,debt --categorical city",
        "add `--missing indicator`",
    ),
    (f"clients.csv --target paid {CHOSEN} --increasing incme", "write `--increasing incme:yes`"),
    (f"clients.csv --target paid {CHOSEN} --increasing incme:yse", "did you mean 'yes'?"),
]


@pytest.mark.parametrize(("words", "advice"), WALK)
def test_every_message_says_what_to_do(
    clients: Path, words: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", clients.parent / words, "--out", clients.parent / "out") == 2
    assert advice in capsys.readouterr().err
    assert not (clients.parent / "out").exists()


def test_the_walk_ends_at_a_certified_model_that_scores_the_same_table(clients: Path) -> None:
    out, scores = clients.parent / "out", clients.parent / "scores.csv"
    directions = "--increasing incme:yes --decreasing debt:yes,delays:yes"
    target = "--target paid --class-weight balanced --log delays=1"
    assert run("train", clients, target, CHOSEN, directions, QUICK, "--out", out) == 0
    assert run("certify", out / "model.isotone") == 0
    with pytest.raises(SystemExit) as exit_:
        cli.main(["score", str(out / "model.isotone"), str(clients), "--out", str(scores)])
    assert exit_.value.code == 0
    frozen = isotone.load(out / "model.isotone")
    assert frozen.classes == ("no", "yes")
    names = "city=Oslo", "city=Rome", "missing(city)", "incme", "debt", "delays", "missing(incme)"
    assert frozen.features == names
    assert frozen.monotonic_cst.tolist() == [[0, 0, 0, 1, -1, -1, 0]]
    assert pa.csv.read_csv(scores).num_rows == N
    X = frozen.encode(pa.table(COLUMNS))
    richer = X + 1000.0 * (np.array(names) == "incme")
    assert np.all(frozen.score_features(richer) >= frozen.score_features(X))


def test_several_classes_have_monotone_probabilities(clients: Path) -> None:
    out = clients.parent / "out"
    directions = "--increasing incme:good,debt:bad --decreasing incme:bad"
    assert run("train", clients, "--target grade", CHOSEN, directions, QUICK, "--out", out) == 0
    frozen = isotone.load(out / "model.isotone")
    assert frozen.classes == ("bad", "fair", "good")
    place = frozen.features.index("incme")
    assert frozen.monotonic_cst[:, place].tolist() == [-1, 0, 1]
    assert isotone.certify(frozen).holds
    X = frozen.encode(pa.table(COLUMNS))
    richer = X + 1000.0 * (np.arange(X.shape[1]) == place)
    before, after = (frozen.score_features(rows) for rows in (X, richer))
    difference = frozen.to_probability(after) - frozen.to_probability(before)
    assert np.all(difference[:, 0] <= 0)
    assert np.all(difference[:, 2] >= 0)
    metrics = json.loads((out / "metrics.json").read_text())
    assert set(metrics) == {"validation rows", "accuracy", "log loss"}


def test_a_direction_of_the_first_of_two_classes_is_turned_around(clients: Path) -> None:
    out = clients.parent / "out"
    words = f"--target paid --features debt --increasing debt:no {QUICK}"
    assert run("train", clients, words, "--out", out) == 0
    assert isotone.load(out / "model.isotone").monotonic_cst.tolist() == [[-1]]


def test_whole_numbers_become_classes_if_asked_for(
    clients: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    number = f"--target delays --features debt {QUICK} --out {clients.parent / 'number'}"
    assert run("train", clients, number) == 0
    assert "for classes instead: --loss cross_entropy" in capsys.readouterr().out
    words = f"--target delays --features debt --increasing debt:2 {QUICK} --loss cross_entropy"
    assert run("train", clients, words, "--out", clients.parent / "out") == 0
    frozen = isotone.load(clients.parent / "out" / "model.isotone")
    assert frozen.classes == tuple(str(k) for k in np.unique(COLUMNS["delays"]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--target grade --features debt --increasing debt", "write `--increasing debt:good`"),
        ("--target grade --features debt --loss hinge", "is for two classes but 'grade' holds"),
        ("--target grade --features debt --loss quantile", "is for numbers but 'grade' holds"),
        (
            "--target grade --features debt --increasing debt:good,debt:fair",
            "of the classes fair and good must all rise with feature",
        ),
        (
            "--target paid --features debt --increasing debt:yes --decreasing debt:yes",
            "both increasing and decreasing",
        ),
        (
            "--target paid --features debt --increasing debt:yes,debt:no",
            "both increasing and decreasing for 'paid'",
        ),
        (
            "--target delays --features debt --increasing debt:2",
            "is learned as a number; leave out ':2', or add `--loss cross_entropy`",
        ),
        ("--target debt --features delays --loss cross_entropy", "needs classes but 'debt' holds"),
        ("--target debt --features delays --class-weight balanced", "is for classes but 'debt'"),
        ("--target late --features debt --class-weight even", "choose from none, balanced"),
        ("--target late --features debt --missing drop", "choose from error, indicator"),
        ("--target incme --features debt", "the target 'incme' is missing in 8 rows"),
        ("--target name --features debt", "holds 240 different texts, such as 'client 0'"),
        ("--target late --features delays --log delays", "as in `--log delays=1`"),
        ("--target late --features delays --log delays=x", "must be numbers"),
        (
            "--target late --features city,debt --categorical city --increasing city",
            "'city' is categorical, and categories have no order",
        ),
        ("--target late --features debt --categorical city", "add it: `--features debt,city`"),
        ("--target late --features debt --categorical ctiy", "did you mean 'city'?"),
        (
            "--target late --features name,debt --categorical name",
            "'name' holds more than 64 categories",
        ),
        (
            "--target late --features debt --hidden-layer-sizes 0",
            "must be whole numbers of at least 1",
        ),
        ("--target late --features debt --lipschitz -1", "must be a positive number"),
        ("--target late --features debt --max-iter 0", "greater than or equal to 1"),
    ],
)
def test_choices_that_do_not_fit_are_explained(
    clients: Path, words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", clients, words, "--out", clients.parent / "out") == 2
    assert message in " ".join(capsys.readouterr().err.split())


ROWS = "\n".join(f"{i},{i % 7},{i % 2}" for i in range(30))


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (f"a,b,y\n{ROWS}", "--out table.csv", "`--out table.csv` is a file"),
        ("a,b,y\n", "", "has no rows; training needs some"),
        ("a,b,y\n1,2,3\n", "", "the target 'y' is 3.0 in all rows"),
        ("a,b,y\n1,2,3\n2,3,4\n", "", "leave none to validate on; give more rows"),
        (f"a,a,y\n{ROWS}", "", "has 2 columns named 'a'"),
        ("a,b,y\n1,,0\n2,,1\n3,,1\n", "", "column 'b' of 'table.csv' is empty, and every feature"),
        ("a;b;y\n1;2;3\n", "", "separate the columns with commas"),
        ('a,b,y\n"1,5",2,0\n"2,5",3,1\n', "", "write decimals with a point"),
        ("gr\xf6\xdfe,y\n1,2\n", "", "with text in UTF-8"),
        ("a,b,y\n1,Z\xfcrich,0\n", "--categorical b", "with text in UTF-8"),
        ("y\n1\n0\n", "", "has no column other than 'y'"),
        ("a,b,y\n1,2,0\n1e300,2,1\n", "", "'a' reaches 1e+300; numbers up to 1e+100 can be used"),
        (f"a,b,y\n{ROWS}\n1,2,oops\n", "", "the target 'y' is 'oops' in row 30"),
        (f"a,b,y\n{ROWS}\n1,oops,0\n", "", "'b' holds the text 'oops' in row 30"),
        (f"a,w,y\n{ROWS}\n1,-2,0\n", "--weights w", "`--weights w` is -2 in row 30"),
        (f"a,w,y\n{ROWS}\n1,,0\n", "--weights w", "`--weights w` is nan in row 30"),
        ("a,w,y\n1,0,0\n2,0,1\n", "--weights w", "`--weights w` is 0 in all rows"),
        (f"a,b,y\n{ROWS}", "--validation other.csv", "'other.csv' has no column 'b'"),
        (
            f"a,z,y\n{ROWS}",
            "--features a --validation other.csv",
            "hold the class 9 in 'y', which no training row has",
        ),
        (
            f"a,b,y\n{ROWS}",
            "--missing indicator --validation gaps.csv",
            "values of 'b' are missing in 'gaps.csv' but in no training row",
        ),
    ],
)
def test_strange_tables_are_explained(
    text: str,
    words: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_bytes(text.encode("latin-1"))
    Path("other.csv").write_text("a,y\n1,0\n2,9\n")
    Path("gaps.csv").write_text("a,b,y\n1,,0\n2,3,1\n")
    out = "" if "--out" in words else "--out out"
    assert run("train", "table.csv --target y", QUICK, words, out) == 2
    assert message in capsys.readouterr().err


def test_none_may_be_the_name_of_a_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{i},{('none', 'minor', 'NA')[i % 3]}" for i in range(24)]
    Path("table.csv").write_text("\n".join(["a,damage", *lines]))
    assert run("train", "table.csv --target damage --out out", QUICK) == 0
    assert isotone.load("out/model.isotone").classes == ("NA", "minor", "none")


def test_rows_with_what_no_other_row_has_are_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{i},{'' if i == 11 else i},{'rare' if i == 5 else 'ab'[i % 2]}" for i in range(24)]
    Path("table.csv").write_text("\n".join(["a,b,y", *lines]))
    words = "table.csv --target y --missing indicator --validation 0.9 --out out"
    assert run("train", words, QUICK) == 0
    frozen = isotone.load("out/model.isotone")
    assert frozen.classes == ("a", "b", "rare")
    assert frozen.features == ("a", "b", "missing(b)")


@pytest.mark.parametrize("row", range(12))
def test_a_category_of_one_row_is_trained_on(
    row: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{i},{'rare' if i == row else 'ab'[i % 2]},{9.5 + i % 2}" for i in range(12)]
    Path("table.csv").write_text("\n".join(["a,b,y", *lines]))
    words = "table.csv --target y --categorical b --validation 0.5 --out out"
    assert run("train", words, QUICK) == 0
    frozen = isotone.load("out/model.isotone")
    assert frozen.features == ("a", "b=a", "b=b", "b=rare")
    assert frozen.classes == ("9.5", "10.5")  # as numbers, not as text


def test_a_category_of_other_validation_rows_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{i},{'ab'[i % 2]},{i % 2}" for i in range(12)]
    Path("table.csv").write_text("\n".join(["a,b,y", *lines]))
    Path("other.csv").write_text("a,b,y\n1,a,0\n2,new,1\n")
    words = "table.csv --target y --categorical b --validation other.csv --out out"
    assert run("train", words, QUICK) == 2
    assert "column 'b' holds 'new' in row 1" in capsys.readouterr().err
    assert not Path("out").exists()


def test_rows_of_weight_zero_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"{i},{i % 7},{i % 2},1" for i in range(24)]
    Path("table.csv").write_text("\n".join(["a,b,y,w", *lines]))
    Path("more.csv").write_text("\n".join(["a,b,y,w", "3,,,0", *lines, "4,5,other,0"]))
    for table in ("table", "more"):
        words = f"{table}.csv --target y --weights w --missing indicator --out {table}"
        assert run("train", words, QUICK) == 0
    first, second = (isotone.load(f"{name}/model.isotone") for name in ("table", "more"))
    assert first.fingerprint == second.fingerprint


def test_a_run_is_not_resumed_with_other_options(
    clients: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = sys.modules["isotone.cli.train"]  # the module, not the function
    monkeypatch.setattr(command, "remove_checkpoints", lambda directory: None)
    monkeypatch.setattr("isotone.estimators.fitting.members.CHECKPOINT_SECONDS", 0.0)
    words = f"--target late --features debt --resume --out {clients.parent / 'out'}"
    assert run("train", clients, words, QUICK) == 0
    assert run("train", clients, words, QUICK, "--random-state 1") == 2
    assert "or leave out `--resume` to start over" in capsys.readouterr().err
