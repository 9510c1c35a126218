"""Reasons in sentences, and changes as people write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isotone.explanation import AllowedChange, Background, Texts, read_changes, usual_changes
from networks import PEOPLE, mixed

TEXTS = """
[age]
raises = "an age of {value} helps"
lowers = "an age of {value:.1f} lowers the score by {contribution:+.2f}"
missing = "{column} is not known"
[city]
lowers = "{value} is far away"
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_templates_are_filled_in(tmp_path: Path) -> None:
    texts = Texts.read(write(tmp_path / "texts.toml", TEXTS), mixed())
    assert texts.sentence("age", 30.0, 0.5) == "an age of 30 helps"
    assert texts.sentence("age", 30.0, -0.5) == "an age of 30.0 lowers the score by -0.50"
    assert texts.sentence("age", None, -0.5) == "age is not known"
    assert texts.sentence("city", "Oslo", -0.5) == "Oslo is far away"
    assert texts.sentence("city", "Oslo", 0.5) == "city is Oslo"
    assert texts.sentence("debt", 1234567.25, 0.5) == "debt is 1234567.25"
    assert texts.sentence("debt", None, 0.5) == "debt is missing"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[aeg]\nraises = 'a'",
            "for 'aeg', which is not a column of the model; did you mean",
        ),
        ("[age]\nrises = 'a'", "it must have texts for raises, lowers, missing, or some of these"),
        ("age = 3", "it must have texts for raises, lowers, missing"),
        ("[age]\nraises = '{income}'", r"cannot be filled in \(\{income\} is unknown\)"),
        ("[age]\nraises = '{value.real}'", "cannot be filled in"),
        ("[age]\nraises = '{}'", "cannot be filled in"),
        ("[age]\nraises = 3", "cannot be filled in"),
        ("[city]\nraises = '{value:.2f}'", "cannot be filled in"),
        ("[age", "cannot be read"),
        ("#" * (2**20 + 1), "a TOML file has at most 1048576: shorten it"),
    ],
)
def test_what_cannot_be_filled_in_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Texts.read(write(tmp_path / "texts.toml", text), mixed())


def test_changes_come_from_a_file(tmp_path: Path) -> None:
    text = "[income]\ncost = 2\nwhole = true\ndown = false\n[city]\ncategories = ['Rome']\n"
    found = read_changes(write(tmp_path / "changes.toml", text), mixed())
    rome = AllowedChange(categories=("Rome",))
    assert found == {"income": AllowedChange(2, whole=True, down=False), "city": rome}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[income]\nprice = 2", "its settings are cost, up, down, low, high, whole, categories"),
        ("[income]\nwhole = 1", "it must be true or false: correct it"),
        ("[city]\ncategories = 'Rome'", "it must be a list of texts: correct it"),
        ("[incom]\ncost = 2", "names 'incom', which is not a column of the model; did you mean"),
        ("[city]\nup = false", "sets `up` of column 'city', which holds categories without an"),
        ("", "`changes` is empty"),
    ],
)
def test_what_no_change_can_be_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_changes(write(tmp_path / "changes.toml", text), mixed())


def test_a_table_suggests_costs_limits_and_whole_numbers() -> None:
    frozen = mixed()
    background = Background.of(frozen, PEOPLE)
    found = usual_changes(frozen, background, ["income+", "debt-", "size", "city"])
    income = np.array([1000.0, 3000.0, 500.0, 1500.0])
    assert found["income"].cost == pytest.approx(1.0 / income.std())
    assert (found["income"].up, found["income"].down) == (True, False)
    assert (found["debt"].up, found["debt"].down) == (False, True)
    assert (found["debt"].low, found["debt"].high, found["debt"].whole) == (0.0, 400.0, True)
    assert found["size"] == found["city"] == AllowedChange()
    with pytest.raises(ValueError, match="names 'incom', which is not a column"):
        usual_changes(frozen, background, ["incom+"])
    for text, move in (("city+", "rise"), ("city-", "fall")):
        with pytest.raises(ValueError, match=rf"'city' to {move}, but .* no order.* write 'city'"):
            usual_changes(frozen, background, [text])
    assert not usual_changes(frozen, background, ["size-"])["size"].up
