"""Further questions of the trigger study: what they measure is what they say."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import isotone
from isotone.typing import Floats
from studies.trigger import __main__ as everything
from studies.trigger.analysis import study
from studies.trigger.analysis.models import Effort, Lipschitz, train_many
from studies.trigger.analysis.resampling import Sampled
from studies.trigger.analysis.tables import FOUR, Candidates, Tables
from studies.trigger.pages import effect, page
from studies.trigger.questions import dependence, detectors, seeds, smoothness, wrong
from studies.trigger.questions.calibration import ERRORS, certified_flips, measured_flips
from studies.trigger.simulation import checks
from studies.trigger.simulation.candidates import KINDS
from studies.trigger.simulation.parameters import Parameters

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


def some_signal(event: list[int], channel: int) -> Candidates:
    """Candidates with a Σp_T of 5 GeV."""
    n, zeros = len(event), np.zeros(len(event), np.int64)
    X = np.full((n, 4), 5.0)
    codes = np.full(n, channel)
    return Candidates(X, np.array(event), zeros, codes, zeros, np.ones(n), zeros)


def test_a_change_of_efficiency_counts_hadrons_once() -> None:
    none = some_signal([], 11_000_000)
    hadrons = np.array([11_000_000] * 10 + [21_000_000] * 5)
    old = detectors.Response(none, some_signal([0, 0, 1, 2, 3], 11_000_000), hadrons)
    new = detectors.Response(none, some_signal([3, 3, 4], 11_000_000), hadrons)
    change, error = wrong.difference(Step(), 0.5, new, old, beauty=True)
    assert change == pytest.approx((1 - 3) / 10)  # 4 is gained; 0, 1 and 2 are lost
    each = np.array([-1, -1, -1, 0, 1, 0, 0, 0, 0, 0])
    assert error == pytest.approx(each.std() / np.sqrt(10))
    assert wrong.difference(Step(), 0.5, new, old, beauty=False) == (0.0, 0.0)


def test_a_boundary_that_turns_back_has_a_corner() -> None:
    x = np.linspace(4.0, 8.0, 5)
    found = smoothness.corner(x, np.array([3.0, 2.0, 2.5, 4.0, np.nan]))
    assert found == {"at": 5.0, "least": 2.0, "end": 8.0, "there": np.inf}


def test_a_staircase_has_stairs_and_a_wall_has_none() -> None:
    stairs, down = smoothness.stairs, np.array([4.2, 4.2, 3.7, 3.7, 3.7, 3.1, 3.1])
    assert stairs(down) == pytest.approx([0.5, 0.6])
    assert stairs(np.append([np.nan, np.nan], down)) == pytest.approx([0.5, 0.6])
    wall = np.array([9.3, 4.8, 3.8])
    assert stairs(np.append(wall, 3.8 * 0.9 ** np.arange(1, 9))) == []
    assert stairs(np.append(wall, down[2:])) == pytest.approx([0.6])
    assert stairs(np.append(down, [3.0, 1.0, -3.0])) == pytest.approx([0.5, 0.6])
    between = np.append(down, [0.5, 0.4, 0.4])  # a wall with something flat on both sides
    assert max(stairs(between)) == pytest.approx(2.6)
    assert stairs(np.array([9.0, 7.0, 5.0, 3.0])) == []  # straight
    assert max(stairs(-np.tanh(np.linspace(-3.0, 3.0, 600)))) < 0.02  # spread over many steps
    for short in ([], [np.nan, 3.0], [3.0, 2.0]):
        assert stairs(np.array(short)) == []
    assert doctest.testmod(smoothness).failed == 0


def of_pt(pt: list[float]) -> pa.Table:
    return pa.table({"collision": np.arange(len(pt)), "sum_pt": pt})


def test_a_background_without_a_tail_is_refused() -> None:
    long, short = [35.0] * 40 + [1.0] * 960, [25.0] * 40 + [35.0] * 4 + [1.0] * 956
    assert checks._hard(of_pt(long), of_pt(short)).passed
    assert not checks._hard(of_pt(short), of_pt(long)).passed
    share, error = checks.share_and_error(of_pt(long), "sum_pt", 30.0)
    assert share == 0.04
    assert error == pytest.approx(np.sqrt(0.04 * 0.96 / 1000))


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """All of the study, in short; its numbers, and where the figures are."""
    plan = seeds.Plan(n_seeds=4, epochs=2, n_draws=4, n_drawn=3)
    less = dependence.SETTINGS[-1:]
    extent = everything.Extent(SHORT, (1,), plan, less, (), detectors.FEW)
    out = tmp_path_factory.mktemp("study")
    return everything.run(study.COMMITTED, out, extent), out


@pytest.mark.slow
def test_all_of_the_study_in_a_minute(everywhere: tuple[dict[str, Any], Path]) -> None:
    numbers, out = everywhere
    assert json.loads((out / "numbers.json").read_text()) == json.loads(json.dumps(numbers))
    for name in ("scan", "seeds", "smoothness", "speed", "wrong_simulation", "fig4_heatmaps"):
        assert (out / f"{name}.svg").stat().st_size > 10_000
    for one in numbers["scan"]["members"]:
        assert one["holds"]
        assert all(one["measured"][error] <= one["certified"][error] for error in ERRORS)
    assert [one["seed"] for one in numbers["brief"]] == [0, 1]
    made = (out / "detectors" / "collisions-0.parquet").stat().st_mtime_ns
    seen = detectors.responses(out / "detectors", detectors.FEW)
    assert (out / "detectors" / "collisions-0.parquet").stat().st_mtime_ns == made
    ghosts = [int((seen[name].collisions.kind == GHOST).sum()) for name in seen]
    assert ghosts[2] > ghosts[0]


@pytest.mark.slow
def test_the_page_is_written_from_the_numbers(
    everywhere: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    numbers, out = everywhere
    (tmp_path / "trigger.md").write_text((page.DOCS / "trigger.md").read_text())
    with pytest.raises(ValueError, match=r"is of a sample of 60000 collisions; the page tells"):
        page.write(numbers, out, tmp_path)
    size = numbers["sample"]["size"] | {"collisions": 300_000}
    page.write(numbers | {"sample": {**numbers["sample"], "size": size}}, out, tmp_path)
    text = (tmp_path / "trigger.md").read_text()
    for name, write in page.BLOCKS.items():
        assert f"<!-- begin trigger: {name} -->" in text
        if name != "sample":
            assert write(numbers) in text
    assert (
        f"| 11104054 | B⁰→π⁺π⁻π⁺π⁻ | {numbers['4 inputs'][study.FREE]['channels'][0]:.3f} |"
        in text
    )
    before = (page.DOCS / "trigger.md").read_text()
    assert re.sub(r"(?s)(<!-- begin).*?(<!-- end)", "", text) == re.sub(
        r"(?s)(<!-- begin).*?(<!-- end)", "", before
    )
    assert len(list((tmp_path / "figures").glob("trigger-*.svg"))) == 8
    assert _heads(text) == _heads(before)


def as_in_the_paper() -> dict[str, Any]:
    """Numbers that show all that the paper says."""
    late = {study.FREE: [0.5, 0.0, 0.0], study.TREES: [1.0, 0.0, -0.02]}
    brief = late | {study.OURS: [1.0, 0.01, -0.03]}
    member = {"holds": True, "measured": {"alignment": 0.1}, "certified": {"alignment": 0.2}}
    return {
        "brief": [{"seed": 0, "2 inputs": brief, "4 inputs": brief}],
        "smoothness": {
            "corner": {"at": 5.0, "least": 2.0, "end": 9.0, "there": 4.0},
            study.TREES: {"stairs": [[0.5, 0.2, 0.3], [0.4, 0.1, 0.1]]},
            study.OURS: {"stairs": [[0.02], [0.15, 0.05]]},
        },
        "seeds": {"beauty": {"observed": 0.002}, "charm": {"observed": 0.001}},
        "scan": {"members": [member]},
    }


def test_numbers_as_in_the_paper_reproduce_it() -> None:
    assert effect.verdicts(as_in_the_paper()) == {
        "corner": "reproduced",
        "jagged": "reproduced",
        "lifetimes": "reproduced",
        "cost": "no independent confirmation",
        "seeds": "reproduced",
        "speed": "not comparable",
        "robust": "quantified",
    }


@pytest.mark.parametrize(
    ("claim", "where", "value"),
    [
        ("corner", "smoothness/corner/there", 2.0),
        ("jagged", f"smoothness/{study.OURS}/stairs/1", [0.1, 0.1]),
        ("jagged", f"smoothness/{study.TREES}/stairs/0", []),
        ("lifetimes", f"brief/0/2 inputs/{study.FREE}/0", 0.9),
        ("lifetimes", f"brief/0/4 inputs/{study.OURS}/0", 0.9),
        ("lifetimes", f"brief/0/4 inputs/{study.TREES}/0", np.nan),
        ("cost", f"brief/0/4 inputs/{study.OURS}/2", -0.1),
        ("seeds", "seeds/charm/observed", 0.01),
        ("robust", "scan/members/0/measured/alignment", 0.3),
        ("robust", "scan/members/0/holds", False),
    ],
)
def test_a_claim_that_the_numbers_do_not_show_is_not_reproduced(
    claim: str, where: str, value: float | list[float]
) -> None:
    numbers = json.loads(json.dumps(as_in_the_paper()))
    *path, last = (int(key) if key.isdecimal() else key for key in where.split("/"))
    inner: Any = numbers
    for key in path:
        inner = inner[key]
    inner[last] = value
    expected = effect.verdicts(as_in_the_paper()) | {claim: "not reproduced"}
    assert effect.verdicts(numbers) == expected


def test_a_single_high_stair_is_smooth_in_part() -> None:
    numbers = as_in_the_paper()
    numbers["smoothness"][study.OURS]["stairs"][1] = [1.0, 0.05]
    assert effect.verdicts(numbers)["jagged"] == "in part"


@pytest.mark.slow
def test_the_page_shows_the_verdicts(everywhere: tuple[dict[str, Any], Path]) -> None:
    numbers, _ = everywhere
    shown = [line.split(" | ")[-1].strip(" |") for line in effect.claims(numbers).splitlines()]
    assert shown[2:] == list(effect.verdicts(numbers).values())


def _heads(page: str) -> list[str]:
    """The first lines of the tables that are written from numbers."""
    return re.findall(r"<!-- begin trigger: \w+ -->\n\n(\|.*)\n", page)


def test_more_ghosts_are_another_setting(tables: Tables) -> None:
    amount = detectors.Amount(collisions=60_000, passes=4)
    seen = {"ghosts × 3": detectors.Response(tables.collisions, tables.signal, np.zeros(0))}
    (found,) = dependence.run_more(tables, seen, ["ghosts × 3"], amount, SHORT)
    (same,) = dependence.run(tables, SHORT, [(1.0, 1.0)])
    assert found["ghosts"] == pytest.approx(3 * same["ghosts"])
    assert found["late_to_plateau"] == same["late_to_plateau"]
    assert dependence.row(found).startswith("| 0.045, 0.6 mm, 60,000 collisions | ")
