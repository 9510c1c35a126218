"""Figures 5 and 6 for one's own table: points are what was computed, labels what was asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from isotone import plot
from isotone.trigger import Efficiency, Exposure, by_bin, by_group, rate_curve
from networks import small

RNG = np.random.default_rng(0)
EDGES = [0.5, 1.0, 2.0, 5.0, 20.0]


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    with mpl.rc_context({"backend": "agg", "svg.fonttype": "none"}):
        yield
    pyplot.close("all")


def curve(n: int = 500) -> tuple[Efficiency, Any]:
    tau = RNG.exponential(4.0, n)
    return by_bin(RNG.random(n) < 0.7, tau, np.array(EDGES)), tau


def text_of(ax: Any) -> str:
    from io import StringIO

    stream = StringIO()
    ax.figure.savefig(stream, format="svg")
    return stream.getvalue()


def test_efficiencies_are_drawn_where_they_are_with_the_distribution_underneath() -> None:
    (one, tau), (two, _) = curve(), curve()
    ax = plot.efficiency({"beauty": one, "charm": two}, EDGES, values=tau, label="$t$", unit="ps")
    for container, each in zip(ax.containers, (one, two), strict=True):
        line = container.lines[0]
        assert np.allclose(line.get_ydata(), each.value)
        assert np.allclose(line.get_xdata(), np.sqrt(np.multiply(EDGES[1:], EDGES[:-1])))
        (low, high) = np.array(container.lines[2][1].get_segments())[:, :, 1].T
        assert np.allclose(high - low, 2 * each.error)
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "$t$ [ps]"
    below = ax.figure.axes[1]
    assert len(below.patches) == 1
    assert below.get_ylim()[1] > 3 * below.patches[0].get_data().values.max()
    shown = text_of(ax)
    assert all(word in shown for word in ("beauty", "charm", "distribution", ">20<", ">0.5<"))


def test_errors_stay_between_none_and_all_and_empty_bins_are_left_out() -> None:
    found = Efficiency(np.arange(3.0), np.array([5, 0, 5]), np.array([0, 0, 5]))
    ax = plot.efficiency(found, [0, 1, 2, 3], log=False)
    assert ax.containers[0].lines[0].get_ydata().tolist() == [0.0, 1.0]
    ends = np.array(ax.containers[0].lines[2][1].get_segments())[:, :, 1]
    assert ends.min() == 0.0
    assert ends.max() == 1.0
    with pytest.raises(ValueError, match=r"the curve '' has 3 bins but `edges` has 3 ends; give"):
        plot.efficiency(found, [0, 1, 2])


def test_channels_are_named_and_their_changes_absolute_and_relative() -> None:
    group = np.repeat(["a", "b", "c$"], 100)
    passes = [np.arange(300) % 100 < n for n in (50, 60, 40)]
    before, one, two = (by_group(passed, group) for passed in passes)
    two.n_passed[:] = [30, 45, 20]
    left, right = plot.channels(
        list(before.at), before, {"one": one, "two": two}, what="trees", labels={"b": r"$B^0$"}
    )
    assert [text.get_text() for text in left.get_yticklabels()] == [r"c\$", "a", r"$B^0$"]
    assert np.allclose(left.lines[0].get_xdata(), [10, 10, 10])
    assert np.allclose(right.lines[0].get_xdata(), [20, 20, 20])
    assert np.allclose(left.lines[2].get_xdata(), [-30, -20, -5])
    assert left.get_title() == "median +10.0, -20.0 points"
    assert right.get_title() == "median +20.0, -40.0 %"
    assert right.get_xlabel() == "relative to trees [%]"
    before.n_passed[:] = 0
    assert np.isnan(plot.channels(["a", "b", "c$"], before, one)[1].lines[0].get_xdata()).all()
    with pytest.raises(ValueError, match=r"must have the channels of `names`, in that order"):
        plot.channels(["a", "c", "b"], before, one)


def test_a_rate_curve_has_the_errors_of_both_axes() -> None:
    background, signal = RNG.normal(size=500), RNG.normal(1.0, size=300)
    found = rate_curve(background, signal, Exposure(1000, 1e6), [1e4, 1e5, 3e5])
    ax = plot.rates({"ours": found}, at=1e5)
    line = ax.containers[0].lines[0]
    assert np.allclose(line.get_xdata(), found.rates / 1e3)
    assert np.allclose(line.get_ydata(), found.efficiency.value)
    across = np.array(ax.containers[0].lines[2][0].get_segments())[:, :, 0]
    assert np.allclose(np.ptp(across, axis=1), 2 * found.rate_errors / 1e3)
    assert "100 kHz" in text_of(ax)


def test_labels_and_units_are_those_asked_for() -> None:
    frozen = small(features=["pt", "ip$", "c"])
    labels, units = {"pt": r"$p_\mathrm{T}$"}, {"pt": "GeV", "ip$": "mm"}
    ax = plot.heatmap(frozen, ("pt", "ip$"), labels=labels, units=units)
    assert ax.get_xlabel() == r"$p_\mathrm{T}$ [GeV]"
    assert ax.get_ylabel() == r"ip\$ [mm]"
    assert plot.response(frozen, "pt", labels=labels).get_xlabel() == r"$p_\mathrm{T}$"


def fake_mplhep(monkeypatch: pytest.MonkeyPatch, **styles: Any) -> None:
    package, style = ModuleType("mplhep"), ModuleType("mplhep.style")
    vars(style).update(styles)
    package.style = style  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mplhep", package)
    monkeypatch.setitem(sys.modules, "mplhep.style", style)


def test_a_style_of_mplhep_is_used_if_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_mplhep(monkeypatch, LHCb2={"axes.labelsize": 28, "xtick.direction": "in"})
    with plot.hep_style("LHCb2", size=14.0) as found:
        assert found
        assert mpl.rcParams["xtick.direction"] == "in"
        assert mpl.rcParams["axes.labelsize"] == mpl.rcParams["font.size"] == 14.0
    assert mpl.rcParams["xtick.direction"] == "out"
    with (
        pytest.raises(ValueError, match=r"mplhep has no style 'XYZ'; choose from LHCb2"),
        plot.hep_style("XYZ"),
    ):
        pass


def test_without_mplhep_plots_look_as_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mplhep", None)
    before = dict(mpl.rcParams)
    with plot.hep_style() as found:
        assert not found
        assert dict(mpl.rcParams) == before


def test_the_real_mplhep_has_the_style_of_lhcb() -> None:
    pytest.importorskip("mplhep", reason="mplhep is not installed")
    with plot.hep_style():
        ax = plot.response(small(), 0)
        assert ax.xaxis.label.get_size() == 14.0
