"""A file's own rows show whether a machine computes what the maker's did."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import isotone
from isotone import FrozenNetwork, selftest
from isotone.cli import app
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Number
from networks import every_step, small


def raw() -> FrozenNetwork:
    """Categories, and numbers that may be missing."""
    inputs = Inputs((Number("age", fill=35.0), Category("city", ("Oslo",))))
    return replace(small(), features=inputs.features, inputs=inputs)


@pytest.mark.parametrize(
    "frozen",
    [small(), every_step(), raw(), isotone.freeze(small(), precision="float32")],
    ids=["float64", "every step", "raw columns", "float32"],
)
def test_a_file_carries_rows_that_have_their_scores(frozen: FrozenNetwork, tmp_path: Path) -> None:
    tested = selftest.carry(frozen)
    assert tested.fingerprint == frozen.fingerprint
    tested.save(tmp_path / "model.isotone")
    found = selftest.check(isotone.load(tmp_path / "model.isotone"))
    assert found.failures == ()
    assert found.n_stored == 16
    assert found.n_drawn > 100
    assert found.instruction_sets == tuple(isotone.Engine.instruction_sets())
    assert selftest.check(frozen).n_stored == 0


def test_a_score_that_differs_by_one_bit_fails() -> None:
    tested = selftest.carry(small())
    stated: dict[str, Any] = tested.provenance["selftest"]
    stated["scores"][3][0] = float(np.nextafter(stated["scores"][3][0], np.inf))
    found = selftest.check(tested)
    assert "1 of 16 stored rows have another score, row 3" in str(found)
    assert len(found.failures) == len(found.instruction_sets)


def test_another_model_with_these_rows_fails() -> None:
    other = replace(small(), provenance=selftest.carry(small()).provenance)
    assert not selftest.check(other).failures
    steeper = replace(other, residual=2.0 * other.residual)
    assert "FAILED" in str(selftest.check(steeper))


@pytest.mark.parametrize(
    "stated",
    [
        7,
        {"rows": []},
        {"rows": [[1.0]], "scores": [[1.0]]},
        {"rows": [["x", 0.0, 0.0]], "scores": [[1.0]]},
        {"rows": [[0.0, 0.0, 0.0]], "scores": []},
        {"rows": [[0.0, 0.0, 0.0]], "scores": [[None]]},
    ],
)
def test_a_malformed_selftest_fails_and_says_so(stated: Any) -> None:
    (failure,) = selftest.check(replace(small(), provenance={"selftest": stated})).failures
    assert "the file's selftest" in failure


def test_the_command_tells_and_ends_with_1_if_a_score_differs(tmp_path: Path) -> None:
    path, tested = tmp_path / "model.isotone", selftest.carry(small())
    tested.save(path)
    done = CliRunner().invoke(app, ["certify", "--selftest", str(path)])
    assert done.exit_code == 0
    assert "16 stored and" in done.output
    tested.provenance["selftest"]["scores"][0][0] += 1.0
    tested.save(path)
    assert CliRunner().invoke(app, ["certify", "--selftest", str(path)]).exit_code == 1
