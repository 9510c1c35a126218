"""What is wrong with a file is said in three parts: what was given, what must hold, what to do."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import playgrounds
from candidates import draw_model
from isotone.frozen.reference import score
from isotone.frozen.steps import Dense
from networks import by_hand, mixed, small
from playground import bundle
from playgrounds import people
from rivals import is_available

pytestmark = pytest.mark.skipif(not is_available(), reason="node is not installed")

HEAD = "age,city,size,debt,income"
GOOD = "30,Oslo,low,100,1000"
TABLES: dict[str, tuple[str | bytes, str]] = {
    "column": (
        "age,city,size,debt\n30,Oslo,low,1\n",
        "“t.csv” has no column “income”; the model needs",
    ),
    "twice": (f"{HEAD},age\n{GOOD},3\n", "2 columns “age”; the model needs one of each: rename"),
    "semicolons": (f"{HEAD}\n{GOOD}\n".replace(",", ";"), "separate the columns of the file with"),
    "category": (
        f"{HEAD}\n30,Paris,low,1,1\n",
        "holds “Paris” in row 0 .* categories are Oslo, Rome",
    ),
    "rank": (
        f"{HEAD}\n{GOOD}\n30,Oslo,huge,1,1\n",
        "“huge” in row 1 .* low, medium, high, top: corr",
    ),
    "text": (
        f"{HEAD}\nold,Oslo,low,1,1\n",
        "“age” holds “old” .* a finite number, or none: correct",
    ),
    "missing": (
        f"{HEAD}\n30,Oslo,low,,1\n",
        "“debt” is missing in row 0 .* has not learned what a",
    ),
    "several": (
        f"{HEAD}\n1,A,low,1,1\n1,B,low,1,1\n",
        "and 2 rows hold what training never saw; its",
    ),
    "cells": (f"{HEAD}\n{GOOD}\n1,2\n", "row 1 of “t.csv” .* has 2 cells; the first line names 5"),
    "quote": (
        f'{HEAD}\n"30,Oslo\n',
        "a quote in “t.csv” is never closed; texts end with the quote",
    ),
    "empty": ("", "“t.csv” is empty; a table has a line of names and lines of values: choose"),
    "no rows": (f"{HEAD}\n", "names but no rows; there must be rows to score: choose another"),
    "not text": (
        b"\xff\xfe\x00",
        "is not text in UTF-8; a table is a CSV file, text in UTF-8 with",
    ),
    "Parquet": (
        b"PAR1\x15\x04",
        "is a Parquet file; a table is a CSV file, .*: convert it, or use",
    ),
}
MODELS: dict[str, tuple[Any, str]] = {
    "text": (
        lambda _: b"income,debt\n1,2\n",
        "first bytes are no length; this page opens .isotone",
    ),
    "empty": (
        lambda _: b"",
        "was cut off; every byte must be as isotone wrote it: copy the file again",
    ),
    "cut off": (lambda raw: raw[:-9], "are there; every byte must be as isotone wrote it: copy"),
    "changed": (
        lambda raw: raw[:-1] + b"!",
        "does not match its checksum; .*altered or damaged; every",
    ),
    "of others": (lambda _: b"\x02" + bytes(7) + b"{}", "no isotone metadata; .*: save one with"),
}


def told(answer: dict[str, Any]) -> str:
    assert answer["kind"] == "Problem"
    return f"{answer['given']}; {answer['must']}: {answer['advice']}"


@pytest.mark.parametrize("name", TABLES)
def test_a_wrong_table_is_refused(name: str, tmp_path: Path) -> None:
    content, message = TABLES[name]
    mixed(1, (1, 1, -1, 1)).save(path := tmp_path / "m.isotone")
    raw = content if isinstance(content, bytes) else content.encode()
    (file := tmp_path / "t.csv").write_bytes(raw)
    questions = [playgrounds.model(path), playgrounds.table(file), {"kind": "Report"}]
    if name in ("cells", "quote", "empty", "no rows", "not text", "Parquet"):
        questions.pop()  # refused before a report is asked for
    (answers,) = playgrounds.ask([questions])
    with pytest.raises(ValueError, match=message):
        raise ValueError(told(answers[-1]))


@pytest.mark.parametrize("name", MODELS)
def test_a_wrong_model_is_refused(name: str, tmp_path: Path) -> None:
    change, message = MODELS[name]
    small().save(path := tmp_path / "m.isotone")
    path.write_bytes(change(path.read_bytes()))
    ((answer,),) = playgrounds.ask([[playgrounds.model(path)]])
    with pytest.raises(ValueError, match=message):
        raise ValueError(told(answer))


def test_a_target_that_is_none_is_refused(tmp_path: Path) -> None:
    mixed(3, outputs="logits").save(path := tmp_path / "m.isotone")
    people().to_csv(file := tmp_path / "t.csv", index=False)
    asked = {"kind": "Report", "target": "y"}
    (answers,) = playgrounds.ask([[playgrounds.model(path), playgrounds.table(file), asked]])
    assert "in row 0 (data rows, counted from 0); the model knows the classes 0, 1, 2" in told(
        answers[-1]
    )
    assert "choose another target column, or none" in told(answers[-1])


def test_targets_are_columns_that_hold_what_is_predicted(tmp_path: Path) -> None:
    mixed(3, outputs="logits").save(path := tmp_path / "m.isotone")
    table = people().assign(text="2", truth="true", none="")
    table.to_csv(file := tmp_path / "t.csv", index=False)
    questions = [playgrounds.model(path), playgrounds.table(file), {"kind": "Report"}]
    ((_, _, shown),) = playgrounds.ask([questions])
    assert shown["targets"] == ["class", "text", "truth"]


def test_modules_that_import_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mjs").write_text('import { b } from "./b.mjs";\nexport const a = 1;\n')
    (tmp_path / "b.mjs").write_text('import { a } from "./a.mjs";\nexport const b = 1;\n')
    with pytest.raises(ValueError, match=r"a\.mjs imports itself by way of b\.mjs"):
        bundle.modules(tmp_path / "a.mjs")


def test_all_that_the_worker_needs_is_joined() -> None:
    names = [path.name for path in bundle.modules(bundle.ENTRY)]
    assert names[-1] == "worker.mjs"
    assert {"rational.mjs", "verdict.mjs", "modelfile.mjs"} <= set(names)
    assert "command.mjs" not in names  # which needs Node
    folder = bundle.ENTRY.parent
    assert {path.name for path in folder.rglob("*.mjs")} <= set(names)
    assert "\nimport " not in bundle.program()
    assert "\nexport " not in bundle.program()


def test_columns_may_have_any_order_and_company(tmp_path: Path) -> None:
    frozen = mixed(1, (1, 1, -1, 1))
    frozen.save(path := tmp_path / "m.isotone")
    table = people()[["y", "income", "size", "debt", "class", "city", "age"]]
    table.to_csv(file := tmp_path / "t.csv", index=False)
    questions = [playgrounds.model(path), playgrounds.table(file), {"kind": "Report"}]
    ((_, _, shown),) = playgrounds.ask([questions])
    assert shown["scores"][0] == frozen.score(pd.read_csv(file, dtype=str)).tolist()


def test_a_model_that_would_make_the_page_slow_is_judged_but_not_shown(tmp_path: Path) -> None:
    wide = np.full((1000, 1), 2.0**-11)
    steps = (
        Dense(wide, np.zeros(1000)),
        Dense(np.full((1000, 1000), 2.0**-11), np.zeros(1000)),
        Dense(wide.T, np.zeros(1)),
    )
    replace(by_hand(1.0), steps=steps).save(path := tmp_path / "m.isotone")
    ((opened, shown),) = playgrounds.ask([[playgrounds.model(path), {"kind": "Report"}]])
    assert opened["verdict"] == "HOLDS"
    assert "“m.isotone” has 1,004,001 parameters; this page shows reports of models with" in told(
        shown
    )


@pytest.mark.parametrize("first", [0, 12, 24])
def test_models_of_every_kind_open_and_score(first: int, tmp_path: Path) -> None:
    """Certified or not, on the edge, with numbers that overflow: with the bits of the engine."""
    rng, questions, expected = np.random.default_rng(first), [], []
    for seed in range(first, first + 12):
        frozen = draw_model(seed + 5000)
        frozen.save(path := tmp_path / f"{seed}.isotone")
        X = rng.normal(size=(25, len(frozen.inputs.columns))) * 10.0 ** rng.uniform(-2, 3)
        table = pd.DataFrame(X, columns=list(frozen.inputs.names))
        table = table if frozen.inputs.is_plain else people(40)
        table.to_csv(file := tmp_path / f"{seed}.csv", index=False)
        texts = pd.read_csv(file, dtype=str, keep_default_na=False)
        compute = frozen.score if frozen.precision == "float64" else partial(score, frozen)
        expected.append(compute(texts).reshape(len(table), -1))
        questions.append([playgrounds.model(path), playgrounds.table(file), {"kind": "Report"}])
    for (_, _, shown), scores in zip(playgrounds.ask(questions), expected, strict=True):
        assert np.array_equal(np.array(shown["scores"], float).T, scores)
