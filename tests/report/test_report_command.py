"""`isotone report`: the command, and what is told about bad input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotone
from isotone import cli, report
from isotone.report import page
from isotone.report.history import read_history
from networks import every_step, small
from reports import content, rows, two_classes

BAD: list[tuple[str, dict[str, Any], str]] = [
    ("logits", {"target": "paid"}, "`target=paid` is a column of a table but no table is given"),
    ("logits", {"threshold": np.inf}, "`threshold=inf` must be a finite number"),
    ("classes", {"threshold": 1.0}, "is for one output but the model has 3"),
    ("logits", {"embed_rows": -1}, "`embed_rows=-1` must be 0 or more"),
    ("logits", {"history": {}}, "training history cannot be read"),
    (
        "logits",
        {"history": {"training": [1.0], "validation": [], "best_epoch": [], "seconds": 1}},
        "a row per epoch and a column per member",
    ),
]


@pytest.mark.parametrize(("kind", "options", "message"), BAD)
def test_bad_options_are_told(
    kind: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    frozen = two_classes() if kind == "logits" else every_step(3, outputs="logits")
    with pytest.raises(ValueError, match=message):
        report.write(frozen, tmp_path / "r.html", **options)
    assert not (tmp_path / "r.html").exists()


def changed(**columns: Any) -> pd.DataFrame:
    return rows(5).assign(**columns)


BAD_TABLES: list[tuple[pd.DataFrame, dict[str, Any], str]] = [
    (rows(5), {"target": "payed"}, "has no column 'payed'; did you mean 'paid'?"),
    (changed(paid=[0, 1, 2, 1, 0]), {"target": "paid"}, "is '2' in row 2 .* the classes 0, 1"),
    (changed(weight=[1, 1, -1, 1, 1]), {"weights": "weight"}, "weight 'weight' is -1 in row 2"),
    (changed(weight=0.0), {"weights": "weight"}, "is 0 in all rows; some must count"),
    (changed(age=[1, 2, None, 4, 5]), {}, "'age' is missing in row 2"),
    (rows(5).iloc[:0], {}, "has no rows to show; give a table with some, or none at all"),
]


@pytest.mark.parametrize(("frame", "options", "message"), BAD_TABLES)
def test_bad_tables_are_told(
    frame: pd.DataFrame, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match=message):
        report.write(two_classes(), tmp_path / "r.html", tmp_path / "t.csv", **options)


def test_a_number_is_needed_where_numbers_are_predicted(tmp_path: Path) -> None:
    frozen = small(features=["income", "debt", "age"])
    changed(paid=["1", "2", "much", "4", "5"]).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match="the target 'paid' is 'much' in row 2"):
        report.write(frozen, tmp_path / "r.html", tmp_path / "t.csv", target="paid")


def test_a_target_that_only_the_model_names_may_be_absent(tmp_path: Path, table: Path) -> None:
    frozen = two_classes(provenance={"target": "approved"})
    report.write(frozen, tmp_path / "r.html", table)
    assert content(tmp_path / "r.html")["sample"]["target"] is None
    with pytest.raises(ValueError, match="has no column 'approved'"):
        report.write(frozen, tmp_path / "r.html", table, target="approved")


def test_one_column_is_no_target_of_several_numbers(tmp_path: Path, table: Path) -> None:
    frozen = replace(every_step(2), features=("income", "debt", "age"))
    with pytest.raises(ValueError, match="is one column but the model predicts 2 numbers"):
        report.write(frozen, tmp_path / "r.html", table, target="paid")


def test_a_page_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "MAX_BYTES", 50_000)
    with pytest.raises(ValueError, match=r"must stay below 0 MB: use a smaller network"):
        report.write(two_classes(), tmp_path / "r.html")


def test_a_wide_table_is_embedded_with_fewer_rows(tmp_path: Path) -> None:
    """A hundred columns, whose two thousand rows would take 4 MB."""
    names = [f"x{i}" for i in range(100)]
    network = isotone.MonotonicNetwork([100, 16, 1], monotonic_cst=[1] * 100)
    frozen = isotone.freeze(network, features=names)
    X = np.random.default_rng(0).normal(size=(3000, 100))
    pd.DataFrame(X, columns=names).to_csv(tmp_path / "wide.csv", index=False)
    size = report.write(frozen, tmp_path / "r.html", tmp_path / "wide.csv", embed_rows=2000)
    data = content(tmp_path / "r.html")
    n_rows = len(data["rows"]["number"])
    assert 0.9 * page.MAX_BYTES < size <= page.MAX_BYTES
    assert 500 < n_rows < 2000
    assert data["sample"]["n"] == 3000  # statistics are of all
    for numbers, column in zip(data["rows"]["columns"], X.T, strict=True):
        assert numbers == column[data["rows"]["number"]].tolist()


def run(*words: object) -> None:
    cli.main([str(word) for word in words])


def test_the_command_writes_a_report(
    tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two_classes().save(tmp_path / "model.isotone")
    out = tmp_path / "report.html"
    with pytest.raises(SystemExit) as exit:
        run("report", tmp_path / "model.isotone", table, "--target", "paid", "--out", out)
    assert exit.value.code == 0
    assert "open it in a browser" in capsys.readouterr().out
    assert "<h1>Report of model.isotone</h1>" in out.read_text(encoding="utf-8")
    assert content(out)["history"] is None


def test_the_command_warns_of_a_certificate_that_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    honest = two_classes()
    forged = replace(honest, residual=-honest.residual)
    forged.save(tmp_path / "model.isotone")
    with pytest.raises(SystemExit) as exit:
        run("report", tmp_path / "model.isotone", "--out", tmp_path / "report.html")
    assert exit.value.code == 0
    assert "a declared constraint of this model does not hold" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("report.txt", "must end in .html"),
        ("model.html", "outputs must not be inputs: choose another name"),
    ],
)
def test_the_command_refuses_names_it_cannot_write(
    out: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two_classes().save(tmp_path / "model.html")
    with pytest.raises(SystemExit) as exit:
        run("report", tmp_path / "model.html", "--out", tmp_path / out)
    assert exit.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_history_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "history.json").write_text("[")
    with pytest.raises(ValueError, match="is not a training history"):
        read_history(tmp_path / "history.json")
