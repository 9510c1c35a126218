"""The demo runs from the committed sample, and its files agree with each other."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import isotone
from demo import __main__ as demo
from demo import gallery, summary
from isotone.data.table import read_numbers
from studies.trigger.analysis.models import Effort
from studies.trigger.analysis.study import OURS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, summary.Facts]:
    out = tmp_path_factory.mktemp("demo")
    return out, demo.run(out, Effort(epochs=1, batch_size=1024, trees=20))


def test_everything_that_the_summary_names_is_there(made: tuple[Path, summary.Facts]) -> None:
    out, facts = made
    lines = summary.ten_lines(facts, out, 1.0).splitlines()
    assert len(lines) == 10
    named = [word.rstrip("/,") for line in lines for word in line.split() if str(out) in word]
    assert len(named) == 9
    assert all(Path(name).exists() for name in named)
    page = (out / summary.SUMMARY).read_text(encoding="utf-8")
    assert "certificate **holds**" in page
    assert "{" not in page
    assert {path.name for path in (out / summary.CPP).iterdir()} >= {"isotone.hpp", "trigger.hpp"}


def test_the_command_and_the_study_find_the_same(made: tuple[Path, summary.Facts]) -> None:
    out, facts = made
    found, verdict = json.loads((out / summary.WORKING_POINT).read_text()), facts.four[OURS]
    assert found["threshold"] == verdict.point.threshold
    assert found["rate"] == verdict.point.rate
    assert found["rate_error"] == verdict.point.rate_error
    for name, curve in (("beauty", verdict.beauty), ("charm", verdict.charm)):
        assert found["curves"][name]["passed"] == curve.n_passed.tolist()
        assert found["curves"][name]["events"] == curve.n.tolist()


def test_scores_are_those_of_the_model(made: tuple[Path, summary.Facts]) -> None:
    out, facts = made
    frozen = isotone.load(out / summary.MODEL)
    sample = demo.SAMPLE / "collisions.parquet"
    scores = pyarrow.parquet.read_table(out / summary.SCORES)["score"].to_numpy()
    assert np.array_equal(scores, frozen.score(read_numbers(sample, frozen.features)))
    assert facts.certificate.fingerprint == frozen.fingerprint
    assert facts.flips <= facts.flip_bound


def test_the_gallery_shows_a_model_without_promises_that_likes_debt(tmp_path: Path) -> None:
    example = gallery.credit()
    assert isotone.certify(example.frozen).holds
    rows = example.rows.drop(columns=example.target).head(500)
    more = rows.assign(debt=rows["debt"] + 10_000)
    assert np.all(example.frozen.score(more) <= example.frozen.score(rows))
    assert example.against is not None
    assert np.any(example.against.score(more) > example.against.score(rows))
    assert example.write(tmp_path / "credit.html") < 3_000_000
