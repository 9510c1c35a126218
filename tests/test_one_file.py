"""One file holds the whole way from the raw row to the score, and needs nobody who trained it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotone
from isotone import FrozenNetwork
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Number, Ordered

RNG = np.random.default_rng(0)
N = 400
GRADE = pd.CategoricalDtype(["low", "medium", "high"], ordered=True)
TABLE = pd.DataFrame(
    {
        "income": np.where(RNG.random(N) < 0.2, np.nan, RNG.exponential(30.0, N)),
        "city": RNG.choice(["Oslo", "Rome", None], N),
        "grade": pd.Categorical(RNG.choice(GRADE.categories, N), dtype=GRADE),
        "member": RNG.random(N) < 0.5,
        "age": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(40.0, 9.0, N)),
    }
)
PAID = TABLE["income"].fillna(5.0) + 10.0 * TABLE["grade"].cat.codes + RNG.normal(size=N) > 30.0
CST = {"income": 1, "grade": 1, "missing(income)": -1, "missing(city)": -1, "missing(age)": -1}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    classifier = isotone.MonotonicClassifier(
        CST, missing="indicator", lipschitz=1.0, max_iter=3, n_members=2, random_state=0
    )
    path: Path = tmp_path_factory.mktemp("model") / "model.isotone"
    classifier.fit(TABLE, PAID).save(path)
    TABLE.to_parquet(path.with_suffix(".parquet"))
    return path


def test_the_file_alone_scores_exports_and_certifies(model: Path) -> None:
    code = f"""
        import sys
        sys.modules["torch"] = sys.modules["sklearn"] = None
        import isotone, pandas
        from isotone import export
        frozen = isotone.load({str(model)!r})
        table = pandas.read_parquet({str(model.with_suffix(".parquet"))!r})
        for target in ("sql", "onnx", "json"):
            assert export.write(frozen, target, {str(model)!r} + "." + target).to_the_last_bit
        certificate = isotone.certify(frozen)
        assert certificate.holds and len(certificate.missing) == 3
        assert all(verdict.computed for verdict in certificate.missing)
        print(frozen.score(table[["age", "member", "grade", "city", "income"]]).tobytes().hex())
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == isotone.load(model).score(TABLE).tobytes().hex()


def changed(column: Any) -> list[Any]:
    """The column with another fill, another category, or another order of them."""
    if isinstance(column, Number):
        return [] if column.fill is None else [replace(column, fill=column.fill + 1.0)]
    turned = replace(column, categories=column.categories[::-1])
    first = replace(column, categories=("elsewhere", *column.categories[1:]))
    return [turned, first]


def test_whatever_decides_a_score_is_in_the_fingerprint(model: Path) -> None:
    frozen = isotone.load(model)
    inputs, prints = frozen.inputs, {frozen.fingerprint}
    kinds = set()
    for i, column in enumerate(inputs.columns):
        for other in changed(column):
            columns = (*inputs.columns[:i], other, *inputs.columns[i + 1 :])
            made = Inputs(columns, inputs.copies)
            prints.add(replace(frozen, inputs=made, features=made.features).fingerprint)
            kinds.add(type(column))
    knot = frozen.scaling.center.copy()
    knot[0] = np.nextafter(knot[0], np.inf)
    prints.add(replace(frozen, scaling=replace(frozen.scaling, center=knot)).fingerprint)
    assert kinds == {Number, Category, Ordered}
    assert len(inputs.copies) > len(inputs.encoded)  # there are knots
    assert len(prints) == 1 + 2 + 2 + 2 + 1


def test_a_missing_value_is_never_better_than_any(model: Path) -> None:
    frozen: FrozenNetwork = isotone.load(model)
    values: dict[str, list[Any]] = {
        "income": [-1e308, 0.0, 29.9, 1e308],
        "age": [-1e308, 0.0, 39.5, 40.5, 1e308],
        "city": ["Oslo", "Rome"],
    }
    for name, present in values.items():
        missing = frozen.score(TABLE.assign(**{name: None}).astype({name: TABLE[name].dtype}))
        for value in present:
            assert np.all(missing <= frozen.score(TABLE.assign(**{name: value})))
