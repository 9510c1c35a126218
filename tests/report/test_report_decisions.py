"""Reports: the threshold that moves, shifts of the user, rivals, and what a file may hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import metrics

from isotone import FrozenNetwork, MonotonicNetwork, Scaling, certify, cli, freeze, report
from isotone.certificate.robustness import Decisions
from isotone.report.controls import controls_of
from isotone.report.outcomes import Outcomes
from isotone.report.table.effects import effects
from isotone.report.table.sample import Sample
from isotone.report.table.stops import stops_of
from networks import every_step, small
from reports import content, rows, two_classes

NAMES = ["income", "debt", "age"]


def sample_of(X: np.ndarray) -> Sample:
    return Sample("t.csv", X, None, np.ones(len(X)), {}, None, None, False)


def test_counts_at_every_stop_are_those_of_scikit_learn(tmp_path: Path, table: Path) -> None:
    frozen, frame = two_classes(), rows()
    options = {"target": "paid", "weights": "weight", "threshold": 0.25}
    report.write(frozen, tmp_path / "r.html", table, **options)  # type: ignore[arg-type]
    stops = content(tmp_path / "r.html")["stops"]
    score, y, w = frozen.score(frame), frame["paid"], frame["weight"]
    assert stops["at"][stops["start"]] == 0.25
    assert np.all(np.diff(stops["at"]) > 0)
    assert 50 < len(stops["at"]) <= 101
    for k, stop in enumerate(stops["at"]):
        matrix = metrics.confusion_matrix(y, score >= stop, sample_weight=w)
        accepted = [stops["accepted"][part][k] for part in ("negative", "positive")]
        assert accepted == matrix[:, 1].tolist()


@pytest.mark.parametrize("weights", [None, "weight"])
def test_rates_by_column_are_known_at_every_stop(
    weights: str | None, tmp_path: Path, table: Path
) -> None:
    """At the declared threshold they are those of the file; rows count by their weights."""
    frozen, frame = two_classes(), rows()
    options = {"target": "paid", "weights": weights, "threshold": 0.25}
    report.write(frozen, tmp_path / "r.html", table, **options)  # type: ignore[arg-type]
    data = content(tmp_path / "r.html")
    stops, score = data["stops"], frozen.score(frame)
    w = np.ones(len(frame)) if weights is None else frame[weights].to_numpy()
    (city,) = (each for each in data["statistics"]["against"] if each["column"] == "city")
    for truth, curve in enumerate(city["curves"]):
        for b, name in enumerate(city["at"]):
            own = ((frame["city"] == name) & (frame["paid"] == truth)).to_numpy()
            accepted = np.cumsum(curve["between"][b][::-1])[::-1][1:]
            expected = [w[own & (score >= stop)].sum() for stop in stops["at"]]
            assert accepted.tolist() == expected
            share = expected[stops["start"]] / w[own].sum()
            assert curve["value"][b] == pytest.approx(share, rel=1e-5)
            assert curve["effective"][b] == pytest.approx(
                w[own].sum() ** 2 / (w[own] ** 2).sum(), rel=1e-5
            )


def test_certified_shares_are_those_of_flip_bound_at_every_stop(
    tmp_path: Path, table: Path
) -> None:
    frozen, frame = two_classes(), rows()
    shifts = {"income": 0.05, "age": 0.02}
    report.write(frozen, tmp_path / "r.html", table, shifts=shifts)
    data, certificate = content(tmp_path / "r.html"), certify(frozen)
    assert data["robustness"]["user"] == shifts
    found = dict(zip(data["stops"]["at"], data["robustness"]["certified"], strict=True))
    assert min(found.values()) < 0.95 < max(found.values())
    for stop, share in found.items():
        bound = certificate.flip_bound(frame[NAMES], shifts, threshold=stop)
        assert share == pytest.approx(1 - bound, abs=1e-12)
    curve = data["robustness"]["shifts"]["curves"][1]
    assert curve["feature"] == "debt"
    for stop, bound in zip(data["stops"]["at"], curve["bound"][-1], strict=True):
        moved = {"debt": curve["delta"][-1]}
        flips = certificate.flip_bound(frame[NAMES], moved, threshold=stop)
        assert bound == pytest.approx(flips, abs=1e-6)


def test_thresholds_outside_the_unsafe_range_leave_no_flips() -> None:
    frozen, X = two_classes(), rows()[NAMES].to_numpy()
    decisions = certify(frozen).decisions()
    assert isinstance(decisions, Decisions)
    score, low, high = frozen.score(X), X - 0.1, X + 0.1
    fall, rise = decisions.changes(X, low, high)
    below, above = decisions.unsafe(score, fall.sum(axis=1), rise.sum(axis=1))
    for threshold in np.quantile(score, [0.0, 0.2, 0.5, 0.9, 1.0]):
        flips = replace(decisions, threshold=threshold).can_flip(X, score, low, high)
        assert np.all(flips <= ((threshold >= below) & (threshold <= above)))
    still = decisions.changes(X, X, X)
    assert not np.any(still)


def test_stops_of_equal_scores_are_the_threshold_and_the_score() -> None:
    outcomes = Outcomes.of(two_classes(), 0.5, None)
    found = stops_of(outcomes, np.full(5, 2.0))
    assert found is not None
    assert found.tolist() == [0.5, 2.0]


def test_no_row_of_the_table_is_in_the_file_unless_asked_for(tmp_path: Path) -> None:
    """Every cell of these rows is a number that nothing else could be."""
    frame = rows(300)
    secret = frame[NAMES].round(3) + 0.000123456789
    frame[NAMES] = secret
    frame.to_csv(tmp_path / "t.csv", index=False)
    report.write(two_classes(), tmp_path / "r.html", tmp_path / "t.csv", target="paid")
    data = content(tmp_path / "r.html")
    assert data["rows"]["number"] == []
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    held = sum(repr(float(cell)) in text for cell in secret.to_numpy().ravel())
    assert held <= 2 * len(NAMES)  # the ends of every column
    assert {each["number"] for each in data["presets"]} == {None}
    report.write(two_classes(), tmp_path / "r.html", tmp_path / "t.csv", embed_rows=10)
    assert len(content(tmp_path / "r.html")["rows"]["number"]) == 10


def test_effects_are_measured_not_permitted() -> None:
    """A steep column that is constant in the table moves nothing."""
    torch.manual_seed(0)
    network = MonotonicNetwork([2, 8, 1], monotonic_cst=[1, 1], lipschitz=[10.0, 0.5])
    frozen = freeze(network)
    X = np.column_stack([np.full(200, 0.5), np.linspace(-1, 1, 200)])
    found = effects(frozen, sample_of(X), X[0])
    assert found[0] == 0 < found[1]
    alone = effects(frozen, None, np.zeros(2))
    assert alone[0] > alone[1]


def test_sliders_stay_on_the_side_of_zero_and_reach_the_largest_number() -> None:
    rng = np.random.default_rng(0)
    counts = np.append(rng.poisson(0.5, 999), 40).astype(float)
    X = np.column_stack([counts, rng.exponential(size=1000), -rng.exponential(size=1000)])
    few, positive, negative = controls_of(small(), sample_of(X))
    assert few["whole"]
    assert few["axis"][0] == 0
    assert few["axis"] == [float(round(end)) for end in few["axis"]]
    assert few["high"] == 40  # where the slider ends, whatever its axis shows
    assert positive["axis"][0] >= 0 > negative["axis"][0]
    assert negative["axis"][1] <= 0
    scaling = Scaling.fit(X[:, 1:2], "log")
    torch.manual_seed(0)
    frozen = freeze(MonotonicNetwork([1, 4, 1], monotonic_cst=[1]), scaling=scaling)
    axis = controls_of(frozen, sample_of(X[:, 1:2]))[0]["axis"]
    assert np.exp(axis[0]) > 0


def three(names: list[str] = NAMES) -> FrozenNetwork:
    return replace(every_step(3, outputs="logits"), features=tuple(names))


def test_several_classes_have_a_confusion_matrix(tmp_path: Path) -> None:
    frozen, frame = three(), rows()
    truth = np.random.default_rng(0).integers(0, 3, len(frame))
    frame.assign(kind=truth).to_csv(tmp_path / "t.csv", index=False)
    report.write(frozen, tmp_path / "r.html", tmp_path / "t.csv", target="kind")
    data = content(tmp_path / "r.html")
    expected = metrics.confusion_matrix(truth, frozen.score(frame[NAMES]).argmax(axis=1))
    assert data["statistics"]["confusion"] == expected.tolist()
    assert data["stops"] is None
    assert "Accuracy" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_numbers_have_residuals_and_certified_moves(tmp_path: Path) -> None:
    frozen, frame = small(features=NAMES), rows()
    y = frozen.score(frame[NAMES]) + np.random.default_rng(0).normal(size=len(frame))
    frame.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    shifts = {"income": 0.1, "debt": 0.1}
    report.write(frozen, tmp_path / "r.html", tmp_path / "t.csv", target="y", shifts=shifts)
    data = content(tmp_path / "r.html")
    residuals = data["statistics"]["residuals"]
    assert sum(n for *_, n in residuals["pairs"]["cells"]) == pytest.approx(len(frame), abs=6)
    assert len(residuals["by_prediction"]["at"]) == 10
    moved = frame[NAMES].to_numpy()
    moves = data["robustness"]["moves"]
    for signs in ([1, 1, 0], [1, -1, 0], [-1, 1, 0], [-1, -1, 0]):
        change = np.abs(frozen.score(moved + 0.1 * np.array(signs)) - frozen.score(moved))
        assert np.quantile(change, 0.95) <= moves["most"]
    for curve in data["robustness"]["shifts"]["curves"]:
        assert np.all(np.array(curve["bound"]) >= np.maximum(curve["up"], curve["down"]))


def test_the_first_screen_has_five_figures(tmp_path: Path, table: Path) -> None:
    frozen, frame = two_classes(), rows()
    report.write(frozen, tmp_path / "r.html", table, target="paid")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    area = metrics.roc_auc_score(frame["paid"], frozen.score(frame))
    names = ["AUC", "Calibration", "Certified decisions", "Rows", "Fingerprint"]
    assert all(f"<dt>{name}</dt>" in text for name in names)
    assert f"<strong>{area:.3f}</strong>" in text
    assert "<strong>400</strong>" in text
    assert f"<strong>{frozen.fingerprint[:12]}</strong>" in text
    report.write(frozen, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<dt>Proved directions</dt><dd><strong>2</strong><span>of 3 features" in text


def test_a_rival_is_compared_on_the_same_rows(tmp_path: Path, table: Path) -> None:
    ours, theirs, frame = two_classes(), two_classes(seed=1), rows()
    theirs.save(tmp_path / "other.isotone")
    options = {"target": "paid", "embed_rows": 20, "against": tmp_path / "other.isotone"}
    report.write(ours, tmp_path / "r.html", table, compare=theirs, **options)  # type: ignore[arg-type]
    against, challenger = content(tmp_path / "r.html")["rivals"]
    assert (against["name"], against["role"]) == ("other.isotone", "against")
    assert against["network"]["fingerprint"] == theirs.fingerprint
    found = {name: (one, other) for name, one, other in challenger["metrics"]}
    areas = [metrics.roc_auc_score(frame["paid"], each.score(frame)) for each in (ours, theirs)]
    assert found["AUC"] == pytest.approx(areas)
    decided = [each.score(frame) >= 0 for each in (ours, theirs)]
    expected = metrics.confusion_matrix(*decided)
    assert challenger["swaps"]["table"] == expected.tolist()
    differ = np.flatnonzero(decided[0] != decided[1])
    assert challenger["swaps"]["n"] == len(differ)
    assert [row for row, *_ in challenger["swaps"]["rows"]] == differ[:20].tolist()


def test_a_column_of_scores_is_a_rival(tmp_path: Path) -> None:
    frozen, frame = two_classes(), rows()
    frame = frame.assign(booster=frozen.probability(frame))
    frame.to_csv(tmp_path / "t.csv", index=False)
    report.write(frozen, tmp_path / "r.html", tmp_path / "t.csv", target="paid", against="booster")
    (rival,) = content(tmp_path / "r.html")["rivals"]
    assert rival["network"] is None
    assert rival["swaps"]["rows"] == []  # not without embedded rows
    for _, ours, theirs in rival["metrics"]:
        assert ours == pytest.approx(theirs)


BAD = [
    ({"against": "nothing"}, "`nothing` is neither a model file nor a column of finite numbers"),
    ({"against": three()}, "both must predict the same: train them with the same target"),
    (
        {"compare": two_classes(features=("a", "b", "c"))},
        "takes other columns than the model of the",
    ),
    ({"shifts": {"height": 1.0}}, "`shifts` names 'height'; the columns are"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_what_cannot_be_compared_or_shifted_is_told(
    options: dict[str, object], message: str, tmp_path: Path, table: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        report.write(two_classes(), tmp_path / "r.html", table, **options)  # type: ignore[arg-type]


def test_scores_of_several_classes_are_no_column(tmp_path: Path, table: Path) -> None:
    with pytest.raises(ValueError, match="cannot hold the scores of 3 classes; give a model file"):
        report.write(three(), tmp_path / "r.html", table, against="weight")


def test_a_column_of_scores_needs_a_table(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="without a table it cannot be a column of scores"):
        report.write(two_classes(), tmp_path / "r.html", against="booster")
    report.write(two_classes(), tmp_path / "r.html", against=two_classes(seed=1))
    assert content(tmp_path / "r.html")["rivals"][0]["network"] is not None


def test_shifts_need_a_table(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="move rows but no table is given"):
        report.write(two_classes(), tmp_path / "r.html", shifts={"age": 1.0})


@pytest.mark.parametrize("word", ["age", "=3", "age=much"])
def test_a_shift_is_a_column_and_a_number(
    word: str, tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two_classes().save(tmp_path / "m.isotone")
    out = str(tmp_path / "r.html")
    with pytest.raises(SystemExit) as exit:
        cli.main(
            ["report", str(tmp_path / "m.isotone"), str(table), "--shift", word, "--out", out]
        )
    assert exit.value.code == 2
    assert "must be a column and a number, as in income=500" in capsys.readouterr().err


def test_the_command_takes_shifts_and_rivals(tmp_path: Path, table: Path) -> None:
    two_classes().save(tmp_path / "m.isotone")
    words = ["--shift", "age=0.5", "--against", "weight", "--embed-rows", "3"]
    out = tmp_path / "r.html"
    with pytest.raises(SystemExit) as exit:
        cli.main(["report", str(tmp_path / "m.isotone"), str(table), *words, "--out", str(out)])
    assert exit.value.code == 0
    data = content(out)
    assert data["robustness"]["user"] == {"age": 0.5}
    assert [each["name"] for each in data["rivals"]] == ["weight"]
    assert len(data["rows"]["number"]) == 3


def test_a_hundred_columns_stay_below_three_megabytes(tmp_path: Path) -> None:
    names = [f"x{i}" for i in range(100)]
    torch.manual_seed(0)
    network = MonotonicNetwork([100, 32, 32, 1], monotonic_cst=[1] * 100, outputs="logits")
    X = np.random.default_rng(0).normal(size=(500, 100))
    frame = pd.DataFrame(X, columns=names).assign(y=(X[:, 0] > 0).astype(int))
    frame.to_csv(tmp_path / "t.csv", index=False)
    frozen = freeze(network, features=names)
    size = report.write(frozen, tmp_path / "r.html", tmp_path / "t.csv", target="y")
    assert size < 2_000_000
