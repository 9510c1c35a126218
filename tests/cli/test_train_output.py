"""What `isotone train` and `isotone certify` print: what was promised first, and what is next."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from isotone.certificate.certify import certify
from isotone.cli import main
from isotone.cli.console import terminal
from isotone.cli.table.outcome import print_next, print_outcome
from networks import small

QUICK = "--max-iter 1 --lipschitz 2 --hidden-layer-sizes 4 --n-members 1"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 4)), columns=["age", "debt", "height", "income"])
    frame["paid"] = np.where(frame["income"] > frame["debt"], "yes", "no")
    frame.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


def run(*arguments: str | Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    assert ended.value.code == 0


def features(printed: str) -> list[list[str]]:
    lines = [line.split() for line in printed.splitlines()]
    return [
        words[:2]
        for words in lines
        if words[:1] and words[0] in ("age", "debt", "height", "income")
    ]


def test_directions_are_told_first_and_the_next_command_last(
    tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = shlex.split("--target paid --positive yes --increasing income --decreasing debt")
    run("train", table, *known, *QUICK.split(), "--out", tmp_path / "m.isotone")
    printed = capsys.readouterr().out
    expected = [["debt", "falls"], ["income", "rises"], ["age", "free"], ["height", "free"]]
    assert features(printed) == expected
    *_, last = printed.strip().splitlines()
    assert last == f"Next: isotone report {tmp_path / 'm.isotone'} {table}"
    run("certify", tmp_path / "m.isotone")
    assert features(capsys.readouterr().out) == expected
    run(*shlex.split(last.removeprefix("Next: isotone ")), "--out", tmp_path / "report.html")


@pytest.mark.parametrize(
    ("tables", "validation", "expected"),
    [
        (["a.csv"], "0.2", "isotone report m a.csv"),
        (["a.csv"], "b.csv", "isotone report m b.csv"),
        (["my table.csv"], "0.2", "isotone report m 'my table.csv'"),
        (["a.csv", "b.csv"], "0.2", "isotone report m"),
    ],
)
def test_the_next_command_can_be_copied(
    tables: list[str], validation: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_next(Path("m"), tables, validation)
    assert capsys.readouterr().out == f"Next: {expected}\n"


def test_verdicts_are_colored(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(force_terminal=True, color_system="standard", record=True, width=80)
    monkeypatch.setattr("isotone.cli.table.outcome.output", console)
    print_outcome(certify(small()), "y", {"AUC": 0.9})
    assert "\x1b[1;32mHOLDS" in console.export_text(styles=True)
    assert "\x1b" not in console.export_text(styles=False)
    assert terminal.facts(a="[red]b").row_count == 1


@pytest.mark.parametrize("way", ["--increasing income:yes", "--positive yes --increasing income"])
def test_a_direction_without_a_class_says_both_ways_to_name_it(
    way: str, tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*QUICK.split(), "--out", str(tmp_path / "m.isotone")]
    with pytest.raises(SystemExit, match="2"):
        main(["train", str(table), "--target", "paid", "--increasing", "income", *words])
    message = " ".join(capsys.readouterr().err.split())
    assert "must name the class of 'paid' whose probability it is about, one of no, yes" in message
    assert "write `--increasing income:yes` or `--positive yes`, for example" in message
    run("train", table, "--target", "paid", *way.split(), *words)
    assert "income rises" in " ".join(capsys.readouterr().out.split())
