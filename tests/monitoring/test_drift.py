"""Drift is seen where it is, bounded by what slopes allow, and never found by chance."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from isotone import FrozenNetwork, MonotonicNetwork, freeze
from isotone.cli import main
from isotone.data.table import write_table
from isotone.frozen.steps import Dense, Sort
from isotone.monitoring import Levels, compare, page, read_summary, summarize
from isotone.monitoring.drift import Drift
from networks import by_hand, copied, every_step, mixed, small

RNG = np.random.default_rng(0)


def drift(frozen: FrozenNetwork, P: Any, Q: Any, **options: Any) -> Drift:
    return compare(frozen, *(summarize(frozen, each, **options) for each in (P, Q)))


def people(n: int, rng: np.random.Generator, older: float = 0.0) -> dict[str, Any]:
    """Rows of `networks.mixed`."""
    age = rng.normal(40 + older, 12, n)
    return {
        "age": [None if u < 0.1 else float(a) for u, a in zip(rng.random(n), age, strict=True)],
        "city": rng.choice(["Oslo", "Rome"], n).tolist(),
        "size": rng.choice(["low", "medium", "high", "top"], n).tolist(),
        "debt": rng.normal(300, 100, n).tolist(),
        "income": rng.lognormal(6.5, 0.5, n).tolist(),
    }


NETWORKS = [small(), every_step(), copied(), small(precision="float32")]


@pytest.mark.parametrize("frozen", NETWORKS, ids=repr)
def test_scores_are_no_farther_apart_than_slopes_allow_for_features_that_drift_one_by_one(
    frozen: FrozenNetwork,
) -> None:
    """Increasing maps of single columns keep the copula."""
    rng, n = np.random.default_rng(1), len(frozen.inputs.names)
    for scale in (0.0, 0.01, 0.3, 3.0):
        X = np.abs(rng.normal(size=(2000, n)))
        Y = X * np.exp(scale * rng.normal(size=n)) + scale * np.abs(rng.normal(size=n))
        found = drift(frozen, X, rng.permutation(Y))
        shift = found.scores[0].distances
        assert shift is not None
        assert found.shift_bound is not None
        assert found.transport is not None
        assert abs(shift.mean_change) <= shift.wasserstein + 1e-9
        assert shift.wasserstein <= found.shift_bound
        assert found.transport <= found.shift_bound
        assert not found.dependence_changed


@pytest.mark.parametrize("frozen", NETWORKS, ids=repr)
def test_the_transport_is_no_more_than_any_plan_costs(frozen: FrozenNetwork) -> None:
    """Rows matched as they come: the cost of a plan, which is never less than the distance."""
    rng, n = np.random.default_rng(2), len(frozen.inputs.names)
    X, Y = (np.abs(rng.normal(size=(500, n))) + k for k in (0.0, 0.2))
    coordinates = summary_coordinates(frozen)
    W = [coordinates.transform(frozen.encode(each)) for each in (X, Y)]
    cost = np.abs(W[0] - W[1]).sum(axis=1).mean()
    found = drift(frozen, X, Y)
    assert found.transport is not None
    assert found.transport <= cost * (1 + 1e-9) + 1e-12


def summary_coordinates(frozen: FrozenNetwork) -> Any:
    from isotone import certify
    from isotone.monitoring.summary import coordinates_of

    return coordinates_of(certify(frozen))


def test_a_new_dependence_is_told_from_a_drift_of_columns() -> None:
    """f = x + y + |x − y| has the same marginals below, and another mean."""
    steps = (
        Dense(np.array([[1.0, -1.0], [-1.0, 1.0]]) / 2, np.zeros(2)),
        Sort(2),
        Dense(np.array([[-1.0, 1.0]]), np.zeros(1)),
    )
    frozen = dataclasses.replace(
        small((1, 1)), steps=steps, lipschitz=np.ones(2), residual=np.ones((1, 2))
    )
    x = np.random.default_rng(3).normal(size=4000)
    same, opposite = np.stack([x, x], axis=1), np.stack([x, -x], axis=1)
    opposite[:, 1] = np.sort(x)[::-1][np.argsort(np.argsort(x))]  # the very same numbers
    found = drift(frozen, same, opposite)
    assert found.dependence_changed
    assert found.level == "alarm"
    assert "columns depend on one another in a new way" in found.reasons
    assert all(column.psi == 0.0 for column in found.columns)
    assert not drift(frozen, same, same + 1.0).dependence_changed


def test_an_additive_model_bounds_means_whatever_the_dependence() -> None:
    torch.manual_seed(0)
    network = MonotonicNetwork(
        [2, 8, 1], monotonic_cst=[1, 0], group_size=2, interaction_cst="no_interactions"
    )
    frozen, rng = freeze(network), np.random.default_rng(4)
    for _ in range(10):
        X, Y = rng.normal(size=(300, 2)), rng.normal(0.3, size=(300, 2)) @ rng.normal(size=(2, 2))
        found = drift(frozen, X, Y)
        assert found.additive
        shift, bound = found.scores[0].distances, found.shift_bound
        assert shift is not None
        assert bound is not None
        assert abs(shift.mean_change) <= bound
    assert not drift(small(), X[:, [0, 1, 1]], X[:, [0, 1, 1]]).additive


def test_an_alarm_needs_more_than_chance() -> None:
    rng, frozen = np.random.default_rng(5), small()
    levels = [
        drift(frozen, rng.normal(size=(300, 3)), rng.normal(size=(50, 3)), threshold=0.0).level
        for _ in range(100)
    ]
    assert levels.count("alarm") <= 3
    moved = drift(frozen, rng.normal(size=(3000, 3)), rng.normal(1, size=(500, 3)))
    assert moved.level == "alarm"
    assert moved.columns[0].level == "alarm"


def test_categories_missing_and_unseen_values_are_watched() -> None:
    frozen, rng = mixed(), np.random.default_rng(6)
    before, now = people(3000, rng), people(3000, rng)
    assert drift(frozen, before, now).level == "fine"
    now["city"] = ["Oslo"] * 2800 + ["Paris"] * 200
    now["income"] = [None] * 600 + now["income"][600:]
    found = drift(frozen, before, now)
    columns = {column.name: column for column in found.columns}
    assert found.level == "alarm"
    assert columns["city"].variation == pytest.approx(0.5, abs=0.03)
    assert columns["city"].unseen.new == pytest.approx(200 / 3000)
    assert columns["income"].missing.change == pytest.approx(0.2)
    assert "city: unseen values rose from 0 to 6.67 %" in found.reasons
    assert "score: rows without a score rose from 0 to 6.67 %" in found.reasons
    assert columns["age"].level == columns["debt"].level == "fine"
    assert "score: rows" not in " ".join(drift(frozen, before, now, on_unseen="missing").reasons)


def test_scores_that_are_not_there_do_not_compare(tmp_path: Path) -> None:
    """Every new row has a city that the model does not know, and no age."""
    frozen, rng = mixed(), np.random.default_rng(6)
    before, now = people(500, rng), people(500, rng)
    now["city"] = ["Paris"] * 500
    now["age"] = [None] * 500
    for reference, new, what in ((before, now, "new row"), (now, before, "row of the reference")):
        found = drift(frozen, reference, new, threshold=0.0)
        assert found.level == "alarm"
        assert f"score: no {what} has a score, so scores cannot be compared" in found.reasons
        assert found.scores[0].distances is None
        assert (found.shift_bound, found.transport, found.decisions) == (None, None, {})
        assert {column.name: column for column in found.columns}["age"].distances is None
        assert not any("decisions" in reason for reason in found.reasons)
        assert "nan" not in json.dumps(found.to_dict()).lower()
    summaries = summarize(frozen, before), summarize(frozen, now)
    page.write(frozen, tmp_path / "p.html", compare(frozen, *summaries), *summaries)


def test_decisions_are_counted_exactly() -> None:
    frozen, X = small(), RNG.normal(size=(1000, 3))
    threshold = float(np.median(frozen.score(X)))
    Y = X + np.array([0.5, 0.0, 0.0])
    found = drift(frozen, X, Y, threshold=threshold)
    share = found.decisions["accepted"]
    assert share.reference == np.mean(frozen.score(X) >= threshold)
    assert share.new == np.mean(frozen.score(Y) >= threshold)
    assert share.error == pytest.approx(np.sqrt(2) * 0.0158, rel=0.1)
    assert any(reason.startswith("decisions: share of accepted rows") for reason in found.reasons)
    assert drift(frozen, X, Y).decisions == {}


def test_several_classes_have_shares_and_no_bound() -> None:
    torch.manual_seed(0)
    network = MonotonicNetwork([2, 8, 3], monotonic_cst=[[1, 0]] + [[0, 0]] * 2, outputs="logits")
    frozen = freeze(network, features=["a", "b"], classes=["x", "y", "z"])
    X = RNG.normal(size=(500, 2))
    found = drift(frozen, X, X + 5.0)
    assert list(found.decisions) == ["x", "y", "z"]
    assert sum(share.new for share in found.decisions.values()) == pytest.approx(1.0)
    assert found.shift_bound is found.transport is found.columns[0].could_move is None
    assert [each.name for each in found.scores] == ["score_x", "score_y", "score_z"]


def test_a_saved_summary_stands_in_for_the_table(tmp_path: Path) -> None:
    frozen, rng = mixed(), np.random.default_rng(7)
    P, Q = people(4000, rng), people(1000, rng, older=6.0)
    reference = summarize(frozen, P, threshold=0.5)
    reference.save(tmp_path / "reference.json")
    again = read_summary(tmp_path / "reference.json", frozen)
    new = summarize(frozen, Q, threshold=0.5)
    one, two = compare(frozen, reference, new), compare(frozen, again, new)
    assert (one.level, one.decisions) == (two.level, two.decisions)
    for a, b in zip((*one.columns, *one.scores), (*two.columns, *two.scores), strict=True):
        assert (a.missing, a.unseen, a.variation) == (b.missing, b.unseen, b.variation)
        if a.distances is not None and b.distances is not None:
            apart = abs(a.distances.wasserstein - b.distances.wasserstein)
            assert apart <= b.distances.within * (1 + 1e-6) + 1e-12
            assert abs(a.distances.ks - b.distances.ks) <= b.distances.ks_within + 1e-12
    assert two.shift_bound is not None
    assert one.shift_bound is not None
    assert two.transport <= one.shift_bound <= two.shift_bound  # type: ignore[operator]


def test_what_is_no_summary_is_refused(tmp_path: Path) -> None:
    frozen, path = small(), tmp_path / "reference.json"
    summarize(frozen, RNG.normal(size=(50, 3))).save(path)
    good = json.loads(path.read_text())
    for change, message in (
        ({"format": 2}, "its format is 2 instead of 1; it must be what `isotone monitor"),
        ({"n_rows": -1}, "-1 is not a count"),
        ({"columns": []}, "its columns are not those of the model"),
        ({"columns": [{}]}, "lacks 'sketch'"),
        ({"scores": 3}, "is not a summary"),
        ({"fingerprint": "0" * 64}, "is a summary for the model 000000000000… but this one is"),
    ):
        path.write_text(json.dumps(good | change))
        with pytest.raises(ValueError, match=message):
            read_summary(path, frozen)


def test_what_does_not_compare_is_refused() -> None:
    frozen, X = small(), RNG.normal(size=(50, 3))
    one = summarize(frozen, X, threshold=0.0)
    with pytest.raises(ValueError, match=r"`threshold=0.0` and the new rows with `threshold=1.0`"):
        compare(frozen, one, summarize(frozen, X, threshold=1.0))
    with pytest.raises(ValueError, match=r"made with another model; both must be made with"):
        compare(small(seed=1), one, one)
    with pytest.raises(ValueError, match=r"the table has no rows; give one that has some"):
        summarize(frozen, X[:0])
    with pytest.raises(ValueError, match=r"`psi=-1` must be positive and finite; choose another"):
        Levels(psi=-1)


def test_a_page_shows_names_as_text_and_runs_nothing(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    frozen = small(features=[hostile, "b", "c"])
    P, Q = (summarize(frozen, RNG.normal(m, size=(500, 3))) for m in (0, 2))
    size = page.write(frozen, tmp_path / "d.html", compare(frozen, P, Q), P, Q, title=hostile)
    text = (tmp_path / "d.html").read_text()
    assert size == len(text.encode())
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "script-src 'none'" in text
    assert " style=" not in text
    assert text.count("<svg") == 4
    assert "ALARM" in text


def write(path: Path, X: Any) -> str:
    table = pa.table({name: X[:, i] for i, name in enumerate(("x0", "x1", "x2"))})
    write_table(path, table.schema, table.to_batches())
    return str(path)


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as exit_:
        main(["monitor", *map(str, words)])
    return int(exit_.value.code or 0)


def test_the_command_ends_with_its_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frozen, model = small(), tmp_path / "model.isotone"
    frozen.save(model)
    X = np.random.default_rng(8).normal(size=(4000, 3))
    table, same = write(tmp_path / "a.parquet", X[:2000]), write(tmp_path / "b.csv", X[2000:])
    moved = write(tmp_path / "c.parquet", X + 1.0)
    reference, out = tmp_path / "reference.json", tmp_path / "drift.json"
    assert run(model, table, "--save-reference", reference, "--threshold", "0.5") == 0
    assert "wrote" in capsys.readouterr().out
    assert run(model, reference, same, "--out", out) == 0
    said = capsys.readouterr().out
    assert said.startswith("FINE")
    assert "2,000 of the reference, 2,000 new" in said
    assert json.loads(out.read_text())["level"] == "fine"
    assert run(model, reference, moved, "--page", tmp_path / "drift.html") == 1
    said = capsys.readouterr().out
    assert said.startswith("ALARM")
    assert "x0: population stability index" in said
    assert "transport" in said
    assert (tmp_path / "drift.html").stat().st_size > 5000
    assert run(model, table, moved, "--psi", "1000", "--decisions", "1000") == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no table to judge was given; give one after the reference"),
        (["--save-reference", "r.json", "--out", "o.json"], "no table to judge was given"),
        (["b.parquet", "--on-unseen", "error"], "choose skip or missing"),
        (["b.parquet", "--psi", "0"], "`psi=0.0` must be positive"),
        (["b.parquet", "--threshold", "1", "--point", "p.json"], "give one of them"),
        (["b.parquet", "--out", "b.parquet"], "outputs must not be inputs"),
    ],
)
def test_words_that_do_not_fit_are_refused(
    words: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    small().save("model.isotone")
    for name in ("a.parquet", "b.parquet"):
        write(Path(name), RNG.normal(size=(20, 3)))
    assert run("model.isotone", "a.parquet", *words) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_line_moves_its_score_as_far_as_its_column() -> None:
    frozen = by_hand(0.5)
    X = RNG.normal(size=(1000, 1))
    found = drift(frozen, X, X + 0.25)
    shift = found.scores[0].distances
    assert shift is not None
    assert shift.mean_change == pytest.approx(0.375, abs=1e-5)
    assert found.shift_bound == pytest.approx(0.375, abs=1e-5)
    assert found.columns[0].could_move == pytest.approx(0.375, abs=1e-5)
