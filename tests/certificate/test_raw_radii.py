"""Radii and flips in raw columns, with knots, ranks, categories and missing values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from isotone import FrozenNetwork, MonotonicNetwork, Scaling, certify, freeze
from isotone.certificate.certify import Certificate
from isotone.certificate.coordinates import Coordinates
from isotone.certificate.robustness import Decisions
from isotone.frozen.steps import Dense
from isotone.inputs.chain import Inputs
from isotone.inputs.knots import Knots
from isotone.typing import Bools, Floats
from networks import AGES, MIXED, RANKS, by_hand, mixed

OPTIONS: list[dict[str, Any]] = [{}, {"precision": "float32"}, {"grid": None}, {"grid": 2.0**-6}]
NUMBERS = ["age", "debt", "income"]
Table = dict[str, list[Any]]


def draw(n: int, seed: int = 0) -> Table:
    """Rows at and around knots, far beyond them, and in between; some values are missing."""
    rng = np.random.default_rng(seed)
    knots = np.array(AGES)
    near = np.concatenate(
        [np.nextafter(knots, -np.inf), knots, np.nextafter(knots, np.inf), knots - 2.0**-18]
    )
    age = np.where(rng.random(n) < 0.4, rng.choice(near, n), rng.uniform(10, 100, n))
    columns: Table = {
        "age": np.where(rng.random(n) < 0.02, 1e300, age).tolist(),
        "city": rng.choice(["Oslo", "Rome"], n).tolist(),
        "size": rng.choice(RANKS, n).tolist(),
        "debt": (300 + 100 * rng.normal(size=n)).tolist(),
        "income": np.where(rng.random(n) < 0.1, -3.0, rng.lognormal(6, 1, n)).tolist(),
    }
    for name in ("age", "city", "size", "income"):
        for row in np.flatnonzero(rng.random(n) < 0.15):
            columns[name][row] = None
    return columns


def decide(frozen: FrozenNetwork, scores: Floats, threshold: float) -> Any:
    return scores.argmax(axis=1) if frozen.n_outputs > 1 else scores >= threshold


def thresholds(frozen: FrozenNetwork, table: Table) -> list[float]:
    """In the middle of the scores, and a few cells or errors off one of them."""
    if frozen.n_outputs > 1:
        return [0.0]
    scores = frozen.score(table).astype(np.float64)
    near = [float(scores[0]) + off for off in (0.0, 1e-15, -1e-12, 3e-7, -4e-6, 1e-4)]
    return [float(np.median(scores)), *near]


def models() -> list[FrozenNetwork]:
    shapes: list[tuple[int, tuple[int, ...]]] = [(1, ()), (1, (1, -1, 1, -1)), (3, ())]
    return [
        mixed(k, directions, seed, outputs="logits" if k > 1 else "values", **options)
        for seed, (k, directions) in enumerate(shapes)
        for options in OPTIONS
    ]


def identify(frozen: FrozenNetwork) -> str:
    return f"{frozen.n_outputs}-{frozen.precision}-{frozen.grid}-{frozen.monotonic_cst.sum()}"


@pytest.mark.parametrize("frozen", models(), ids=identify)
def test_no_column_that_moves_within_its_distance_changes_a_decision(
    frozen: FrozenNetwork,
) -> None:
    table, certificate, rng = draw(300), certify(frozen), np.random.default_rng(1)
    for threshold in thresholds(frozen, table):
        radius = certificate.certified_radius(table, threshold)
        decided = decide(frozen, frozen.score(table), threshold)
        for sign, distances in ((-1, radius.down), (1, radius.up)):
            assert distances.shape == (300, 5)
            for name in NUMBERS:
                distance = distances[:, MIXED.names.index(name)]
                for share in (1.0, rng.random(300)):
                    for far in (1e-9, 7.0, 1e300):  # infinite ones are tried near and far
                        moved = move(table, name, sign * share * np.minimum(distance, far))
                        found = decide(frozen, frozen.score(moved), threshold)
                        np.testing.assert_array_equal(found, decided)


def move(table: Table, name: str, steps: Floats) -> Table:
    """Missing values, whose steps are NaN, stay missing."""
    cells = [
        None if cell is None else cell + step
        for cell, step in zip(table[name], steps.tolist(), strict=True)
    ]
    return table | {name: cells}


@pytest.mark.parametrize("frozen", models()[::3], ids=identify)
def test_ordered_categories_move_in_ranks(frozen: FrozenNetwork) -> None:
    table, certificate, some = draw(400, 2), certify(frozen), 0
    threshold = thresholds(frozen, table)[0]
    radius, decided = (
        certificate.certified_radius(table, threshold),
        decide(frozen, frozen.score(table), threshold),
    )
    for sign, distances in ((-1, radius.down[:, 2]), (1, radius.up[:, 2])):
        cells = []
        for text, distance in zip(table["size"], distances.tolist(), strict=True):
            rank = 0.0 if text is None else RANKS.index(text) + sign * min(distance, 9.0)
            whole = int(np.ceil(rank) if sign < 0 else np.floor(rank))
            cells.append(None if text is None else RANKS[min(max(whole, 0), 3)])
        some += sum(a != b for a, b in zip(cells, table["size"], strict=True))
        moved = decide(frozen, frozen.score(table | {"size": cells}), threshold)
        np.testing.assert_array_equal(moved, decided)
    assert some > 20


def scaled(frozen: FrozenNetwork, features: Floats) -> Floats:
    """The coordinate of every feature: the sum of its exact copies, or what it is scaled to."""
    copies = frozen.copies
    assert copies is not None
    x = np.clip(
        frozen.scaling.transform(features[:, list(frozen.inputs.copies)]),
        -copies.reach,
        copies.reach,
    )
    return np.add.reduceat(x, copies.firsts, axis=1)


@pytest.mark.parametrize("frozen", models(), ids=identify)
def test_no_features_that_move_together_within_the_radius_change_a_decision(
    frozen: FrozenNetwork,
) -> None:
    table, certificate, rng = draw(300, 3), certify(frozen), np.random.default_rng(4)
    features, tried = frozen.encode(table), 0
    for threshold in thresholds(frozen, table):
        radius = certificate.radius_of_features(features, threshold).scaled
        decided = decide(frozen, frozen.score_features(features), threshold)
        for sharp in (1e-3, 1.0):  # corners of the ball, and its inside
            share = rng.dirichlet(np.full(features.shape[1], sharp), len(features))
            wanted = 0.999 * share * radius[:, None] * rng.choice([-1, 1], share.shape)
            moved = go(frozen, features, wanted)
            apart = np.abs(scaled(frozen, moved) - scaled(frozen, features)).sum(axis=1)
            inside = (apart <= radius) & (apart > 0)
            tried += inside.sum()
            found = decide(frozen, frozen.score_features(moved), threshold)
            np.testing.assert_array_equal(found[inside], decided[inside])
    assert tried > 100


def go(frozen: FrozenNetwork, features: Floats, wanted: Floats) -> Floats:
    """Features whose coordinates are moved by what is wanted, as far as they can; bisection."""
    low, high = features - 1000.0, features + 1000.0
    goal = scaled(frozen, features) + wanted
    for _ in range(60):
        middle = (low + high) / 2
        below = scaled(frozen, middle) < goal
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(wanted > 0, low, high)


@pytest.mark.parametrize("frozen", models(), ids=identify)
def test_no_more_decisions_flip_than_the_bound_says(frozen: FrozenNetwork) -> None:
    table, certificate, rng = draw(300, 5), certify(frozen), np.random.default_rng(6)
    threshold = thresholds(frozen, table)[0]
    decided = decide(frozen, frozen.score(table), threshold)
    for shifts in ({"age": 0.5, "income": (0.0, 20.0)}, {"debt": 5.0}, {"income": (-90.0, 0.0)}):
        bound = certificate.flip_bound(table, shifts, threshold)
        assert bound < 1
        for _ in range(10):
            moved = table
            for name, shift in shifts.items():
                low, high = (-shift, shift) if isinstance(shift, float) else shift
                moved = move(moved, name, rng.choice([low, high, rng.uniform(low, high)], 300))
            found = decide(frozen, frozen.score(moved), threshold)
            assert np.mean(found != decided) <= bound
    by_place = certificate.flip_bound(table, [0.5, 0, 1.0, 0, 0], threshold)
    assert by_place == certificate.flip_bound(table, {"age": 0.5, "size": 1}, threshold)


class TestWhatCannotMove:
    def test_categories_and_missing_values_have_no_distance(self) -> None:
        table = draw(100)
        radius = certify(mixed()).certified_radius(table)
        missing = np.array([[cell is None for cell in table[name]] for name in MIXED.names]).T
        missing[:, 1] = True  # a city has no order
        np.testing.assert_array_equal(np.isnan(radius.down), missing)
        np.testing.assert_array_equal(np.isnan(radius.up), missing)
        assert np.all(radius.scaled >= 0)

    def test_missing_values_do_not_flip(self) -> None:
        certificate, table = certify(mixed()), draw(50)
        threshold = float(np.median(certificate.frozen.score(table)))
        assert certificate.flip_bound(table, {"age": 1e6}, threshold) > 0
        missing = table | {"age": [None] * 50}
        assert certificate.flip_bound(missing, {"age": 1e6}, threshold) == 0

    @pytest.mark.parametrize("shifts", [{"city": 1.0}, [0, (0, 0.5), 0, 0, 0]])
    def test_a_shift_of_a_category_is_refused(self, shifts: Any) -> None:
        message = (
            "`shifts` moves 'city', which holds categories without an order; only numbers and "
            "ordered categories can be shifted: give it 0, or leave it out"
        )
        with pytest.raises(ValueError, match=message):
            certify(mixed()).flip_bound(draw(5), shifts)
        assert certify(mixed()).flip_bound(draw(5), {"city": 0.0}) == 0


def test_beyond_the_knots_and_in_the_helpful_direction_distances_are_infinite() -> None:
    frozen, table = mixed(1, (1, -1, 1, -1), 1), draw(200)
    certificate = certify(frozen)
    assert certificate.holds
    threshold = float(np.median(frozen.score(table)))
    radius = certificate.certified_radius(table, threshold)
    accepted = frozen.score(table) >= threshold
    for column, sign in ((0, 1), (2, -1), (3, 1), (4, -1)):
        helps = (radius.up, radius.down) if sign > 0 else (radius.down, radius.up)
        assert not np.any(np.isfinite(helps[0][accepted, column]))
        assert not np.any(np.isfinite(helps[1][~accepted, column]))
    old = np.array([cell is not None and cell >= AGES[-1] for cell in table["age"]])
    assert np.all(np.isinf(radius.up[old, 0]))
    least = np.array([cell is not None and cell < 0 for cell in table["income"]])
    assert np.all(np.isinf(radius.down[least, 4]))  # below the floor of the logarithm


def stairs(slopes: list[float], knots: list[float], **options: Any) -> FrozenNetwork:
    """f(x) = Σ w_j φ_j(x), whose slope is known exactly on every tile."""
    tiles = Knots.at([knots])
    inputs = Inputs.numbers(["x"], tiles.columns.tolist())
    n = len(slopes)
    zero = np.zeros(n, options.get("precision", "float64"))
    return FrozenNetwork(
        features=inputs.features,
        inputs=inputs,
        scaling=tiles.scaling,
        steps=(Dense(zero[None], zero[:1]),),
        residual=np.array([slopes]),
        lipschitz=np.ones(n),
        monotonic_cst=np.zeros((1, n)),
        clip=1.0,
        **options,
    )


@pytest.mark.parametrize("options", [{}, {"grid": None}])
def test_every_tile_counts_with_its_own_slope(options: Any) -> None:
    """Where slopes are exact, a distance ends just before the decision changes."""
    knots, slopes = [0.0, 1.0, 2.0, 4.0, 4.5], [0.5, 0.0, -1.0, 2.0]
    certificate = certify(stairs(slopes, knots, **options))
    tops = 2 * np.cumsum([0, *slopes]) - sum(slopes)  # scores at knots
    for x in np.linspace(-1, 5, 61):
        score = np.interp(x, knots, tops)
        for threshold in (score - 0.75, score + 0.75):
            radius = certificate.certified_radius([[x]], threshold)
            hurts = np.array(slopes) < 0 if threshold < score else np.array(slopes) > 0
            cost = 2 * np.cumsum([0, *np.where(hurts, np.abs(slopes), 0.0)])
            place = np.interp(x, knots, cost)
            end = knots[-1] if place + 0.75 > cost[-1] else np.interp(place + 0.75, cost, knots)
            beyond = place + 0.75 > cost[-1]
            assert radius.up[0, 0] == (np.inf if beyond else pytest.approx(end - x, abs=1e-5))


@pytest.mark.parametrize("options", [{"grid": 2.0**-4}, {"grid": None, "precision": "float32"}])
def test_scaled_radii_allow_for_the_grid_and_for_the_precision(options: Any) -> None:
    """Where the slope is exact, and the threshold as near as the grid or a rounding."""
    frozen = stairs([1.0, 1.0], [0.0, 1.0, 2.0], **options)
    certificate, x = certify(frozen), np.random.default_rng(0).uniform(0.4, 1.6, 200)
    near = 0.3 if options["grid"] else 1e-5
    for start, score in zip(x, frozen.score(x[:, None]).tolist(), strict=True):
        for threshold in (score - near, score + near):
            radius = certificate.certified_radius([[start]], threshold).scaled[0]
            assert radius > 0
            for sign in (-1, 1):
                moved = float(frozen.score([[start + sign * radius / 2]])[0])
                assert (moved >= threshold) == (score >= threshold)


def test_radii_with_knots_are_as_large_as_the_slopes_allow() -> None:
    """The network learns nothing from its knots here: as steep along x as one without."""
    X = np.random.default_rng(0).uniform(0.0, 8.0, (500, 1))
    plain = replace(
        stairs([2.0], [0.0, 8.0], grid=2.0**-20),
        scaling=Scaling.from_dict(
            Scaling.identity(1).to_dict() | {"center": [4.0], "factor": [0.25]}
        ),
    )
    several = stairs([0.25] * 8, np.arange(9.0).tolist())
    np.testing.assert_allclose(plain.score(X), several.score(X), atol=1e-5)
    for left, right in zip(*(medians(certify(f), X) for f in (plain, several)), strict=True):
        assert right == pytest.approx(left, rel=1e-4)


def medians(certificate: Certificate, X: Floats) -> list[float]:
    radius = certificate.certified_radius(X, 0.5)
    return [float(np.median(distance)) for distance in (radius.down, radius.up)]


def test_a_trained_shape_has_radii_that_are_not_idle() -> None:
    knots = Knots.at([np.linspace(0, 1, 17).tolist(), [0.0, 0.2, 1.0], [0.0, 1.0]])
    network = MonotonicNetwork([knots.n_copies, 8, 1], monotonic_cst=[1] * knots.n_copies)
    frozen = freeze(network, knots=knots)
    X = np.random.default_rng(0).random((300, 3))
    threshold = float(np.quantile(frozen.score(X), 0.3))
    radius = certify(frozen).certified_radius(X, threshold)
    assert np.median(radius.scaled) > 0.1
    accepted: Bools = frozen.score(X) >= threshold
    assert np.median(radius.down[accepted]) > 0.01
    assert np.all(np.isinf(radius.up[accepted]))


def test_what_moves_is_the_sum_of_the_copies() -> None:
    """W is monotone, also as computed, and its changes are those of the copies that enter."""
    frozen = mixed()
    decisions = certify(frozen).decisions()
    assert isinstance(decisions, Decisions)
    x = np.sort(frozen.encode(draw(500)), axis=0)
    for slopes in (decisions.fall, decisions.rise):
        coordinates = Coordinates(decisions.copies, slopes)
        w = coordinates.transform(x)
        assert np.all(np.diff(w, axis=0) >= 0)
        entered = frozen.snap(x).astype(np.float64) * slopes
        expected = np.add.reduceat(entered, decisions.copies.firsts, axis=1)
        error = np.abs(np.diff(w, axis=0) - np.diff(expected, axis=0))
        assert np.all(error <= coordinates.rounding)


def test_slopes_that_are_not_bounded_leave_no_distance() -> None:
    copies = certify(stairs([1.0, 1.0], [0.0, 1.0, 2.0]))._copies
    slopes = np.array([1.0, np.inf])
    distance = Coordinates(copies, slopes).distance(np.array([[0.5], [1.5]]), np.ones(2), 1)
    assert np.all(distance == 0)


def test_rows_with_unseen_values_have_no_radius_and_cost_no_other_theirs() -> None:
    frozen = mixed(directions=(1, 1, -1, 0))
    certificate, table = certify(frozen), draw(6)
    alone = certificate.certified_radius(table)
    strange = table | {"city": ["Nowhere", *table["city"][1:]]}
    with pytest.raises(ValueError, match="`on_unseen`, on the command line `--on-unseen`"):
        certificate.certified_radius(strange)
    radius = certificate.certified_radius(strange, on_unseen="skip")
    for found, expected in zip(
        (radius.scaled, radius.down, radius.up), (alone.scaled, alone.down, alone.up), strict=True
    ):
        assert np.isnan(found[0]).all()
        np.testing.assert_array_equal(found[1:], expected[1:])
    shifts = {"debt": 50.0}
    rest = {name: cells[1:] for name, cells in table.items()}
    assert certificate.flip_bound(strange, shifts, on_unseen="skip") == certificate.flip_bound(
        rest, shifts
    )


def test_a_center_from_which_differences_overflow_leaves_no_radius() -> None:
    scaling = Scaling(*np.array([[0.0], [0.0], [1.0], [-1e308], [1e-308]]))
    frozen = replace(by_hand(0.0), scaling=replace(scaling, log=np.array([False])))
    assert certify(frozen).certified_radius([[7.9e307]], threshold=10.0).scaled == 0.0
