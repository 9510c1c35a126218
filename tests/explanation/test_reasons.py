"""Reasons are Shapley values by their definition, and signs that are proved are never wrong."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotone
from isotone import FrozenNetwork, Scaling
from isotone.explanation import Background, Explainer, Reasons, explain
from isotone.frozen.steps import Dense, Sort
from isotone.typing import Floats
from networks import MIXED, PEOPLE, mixed, small


def by_definition(frozen: FrozenNetwork, x: Floats, background: Floats) -> list[Fraction]:
    """Shapley values of raw columns from features, in rational arithmetic."""
    owners = np.array(frozen.inputs.owners)
    k = owners.max() + 1

    def v(columns: tuple[int, ...]) -> Fraction:
        rows = np.where(np.isin(owners, columns), x, background)
        return sum(map(Fraction, frozen.score_features(rows).tolist()), Fraction(0)) / len(rows)

    values = []
    for i in range(k):
        others = [j for j in range(k) if j != i]
        value = Fraction(0)
        for size in range(k):
            weight = Fraction(factorial(size) * factorial(k - size - 1), factorial(k))
            for S in combinations(others, size):
                value += weight * (v((*S, i)) - v(S))
        values.append(value)
    return values


def additive(n: int, seed: int = 0) -> FrozenNetwork:
    """A sum of functions of single columns, each through a sort of its own."""
    rng = np.random.default_rng(seed)
    first = np.kron(np.eye(n), rng.normal(size=(2, 1)))
    steps = (
        Dense(first, rng.normal(size=2 * n)),
        Sort(2),
        Dense(rng.normal(size=(1, 2 * n)), np.zeros(1)),
    )
    return FrozenNetwork(
        features=tuple(f"x{i}" for i in range(n)),
        scaling=Scaling.identity(n),
        steps=steps,
        residual=np.zeros((1, n)),
        lipschitz=np.full(n, 100.0),
        monotonic_cst=np.zeros((1, n), np.int8),
    )


@pytest.mark.parametrize("seed", range(3))
def test_exact_values_are_those_of_the_definition(seed: int) -> None:
    frozen, rng = small(seed=seed, monotonic_cst=(1, 0, -1, 0)), np.random.default_rng(seed)
    X, B = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    found = explain(frozen, X, B)
    for row, values in zip(X, found.contributions, strict=True):
        expected = [float(value) for value in by_definition(frozen, row, B)]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-13)
    assert not found.errors.any()
    assert found.method == "Shapley values, exact, against all 5 rows of the background"


def test_a_raw_column_has_one_value_whatever_features_it_becomes() -> None:
    """Text, orders, knots and missing values are the table's columns."""
    frozen = mixed(directions=(1, -1, -1, 1))
    found = explain(frozen, PEOPLE, PEOPLE)
    assert found.columns == MIXED.names
    features = frozen.encode(PEOPLE)
    for row, values in zip(features, found.contributions, strict=True):
        expected = [float(value) for value in by_definition(frozen, row, features)]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", ["exact", "sampled"])
def test_they_sum_to_the_difference_of_the_scores(method: Any) -> None:
    frozen = mixed(directions=(1, -1, -1, 1))
    found = explain(frozen, PEOPLE, PEOPLE, method=method, n_background=3)
    total = found.contributions.sum(axis=1)
    np.testing.assert_allclose(total, found.score - found.baseline, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(found.score, frozen.score(PEOPLE))


def test_columns_that_enter_alike_get_the_same_and_one_without_effect_nothing() -> None:
    weight = np.random.default_rng(0).normal(size=(6, 3))
    weight[:, 1], weight[:, 2] = weight[:, 0], 0.0
    frozen = FrozenNetwork(
        features=("a", "twin", "unused"),
        scaling=Scaling.identity(3),
        steps=(Dense(weight, np.zeros(6)), Sort(3), Dense(np.ones((1, 6)), np.zeros(1))),
        residual=np.array([[0.5, 0.5, 0.0]]),
        lipschitz=np.full(3, 100.0),
        monotonic_cst=np.zeros((1, 3), np.int8),
    )
    rng = np.random.default_rng(1)
    X, B = rng.normal(size=(20, 3)), rng.normal(size=(8, 3))
    X[:, 1], B[:, 1] = X[:, 0], B[:, 0]
    found = explain(frozen, X, B).contributions
    np.testing.assert_allclose(found[:, 0], found[:, 1], rtol=0, atol=1e-13)
    assert np.all(found[:, 2] == 0.0)
    sampled = explain(frozen, X, B, method="sampled").contributions
    assert np.all(sampled[:, 2] == 0.0)


def test_columns_that_do_not_interact_are_enumerated_apart() -> None:
    """Otherwise forty columns would take a million million sets."""
    frozen, rng = additive(40), np.random.default_rng(0)
    X, B = rng.normal(size=(4, 40)), rng.normal(size=(6, 40))
    found = explain(frozen, X, B)
    assert "exact" in found.method
    assert not found.errors.any()
    for i in range(40):
        swapped = [np.where(np.arange(40) == i, x, B) for x in X]
        alone = [np.mean(frozen.score(rows) - frozen.score(B)) for rows in swapped]
        np.testing.assert_allclose(found.contributions[:, i], alone, rtol=0, atol=1e-11)


@pytest.mark.parametrize("method", ["exact", "sampled"])
@pytest.mark.parametrize("seed", range(8))
def test_hostile_rows_do_not_break_a_proved_sign(seed: int, method: Any) -> None:
    """Networks as steep as they may be, rows one bit apart, on the grid, huge and equal."""
    frozen, rng = small(seed=seed, monotonic_cst=(1, -1, 0, 1)), np.random.default_rng(seed)
    B = rng.normal(size=(7, 4)) * 10.0 ** rng.integers(-6, 4)
    B[:, 3] = B[0, 3]
    ends = [B.min(axis=0), B.max(axis=0)]
    near = [np.nextafter(end, side * np.inf) for end in ends for side in (-1, 1)]
    pool = np.array([*ends, *near, ends[0] - 1e300, ends[1] + 1e300, ends[1] + 2.0**-21])
    X = np.stack([pool[rng.integers(len(pool), size=200), i] for i in range(4)], axis=1)
    found = explain(frozen, X, B, method=method)
    up, down = found.proved.never_negative, found.proved.never_positive
    assert up[:, 0].any()
    assert down[:, 1].any()
    assert not (up | down)[:, 2].any()
    assert np.all(found.contributions[up] >= 0.0)
    assert np.all(found.contributions[down] <= 0.0)
    assert np.all(found.contributions[up & down] == 0.0)
    np.testing.assert_array_equal(up[:, 0], X[:, 0] >= B[:, 0].max())


def test_a_sign_is_proved_against_the_whole_table_not_only_the_rows_drawn() -> None:
    frozen = small()
    table = np.random.default_rng(0).normal(size=(500, 3))
    background = Background.of(frozen, table, n_rows=5)
    x = np.array([[background.features[:, 0].max(), 0.0, 0.0], [table[:, 0].max(), 0.0, 0.0]])
    signs = Explainer(frozen, background).explain(x).proved.signs
    assert signs[:, 0].tolist() == [0, 1]


def test_nothing_is_proved_without_a_direction_that_holds_for_computed_scores() -> None:
    x, background = [[9.0, 9.0, -9.0]], np.zeros((2, 3))
    assert explain(small(), x, background).proved.signs.tolist() == [[1, 0, 1]]
    assert not explain(small(grid=None), x, background).proved.signs.any()


def test_a_missing_value_has_no_sign_unless_its_indicator_has_one() -> None:
    frozen = mixed(directions=(1, -1, -1, 1))
    rows = {name: [cells[0]] * 2 for name, cells in PEOPLE.items()} | {"age": [99.0, None]}
    present = {name: [cells[0], cells[3]] for name, cells in PEOPLE.items()}
    signs = explain(frozen, rows, present).proved.signs
    assert signs[:, 0].tolist() == [1, 0]
    assert explain(frozen, rows, PEOPLE).proved.signs[:, 0].tolist() == [0, 0]


def test_errors_tell_how_far_drawn_values_are_off() -> None:
    frozen, rng = small(seed=3, monotonic_cst=(1, 0, -1, 0, 1)), np.random.default_rng(3)
    X, table = rng.normal(size=(30, 5)), rng.normal(size=(400, 5))
    exact = explain(frozen, X, table, n_background=400).contributions
    for options in ({"method": "sampled", "n_background": 400}, {"method": "sampled"}, {}):
        found = explain(frozen, X, table, seed=1, **options)  # type: ignore[arg-type]
        off = np.abs(found.contributions - exact) / found.errors
        assert 0.2 < np.sqrt(np.mean(off**2)) < 3.0
    few = explain(frozen, X, table[:1], method="sampled", n_orders=1)
    assert np.all(np.isnan(few.errors))
    assert np.all(explain(frozen, X[:, :], table[:1]).errors == 0.0)


def test_a_row_is_explained_alike_alone_and_among_others() -> None:
    frozen, rng = small(), np.random.default_rng(0)
    X, B = rng.normal(size=(9000, 3)), rng.normal(size=(4, 3))
    for method in ("exact", "sampled"):
        found = explain(frozen, X, B, method=method).contributions  # type: ignore[arg-type]
        alone = explain(frozen, X[8999:], B, method=method).contributions  # type: ignore[arg-type]
        np.testing.assert_allclose(found[8999:], alone, rtol=0, atol=1e-15)


def test_more_than_twelve_columns_are_drawn() -> None:
    frozen, rng = small(monotonic_cst=(1,) * 14), np.random.default_rng(0)
    X, B = rng.normal(size=(3, 14)), rng.normal(size=(4, 14))
    found = explain(frozen, X, B)
    assert found.method.startswith("Shapley values, 32 orders drawn, there and back")
    assert np.all(found.errors > 0)
    exact = explain(frozen, X, B, method="exact")
    assert np.all(np.abs(found.contributions - exact.contributions) < 6 * found.errors + 1e-12)
    with pytest.raises(ValueError, match="`method='exact'` would enumerate the sets of 25"):
        explain(
            small(monotonic_cst=(1,) * 25), np.zeros((1, 25)), np.zeros((1, 25)), method="exact"
        )


def test_of_several_classes_it_is_the_probability_of_one() -> None:
    frozen = mixed(n_outputs=3, outputs="logits", classes=("a", "b", "c"))
    found = explain(frozen, PEOPLE, PEOPLE, output="b")
    np.testing.assert_array_equal(found.score, frozen.probability(PEOPLE)[:, 1])
    assert found.output == "probability of b"
    total = found.contributions.sum(axis=1)
    np.testing.assert_allclose(total, found.score - found.baseline, rtol=0, atol=1e-13)
    for name in (None, "d", 3):
        with pytest.raises(ValueError, match="must name one of the 3 outputs"):
            explain(frozen, PEOPLE, PEOPLE, output=name)


def test_ranks_put_the_largest_first() -> None:
    found = Reasons(
        columns=("a", "b", "c", "d"),
        output="score",
        score=np.zeros(2),
        baseline=0.0,
        baseline_error=0.0,
        contributions=np.array([[1.0, -3.0, 0.0, 2.0], [np.nan] * 4]),
        errors=np.zeros((2, 4)),
        proved=None,  # type: ignore[arg-type]
        method="",
    )
    assert found.ranked().tolist() == [[1, 3, 0, -1], [-1] * 4]
    assert found.ranked(1, "raises").tolist() == [[3], [-1]]
    assert found.ranked(2, "lowers").tolist() == [[1, -1], [-1, -1]]
    with pytest.raises(ValueError, match="`side='up'` is unknown"):
        found.ranked(side="up")  # type: ignore[arg-type]


def test_a_background_is_a_file_or_rows_and_its_draw_depends_on_the_seed(tmp_path: Path) -> None:
    frozen = mixed()
    table = pd.DataFrame({name: cells * 20 for name, cells in PEOPLE.items()})
    table.to_parquet(tmp_path / "table.parquet")
    read = Background.of(frozen, tmp_path / "table.parquet", n_rows=9)
    given = Background.of(frozen, table, n_rows=9)
    np.testing.assert_array_equal(read.features, given.features)
    assert (read.n_table, len(read.features), read.is_whole) == (100, 9, False)
    other = Background.of(frozen, table, n_rows=9, seed=1)
    assert not np.array_equal(other.features, given.features)
    with pytest.raises(ValueError, match="the background was read with the model"):
        Explainer(mixed(seed=1), given)
    with pytest.raises(ValueError, match="the background has no rows with features"):
        Background.of(frozen, table[:0])


def test_rows_without_features_have_no_reasons() -> None:
    frozen = mixed()
    strange = PEOPLE | {"city": ["Oslo", "Nowhere", None, "Oslo", "Rome"]}
    with pytest.raises(ValueError, match="Nowhere"):
        explain(frozen, strange, PEOPLE)
    found = explain(frozen, strange, PEOPLE, on_unseen="skip")
    assert np.isnan(found.contributions).all(axis=1).tolist() == [False, True] + [False] * 3
    assert np.isnan(found.score[1])
    assert not found.proved.signs[1].any()


def test_a_certificate_will_do_for_the_model() -> None:
    frozen = mixed()
    found = explain(isotone.certify(frozen), PEOPLE, PEOPLE)
    np.testing.assert_array_equal(
        found.contributions, explain(frozen, PEOPLE, PEOPLE).contributions
    )
