"""The playground computes what `isotone report` does: the same numbers, from the file alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import playgrounds
from isotone import FrozenNetwork, certify, freeze, report
from isotone.frozen import reference
from isotone.report import page
from isotone.report.outcomes import Outcomes, threshold_of
from isotone.report.table.sample import Sample, read_sample
from networks import copied, every_step, mixed, small
from playgrounds import people
from reports import rows, two_classes
from rivals import is_available
from test_parity import paper

pytestmark = pytest.mark.skipif(not is_available(), reason="node is not installed")

NAMES = ("income", "debt", "age")
SHARP = (".error", ".errors", "exact")  # bounds that the exact arithmetic makes smaller
# what is measured by pairs of rows, or not computed in the browser
OTHER = (".effect", ".usual", ".advice", ".rivals", ".history", ".presets")
MODELS: dict[str, Any] = {
    "plain": small,
    "logarithms": paper,
    "logits": two_classes,
    "activations and members": lambda: every_step(2),
    "knots and members": lambda: copied(2, 3),
    "knots in float32": lambda: copied(1, 2, precision="float32"),
    "categories, missing values": lambda: mixed(1, (1, 1, -1, 1)),
    "three classes": lambda: every_step(3, outputs="logits"),
    "float32 with a grid": lambda: freeze(small(), precision="float32", exact=True, clip=32.0),
}
TABLES: dict[str, tuple[Any, Any, str | None, float | None]] = {
    "two classes": (two_classes, rows, "paid", None),
    "no target": (two_classes, rows, None, None),
    "values": (lambda: small(features=NAMES), rows, "paid", None),
    "a threshold": (lambda: small(features=NAMES), rows, None, 0.3),
    "categories, missing values": (lambda: mixed(1, (1, 1, -1, 1)), people, "y", None),
    "three classes": (lambda: mixed(3, outputs="logits"), people, "class", None),
    "two numbers": (lambda: mixed(2), people, None, None),
}


def differences(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Where two descriptions differ by more than a rounding."""
    if path.endswith(OTHER):
        return
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted({*ours, *theirs}):
            yield from differences(ours.get(name), theirs.get(name), f"{path}.{name}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for k, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(*pair, path if path.endswith(SHARP) else f"{path}[{k}]")
    elif not _agree(ours, theirs, path.endswith(SHARP)):
        yield f"{path}: {ours!r:.60} and {theirs!r:.60}"


def _agree(ours: Any, theirs: Any, sharp: bool) -> bool:
    numbers = all(isinstance(x, int | float) for x in (ours, theirs))
    if not numbers or ours == theirs:
        return bool(ours == theirs)
    close = abs(ours - theirs) <= 1e-9 * max(abs(ours), abs(theirs))
    return close or (sharp and theirs < ours) or (ours is False and theirs is True)


def python(
    frozen: FrozenNetwork, table: Path | None, target: str | None, threshold: float | None
) -> tuple[Any, Sample | None]:
    """The data of a report, and its rows."""
    outcomes = Outcomes.of(frozen, threshold_of(frozen, threshold), target)
    sample = None
    if table is not None:
        sample = read_sample(frozen, str(table), outcomes, None, target is not None)
    data = report.content(certify(frozen), outcomes, sample, 10**6)
    return json.loads(page.to_json(data)), sample


@pytest.mark.parametrize("name", MODELS)
def test_the_data_of_a_model_are_those_of_its_report(name: str, tmp_path: Path) -> None:
    frozen = MODELS[name]()
    frozen.save(path := tmp_path / "model.isotone")
    ((opened, shown),) = playgrounds.ask([[playgrounds.model(path), {"kind": "Report"}]])
    assert opened["verdict"] == ("HOLDS" if certify(frozen).holds else "FAILS")
    assert opened["fingerprint"] == frozen.fingerprint
    expected, _ = python(frozen, None, None, None)
    assert list(differences(expected, json.loads(shown["data"]))) == []


@pytest.mark.parametrize("name", TABLES)
def test_the_data_of_a_table_are_those_of_its_report(name: str, tmp_path: Path) -> None:
    make, draw, target, threshold = TABLES[name]
    frozen, table = make(), tmp_path / "table.csv"
    frozen.save(path := tmp_path / "model.isotone")
    draw().to_csv(table, index=False)
    asked = {"kind": "Report", "target": target, "unseen": "error", "threshold": threshold}
    questions = [playgrounds.model(path), playgrounds.table(table), asked]
    ((_, _, shown),) = playgrounds.ask([questions])
    expected, sample = python(frozen, table, target, threshold)
    assert sample is not None
    assert list(differences(expected, json.loads(shown["data"]))) == []
    scores = frozen.score_features(sample.X).reshape(len(sample), -1)
    assert np.array_equal(np.array(shown["scores"]).T, scores)


@pytest.mark.parametrize("grid", [False, True])
def test_scores_in_float32_are_those_of_the_reference(grid: bool, tmp_path: Path) -> None:
    """The engine may fuse multiplications with additions; both are within E of the exact score."""
    frozen = (
        freeze(small(features=NAMES), precision="float32", exact=True, clip=32.0)
        if grid
        else freeze(small(), precision="float32", features=NAMES)
    )
    frozen.save(path := tmp_path / "model.isotone")
    rows().to_csv(table := tmp_path / "table.csv", index=False)
    questions = [playgrounds.model(path), playgrounds.table(table), {"kind": "Report"}]
    ((_, _, shown),) = playgrounds.ask([questions])
    X, found = rows()[list(NAMES)], np.array(shown["scores"][0])
    assert np.array_equal(found, reference.score(frozen, X))
    (error,) = certify(frozen).rounding_errors
    assert np.all(np.abs(found - frozen.score(X)) <= 2 * error)


def test_cells_are_read_as_the_library_reads_them(tmp_path: Path) -> None:
    """Spaces, quotes, signs, words for nothing and for truth, lines that end in two ways."""
    frozen = mixed(1, (1, 1, -1, 1))
    frozen.save(path := tmp_path / "model.isotone")
    lines = [
        "id,debt,age,city,size,income,note",
        '1, +1e2 ,30,"Oslo",low,1000.5,"a, b"',
        '2,TRUE,NA, Rome ,"top",n/a,"he said ""no"""',
        "",
        "3,.5,,,,-,",
        '4,-2.,"18",Oslo,,?,"two\nlines"',
    ]
    (table := tmp_path / "table.csv").write_text("\ufeff" + "\r\n".join(lines) + "\r\n")
    questions = [playgrounds.model(path), playgrounds.table(table), {"kind": "Report"}]
    ((_, _, shown),) = playgrounds.ask([questions])
    sample = read_sample(frozen, str(table), Outcomes.of(frozen, None, None))
    assert json.loads(shown["data"])["rows"]["columns"] == sample.X.T.tolist()
    assert shown["scores"][0] == frozen.score_features(sample.X).tolist()


@pytest.mark.parametrize("unseen", ["missing", "skip"])
def test_what_training_never_saw_is_treated_as_chosen(unseen: Any, tmp_path: Path) -> None:
    frozen = mixed(1, (1, 1, -1, 1))
    frozen.save(path := tmp_path / "model.isotone")
    table = people()
    table.loc[3, "city"] = "Paris"
    table["age"] = table["age"].astype(object)
    table.loc[5, "age"] = "old"
    table.loc[7, "debt"] = np.nan
    table.to_csv(file := tmp_path / "table.csv", index=False)
    asked = {"kind": "Report", "unseen": unseen, "target": None}
    questions = [playgrounds.model(path), playgrounds.table(file), asked]
    ((_, _, shown),) = playgrounds.ask([questions])
    with pytest.warns(UserWarning, match="3 of 300 rows"):
        expected = frozen.score(pd.read_csv(file, dtype=str), on_unseen=unseen)
    known = np.flatnonzero(np.isfinite(expected))
    assert shown["numbers"] == known.tolist()
    assert len(known) == len(table) - (1 if unseen == "missing" else 3)
    assert shown["scores"][0] == expected[known].tolist()
