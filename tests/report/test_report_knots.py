"""Reports of models with knots: the page looks up what the engine does, along raw columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from browser import opened
from isotone import FrozenNetwork, Knots, MonotonicNetwork, certify, freeze, report
from isotone.frozen import reference
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Number
from isotone.report import verdict
from isotone.report.controls import controls_of, start_row
from isotone.report.numbers import describe_network
from isotone.report.outcomes import Outcomes
from isotone.typing import Floats
from networks import KNOTS, copied, seams
from reports import content, rows

N_ROWS = 2000
SCORE_BY = """([network, rows]) => {
    const made = new isotone.Network(network);
    return rows.map(row => made.score(row));
}"""
# how far a curve leaves its envelope at the worst, in every view
ESCAPE = """() => {
    const { app } = isotone;
    return Math.max(...app.views.flatMap((view, k) => {
        app.setView(k);
        return isotone.responses(app, app.curved, 50).flatMap(({ control, samples }) => {
            const i = control.feature;
            const here = app.network.position(i, app.row[i]);
            return samples.map(({ value, scores }) => {
                const step = app.network.position(i, value) - here;
                const parts = [app.network, app.judge, app.scores, view, i, step];
                const [low, high] = isotone.envelope(...parts);
                return Math.max(low - app.show(scores), app.show(scores) - high);
            });
        });
    }));
}"""
SNAP = 1e-4  # slopes are of exact scores, times the 2⁻²⁰ of the grid


def raw_rows(n: int) -> Floats:
    """Every seam in every column of `copied`, one at a time, mixed, and with what lies between."""
    values, rng = seams(), np.random.default_rng(0)
    each = np.tile(np.eye(4, dtype=bool), (len(values), 1))
    single = np.where(each, np.repeat(values, 4)[:, None], 0.5)
    shape = (n - len(single), 4)
    between = np.where(rng.random(shape) < 0.5, rng.choice(values, shape), rng.normal(size=shape))
    return np.concatenate([single, between])


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("knots") / "report.html"
    report.write(copied(), path)
    with opened(browser, path) as found:
        yield found


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("grid", [None, 2.0**-20])
@pytest.mark.parametrize(("n_outputs", "n_members"), [(1, 1), (3, 1), (1, 4), (2, 2)])
def test_the_page_looks_up_the_bits_of_the_reference(
    n_outputs: int, n_members: int, grid: float | None, precision: Any, page: Any
) -> None:
    """Those of the engine in float64; in float32 both are within E of the exact score."""
    frozen = copied(n_outputs, n_members, grid=grid, precision=precision)
    X, certificate = raw_rows(N_ROWS), certify(frozen)
    scored = page.run(SCORE_BY, [described(frozen), X.tolist()])
    found = np.array(scored).reshape(N_ROWS, n_outputs)
    assert np.array_equal(found, reference.score(frozen, X).reshape(found.shape))
    apart = np.abs(found - frozen.score(X).reshape(found.shape))
    allowed = 0.0 if precision == "float64" else 2 * np.array(certificate.rounding_errors)
    assert np.all(apart <= allowed)


def described(frozen: FrozenNetwork) -> dict[str, Any]:
    """What the scripts read; JSON has no infinity."""
    network = describe_network(certify(frozen))
    ends = network["ends"]
    assert ends is not None
    finite = [[end if np.isfinite(end) else None for end in each] for each in ends]
    return network | {"ends": finite}


def test_copies_that_never_reach_their_end_are_looked_up(page: Any) -> None:
    """Float32 rounds the end of the last tile but one up; a constant column never moves."""
    knots = Knots.at([[5.0], [0.0, 1.0, 2.0]])
    torch.manual_seed(0)
    network = MonotonicNetwork([knots.n_copies, 4, 1], monotonic_cst=[1] * knots.n_copies)
    frozen = freeze(network, knots=knots)
    X = np.array([[a, b] for a in (-1e308, 5.0, 1e308) for b in (-1.0, 0.5, 1.0, 1.5, 3.0)])
    found = page.run(SCORE_BY, [described(frozen), X.tolist()])
    assert np.array_equal(np.ravel(found), frozen.score(X))


@pytest.mark.slow
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_curves_stay_in_their_envelopes_across_the_range_of_the_knots(
    n_outputs: int, browser: Any, tmp_path: Path
) -> None:
    frozen = copied(n_outputs, 2, outputs="logits", clip=8.0)
    report.write(frozen, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as found:
        for row in raw_rows(N_ROWS)[::97].tolist():
            found.run("row => isotone.app.setRow(row)", row)
            assert found.run(ESCAPE) <= SNAP
        drawn = found.run("""() => isotone.responses(isotone.app, isotone.app.curved, 24).map(
            ({ samples }) => samples.map(({ value }) => value))""")
        found.settle()
        found.assert_clean()
    for values, knots in zip(drawn[::3], KNOTS[::2], strict=True):
        assert np.isclose(np.array(values)[:, None], knots, atol=1e-12).any(axis=0).all()
        assert min(values) < knots[0] < knots[-1] < max(values)


def trained() -> FrozenNetwork:
    """Four columns with 64 tiles each, one of which may be missing, and a category."""
    inputs = Inputs(
        (
            Number("income", fill=1.0),
            *(Number(name) for name in ("debt", "age", "rate")),
            Category("city", ("Oslo", "Rome")),
        )
    )
    X = np.random.default_rng(0).normal(size=(3000, 7))
    X[:, 4:] = X[:, 4:] > 0
    knots, networks = Knots.fit(X, 64), []
    for seed in range(4):
        torch.manual_seed(seed)
        directions = knots.spread([1, -1, 0, 1, 0, 0, 0]).tolist()
        layers = [knots.n_copies, 32, 32, 1]
        networks.append(MonotonicNetwork(layers, monotonic_cst=directions, outputs="logits"))
    return freeze(networks, knots=knots, inputs=inputs)


def people(n: int = 400) -> pd.DataFrame:
    frame = rows(n).assign(rate=np.random.default_rng(1).normal(size=n))
    return frame.assign(income=frame["income"].where(frame.index % 5 > 0))


@pytest.mark.slow
def test_a_page_of_64_knots_per_column_opens_moves_and_is_small(
    browser: Any, tmp_path: Path
) -> None:
    frozen, frame = trained(), people()
    frame.to_csv(tmp_path / "people.csv", index=False)
    path = tmp_path / "report.html"
    size = report.write(frozen, path, tmp_path / "people.csv", target="paid")
    assert frozen.n_features == 4 * 64 + 3
    assert size < 1_300_000
    with opened(browser, path) as found:
        assert found.run("() => isotone.app.scores.length") == 1
        for k, key in enumerate(["End", "Home", "ArrowRight", "PageUp"]):
            found.page.focus(f"#slider-{k}")
            found.page.keyboard.press(key)
            found.settle()
            row = found.run("() => isotone.app.row")
            score = frozen.score_features(np.array([row]))
            assert found.run("() => isotone.app.scores") == score.tolist()
        found.page.check("#missing-0")
        found.page.select_option("#value-4", label="Rome")
        found.page.locator("#curves svg").nth(1).click(position={"x": 100, "y": 60})
        found.page.locator("#heat svg.chart").click(position={"x": 200, "y": 100})
        found.settle()
        row = found.run("() => isotone.app.row")
        assert row[4:] == [0.0, 1.0, 1.0]
        assert found.run("() => isotone.app.scores") == [frozen.score_features(np.array([row]))[0]]
        directions = found.page.locator(".direction").all_inner_texts()
        assert directions == ["↗ only rises", "↘ only falls", "↕ free", "↗ only rises", "↕ free"]
        found.assert_clean()


def test_sliders_cover_the_knots_unless_these_are_far_off() -> None:
    frozen = copied(clip=2.0)
    controls = controls_of(frozen, None)
    for control, knots in zip(controls[::3], KNOTS[::2], strict=True):
        assert (control["low"], control["high"]) == pytest.approx((knots[0], knots[-1]))
        assert control["axis"][0] < knots[0] < knots[-1] < control["axis"][1]
    assert (controls[1]["low"], controls[1]["high"]) == pytest.approx((-3.5, 2.5))
    assert start_row(frozen, None) == pytest.approx(
        [0.85, -0.5, np.exp(0.5) - 0.25, 0.0], abs=1e-4
    )
    constant = freeze(MonotonicNetwork([1, 2, 1], monotonic_cst=[1]), knots=Knots.at([[5.0]]))
    assert controls_of(constant, None)[0]["axis"] == [4.0, 6.0]


def test_what_is_said_is_about_columns_not_copies(tmp_path: Path) -> None:
    frozen = trained()
    report.write(frozen, tmp_path / "r.html")
    data = content(tmp_path / "r.html")
    assert data["network"]["features"] == list(frozen.inputs.encoded)
    assert data["network"]["directions"] == [[1, -1, 0, 1, 0, 0, 0]]
    assert [len(slopes) for slopes in data["network"]["slopes"]] == [7]
    text = verdict.to_html(certify(frozen), Outcomes.of(frozen, 0.0, None))
    assert "never falls when one of <b>income</b>, <b>rate</b> rises" in text
    assert "income[0]" not in text
    assert "That a feature with knots still counts beyond the outermost of them" in text
    assert "That a feature without inner knots still counts beyond 1 scaled unit from" in text


def test_a_direction_is_proved_if_it_is_for_all_copies() -> None:
    frozen = trained()
    assert describe_network(certify(frozen))["declared"] == [[1, -1, 0, 1, 0, 0, 0]]
    residual = frozen.residual.copy()
    residual[0, 3] *= -1  # one copy of income falls
    broken = describe_network(certify(replace(frozen, residual=residual)))
    assert (broken["declared"][0][0], broken["directions"][0][0]) == (1, 0)
    directions = frozen.monotonic_cst.copy()
    directions[0, 64 + 5] = 0  # one copy of debt is free
    partly = describe_network(certify(replace(frozen, monotonic_cst=directions)))
    assert partly["declared"] == partly["directions"] == [[1, 0, 0, 1, 0, 0, 0]]


RADII = """rows => rows.map(row => {
    const { app } = isotone;
    const { scaled, down, up } = app.judge.radius(row, app.network.score(row));
    return [scaled, ...down, ...up].map((x) => (x === Infinity ? "inf" : x));
})"""


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("options", [{}, {"precision": "float32", "grid": None}], ids=str)
def test_radii_of_the_page_are_those_of_the_certificate(
    n_outputs: int, options: dict[str, Any], browser: Any, tmp_path: Path
) -> None:
    frozen = copied(n_outputs, 2, outputs="logits", clip=8.0, **options)
    report.write(frozen, tmp_path / "report.html")
    X = raw_rows(N_ROWS)[::5]
    radius = certify(frozen).radius_of_features(X)
    with opened(browser, tmp_path / "report.html") as found:
        radii = np.array(found.run(RADII, X.tolist()), float)
        found.assert_clean()
    same = frozen.precision == "float64"
    expected = np.column_stack([radius.scaled, radius.down, radius.up])
    assert np.count_nonzero(expected) > len(X)
    assert radii == pytest.approx(expected, rel=1e-9 if same else 1e-3, abs=0 if same else 1e-4)


def test_measured_flips_stay_below_the_bound_with_knots(tmp_path: Path) -> None:
    frozen, frame = trained(), people()
    frame.to_csv(tmp_path / "people.csv", index=False)
    report.write(frozen, tmp_path / "r.html", tmp_path / "people.csv", target="paid")
    robust = content(tmp_path / "r.html")["robustness"]
    assert robust["radii"]["median"] > 0
    assert [curve["feature"] for curve in robust["shifts"]["curves"]] == list(frozen.inputs.names)[
        :4
    ]
    for curve in robust["shifts"]["curves"]:
        assert np.all(np.array(curve["bound"]) >= np.maximum(curve["up"], curve["down"]))
