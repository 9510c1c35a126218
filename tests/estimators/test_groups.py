"""Groups: rows that belong together are learned from together, or left out together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import isotone
from isotone import MonotonicClassifier, MonotonicRegressor, cli
from isotone.cli.table.columns import choose_columns
from isotone.cli.table.rows import Reading, read_rows
from isotone.data.table import open_table
from isotone.estimators.fitting import members
from isotone.estimators.preparation.observations import (
    folds,
    hold_out,
    lasting_folds,
    observations,
    with_groups,
)
from isotone.training.rows import Rows

RNG = np.random.default_rng(0)
N_EVENTS, COPIES = 120, 4
EVENT = np.repeat(np.arange(N_EVENTS), COPIES)
X = RNG.normal(size=(N_EVENTS, 2))[EVENT] + 1e-3 * RNG.normal(size=(len(EVENT), 2))
NOISE = RNG.integers(0, 2, N_EVENTS)[EVENT]  # a label that X cannot tell, but relatives can


def split_groups(rows: Rows, found: Any) -> list[int]:
    """Groups whose rows are in more than one part."""
    assert rows.group is not None
    return [g for g in np.unique(rows.group) if len(set(found[rows.group == g])) > 1]


@pytest.fixture
def rows() -> Rows:
    raw = Rows(X, NOISE[:, None].astype(float), np.ones(len(X)))
    return observations(with_groups(raw, EVENT))


@pytest.mark.parametrize("n_folds", [2, 3, 8])
def test_no_group_is_in_two_folds(rows: Rows, n_folds: int) -> None:
    for divide in (folds, lasting_folds):
        found = divide(rows, n_folds, 1)
        assert split_groups(rows, found) == []
        assert set(found) == set(range(n_folds))
    plain = folds(Rows(rows.x, rows.y), n_folds, 1)
    assert split_groups(rows, plain) != []  # so the test can fail


def test_a_hold_out_is_a_fraction_of_the_groups(rows: Rows) -> None:
    found = hold_out(rows, 0.25, seed=3)
    assert split_groups(rows, found) == []
    assert np.count_nonzero(found == 0) == N_EVENTS * COPIES // 4


def test_targets_are_spread_evenly_over_the_folds(rows: Rows) -> None:
    found = folds(rows, 4, seed=0)
    shares = [rows.y[found == k].mean() for k in range(4)]
    assert np.ptp(shares) < 0.05


def test_lasting_folds_do_not_change_with_more_rows(rows: Rows) -> None:
    assert rows.group is not None
    half = rows[: len(rows) // 2]
    assert half.group is not None
    fold = dict(zip(rows.group.tolist(), lasting_folds(rows, 2, seed=5).tolist(), strict=True))
    again = lasting_folds(half, 2, seed=5)
    assert [fold[g] for g in half.group.tolist()] == again.tolist()


def test_equal_rows_of_different_groups_stay_apart() -> None:
    raw = Rows(np.ones((4, 1)), np.ones((4, 1)), np.ones(4))
    merged = observations(with_groups(raw, ["a", "a", "b", "b"]))
    assert merged.group is not None
    assert len(np.unique(merged.group)) == 2
    assert len(observations(raw)) == 1


def test_the_order_of_rows_does_not_matter() -> None:
    order = RNG.permutation(len(X))
    words: dict[str, Any] = {"lipschitz": 2.0, "max_iter": 3, "early_stopping": True}
    models = [
        MonotonicClassifier(n_members=1, hidden_layer_sizes=(8,), random_state=0, **words).fit(
            X[k], NOISE[k], groups=EVENT[k]
        )
        for k in (np.arange(len(X)), order)
    ]
    assert models[0].network_.fingerprint == models[1].network_.fingerprint


@pytest.mark.parametrize(
    "words",
    [{}, {"lipschitz": 1.0, "early_stopping": True}, {"lipschitz": {"a": 1.0}}],
    ids=["search", "early stopping", "ladder"],
)
def test_no_member_is_judged_by_relatives_of_what_it_learned(
    words: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    original = members._share
    monkeypatch.setattr(
        members, "_share", lambda rows, *rest: seen.append(rest[-1]) or original(rows, *rest)
    )
    raw = Rows(X, NOISE[:, None].astype(float), np.ones(len(X)))
    known = observations(with_groups(raw, EVENT))
    model = MonotonicClassifier(max_iter=2, hidden_layer_sizes=(8,), random_state=0, **words)
    model.fit({"a": X[:, 0], "b": X[:, 1]}, NOISE, groups=EVENT)
    parts = [found for found in seen if found is not None]
    assert parts
    assert all(split_groups(known, found) == [] for found in parts)


def test_relatives_no_longer_make_noise_look_learned() -> None:
    words: dict[str, Any] = {"max_iter": 40, "hidden_layer_sizes": (16, 16), "random_state": 0}
    words |= {"lipschitz": 64.0, "knots": None, "early_stopping": True, "n_members": 1}
    apart = MonotonicClassifier(**words).fit(X, NOISE, groups=EVENT).history_
    mixed = MonotonicClassifier(**words).fit(X, NOISE).history_
    assert np.min(apart.validation) > 0.9 * np.log(2)  # nothing can be learned
    assert np.min(mixed.validation) < np.min(apart.validation)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (EVENT[:3], r"`groups` has shape \(3,\); there must be one label for each of 480 rows"),
        (np.zeros(len(X)), "`groups` holds one group, '0.0'; rows are learned from or left out"),
    ],
)
def test_groups_that_are_none(groups: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MonotonicRegressor(max_iter=1).fit(X, X[:, 0], groups=groups)


# The command


@pytest.fixture
def table(tmp_path: Path) -> Path:
    columns = {"run": EVENT % 2, "event": EVENT // 2, "a": X[:, 0], "b": X[:, 1], "y": NOISE}
    pa.parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_the_held_out_rows_of_the_command_are_whole_events(table: Path) -> None:
    source = open_table(table)
    columns = choose_columns(source, "y", None, None, None, None, group_by="run,event")
    assert columns.features == ("a", "b")
    how = Reading(None, "0.25", "", False, None, 1, ("run", "event"))
    _, training, held = read_rows(source, columns, how)
    assert training.group is not None
    assert held.group is not None
    assert set(training.group).isdisjoint(held.group)
    assert len(held.y) == len(X) // 4


def test_a_category_that_only_one_event_has_takes_its_event_along(tmp_path: Path) -> None:
    kind = np.where(EVENT == 7, "rare", np.where(EVENT % 2, "a", "b")).tolist()
    columns = {"event": EVENT, "kind": kind, "y": NOISE}
    pa.parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    source = open_table(tmp_path / "t.parquet")
    chosen = choose_columns(
        source, "y", None, None, None, None, categorical="kind", group_by="event"
    )
    how = Reading(None, "0.9", "", False, None, 1, ("event",))
    _, training, held = read_rows(source, chosen, how)
    assert training.group is not None
    assert held.group is not None
    assert set(training.group).isdisjoint(held.group)
    assert "rare" in training.X["kind"].to_pylist()


def run(table: Path, words: str) -> int:
    out = str(table.parent / "m.isotone")
    with pytest.raises(SystemExit) as exit_:
        cli.main(["train", str(table), "--target", "y", *words.split(), "--out", out])
    return int(exit_.value.code or 0)


def test_the_command_hands_groups_to_the_fit(table: Path) -> None:
    quick = "--max-iter 2 --n-members 1 --hidden-layer-sizes 8"
    assert run(table, f"--group-by run,event {quick}") == 0
    assert isotone.load(table.parent / "m.isotone").inputs.names == ("a", "b")


def test_an_unknown_or_missing_group(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(table, "--group-by evnt") == 2
    assert "has no column 'evnt'; did you mean 'event'?" in capsys.readouterr().err
    content = pa.parquet.read_table(table).to_pydict() | {"run": [None] + [1] * (len(X) - 1)}
    pa.parquet.write_table(pa.table(content), table)
    assert run(table, "--group-by run") == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "column 'run' is missing in row 0" in error
    assert "every row must belong to an event, or a group" in error


def test_a_stream_has_groups(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isotone.data.survey.SMALL_ROWS", 100)
    folder = table.parent / "d"
    folder.mkdir()
    table.rename(folder / "t.parquet")
    quick = "--max-iter 2 --n-members 1 --hidden-layer-sizes 8"
    assert run(folder, f"--group-by event {quick}") == 0
    assert isotone.load(folder.parent / "m.isotone").inputs.names == ("run", "a", "b")
