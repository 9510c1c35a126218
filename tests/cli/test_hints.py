"""What a message tells to type can be typed: it keeps what was given, and a shell reads it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import isotone
from isotone import cli
from isotone.cli.console.options import listed, spelled

QUICK = ["--max-iter", "1", "--n-members", "1", "--hidden-layer-sizes", "4", "--lipschitz", "1"]
N = 40
K = np.arange(N)
NAMES = [
    "income",
    "total debt",
    "a, b",
    " padded ",
    'say "cheese"',
    "größe",
    "--out",
    "a:b",
    "c=2",
]


def write(path: str, columns: dict[str, object]) -> None:
    pd.DataFrame(columns).to_csv(path, index=False)


@pytest.fixture(autouse=True)
def loans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    columns: dict[str, object] = {name: K % (i + 2) for i, name in enumerate(NAMES)}
    texts = {name: np.where(K % 3, "x", "y") for name in ("status", "the sex", "job", "home")}
    write("loans.csv", columns | texts | {"paid": np.where(K % 2, "yes", "no"), "w": 1})


def train(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a run says when it fails; nothing if it works."""
    with pytest.raises(SystemExit) as exit_:
        cli.main(["train", "loans.csv", "--target", "paid", "--out", "out", *QUICK, *words])
    told = capsys.readouterr().err
    assert exit_.value.code == 0 or told.startswith("error: ")
    return told if exit_.value.code else ""


def hint(message: str, option: str) -> list[str]:
    """The words of the option that a message gives last, as a shell reads them."""
    *_, found = re.findall(rf"`(--{option}[ =][^`]*)`", message)
    return shlex.split(found)


def test_following_the_hints_ends_at_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--categorical", "status,the sex"]
    message = train(capsys, *given)
    assert "columns job, home hold text" in message
    categorical = hint(message, "categorical")
    assert listed(categorical[1]) == ("status", "the sex", "job", "home")
    chosen = hint(message, "features")
    assert train(capsys, *categorical) == ""
    assert train(capsys, *chosen, *given) == ""
    assert isotone.load("out/model.isotone").features == (
        *NAMES,
        *("status=x", "status=y", "the sex=x", "the sex=y", "w"),
    )


def test_a_direction_without_a_class_keeps_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    categorical = ["--categorical", "status,the sex,job,home"]
    message = train(capsys, *categorical, "--increasing", "total debt,income:no,größe")
    directions = hint(message, "increasing")
    assert listed(directions[1]) == ("total debt:yes", "income:no", "größe:yes")
    assert train(capsys, *categorical, *directions) == ""


def test_an_offset_keeps_the_other_logarithms(capsys: pytest.CaptureFixture[str]) -> None:
    features = ["--features", "income,total debt,w"]
    message = train(capsys, *features, "--log", "w,total debt,income=3")
    logarithms = hint(message, "log")
    assert listed(logarithms[1]) == ("w", "total debt=1", "income=3")
    assert train(capsys, *features, *logarithms) == ""


def test_a_column_to_add_keeps_the_features(capsys: pytest.CaptureFixture[str]) -> None:
    message = train(capsys, "--features", 'income,"a, b"', "--increasing", "größe:yes")
    features = hint(message, "features")
    assert listed(features[1]) == ("income", "a, b", "größe")
    assert train(capsys, *features, "--increasing", "größe:yes") == ""


@pytest.mark.parametrize("option", ["increasing", "decreasing", "log", "categorical"])
@pytest.mark.parametrize(("name", "role"), [("paid", "target"), ("w", "weight of the rows")])
def test_neither_target_nor_weight_can_become_a_feature(
    option: str, name: str, role: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--weights", "w", "--features", "income", f"--{option}", name]
    message = train(capsys, *words)
    assert f"`--{option} {name}` names the {role}, which cannot be a feature; name one" in message
    assert "add" not in message


def test_options_that_are_repeated_all_count(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--features", "income", "--features", "w,größe", "--increasing", "income:yes"]
    assert train(capsys, *words, "--increasing", "w:yes", "--decreasing", "größe:yes") == ""
    model = isotone.load("out/model.isotone")
    assert model.features == ("income", "w", "größe")
    assert model.monotonic_cst.tolist() == [[1, 1, -1]]


def test_lipschitz_of_every_feature_is_spelled_out(capsys: pytest.CaptureFixture[str]) -> None:
    message = train(capsys, "--features", "income,total debt", "--lipschitz", "income=2")
    lipschitz = hint(message, "lipschitz")
    assert listed(lipschitz[1]) == ("income=2", "total debt=1")
    assert train(capsys, "--features", "income,total debt", *lipschitz) == ""


@pytest.mark.parametrize("names", [NAMES, NAMES[::-1], ["", "-"], ['"', '""', ',"', '","']])
def test_names_survive_an_option_and_a_shell(names: list[str]) -> None:
    words = shlex.split(spelled("features", *names))
    value = words[1] if len(words) == 2 else words[0].removeprefix("--features=")
    assert listed(value) == tuple(names)


def test_a_quote_within_a_name_means_itself() -> None:
    assert listed('5" pipe, 6" pipe') == ('5" pipe', '6" pipe')
    assert listed('income:"good, or so",debt') == ("income:good, or so", "debt")
