"""What a new user gets wrong at the command line is explained in the words of the options."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotone import cli

LINES = [f"{i},{i % 7},{i % 2},{('lost', 'paid')[i % 2]}" for i in range(30)]


@pytest.fixture(autouse=True)
def loans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loans.csv").write_text("\n".join(["debt,income,paid,status", *LINES]))
    Path("other.csv").write_text("debt,income,city\n1,2,3\n")
    train = "train loans.csv --target paid --features debt,income --max-iter 1 --n-members 1"
    assert run(f"{train} --hidden-layer-sizes 4 --lipschitz 1 --out results") == 0


def run(words: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main(words.split())
    return int(exit_.value.code or 0)


TRAIN = "train loans.csv --target paid --out model"
SWEEP = "sweep loans.csv --features debt,income --out grid"
TRIGGER = "trigger results/model.isotone loans.csv --event debt --n-events 100 --max-rate 1e6"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "train loans.csv --target paid --features debt --group-size 2.5 --out out",
            "`--group-size 2.5` must be a whole number of at least 1, or full; choose",
        ),
        (f"{SWEEP} --target paid --group-size 2.5", "must be a whole number of at least 1"),
        (f"{SWEEP} --target paid --group-size nan", "must be a whole number of at least 1"),
        (f"{SWEEP} --target paid --group-size inf", "must be a whole number of at least 1"),
        (f"{SWEEP} --target paid --seeds 3:1", "`--seeds 3:1` has no numbers; give some"),
        (f"{SWEEP} --target paid --lipschitz ,", "`--lipschitz ,` has no numbers; give some"),
        (f"{SWEEP} --target paid --validation 2", "`--validation 2` must lie between 0 and 1"),
        (f"{SWEEP} --target paid --max-iter 0", "greater than or equal to 1"),
        (f"{SWEEP} --target paid --epochs 5", "`--epochs` is an option of isotone 0.1; write"),
        (f"{SWEEP} --target paid --hidden=8", "write `--hidden-layer-sizes` instead"),
        (f"{TRAIN} --members 1", "write `--n-members` instead"),
        (f"{TRAIN} --seed 1", "write `--random-state` instead"),
        ("transport loans.csv other.csv --seed 1", "write `--random-state` instead"),
        (f"{TRAIN} --loss cross-entropy", "choose from cross_entropy, hinge, dynamic_hinge, sq"),
        (f"{TRAIN} --missing refuse", "`--missing refuse` is unknown; choose from error, ind"),
        (
            f"{SWEEP} --target status",
            "holds the text 'lost' but a sweep learns numbers, or classes 0 and 1; make such a "
            "column, or use isotone train",
        ),
        (
            f"{TRIGGER} --target status",
            "column 'status' is lost in row 0 (data rows, counted from 0); it must be 0 for "
            "background and 1 for signal: choose another column",
        ),
        (f"{TRIGGER} --target income", "column 'income' is 2 in row 2"),
        ("transport loans.csv other.csv", "name them with `--columns debt,income`"),
        ("transport loans.csv loans.csv --columns debt --steps 0", "greater than or equal to 1"),
        ("certify results", "'results' is a directory, but a file is needed; give the model in"),
        ("score results loans.csv --out scores.csv", "the model in it, results/model.isotone"),
        ("show .", "'.' is a directory, but a file is needed; give a file in it"),
        (
            "export results/model.isotone --to cpp --out model.hpp",
            "`--out model.hpp` is the name of a file, but a directory is written",
        ),
        ("score results/model.isotone results --out all.csv", "a directory is written; give the"),
    ],
)
def test_mistakes_are_explained(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(Path().rglob("*"))
    assert run(words) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert sorted(Path().rglob("*")) == before
