"""Plots show what the certificate says; notebooks show no markup that a file smuggles in."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib import pyplot
from matplotlib.axes import Axes

from isotone import FrozenNetwork, Knots, MonotonicNetwork, Scaling, certify, freeze, plot
from isotone.frozen.steps import Dense
from networks import by_hand, copied, draw_network, every_step, small
from test_api import run_without_torch

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    with mpl.rc_context({"backend": "agg"}):
        yield
    pyplot.close("all")


def classes() -> FrozenNetwork:
    torch.manual_seed(0)
    network = MonotonicNetwork(
        [2, 8, 3], monotonic_cst=[[1, 0], [0, 0], [0, 0]], lipschitz=2.0, outputs="logits"
    )
    return freeze(network, features=["income", "age"], classes=["good", "fair", "bad"])


def knotted(n_outputs: int = 1) -> FrozenNetwork:
    """Three copies of a free column, two of one that rises, one of one that falls."""
    torch.manual_seed(0)
    knots = Knots.at([[0.0, 1.0, 2.0, 5.0], [-4.0, 0.0, 1.0], [10.0, 30.0]])
    cst = knots.spread([[0, 1, -1], [-1, 0, 1]][:n_outputs])
    network = MonotonicNetwork([6, 8, n_outputs], monotonic_cst=cst.tolist(), lipschitz=1.0)
    return freeze(network, knots=knots, features=["age", "income", "debt"])


def band(ax: Axes) -> tuple[Any, Any, Any]:
    """Abscissas and both edges of the band that `response` draws."""
    vertices = ax.collections[0].get_paths()[0].vertices
    n = (len(vertices) - 3) // 2
    return vertices[1 : n + 1, 0], vertices[1 : n + 1, 1], vertices[-2 : n + 1 : -1, 1]


def steep_networks() -> list[FrozenNetwork]:
    drawn = [freeze(draw_network(seed, max_width=32, max_depth=4).network) for seed in range(12)]
    return [*drawn, small(), small(precision="float32"), every_step(), every_step(3), classes()]


@pytest.mark.parametrize("frozen", steep_networks(), ids=repr)
def test_no_response_leaves_the_band_that_slopes_allow(frozen: FrozenNetwork) -> None:
    axes = pyplot.figure().subplots()
    for feature in range(frozen.n_features):
        for k in range(frozen.n_outputs):
            axes.clear()
            at = frozen.scaling.inverse(RNG.normal(size=(1, frozen.n_features)))[0]
            ax = plot.response(frozen, feature, at=at, output=k, ax=axes)
            x, low, high = band(ax)
            curve, here = ax.lines[0].get_ydata(), ax.lines[1]
            assert np.array_equal(x, ax.lines[0].get_xdata())
            assert np.all(low <= curve)
            assert np.all(curve <= high)
            rows = np.tile(at, (len(x), 1))
            rows[:, feature] = x
            assert np.array_equal(curve, frozen.score(rows).reshape(len(x), -1)[:, k])
            assert here.get_xdata() == at[feature]


@pytest.mark.parametrize("k", range(3))
def test_the_band_holds_for_probabilities_too(k: int) -> None:
    ax = plot.response(classes(), "income", output=k, probability=True)
    _, low, high = band(ax)
    curve = ax.lines[0].get_ydata()
    assert np.all((low >= 0) & (low <= curve) & (curve <= high) & (high <= 1))
    assert ax.get_ylabel() == f"probability of {('good', 'fair', 'bad')[k]}"


def test_the_band_of_a_straight_line_is_the_line() -> None:
    ax = plot.response(by_hand(0.0), "x", at=[1.0], span=(-5.0, 5.0))
    x, low, high = band(ax)
    assert (x[0], x[-1]) == (-5.0, 5.0)
    assert low == pytest.approx(x, abs=1e-6)
    assert high == pytest.approx(x, abs=1e-6)


def test_a_band_without_end_is_not_drawn() -> None:
    steps = tuple(Dense(np.array([[weight]]), np.zeros(1)) for weight in (1e306, 1e-306))
    frozen = dataclasses.replace(by_hand(0.0), steps=steps)
    assert certify(frozen).rounding_errors == (np.inf,)  # at the clip the first unit overflows
    ax = plot.response(frozen, "x")
    assert len(ax.collections) == 0
    assert np.all(np.isfinite(ax.lines[0].get_ydata()))


def test_data_set_the_range_and_the_point() -> None:
    X = RNG.normal(size=(5000, 3)) * [1.0, 2.0, 3.0]
    frozen = small(features=["a", "b", "c"])
    ax = plot.response(frozen, "b", X=X)
    assert ax.get_xlim() == pytest.approx((X[:, 1].min(), X[:, 1].max()))
    assert ax.lines[1].get_xdata() == np.median(X[:, 1])
    assert len(ax.lines[2].get_xdata()) == 1000
    assert ax.get_xlabel() == "b"
    assert plot.response(frozen, "b", X=X, at={"b": 50.0}).get_xlim()[1] == 50.0
    constant = np.ones((10, 3))
    assert plot.response(frozen, "b", X=constant).get_xlim() == (-3.0, 3.0)


def test_an_axis_follows_the_scaling() -> None:
    X = RNG.lognormal(size=(100, 3))
    frozen = small(scaling=Scaling.fit(X, ["log", "standard", "log"]), features=["a", "b", "c"])
    assert plot.response(frozen, "a", X=X).get_xscale() == "log"
    assert plot.response(frozen, "a", span=(1.0, 9.0)).get_xscale() == "linear"
    assert plot.response(frozen, "b", X=X).get_xscale() == "linear"
    ax = plot.heatmap(frozen, ("b", "c"), X=X)
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")


def test_a_heat_map_shows_scores_and_where_the_decision_changes() -> None:
    frozen = small((1, 1, 0), features=["a", "b", "c"])
    span, middle = ((-2.0, 2.0), (-1.0, 1.0)), float(frozen.score([[0.0, 0.5, 0.0]])[0])
    ax = plot.heatmap(frozen, ("a", "c"), at=[0.0, 0.5, 0.0], span=span, threshold=middle)
    image, line = ax.collections[:2]
    x, y = np.linspace(-2.0, 2.0, 121), np.linspace(-1.0, 1.0, 121)
    expected = frozen.score([[a, 0.5, c] for c in y for a in x]).reshape(121, 121)
    assert np.array_equal(image.get_array(), expected)
    points = np.concatenate([path.vertices for path in line.get_paths()])
    on_line = frozen.score([[a, 0.5, c] for a, c in points])
    assert on_line == pytest.approx(middle, abs=0.05)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "c")


def test_values_have_no_boundary_and_logits_have_theirs_at_zero() -> None:
    assert len(plot.heatmap(small()).collections) == 1
    network = MonotonicNetwork([2, 8, 1], monotonic_cst=[1, 1], lipschitz=1.0, outputs="logits")
    assert len(plot.heatmap(freeze(network)).collections) == 2
    assert len(plot.heatmap(small(), threshold=1e9).collections) == 1  # nowhere in sight


def test_the_boundary_of_a_class_is_where_it_wins() -> None:
    frozen = classes()
    ax = plot.heatmap(frozen, output="good", span=((-9.0, 9.0), (-9.0, 9.0)))
    points = np.concatenate([path.vertices for path in ax.collections[1].get_paths()])
    z = frozen.score(points)
    assert z[:, 0] - np.maximum(z[:, 1], z[:, 2]) == pytest.approx(0.0, abs=0.2)


def test_rows_lie_on_top_with_their_labels() -> None:
    X = RNG.normal(size=(2500, 3))
    y = np.where(X[:, 0] > 0, "signal", "background")
    ax = plot.heatmap(small(), (0, 1), X=X, y=y)
    assert [line.get_label() for line in ax.lines] == ["background", "signal"]
    assert sum(len(line.get_xdata()) for line in ax.lines) == 834  # every third row
    assert np.all(ax.lines[1].get_xdata() > 0)
    assert len(plot.heatmap(small(), (0, 1), X=X).lines) == 1


def test_bars_are_the_certified_slopes() -> None:
    frozen = small((1, 0, -1), features=["up", "free", "down"])
    ax = plot.certificate(frozen)
    slopes = certify(frozen).slopes
    assert [bar.get_x() for bar in ax.patches] == [s.scaled.low for s in slopes]
    ends = [bar.get_x() + bar.get_width() for bar in ax.patches]
    assert ends == pytest.approx([s.scaled.high for s in slopes])
    assert [mpl.colors.to_hex(bar.get_facecolor()).upper() for bar in ax.patches] == [
        plot.BLUE,
        plot.GRAY,
        plot.BLUE,
    ]
    assert ax.get_title(loc="left") == f"holds: {certify(frozen).guarantee}"
    assert [t.get_text() for t in ax.texts] == [f"{s.raw} per unit" for s in slopes]


def test_a_broken_promise_is_orange() -> None:
    ax = plot.certificate(by_hand(-1.5))
    (bar,) = ax.patches
    assert mpl.colors.to_hex(bar.get_facecolor()).upper() == plot.ORANGE
    assert ax.get_title(loc="left").startswith("FAILS: nothing")


def test_names_are_literal_and_long_ones_leave_room_for_the_picture() -> None:
    frozen = small((1, -1, 0), features=[r"cost $\bad$ of $x", "long " * 40, "age"])
    for ax in (plot.certificate(frozen), plot.heatmap(frozen), plot.response(frozen, 1)):
        ax.figure.canvas.draw()  # warnings of a layout that collapsed are errors
        assert ax.get_window_extent().width > 150
    tick = plot.certificate(frozen).get_yticklabels()[0].get_text()
    assert tick.startswith(r"cost \$\bad\$ of \$x")


def test_axes_that_are_given_are_used() -> None:
    ax = pyplot.figure().subplots()
    frozen = small()
    assert plot.response(frozen, 0, ax=ax) is ax
    assert plot.heatmap(frozen, ax=ax) is ax
    assert plot.certificate(frozen, ax=ax) is ax


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: plot.response(f, "z"), "no feature 'z'; choose from 'x0', 'x1', 'x2', or a n"),
        (lambda f: plot.response(f, 3), "there is no feature 3; .* number from 0 to 2"),
        (lambda f: plot.response(f, 0, output=1), "there is no output 1"),
        (lambda f: plot.response(f, 0, at=[1.0]), "must be a row of 3 finite numbers"),
        (lambda f: plot.response(f, 0, at={"x0": np.nan}), "must be a row of 3 finite numbers"),
        (lambda f: plot.response(f, 0, at={"z": 1.0}), "there is no feature 'z'"),
        (lambda f: plot.response(f, 0, span=(1, 1)), r"`span=\(1, 1\)` must be finite, \(low, hi"),
        (lambda f: plot.response(f, 0, probability=True), "probabilities need outputs='logits'"),
        (lambda f: plot.heatmap(f, "x0"), "`features='x0'` must name two"),
        (lambda f: plot.heatmap(f, (0, 1, 2)), r"`features=\(0, 1, 2\)` must name two"),
        (lambda f: plot.heatmap(f, (0, "x0")), "are the same; a heat map needs two"),
        (lambda f: plot.heatmap(f, X=np.ones((2, 3)), y=[1]), r"shape \(1,\) but `X` has 2 rows"),
        (
            lambda f: plot.heatmap(f, X=np.ones((9, 3)), y=range(9)),
            "9 different labels; at most 8 can be told apart",
        ),
        (lambda _: plot.heatmap(classes(), threshold=1.0), "among several classes the largest"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(small(features=["x0", "x1", "x2"]))


def test_without_matplotlib_it_says_what_to_install() -> None:
    output = run_without_torch(
        """
        sys.modules["matplotlib"] = None
        import numpy as np
        from isotone import plot
        try:
            plot.response(None, 0)
        except ImportError as error:
            print(error)
        """
    )
    assert output.strip() == (
        "`isotone.plot` needs matplotlib, which is not installed; run: pip install matplotlib, or "
        "pip install '.[plot]' in a clone of isotone"
    )


@pytest.mark.parametrize("proved", [False, True])
def test_a_notebook_shows_a_model_and_no_markup_of_its_names(proved: bool) -> None:
    frozen = small(features=["<script>alert(1)</script>", "a&b", '"c"'])
    shown: Any = certify(frozen) if proved else frozen
    text = shown._repr_html_()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "a&amp;b" in text
    assert frozen.fingerprint in text
    assert certify(frozen).guarantee in text
    assert text.count("<td>rises</td>") == text.count("<td>falls</td>") == 1


def test_a_notebook_shows_what_fails_and_what_nobody_stated() -> None:
    broken = by_hand(-1.5)
    assert "nothing; isotone.certify recomputes it" in broken._repr_html_()
    assert "Certificate FAILS" in certify(broken)._repr_html_()


def test_a_notebook_names_the_outputs_of_several_classes() -> None:
    frozen = classes()
    assert "<td>good rises</td>" in frozen._repr_html_()
    assert "<td>bad: income</td>" in certify(frozen)._repr_html_()


WORDS = {1: ["free", "rises", "falls"], 2: ["1 falls", "0 rises", "0 falls, 1 rises"]}


@pytest.mark.parametrize("frozen", [knotted(), knotted(2), copied(), copied(2)], ids=repr)
def test_curves_of_a_model_with_knots_are_along_features_and_stay_in_the_band(
    frozen: FrozenNetwork,
) -> None:
    names, at = frozen.inputs.encoded, RNG.normal(size=len(frozen.inputs.encoded))
    for i, name in enumerate(names):
        for k in range(frozen.n_outputs):
            ax = plot.response(frozen, name, at=at, span=(-6.0, 40.0), output=k)
            x, low, high = band(ax)
            rows = np.tile(at, (len(x), 1))
            rows[:, i] = x
            curve = ax.lines[0].get_ydata()
            assert ax.get_xlabel() == name
            assert np.array_equal(curve, frozen.score(rows).reshape(len(x), -1)[:, k])
            assert np.all((low <= curve) & (curve <= high))
        pyplot.close("all")


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_plots_of_a_model_with_knots_are_labeled_by_features(n_outputs: int) -> None:
    frozen = knotted(n_outputs)
    names = ["age", "income", "debt"]
    for k in range(n_outputs):
        ax = plot.certificate(frozen, output=k)
        slopes = [s for s in certify(frozen).slopes if s.output == k]
        assert [bar.get_x() for bar in ax.patches] == [s.scaled.low for s in slopes]
        labels = [label.get_text().split("\n") for label in ax.get_yticklabels()]
        assert labels == [[name, word] for name, word in zip(names, WORDS[n_outputs], strict=True)]
        colors = [mpl.colors.to_hex(bar.get_facecolor()).upper() for bar in ax.patches]
        free = frozen.directions[k] == 0
        assert colors == np.where(free, plot.GRAY, plot.BLUE).tolist()
    ax = plot.heatmap(frozen, ("debt", "age"), at={"income": 0.5})
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("debt", "age")
    assert ax.get_xlim() == pytest.approx((10.0, 30.0))  # the outer knots
    assert ax.get_ylim() == pytest.approx((0.0, 5.0))
    across, upward = (np.linspace(*ends, 121) for ends in (ax.get_xlim(), ax.get_ylim()))
    rows = [[age, 0.5, debt] for age in upward for debt in across]
    expected = frozen.score(rows).reshape(121, 121, -1)[..., 0]
    assert np.array_equal(ax.collections[0].get_array(), expected)


def test_a_feature_whose_copies_differ_is_free_and_the_others_are_judged() -> None:
    cst = np.array([[1, 1, 0, 1, 1, -1]], np.int8)
    frozen = dataclasses.replace(knotted(), monotonic_cst=cst)
    assert [frozen.direction(i) for i in range(3)] == ["free", "rises", "falls"]
    colors = [
        mpl.colors.to_hex(bar.get_facecolor()).upper() for bar in plot.certificate(frozen).patches
    ]
    assert colors == [plot.GRAY, plot.BLUE, plot.BLUE]


def test_a_constant_column_has_an_axis() -> None:
    knots = Knots.at([[0.0, 1.0, 2.0], [7.0]])
    frozen = freeze(
        MonotonicNetwork([3, 4, 1], monotonic_cst=[0, 0, 0], lipschitz=1.0), knots=knots
    )
    assert plot.response(frozen, 1).get_xlim() == (6.0, 8.0)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_notebook_shows_features_of_a_model_with_knots_not_their_copies(n_outputs: int) -> None:
    frozen = knotted(n_outputs)
    pairs = zip(["age", "income", "debt"], WORDS[n_outputs], strict=True)
    rows = [f"<td>{name}</td><td>{word}</td>" for name, word in pairs]
    text = frozen._repr_html_()
    assert all(row in text for row in rows)
    assert text.count("<tr><td>") == 3
    assert "<td>4 knots</td>" in text
