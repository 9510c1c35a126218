"""The trigger study: thresholds by rate, efficiencies, and models that are what they say."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from isotone.nn.layers import LipschitzLinear
from studies.trigger.analysis import study
from studies.trigger.analysis.efficiency import by_channel, by_proper_time, passing
from studies.trigger.analysis.figures import Changes
from studies.trigger.analysis.models import Effort, train_free, train_lipschitz, train_trees
from studies.trigger.analysis.tables import FOUR, TWO, Candidates, Hadrons, Tables, is_validation
from studies.trigger.analysis.working_point import choose, n_validation
from studies.trigger.questions import tail
from studies.trigger.questions.dependence import thin
from studies.trigger.simulation.candidates import KINDS
from studies.trigger.simulation.checks import check
from studies.trigger.simulation.parameters import SIZES, Parameters
from studies.trigger.simulation.storage import provenance

SHORT = Effort(epochs=1, batch_size=1024, trees=5)


@pytest.fixture(scope="module")
def tables() -> Tables:
    return Tables.load(study.COMMITTED)


def test_training_rows_are_balanced_and_never_judged(tables: Tables) -> None:
    X, y, group = tables.training()
    assert len(X) == len(y) == len(group)
    assert 0.6 < y.mean() / 0.5 <= 1.0
    assert not is_validation(group[y == 0]).any()
    assert not is_validation(-1 - group[y == 1]).any()
    signal = tables.signal.training
    rows = {tuple(row) for row in signal.X}
    assert all(tuple(row) in rows for row in X[y == 1][:50])


def test_the_working_point_is_the_loosest_below_the_rate(tables: Tables) -> None:
    candidates = tables.collisions.validation
    scores = candidates.X[:, 3]
    point = choose(scores, tables)
    n = n_validation(tables.about) * tables.about["size"]["passes"]

    def rate(threshold: float) -> float:
        passed = len(np.unique(candidates.event[scores >= threshold]))
        return 30e6 * (1 - math.exp(-5.24 * passed / n))

    assert point.rate == pytest.approx(rate(point.threshold))
    assert point.rate <= 660e3
    looser = scores[scores < point.threshold].max()
    assert rate(looser) > 660e3 or rate(looser) == point.rate
    collisions = len(np.unique(candidates.collision[scores >= point.threshold]))
    assert (
        1 / math.sqrt(2 * collisions) < point.rate_error / point.rate < 2 / math.sqrt(collisions)
    )


def test_collisions_for_validation_are_counted() -> None:
    for n in (1, 4, 5, 8):
        about = {"size": {"collisions": n}}
        assert n_validation(about) == is_validation(np.arange(n)).sum()


def test_a_hadron_passes_once_if_any_candidate_does() -> None:
    event = np.array([0, 0, 2])
    zeros = np.zeros(3, np.int64)
    candidates = Candidates(np.zeros((3, 4)), event, zeros, zeros, zeros, np.ones(3), zeros)
    channel = np.array([11, 11, 22, 22]) * 1_000_000
    hadrons = Hadrons(
        np.arange(4),
        np.zeros(4, np.int64),
        channel,
        np.array([0.6, 0.1, 0.6, 3.0]),
        np.array([2, 0, 1, 0]),
    )
    passed = passing(hadrons, candidates, np.array([0.1, 0.9, 0.5]), 0.9)
    assert passed.tolist() == [True, False, False, False]
    channels = by_channel(hadrons, passed)
    assert channels.value.tolist() == [1.0, 0.0]
    assert (channels.error > 0).all()
    edges = np.array([0.5, 1.0, 4.0])
    assert by_proper_time(hadrons, passed, 2, edges).value[0] == 1.0
    charm = by_proper_time(hadrons, passed, 1, edges).value
    assert charm[0] == 0.0
    assert np.isnan(charm[1])


@pytest.mark.parametrize("inputs", [TWO, FOUR])
def test_constrained_models_are_monotone_and_the_free_one_is_not(
    tables: Tables, inputs: tuple[int, ...]
) -> None:
    X, y, group = (values[::7] for values in tables.training())
    rng = np.random.default_rng(0)
    rows = X[rng.integers(len(X), size=3000)]
    up = rows + rng.exponential(1.0, rows.shape) * np.array([1, 1, 0, 1])
    for model in (
        train_lipschitz(X, y, inputs, SHORT),
        train_trees(X, y, group, inputs, SHORT),
    ):
        assert model.inputs == inputs
        assert (model.score(up) >= model.score(rows)).all()
    far = rows + 30 * rng.exponential(1.0, rows.shape) * np.array([1, 1, 0, 1])
    free = train_free(X, y, inputs, SHORT)
    layers = [layer for layer in free.network.modules() if isinstance(layer, LipschitzLinear)]
    assert len(layers) == 3
    assert all(torch.equal(layer.normalized(), layer.weight) for layer in layers)
    loose = train_trees(X, y, group, inputs, SHORT, monotone=False)
    assert (free.score(far) < free.score(rows)).any() or (
        loose.score(far) < loose.score(rows)
    ).any()


@pytest.mark.slow
def test_a_quick_study_draws_all_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = study.run(study.COMMITTED, tmp_path, SHORT)
    names = ["fig4_heatmaps"] + [
        f"fig{f}_{n}" for n in (2, 4) for f in ("5_lifetime", "6_channels")
    ]
    for name in names:
        assert (tmp_path / f"{name}.svg").stat().st_size > 10_000
        assert (tmp_path / f"{name}.pdf").exists()
    stored = json.loads((tmp_path / "numbers.json").read_text())
    assert (
        stored["4 inputs"][study.OURS]["threshold"] == numbers["4 inputs"][study.OURS]["threshold"]
    )
    assert len(stored["2 inputs"][study.FREE]["channels"]) == 41
    assert capsys.readouterr().out.count("kHz") == 8


def test_a_change_is_relative_to_what_passed_before() -> None:
    before, after = np.array([0.5, 0.2, 0.0]), np.array([0.4, 0.25, 0.1])
    changes = Changes(["a", "b", "c"], before, {"other": before, "ours": after})
    assert changes.absolute("ours") == pytest.approx([-0.1, 0.05, 0.1])
    assert changes.relative("ours") == pytest.approx([-0.2, 0.25, np.nan], nan_ok=True)
    assert changes.in_order().names == ["a", "b", "c"]
    assert changes[np.array([False, True, True])].names == ["b", "c"]


def test_a_study_without_the_effect_complains() -> None:
    fine = {study.FREE: [0.4, 0.0, 0.0], study.OURS: [1.01, 0.0, -0.02]}
    brief = {"seed": 1, "2 inputs": fine, "4 inputs": fine}
    assert study.complaints([brief]) == []
    for name, late in ((study.FREE, 0.85), (study.OURS, 0.94), (study.OURS, math.nan)):
        (said,) = study.complaints([brief | {"4 inputs": fine | {name: [late, 0.0, 0.0]}}])
        assert said.startswith("seed 1, 4 inputs: beauty at 15-25 ps over its plateau is ")


def test_the_library_of_a_sample_has_the_share_of_the_sample() -> None:
    rng = np.random.default_rng(0)
    pt = rng.uniform(2.0, 60.0, 4000)
    candidates = np.repeat(pt, rng.integers(0, 3, len(pt)))
    sum_pt = candidates * rng.random(len(candidates))
    acceptance = tail.Acceptance.of(pt, candidates, sum_pt)
    share, error = acceptance.share(pt)
    assert share == pytest.approx((sum_pt > tail.ABOVE).mean())
    assert 0 < error < 0.05
    assert acceptance.share(pt[pt < 18])[0] == 0.0


def test_thinning_takes_ghosts_and_material_alone(tables: Tables) -> None:
    ghost, material = KINDS.index("ghost"), KINDS.index("material")
    before = np.bincount(tables.collisions.kind, minlength=6)
    none = np.bincount(thin(tables, 0.0, 1.0).collisions.kind, minlength=6)
    half = np.bincount(thin(tables, 1.0, 0.5).collisions.kind, minlength=6)
    assert none[ghost] == 0
    assert np.delete(none, ghost).tolist() == np.delete(before, ghost).tolist()
    assert half[material] == pytest.approx(before[material] / 2, rel=0.1)
    assert np.delete(half, material).tolist() == np.delete(before, material).tolist()


def test_the_committed_sample_passes_all_checks() -> None:
    failed = [str(result) for result in check(study.COMMITTED) if not result.passed]
    assert not failed
    said = provenance(study.COMMITTED / "collisions.parquet")
    assert said["parameters"] == asdict(Parameters())
    assert said["size"] == asdict(SIZES["small"])
    assert sum(path.stat().st_size for path in study.COMMITTED.iterdir()) < 5_000_000
