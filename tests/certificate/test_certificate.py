"""Certificates: what holds is said to hold, what does not is not, and radii are safe."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from bench.proofs.last_bit import adversarial
from isotone import FrozenNetwork, Knots, Log, MonotonicNetwork, Scaling, certify, freeze
from isotone.certificate import bounds
from isotone.frozen.steps import Dense, residual_block
from networks import by_hand, small

certify_once = cache(certify)


def test_an_honest_network_holds() -> None:
    certificate = certify(small())
    assert certificate.holds
    assert certificate.guarantee == "computed scores are monotone to the last bit"
    assert all(v.real and v.computed for v in certificate.verdicts)
    assert {(v.feature, v.direction) for v in certificate.verdicts} == {("x0", 1), ("x2", -1)}


def test_slopes_are_those_of_the_theorem() -> None:
    slopes = {s.feature: s.scaled for s in certify(small(lipschitz=3.0)).slopes}
    assert slopes["x0"].low > 0
    assert slopes["x0"].high < 6
    assert -3 <= slopes["x1"].low < slopes["x1"].high <= 3
    assert -6 < slopes["x2"].low < slopes["x2"].high < 0


@pytest.mark.parametrize(
    ("slope", "direction", "holds"),
    [(-0.9, 1, True), (-1.1, 1, False), (-1.0, 1, True), (1.0, 1, True), (0.9, -1, True)],
)
def test_a_hand_made_network_is_judged_by_its_numbers(
    slope: float, direction: int, holds: bool
) -> None:
    assert certify(by_hand(slope, direction)).holds is holds


def test_a_slope_that_cancels_the_residual_holds_really_but_not_as_computed() -> None:
    # 2⁻⁶¹ is the unit of the sums, and 1024 of it too wide for float64: E is not zero
    verdict = certify(by_hand(-1.0 + 2.0**-40)).verdicts[0]
    assert verdict.real
    assert verdict.computed is False


def test_without_a_grid_nothing_is_promised_about_computed_scores() -> None:
    certificate = certify(by_hand(-0.9, grid=None))
    assert certificate.holds
    assert certificate.verdicts[0].computed is None
    assert certificate.guarantee.startswith("computed scores are monotone up to")


def test_float32_is_monotone_up_to_twice_its_error() -> None:
    frozen = small(precision="float32")
    certificate = certify(frozen)
    error = certificate.rounding_errors[0]
    assert certificate.holds
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 3))
    for step in (1e-7, 1e-6, 1e-5):
        drop = frozen.score(X).astype(float) - frozen.score(X + np.array([step, 0, 0]))
        assert drop.max() <= 2 * error


def test_a_smaller_residual_or_larger_weight_fails() -> None:
    frozen = small()
    assert not certify(replace(frozen, residual=0.5 * frozen.residual)).holds
    first = frozen.steps[0]
    assert isinstance(first, Dense)
    larger = Dense(first.weight * (1 + 1e-3), first.bias)
    failed = certify(replace(frozen, steps=(larger, *frozen.steps[1:])))
    assert not failed.holds
    assert failed.guarantee == "nothing: a declared constraint does not hold"


def test_a_broken_lipschitz_claim_fails_without_any_direction() -> None:
    frozen = small(monotonic_cst=(0, 0, 0))
    assert certify(frozen).holds
    certificate = certify(replace(frozen, lipschitz=0.9 * frozen.lipschitz))
    assert not certificate.lipschitz_holds
    assert not certificate.holds


def test_raw_slopes_follow_the_scaling() -> None:
    X = np.random.default_rng(0).lognormal(size=(200, 3))
    scaling = Scaling.fit(X, ["standard", "identity", Log(floor=0.5)])
    frozen = small(scaling=scaling)
    for slope, steep in zip(certify(frozen).slopes, scaling.steepest(), strict=True):
        assert slope.raw.high >= slope.scaled.high * steep or slope.scaled.high <= 0
        assert slope.raw.low <= slope.scaled.low * steep or slope.scaled.low >= 0
    step = 1e-2
    for i, slope in enumerate(certify(frozen).slopes):
        higher = X.copy()
        higher[:, i] += step
        change = (frozen.score(higher) - frozen.score(X)) / step
        assert slope.raw.low - 1e-3 <= change.min()
        assert change.max() <= slope.raw.high + 1e-3


def softmax_network(directions: Any, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return MonotonicNetwork(
        [2, 12, 12, 3], monotonic_cst=directions, lipschitz=4.0, outputs="logits"
    )


@pytest.mark.parametrize("seed", range(5))
def test_probabilities_of_constrained_classes_are_monotone_as_computed(seed: int) -> None:
    directions = [[1, 0], [0, -1], [-1, 1]]
    frozen = freeze(softmax_network(directions, seed))
    certificate = certify(frozen)
    assert certificate.holds
    assert "probabilities" in certificate.guarantee
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20_000, 2)) * 2
    for feature in range(2):
        for step in (1e-16, 1e-7, 1e-6, 1e-3, 1.0):
            higher = X.copy()
            higher[:, feature] += np.maximum(step, np.spacing(X[:, feature]))
            change = frozen.probability(higher) - frozen.probability(X)
            for k, row in enumerate(directions):
                assert np.all(row[feature] * change[:, k] >= 0)


@pytest.mark.parametrize("seed", range(20))
def test_slopes_of_probabilities_are_the_least_over_all_rivals(seed: int) -> None:
    """Exactly: the largest float that is not above r_k − r_l − L_k − L_l for any l."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 6)), 3
    few = rng.choice([0.1, 0.3, 1e-17, 1e17], (m, n))  # ties, and sums that round
    frozen = FrozenNetwork(
        features=("a", "b", "c"),
        scaling=Scaling.identity(n),
        steps=(Dense(rng.choice([0.1, 0.7, 1e-16], (m, n)), np.zeros(m)),),
        residual=np.where(rng.random((m, n)) < 0.5, few, rng.normal(size=(m, n))),
        lipschitz=np.ones(n),
        monotonic_cst=rng.integers(-1, 2, (m, n)).astype(np.int8),
        outputs="logits",
    )
    limits = bounds.slopes(frozen.steps, n)
    for verdict in certify(frozen).verdicts:
        k, i = verdict.output, frozen.features.index(verdict.feature)
        sign = verdict.direction
        exact = min(
            sign * (Fraction(frozen.residual[k, i]) - Fraction(frozen.residual[other, i]))
            - Fraction(limits[k, i])
            - Fraction(limits[other, i])
            for other in range(m)
            if other != k
        )
        assert Fraction(verdict.slope) <= exact < Fraction(np.nextafter(verdict.slope, np.inf))


def test_a_class_that_gains_too_little_fails() -> None:
    frozen = freeze(softmax_network([[1, 0], [0, 0], [0, 0]]))
    assert certify(frozen).holds
    assert not certify(replace(frozen, residual=0.9 * frozen.residual)).holds


def test_within_the_certified_radius_no_decision_changes() -> None:
    X = np.random.default_rng(1).lognormal(size=(300, 3))
    scaling = Scaling.fit(X, ["standard", "robust", "log"])
    for precision in ("float64", "float32"):
        frozen = small(scaling=scaling, precision=precision, clip=64.0)
        threshold = float(np.median(frozen.score(X)))
        radius = certify(frozen).certified_radius(X, threshold)
        accepted = frozen.score(X) >= threshold
        for i in range(3):
            for sign, distance in ((-1, radius.down[:, i]), (1, radius.up[:, i])):
                moved = X.copy()
                moved[:, i] += sign * 0.999 * np.where(np.isinf(distance), 1.0, distance)
                assert np.array_equal(frozen.score(moved) >= threshold, accepted)
        rng = np.random.default_rng(2)
        for _ in range(20):
            move = rng.dirichlet(np.ones(3), len(X)) * rng.choice([-1, 1], X.shape)
            x = scaling.transform(X) + 0.999 * radius.scaled[:, None] * move
            assert np.array_equal(frozen.score(scaling.inverse(x)) >= threshold, accepted)


@pytest.mark.parametrize("options", [{}, {"grid": None}, {"precision": "float32"}])
def test_infinite_radii_hold_at_the_threshold_itself(options: Any) -> None:
    """Without a promise to the last bit, rows within the rounding error have no radius."""
    frozen = freeze(adversarial([4, 20, 20, 1], 0), **options)
    certificate = certify(frozen)
    X = np.random.default_rng(0).normal(size=(50, 4)) * 30
    for row, threshold in zip(X, frozen.score(X).astype(float), strict=True):
        radius = certificate.certified_radius(row[None], threshold)
        for step in (1e-7, 1e-5, 1e-3):
            for i in np.flatnonzero(np.isinf(radius.up[0])):
                moved = row.copy()
                moved[i] += step
                assert float(frozen.score(moved[None])[0]) >= threshold


def test_radii_of_logarithms_hold_where_the_exponential_ends() -> None:
    scaling = Scaling.fit([[1.0], [2.0]], [Log(standardize=False, floor=1e-307)])
    frozen = replace(by_hand(0.5), scaling=scaling)
    certificate = certify(frozen)
    for x in (1.5e308, 1.1e304, 1e-306, 1.0):
        score = float(frozen.score([[x]])[0])
        for threshold in (score - 0.5, score + 0.5):
            radius = certificate.certified_radius([[x]], threshold)
            assert np.all(radius.down >= 0)
            down, up = (d[0, 0] if np.isfinite(d[0, 0]) else 0.0 for d in (radius.down, radius.up))
            for moved in (x - 0.9 * down, min(x + 0.9 * up, 1.7e308)):
                assert (frozen.score([[moved]])[0] >= threshold) == (score >= threshold)


def test_scaled_radii_allow_for_the_snapping_of_logarithms() -> None:
    data = {"log": [True], "factor": [30.0]}
    scaling = Scaling.from_dict(Scaling.identity(1).to_dict() | data)
    frozen = replace(by_hand(0.5), scaling=scaling, clip=2.0**14)
    X = np.random.default_rng(0).uniform(1, 1e4, (2000, 1))
    score = frozen.score(X)
    for row, s in zip(X, score, strict=True):
        threshold = float(s) - 1e-5
        radius = certify_once(frozen).certified_radius(row[None], threshold).scaled[0]
        moved = row * np.exp(-0.999 * radius / 30.0)
        assert frozen.score(moved[None])[0] >= threshold


def test_a_huge_shift_of_one_feature_does_not_hide_the_others() -> None:
    scaling = Scaling.from_dict(Scaling.identity(3).to_dict() | {"factor": [1e10, 1.0, 1.0]})
    certificate = certify(small(monotonic_cst=(1, 1, 1), scaling=scaling))
    X = np.random.default_rng(0).normal(size=(100, 3)) * [1e300, 1, 1]
    moderate = certificate.flip_bound(X, [0, 5, 5])
    assert certificate.flip_bound(X, [(0, 1e308), 5, 5]) >= moderate
    assert certificate.flip_bound(X, [1.0, 5, 5]) >= moderate


@pytest.mark.parametrize("weights", [[1e30, 1e30, 1e-30, 1e-32], [1e30, 1e30, 0.0, 1.0]])
def test_an_overflow_on_the_way_is_no_guarantee(weights: list[float]) -> None:
    zero = np.zeros(1, "float32")
    steps = tuple(Dense(np.array([[w]], "float32"), zero) for w in weights)
    options = {"precision": "float32", "clip": 64.0, "grid": 2.0**-6}
    assert not certify(replace(by_hand(0.5), steps=steps, **options)).holds
    blend = residual_block(1.0, 0.0, steps[:2])
    certificate = certify(replace(by_hand(0.5), steps=(blend, steps[3]), **options))
    assert not certificate.holds
    assert certificate.to_dict()["rounding_errors"] == [None]


def test_radius_is_infinite_where_a_move_only_helps() -> None:
    frozen = small()
    X = np.random.default_rng(0).normal(size=(100, 3))
    radius = certify(frozen).certified_radius(X, 0.0)
    accepted = frozen.score(X) >= 0
    assert np.all(np.isinf(radius.up[accepted, 0]))
    assert np.all(np.isinf(radius.down[accepted, 2]))
    assert np.all(np.isinf(radius.down[~accepted, 0]))
    assert np.all(np.isfinite(radius.up[:, 1]))


def test_no_more_rows_flip_than_the_bound_says() -> None:
    X = np.random.default_rng(1).lognormal(size=(2000, 3))
    scaling = Scaling.fit(X, ["standard", "robust", "log"])
    frozen = small(scaling=scaling)
    certificate = certify(frozen)
    accepted = frozen.score(X) >= 0.3
    rng = np.random.default_rng(3)
    for shifts in ([0.1, 0.0, 0.0], [0.05, 0.05, 0.05], [(0.0, 0.2), (0, 0), (-0.1, 0.0)]):
        pairs = np.array([(-s, s) if np.ndim(s) == 0 else s for s in shifts])
        bound = certificate.flip_bound(X, shifts, 0.3)
        for _ in range(30):
            moved = X + rng.uniform(*pairs.T, X.shape)
            assert np.mean((frozen.score(moved) >= 0.3) != accepted) <= bound
        assert bound < 1


def test_no_shift_flips_nothing_and_no_rows_flip_never() -> None:
    certificate = certify(small())
    X = np.random.default_rng(0).normal(size=(100, 3))
    assert certificate.flip_bound(X, [0, 0, 0], 0.1) == 0
    assert certificate.flip_bound(X[:0], [1, 1, 1], 0.1) == 0


def test_a_helpful_shift_flips_fewer_rows_than_a_free_one() -> None:
    certificate = certify(small(monotonic_cst=(1, 1, 1)))
    X = np.random.default_rng(0).normal(size=(500, 3))
    one_sided = certificate.flip_bound(X, [(0.0, 0.2)] * 3, 0.0)
    assert one_sided < certificate.flip_bound(X, [0.2] * 3, 0.0)


@pytest.mark.parametrize(
    ("shifts", "message"),
    [
        ([0.1], "has 1 entries but the model has 3 columns"),
        ([(1, 0), 0, 0], "low ≤ high"),
        ([(1, 0, 2), 0, 0], "or pairs"),
        ([np.nan, 0, 0], "finite numbers"),
        (0.1, "must have one entry per column"),
    ],
)
def test_bad_shifts_are_explained(shifts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        certify(small()).flip_bound(np.zeros((1, 3)), shifts)


@pytest.mark.parametrize("threshold", [np.nan, np.inf])
def test_a_threshold_must_be_a_number(threshold: float) -> None:
    for ask in (
        lambda c: c.certified_radius([[0, 0, 0]], threshold),
        lambda c: c.flip_bound([[0, 0, 0]], [1, 1, 1], threshold),
    ):
        with pytest.raises(ValueError, match="must be a finite number"):
            ask(certify(small()))


def test_only_frozen_networks_are_certified() -> None:
    with pytest.raises(TypeError, match=r"call isotone\.freeze"):
        certify(torch.nn.Linear(1, 1))


def test_json_holds_everything() -> None:
    data = json.loads(certify(small()).to_json())
    assert data["holds"] is True
    assert len(data["slopes"]) == 3
    assert "frozen" not in data
    assert data["fingerprint"] == small().fingerprint


def test_infinity_becomes_null_in_json() -> None:
    frozen = by_hand(1e306)
    data = json.loads(certify(replace(frozen, clip=2.0**20)).to_json())
    assert data["holds"] is False
    assert data["rounding_errors"] == [None]


@pytest.mark.parametrize(
    ("n_outputs", "words"),
    [(1, ["free", "rises", "falls"]), (2, ["1 falls", "0 rises", "0 falls, 1 rises"])],
)
def test_a_notebook_shows_slopes_beside_the_directions_of_their_features(
    n_outputs: int, words: list[str]
) -> None:
    knots = Knots.at([[0.0, 1.0, 2.0, 5.0], [-4.0, 0.0, 1.0], [10.0, 30.0]])
    cst = knots.spread([[0, 1, -1], [-1, 0, 1]][:n_outputs]).tolist()
    network = MonotonicNetwork([6, 8, n_outputs], monotonic_cst=cst, lipschitz=1.0)
    frozen = freeze(network, knots=knots, features=["age", "income", "debt"])
    text = certify(frozen)._repr_html_()
    assert text.count("<tr><td>") == 3 * n_outputs
    for slope in certify(frozen).slopes:
        name = slope.feature if n_outputs == 1 else f"{slope.output}: {slope.feature}"
        word = words[frozen.inputs.encoded.index(slope.feature)]
        assert f"<td>{name}</td><td>{word}</td><td>{slope.scaled}</td>" in text
