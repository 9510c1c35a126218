"""Further questions of the trigger study: what they measure is what they say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import isotone
from studies.trigger import __main__ as everything
from studies.trigger import detectors, seeds, smoothness, study
from studies.trigger.calibration import ERRORS, certified_flips, measured_flips
from studies.trigger.candidates import KINDS
from studies.trigger.models import Effort, Lipschitz, train_many
from studies.trigger.parameters import Floats, Parameters
from studies.trigger.resampling import Sampled
from studies.trigger.tables import FOUR, Tables

SHORT = Effort(epochs=2, batch_size=128, trees=5)
GHOST = KINDS.index("ghost")
FEATURE = smoothness.FEATURES[0]


@pytest.fixture(scope="module")
def tables() -> Tables:
    return Tables.load(study.COMMITTED)


@pytest.fixture(scope="module")
def models(tables: Tables) -> list[Lipschitz]:
    X, y, _ = tables.training()
    return train_many(X, y, FOUR, SHORT, [(0, 0.5), (1, 2.0), (2, 2.0)])


def test_an_undrawn_efficiency_is_that_of_the_study(
    tables: Tables, models: list[Lipschitz]
) -> None:
    sampled, model = Sampled(tables), models[1]
    best = (
        sampled.events.best(model.score(sampled.background.X)),
        sampled.seen.best(model.score(sampled.signal.X)),
    )
    beauty, charm = sampled.efficiency(*best, sampled.as_it_is())
    channels = study.judge(model, tables).channels
    is_beauty = channels.at < 20_000_000
    assert beauty == pytest.approx(channels.value[is_beauty].mean(), abs=0.01)
    assert charm == pytest.approx(channels.value[~is_beauty].mean(), abs=0.02)
    rng = np.random.default_rng(0)
    drawn = np.array([sampled.efficiency(*best, sampled.draw(rng)) for _ in range(40)])
    assert np.abs(drawn.mean(axis=0) - [beauty, charm]).max() < drawn.std(axis=0).max()


def test_equal_models_have_no_spread_but_the_sample_has(
    tables: Tables, models: list[Lipschitz]
) -> None:
    plan = seeds.Plan(n_draws=8, n_drawn=3)
    _, (beauty, charm) = seeds.measure([models[1]] * 3, Sampled(tables), plan)
    assert beauty.observed == beauty.noise == beauty.seeds == 0.0
    assert beauty.threshold > 0.0
    assert charm.sample > 0.002


def test_measured_flips_stay_below_the_certified(tables: Tables, models: list[Lipschitz]) -> None:
    rows = tables.signal.validation.X[:3000]
    threshold = float(np.median(models[0].score(rows)))
    for shift in ERRORS.values():
        for model in models[:2]:
            certificate = isotone.certify(model.frozen)
            measured = measured_flips(model, threshold, rows, shift)
            certified = certified_flips(certificate, threshold, rows, shift)
            assert 0.0 < certified <= 1.0
            assert measured <= certified


def test_calibration_errors_vanish_and_are_bounded_at_the_ends(tables: Tables) -> None:
    rows = tables.signal.validation.X[:1000]
    for shift in ERRORS.values():
        assert (shift(rows, 0.0) == rows).all()
        low, high = shift(rows, -1.0), shift(rows, 1.0)
        for u in (-0.6, 0.3):
            moved = shift(rows, u)
            assert (moved >= np.minimum(low, high) - 1e-12).all()
            assert (moved <= np.maximum(low, high) + 1e-12).all()


class Step:
    """Passes above 3 GeV."""

    inputs = FOUR

    def score(self, X: Floats) -> Floats:
        return np.asarray((X[:, 1] > 3.0).astype(float))


def test_a_step_is_the_largest_change_there_can_be(models: list[Lipschitz]) -> None:
    X = np.random.default_rng(0).uniform(1.0, 8.0, (300, 4))
    curve = smoothness.efficiency(Step(), 0.5, X, FEATURE)
    assert np.abs(np.diff(curve)).max() == 1.0
    line = smoothness.boundary(Step(), 0.5, np.array([1.0, 2.0]), np.linspace(1, 5, 401))
    assert line == pytest.approx([3.01, 3.01])
    ours = smoothness.efficiency(models[1], float(np.median(models[1].score(X))), X, FEATURE)
    assert (np.diff(ours) >= 0).all()
    assert np.diff(ours).max() < 0.2


def test_only_what_is_worse_differs_between_detectors() -> None:
    default = Parameters()
    for factors in detectors.DETECTORS.values():
        worse = detectors.changed(factors)
        for name, value in vars(default).items():
            assert getattr(worse, name) == value * factors.get(name, 1.0)


def test_all_of_the_study_in_a_minute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    extent = everything.Extent(
        SHORT, seeds.Plan(n_seeds=4, epochs=2, every=2, n_draws=4, n_drawn=3), detectors.FEW
    )
    numbers = everything.run(study.COMMITTED, tmp_path, extent)
    assert json.loads((tmp_path / "numbers.json").read_text()) == json.loads(json.dumps(numbers))
    for name in ("scan", "seeds", "smoothness", "speed", "wrong_simulation", "fig4_heatmaps"):
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    for one in numbers["scan"]["members"]:
        assert one["holds"]
        assert all(one["measured"][error] <= one["certified"][error] for error in ERRORS)
    assert "candidates a second" in capsys.readouterr().out
    made = (tmp_path / "detectors" / "collisions-0.parquet").stat().st_mtime_ns
    seen = detectors.responses(tmp_path / "detectors", detectors.FEW)
    assert (tmp_path / "detectors" / "collisions-0.parquet").stat().st_mtime_ns == made
    ghosts = [int((seen[name].collisions.kind == GHOST).sum()) for name in seen]
    assert ghosts[2] > ghosts[0]
