"""Reports: statistics are right, bounds are bounds, names are text, and bad input is told."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from isotone import FrozenNetwork, Scaling, certify, report
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Number, Ordered
from isotone.report import page, verdict
from isotone.report.controls import controls_of, start_row
from isotone.report.history import beside, read_history
from isotone.report.numbers import describe_network
from isotone.report.outcomes import Outcomes
from isotone.report.presets import embedded_rows
from isotone.report.table.curves import Binned, ranking
from isotone.report.table.sample import Sample, read_sample
from networks import by_hand, every_step, small
from reports import EVIL, content, rows, two_classes


def test_the_page_is_one_file_that_loads_nothing_and_is_the_same_every_time(
    tmp_path: Path, table: Path
) -> None:
    frozen = two_classes()
    sizes = [
        report.write(frozen, tmp_path / name, table, target="paid")
        for name in ("a.html", "b.html")
    ]
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.html").read_text(encoding="utf-8")
    assert sizes[0] == len(text.encode()) < 3_000_000
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=[\"']?(https?:|//)", text)
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert frozen.fingerprint in text


def test_statistics_are_those_of_scikit_learn(tmp_path: Path, table: Path) -> None:
    frozen, frame = two_classes(), rows()
    report.write(frozen, tmp_path / "r.html", table, target="paid", weights="weight")
    found, w = content(tmp_path / "r.html")["statistics"], frame["weight"]
    score, y = frozen.score(frame), frame["paid"]
    expected = {
        "accuracy": metrics.accuracy_score(y, score >= 0, sample_weight=w),
        "mean logarithmic loss": metrics.log_loss(y, frozen.probability(frame), sample_weight=w),
    }
    measured = dict(found["metrics"])
    predicted, seen = (
        np.array(found["outputs"][0]["calibration"][n]) for n in ("predicted", "value")
    )
    assert 0 < measured.pop("calibration error") < np.max(np.abs(predicted - seen))
    assert measured == pytest.approx(expected)
    output = found["outputs"][0]
    curve = output["ranking"]
    assert curve["area"] == pytest.approx(metrics.roc_auc_score(y, score, sample_weight=w))
    precision = metrics.average_precision_score(y, score, sample_weight=w)
    assert curve["average_precision"] == pytest.approx(precision)
    recall = metrics.recall_score(y, score >= 0, sample_weight=w)
    assert output["point"]["tpr"] == pytest.approx(recall)
    assert sum(output["calibration"]["n"]) == len(frame)
    for part in output["histogram"]["parts"].values():
        assert sum(part["share"]) == pytest.approx(1, abs=0.02)


def test_a_weight_of_two_is_a_row_given_twice() -> None:
    rng = np.random.default_rng(0)
    score, positive, weight = rng.normal(size=60), rng.random(60) < 0.4, rng.integers(1, 4, 60)
    again = np.repeat(np.arange(60), weight)
    one = ranking(score, positive, weight.astype(float))
    other = ranking(score[again], positive[again], np.ones(len(again)))
    assert one == other


def test_a_bin_without_rows_has_no_mean_and_an_error_is_never_zero() -> None:
    found = Binned.mean(np.array([0, 0, -1]), np.array([1.0, 1.0, 0.0]), np.ones(3), 2)
    assert found.value[0] == 1.0
    assert np.isnan(found.value[1])
    assert found.error[0] > 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_measured_flips_stay_below_the_certified_bound(n_classes: int, tmp_path: Path) -> None:
    frozen = two_classes() if n_classes == 2 else every_step(3, outputs="logits", seed=1)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        frozen.scaling.inverse(rng.normal(size=(500, 3))), columns=list(frozen.features)
    )
    frame.to_parquet(tmp_path / "t.parquet")
    report.write(frozen, tmp_path / "r.html", tmp_path / "t.parquet")
    shifts = content(tmp_path / "r.html")["robustness"]["shifts"]
    assert shifts["n"] == 500
    assert len(shifts["curves"]) == 3
    certificate = certify(frozen)
    for i, curve in enumerate(shifts["curves"]):
        bound = np.array(curve["bound"])
        assert np.all(bound >= curve["up"])
        assert np.all(bound >= curve["down"])
        assert np.all(np.diff(bound, axis=0) >= 0)
        each = np.zeros(3)
        each[i] = curve["delta"][-1]
        # the same question, asked of the certificate in another way
        start = (content(tmp_path / "r.html")["stops"] or {"start": 0})["start"]
        assert bound[-1, start] == pytest.approx(certificate.flip_bound(frame, each), abs=0.005)


def test_efficiencies_are_against_numbers_and_groups_but_not_names_of_rows(
    tmp_path: Path, table: Path
) -> None:
    frozen, frame = two_classes(), rows()
    report.write(frozen, tmp_path / "r.html", table, target="paid")
    found = {
        each["column"]: each for each in content(tmp_path / "r.html")["statistics"]["against"]
    }
    assert list(found) == ["income", "debt", "age", "weight", "city"]
    accepted = frozen.score(frame) >= 0
    oslo = (frame["city"] == "Oslo") & (frame["paid"] == 1)
    assert found["city"]["at"] == ["Oslo", "Rome"]
    curves = {curve["name"]: curve for curve in found["city"]["curves"]}
    assert curves["paid = 1"]["value"][0] == pytest.approx(accepted[oslo].mean(), rel=1e-5)
    assert sum(sum(curve["n"]) for curve in found["age"]["curves"]) == len(frame)


def test_values_are_compared_with_what_was_observed(tmp_path: Path) -> None:
    frozen, frame = small(features=["a", "b", "c"]), rows().iloc[:, :3]
    frame.columns = ["a", "b", "c"]
    y = frozen.score(frame) + np.random.default_rng(0).normal(size=len(frame))
    frame.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    report.write(frozen, tmp_path / "r.html", tmp_path / "t.csv", target="y")
    data = content(tmp_path / "r.html")
    found = dict(data["statistics"]["metrics"])
    expected = metrics.r2_score(y, frozen.score(frame))
    assert found["share of variance explained (R²)"] == pytest.approx(expected)
    assert data["decision"] is None
    assert data["robustness"]["moves"]["most"] >= data["robustness"]["moves"]["median"] > 0
    assert [preset["name"] for preset in data["presets"]] == [
        "median of the lowest tenth of scores",
        "median of the highest tenth of scores",
    ]


def test_a_threshold_makes_decisions_of_values(tmp_path: Path) -> None:
    frozen = small(features=["income", "debt", "age"])
    rows().to_csv(tmp_path / "t.csv", index=False)
    options: dict[str, Any] = {"target": "paid", "threshold": 0.25}
    report.write(frozen, tmp_path / "r.html", tmp_path / "t.csv", **options)
    data = content(tmp_path / "r.html")
    assert data["decision"]["threshold"] == 0.25
    assert "calibration" not in data["statistics"]["outputs"][0]
    assert "ranking" in data["statistics"]["outputs"][0]


def test_classes_are_found_as_text_and_as_numbers(tmp_path: Path) -> None:
    frame = rows()
    frame["paid"] = frame["paid"].astype(float)  # 1.0 for the class 1
    frame.to_parquet(tmp_path / "t.parquet")
    frozen = two_classes(classes=("0", "1"))
    outcomes = Outcomes.of(frozen, 0.0, "paid")
    sample = read_sample(frozen, str(tmp_path / "t.parquet"), outcomes)
    assert sample.y is not None
    assert np.array_equal(sample.y, frame["paid"])
    frame.assign(paid=np.where(frame["paid"] == 1, "yes", "no")).to_csv(tmp_path / "t.csv")
    named = replace(frozen, classes=("no", "yes"))
    report.write(named, tmp_path / "r.html", tmp_path / "t.csv", target="paid")
    assert content(tmp_path / "r.html")["outcomes"]["classes"] == ["paid = no", "paid = yes"]


def test_the_file_holds_some_rows_and_says_which(tmp_path: Path, table: Path) -> None:
    frozen = two_classes()
    report.write(frozen, tmp_path / "r.html", table, target="paid", embed_rows=50)
    data = content(tmp_path / "r.html")
    held, X = data["rows"], rows()[["income", "debt", "age"]].to_numpy()
    assert len(held["number"]) == 50
    assert data["sample"]["n"] == 400
    assert np.array_equal(np.transpose(held["columns"]), X[held["number"]])
    extreme = {preset["name"]: preset for preset in data["presets"]}["highest score"]
    assert frozen.score([extreme["row"]])[0] == frozen.score(X).max()


def test_one_control_for_a_column_of_categories_and_for_its_gaps() -> None:
    inputs = Inputs((Number("age", fill=40.0), Category("city", ("Oslo", "Rome"))))
    frozen = replace(small((1, 0, 0, 0)), features=inputs.features, inputs=inputs)
    X = np.array([[40.0, 0, 1, 1], [20, 0, 1, 0], [30, 1, 0, 0]])
    sample = Sample("t.csv", X, None, np.ones(3), {}, None, None, False)
    age, city = controls_of(frozen, sample)
    assert (age["indicator"], age["fill"], age["low"], age["high"]) == (3, 40.0, 20.0, 30.0)
    assert age["whole"]
    assert sum(age["density"]) == pytest.approx(1)
    assert city["features"] == [1, 2]
    assert city["share"] == pytest.approx([1 / 3, 2 / 3])
    assert start_row(frozen, sample) == [20.0, 0.0, 1.0, 0.0]
    assert embedded_rows(sample, 2)["number"] == embedded_rows(sample, 2)["number"]


@pytest.mark.parametrize("n_missing", [1, 40])
def test_fills_do_not_count_as_values_of_a_table(n_missing: int) -> None:
    inputs = Inputs((Number("age", fill=-999.0), Ordered("size", ("S", "M", "L"), fill=0.5)))
    frozen = replace(small((1, 0, 0, 0)), features=inputs.features, inputs=inputs)
    present = np.array([[20.0, 2, 0, 0], [30, 1, 0, 0], [40, 2, 0, 0]])
    X = np.concatenate([present, np.tile([-999, 0.5, 1, 1], (n_missing, 1))])
    sample = Sample("t.csv", X, None, np.ones(len(X)), {}, None, None, False)
    assert start_row(frozen, sample) == [30.0, 2.0, 0.0, 0.0]
    age = controls_of(frozen, sample)[0]
    assert (age["low"], age["high"]) == (20.0, 40.0)


def test_a_column_that_is_missing_in_all_rows_starts_at_the_center() -> None:
    inputs = Inputs((Number("age", fill=40.0), Ordered("size", ("S", "M"), fill=0.5)))
    frozen = replace(small((1, 0, 0, 0)), features=inputs.features, inputs=inputs)
    sample = Sample("t.csv", np.array([[40, 0.5, 1, 1]]), None, np.ones(1), {}, None, None, False)
    assert start_row(frozen, sample) == start_row(frozen, None)
    assert start_row(frozen, None)[1] in (0.0, 1.0)


def test_ordered_categories_are_shown_by_name() -> None:
    inputs = Inputs((Number("age"), Ordered("size", ("S", "M", "L"), fill=0.5)))
    frozen = replace(small((1, 1, 0)), features=inputs.features, inputs=inputs)
    size = controls_of(frozen, None)[1]
    assert size["kind"] == "ordered"
    assert size["labels"] == ["S", "M", "L"]
    assert (size["feature"], size["indicator"], size["fill"]) == (1, 2, 0.5)


def test_without_a_table_ranges_come_from_the_scaling() -> None:
    scaling = Scaling.fit([[1.0, 10.0, 0.0], [3.0, 1000.0, 1.0]], ["standard", "log", "identity"])
    frozen = small(scaling=scaling)
    controls = controls_of(frozen, None)
    assert (controls[0]["low"], controls[0]["high"]) == (-1.0, 5.0)
    assert controls[1]["axis"][0] == pytest.approx(np.log(10.0))  # the floor
    assert start_row(frozen, None) == pytest.approx([2.0, 100.0, 0.0], rel=1e-4)


def test_a_verdict_says_what_fails() -> None:
    good = verdict.to_html(certify(by_hand(-0.5)), Outcomes.of(by_hand(-0.5), None, None))
    assert "Every declared constraint holds" in good
    assert "never falls when <b>x</b> rises" in good
    frozen = by_hand(-1.5)
    bad = verdict.to_html(certify(frozen), Outcomes.of(frozen, None, None))
    assert "does NOT hold" in bad
    assert "✗ NO" in bad
    assert "never falls" not in bad
    assert "should never fall when <b>x</b> rises, but it may" in bad
    assert describe_network(certify(frozen))["directions"] == [[0]]
    assert describe_network(certify(by_hand(-0.5)))["directions"] == [[1]]
    many = [f"x{i}" for i in range(10)]
    wide = small((-1,) * 10, features=many)
    text = verdict.to_html(certify(wide), Outcomes.of(wide, 0.5, None))
    assert "never rises when one of <b>x0</b>" in text
    assert "and 2 others rises" in text
    free = small((0, 0, 0))
    text = verdict.to_html(certify(free), Outcomes.of(free, None, None))
    assert "No direction is declared" in text
    loose = small(grid=None)
    text = verdict.to_html(certify(loose), Outcomes.of(loose, None, None))
    assert "up to rounding" in text
    assert "In exact arithmetic: The prediction never falls" in text


@pytest.mark.parametrize(
    ("frozen", "threshold", "says"),
    [
        (two_classes(), 1.0, "Decides for <b>y = 1</b> or against it from 3 features: for it if"),
        (two_classes(), 1.0, "at least 1, that is a probability of 73.11&nbsp;%"),
        (every_step(3, outputs="logits"), None, "Tells <b>y = 0</b>, <b>y = 1</b>, <b>y = 2</b>"),
        (small(), None, "Predicts <b>y</b>, a number, from 3 features."),
        (small(), -0.5, "if the score is at least −0.5."),
    ],
)
def test_the_first_sentence_says_what_the_model_does(
    frozen: FrozenNetwork, threshold: float | None, says: str
) -> None:
    assert says in verdict.lead(certify(frozen), Outcomes.of(frozen, threshold, "y"))


def test_a_direction_of_one_class_names_the_class() -> None:
    frozen = every_step(3, outputs="logits")
    directions = np.zeros_like(frozen.monotonic_cst)
    directions[:, 0] = 1  # for all classes
    directions[0, 1], directions[2, 1] = 1, -1
    judged = certify(replace(frozen, monotonic_cst=directions))
    text = verdict.badge(judged, Outcomes.of(frozen, None, "y"))
    first, second, _ = frozen.features
    assert f"{first} ↗ not proved" in text
    assert f"{second} ↗ (y = 0) not proved" in text
    assert f"{second} ↘ (y = 2) not proved" in text


def test_names_never_become_markup(tmp_path: Path) -> None:
    frozen = replace(
        two_classes(features=(EVIL, "%%data%%", "c")),
        classes=(EVIL, "b"),
        provenance={"target": EVIL, "note": EVIL},
    )
    report.write(frozen, tmp_path / "r.html", title=EVIL)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<img src=x" not in text
    assert "<script>hacked" not in text
    assert text.count("<script>") == len(page.SCRIPTS)
    assert content(tmp_path / "r.html")["network"]["features"] == [EVIL, "%%data%%", "c"]


def test_history_is_found_beside_a_trained_model(tmp_path: Path) -> None:
    history = {"training": [[1.0, 3.0], [0.5, 1.5]], "validation": [], "best_epoch": [1, 1]}
    (tmp_path / "history.json").write_text(json.dumps(history | {"seconds": 2.0}))
    two_classes().save(tmp_path / "model.isotone")
    assert beside(tmp_path / "model.isotone", "any") == tmp_path / "history.json"
    assert beside(tmp_path / "other.isotone", "any") is None
    read = read_history(tmp_path / "history.json")
    report.write(two_classes(), tmp_path / "r.html", history=read)
    assert content(tmp_path / "r.html")["history"]["training"] == [2.0, 1.0]


def test_rows_with_unseen_values_are_left_out_and_the_others_keep_their_numbers(
    tmp_path: Path,
) -> None:
    people, frozen = rows(), two_classes()
    name = frozen.inputs.names[0]
    people.loc[[0, 3], name] = np.nan
    people.to_csv(tmp_path / "people.csv", index=False)
    outcomes = Outcomes.of(frozen, 0.0, "paid")
    with pytest.raises(ValueError, match="in row 0"):
        read_sample(frozen, str(tmp_path / "people.csv"), outcomes)
    sample = read_sample(frozen, str(tmp_path / "people.csv"), outcomes, on_unseen="skip")
    assert sample.left_out.tolist() == [0, 3]
    assert embedded_rows(sample, 3000)["number"][:4] == [1, 2, 4, 5]
    assert sample.to_dict()["n_left_out"] == 2
    assert len(sample) == len(sample.weight) == len(people) - 2
    with pytest.raises(ValueError, match="`on_unseen='3'` is unknown; choose from"):
        report.write(frozen, tmp_path / "r.html", tmp_path / "people.csv", on_unseen="3")  # type: ignore[arg-type]
