"""A missing value is never better, or never worse, than any value: to the last bit."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from isotone import (
    Category,
    Certificate,
    FrozenNetwork,
    Inputs,
    Knots,
    MonotonicNetwork,
    Number,
    Ordered,
    Scaling,
    certify,
    freeze,
)
from isotone.certificate import bounds
from isotone.certificate import missing as missing_values
from isotone.frozen.steps import Dense, Steps
from isotone.typing import Floats
from networks import small

KNOTS = [-2.0, 0.1, 0.7, 3.5]
GRADES = ("C", "B", "A", "A+")
CITIES = ("Lima", "Oslo", "Rome")


@torch.no_grad()
def spoil(network: MonotonicNetwork, missing: int, rng: np.random.Generator) -> MonotonicNetwork:
    """Weights at their bounds: of random signs, or such that g goes against every promise."""
    against = rng.random() < 0.5
    for k, parameter in enumerate(network.parameters()):
        parameter.copy_(torch.as_tensor(rng.normal(size=parameter.shape)))
        if parameter.ndim == 2 and against:
            parameter.abs_()
            if k == 0:
                directions = network.directions()[:1]
                parameter.mul_(torch.as_tensor(np.where(directions, -directions, missing)))
        parameter.mul_(10.0 ** rng.uniform(0, 3))
    return network


def draw(
    seed: int,
    missing: int,
    column: int = 0,
    *,
    surplus: float | None = None,
    fill: float | None = None,
    n_outputs: int = 1,
    outputs: Any = "values",
) -> FrozenNetwork:
    """A hostile model of a number with knots, a rank, a category and a plain number.

    The missing values of the first three have the direction `missing`, and the first two the
    direction `column`. Residuals are as large as it takes unless `surplus` says otherwise.
    """
    rng = np.random.default_rng(seed)
    end = {-1: 0, 1: -1}.get(column * missing, 2)
    ranks = {-1: 0.0, 1: 3.0}.get(column * missing, 1.5)
    inputs = Inputs(
        (
            Number("income", fill=KNOTS[end] if fill is None else fill),
            Ordered("grade", GRADES, fill=ranks),
            Category("city", (*CITIES, None)),
            Number("debt"),
        ),
        (0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8),
    )
    tiles, plain = Knots.at([KNOTS]).scaling, Scaling.identity(8)
    scaling = Scaling(*(np.append(getattr(tiles, n), getattr(plain, n)) for n in tiles.to_dict()))
    scale = 10.0 ** rng.uniform(-2, 2)
    lipschitz = scale * rng.uniform(0.5, 2.0, 11)
    cst = np.array([column] * 4 + [0] * 3 + [missing, 0, missing, missing])
    table = np.zeros((n_outputs, 11))
    table[0] = cst
    needed = np.zeros(11)
    if surplus is None:
        needed[7] = lipschitz[4:7].max()
        if not column:
            needed[9] = 2 * max(lipschitz[0] + lipschitz[1], lipschitz[2])
            needed[10] = 1.5 * lipschitz[3]
    network = MonotonicNetwork(
        [11, 16, 8, n_outputs],
        monotonic_cst=table,
        lipschitz=lipschitz,
        least_slopes=needed if surplus is None else surplus,
        group_size=4,
        outputs=outputs,
    )
    return freeze(spoil(network, missing, rng), scaling=scaling, inputs=inputs)


def rows(rng: np.random.Generator, n: int) -> pd.DataFrame:
    seams = [nudged for knot in KNOTS for nudged in neighbors(knot)]
    values = [*seams, -1e308, 1e308, 0.0, 5e-324, *rng.normal(size=20) * 2]
    return pd.DataFrame(
        {
            "debt": rng.normal(size=n) * 10.0 ** rng.uniform(-2, 3, n),
            "city": rng.choice(np.array([*CITIES, None], object), n),
            "grade": rng.choice(np.array([*GRADES, None], object), n),
            "income": rng.choice([*values, np.nan], n),
        }
    )


def neighbors(x: float) -> list[float]:
    return [float(np.nextafter(x, -np.inf)), x, float(np.nextafter(x, np.inf))]


def changed(frame: pd.DataFrame, column: str, value: Any) -> pd.DataFrame:
    return frame.assign(**{column: pd.Series([value] * len(frame), dtype=frame[column].dtype)})


def values_of(frame: pd.DataFrame, column: str) -> list[Any]:
    known = {"grade": list(GRADES), "city": list(CITIES)}
    return known.get(column) or sorted(frame["income"].dropna().unique())


def largest_breach(frozen: FrozenNetwork, column: str, direction: int, seed: int) -> float:
    """How far a missing value is on the wrong side of a value, at most; negative if nowhere."""
    frame = rows(np.random.default_rng(seed), 300)
    score = frozen.probability if frozen.of_classes else frozen.score

    def first(X: pd.DataFrame) -> Any:
        return score(X).reshape(len(X), -1)[:, 0]

    without = first(changed(frame, column, None if column != "income" else np.nan))
    present = [first(changed(frame, column, value)) for value in values_of(frame, column)]
    return float(max((direction * (one - without)).max() for one in present))


def verdicts(certificate: Certificate) -> dict[str, bool]:
    return {v.column: v.real and v.computed is True for v in certificate.missing}


PROVED = dict.fromkeys(("income", "grade", "city"), True)


@pytest.mark.parametrize("column", [-1, 0, 1])
@pytest.mark.parametrize("missing", [-1, 1])
@pytest.mark.parametrize("seed", range(6))
def test_no_computed_score_of_any_value_breaks_a_proved_verdict(
    seed: int, missing: int, column: int
) -> None:
    frozen = draw(seed, missing, column)
    certificate = certify(frozen)
    assert certificate.holds
    assert verdicts(certificate) == PROVED
    for name in PROVED:
        assert largest_breach(frozen, name, missing, seed) <= 0.0
    word = "higher" if missing < 0 else "lower"
    assert (
        f"a missing income, grade or city never gives a {word} score than any present value"
        in (certificate.about_missing)
    )


@pytest.mark.parametrize("column", [-1, 0, 1])
@pytest.mark.parametrize("missing", [-1, 1])
def test_directions_of_classes_are_about_probabilities(missing: int, column: int) -> None:
    frozen = draw(3, missing, column, n_outputs=3, outputs="logits")
    assert verdicts(certify(frozen)) == PROVED
    for name in PROVED:
        assert largest_breach(frozen, name, missing, 3) <= 0.0
    assert "probability of 0 than any present value" in certify(frozen).about_missing


def test_a_fill_inside_the_knots_is_compared_with_itself_alone() -> None:
    frozen = draw(0, -1, 1, fill=0.7)
    certificate = certify(frozen)
    assert certificate.holds
    assert verdicts(certificate) == PROVED | {"income": False}
    assert "a missing income never gives a higher score than 0.7, and no promise compares" in (
        certificate.about_missing
    )
    frame = rows(np.random.default_rng(0), 300)
    same, without = (frozen.score(changed(frame, "income", v)) for v in (0.7, np.nan))
    assert np.all(without <= same)


def test_the_slope_along_the_indicator_alone_proves_nothing_of_free_columns() -> None:
    broken = 0.0
    for seed in range(6):
        frozen = draw(seed, -1, surplus=0.0)
        certificate = certify(frozen)
        assert certificate.holds
        assert not any(verdicts(certificate).values())
        assert "a missing city" not in certificate.about_missing.split("no promise compares")[0]
        broken = max(broken, largest_breach(frozen, "city", -1, seed))
    assert broken > 0.0


def weaken(steps: Steps, feature: int) -> Steps:
    """The steps with a larger weight of one input."""
    first = steps[0]
    assert isinstance(first, Dense)
    weight = first.weight.copy()
    weight[:, feature] *= 64.0
    return (Dense(weight, first.bias), *steps[1:])


def test_an_indicator_that_weighs_too_much_gets_no_verdict() -> None:
    frozen = draw(1, -1, 1)
    spoiled = replace(frozen, steps=weaken(frozen.steps, 9))
    certificate = certify(spoiled)
    assert not certificate.holds
    assert verdicts(certificate) == PROVED | {"income": False}
    assert "never" not in certificate.about_missing


def test_float32_promises_it_up_to_the_drop_of_directions() -> None:
    frozen = freeze(draw(2, -1, 1), precision="float32")
    certificate = certify(frozen)
    assert [(v.real, v.computed) for v in certificate.missing] == [(True, None)] * 3
    assert "just as exactly, a missing income, grade or city never" in certificate.about_missing
    assert certificate.drop >= max(v.needed for v in certificate.missing) > 0.0
    assert largest_breach(frozen, "income", -1, 2) <= certificate.drop


def test_the_json_holds_the_verdicts() -> None:
    found = certify(draw(0, -1, 1)).to_dict()["missing"]
    assert [entry["column"] for entry in found] == ["income", "grade", "city"]
    assert all(entry["least"] >= entry["needed"] > 0 for entry in found)


def test_a_fill_is_the_same_number_beside_a_column_of_float32() -> None:
    frozen = draw(0, -1, 1, fill=0.1)
    frame = rows(np.random.default_rng(0), 300)
    without = changed(frame, "income", np.nan)
    single = without.assign(income=without["income"].astype(np.float32))
    assert np.array_equal(frozen.score(without), frozen.score(single))
    value = Inputs((Number("a", fill=0.1),)).encode({"a": np.array([np.nan], np.float32)})
    assert value[0, 0] == 0.1


@pytest.mark.parametrize("kind", ["one column", "many columns"])
def test_judging_many_categories_takes_little_memory(kind: str) -> None:
    """Only the features of the column itself are looked at."""
    n = 2048
    texts = [f"c{k}" for k in range(n - 1)]
    columns = (
        (Category("x", (*texts, None)),)
        if kind == "one column"
        else tuple(Category(text, ("a", None)) for text in texts[: n // 2])
    )
    inputs = Inputs(columns)
    cst = [-int(name.startswith("missing")) for name in inputs.features]
    frozen = replace(small(tuple(cst)), inputs=inputs, features=inputs.features)
    tracemalloc.start()
    found = certify(frozen).missing
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found) == len(columns)
    assert most < 64 * 2**20


def test_a_certificate_that_fails_promises_nothing() -> None:
    frozen = replace(draw(0, -1, 1), residual=np.zeros((1, 11)))
    certificate = certify(frozen)
    assert not certificate.holds
    assert certificate.about_missing == "of income, grade, city: nothing is promised"


def minus(a: Floats, b: Floats) -> Any:
    return [Fraction(x) - Fraction(y) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("seed", range(5))
def test_bounds_against_rivals_are_those_of_exact_arithmetic(seed: int) -> None:
    """Rounded down, by very little."""
    frozen = draw(seed, -1, 0, n_outputs=4, outputs="logits")
    slopes = bounds.slopes(frozen.steps, frozen.n_features)
    ends = missing_values._Ends.of(frozen)
    for column in frozen.inputs.columns[:3]:
        for moves in missing_values._values(ends, column):
            found = missing_values._least(frozen, slopes, 0, -1, moves)
            for bound, rival in zip(found, (1, 2, 3), strict=True):
                r = minus(frozen.residual[0], frozen.residual[rival])
                exact = missing_values._sum(r, minus(slopes[0], -slopes[rival]), -1, moves)
                assert bound <= exact
                assert bound == pytest.approx(float(exact), rel=1e-12, abs=1e-10)


def test_many_classes_take_little_time() -> None:
    """The work grows with pairs of classes, but each is a few operations."""
    inputs = Inputs((Category("city", (*CITIES, None)),))
    n = 600
    frozen = FrozenNetwork(
        features=inputs.features,
        inputs=inputs,
        scaling=Scaling.identity(4),
        steps=(Dense(np.zeros((n, 4)), np.zeros(n)),),
        residual=np.zeros((n, 4)),
        lipschitz=np.ones(4),
        monotonic_cst=np.tile([0, 0, 0, -1], (n, 1)),
        outputs="logits",
    )
    found = certify(frozen).missing
    assert len(found) == n
    assert not any(verdict.computed for verdict in found)


def flagged(residual: float) -> FrozenNetwork:
    """f = residual * flag, where the flag of a missing city goes from -1 to 1."""
    flip = Scaling(np.zeros(2, bool), np.zeros(2), np.ones(2), np.full(2, 0.5), np.full(2, 2.0))
    inputs = Inputs((Category("city", ("Oslo", None)),))
    return FrozenNetwork(
        inputs.features,
        flip,
        (Dense(np.zeros((1, 2)), np.zeros(1)),),
        np.array([[0.0, residual]]),
        np.ones(2),
        np.array([[0, 1]], np.int8),
        inputs=inputs,
        clip=1.0,
    )


def judge(residual: float, error: float) -> Any:
    frozen, flat = flagged(residual), np.zeros((1, 2))
    (verdict,) = missing_values.judge_missing(frozen, flat, np.array([error]))
    return verdict


def test_a_change_as_large_as_is_needed_is_enough_and_a_smaller_one_is_not() -> None:
    edge = judge(0.25, 0.25)
    assert (edge.least, edge.needed, edge.real, edge.computed) == (0.5, 0.5, True, True)
    beyond = judge(0.25, math.nextafter(0.25, 1.0))
    assert (beyond.real, beyond.computed) == (True, False)
    nothing = judge(0.0, 0.0)
    assert (nothing.least, nothing.real, nothing.computed) == (0.0, True, True)
    assert not judge(-5e-324, 0.0).real


def test_changes_beyond_all_floats_are_bounded_from_below() -> None:
    largest = np.finfo(float).max
    assert (judge(largest, 0.0).least, judge(largest, 0.0).real) == (largest, True)
    assert (judge(-largest, 0.0).least, judge(-largest, 0.0).real) == (-math.inf, False)


@pytest.mark.parametrize("unknown", [math.inf, math.nan])
def test_nothing_is_judged_where_slopes_or_errors_are_unknown(unknown: float) -> None:
    frozen = draw(0, -1, 1)
    slopes, errors = bounds.slopes(frozen.steps, frozen.n_features), np.zeros(1)
    assert missing_values.judge_missing(frozen, slopes, errors)
    assert missing_values.judge_missing(frozen, slopes, np.full(1, unknown)) == ()
    slopes[0, 3] = unknown
    assert missing_values.judge_missing(frozen, slopes, errors) == ()


def test_fractions_are_rounded_down_by_less_than_one_place() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=200) * 10.0 ** rng.integers(-300, 300, 200)
    for x in [*numbers.tolist(), 0.0, 5e-324, -5e-324]:
        assert missing_values._down(Fraction(x)) == x
        for share in (Fraction(1, 3), Fraction(1, 2), Fraction(2, 3)):
            above = Fraction(math.nextafter(x, math.inf))
            assert missing_values._down(Fraction(x) + share * (above - Fraction(x))) == x


OUTCOMES = [(True, True), (True, None), (True, False), (False, True), (False, None)]


@pytest.mark.parametrize(("real", "computed"), OUTCOMES)
def test_a_promise_needs_what_is_proved_of_exact_and_of_computed_scores(
    real: bool, computed: bool | None
) -> None:
    frozen = draw(0, -1, 0)
    certificate = certify(frozen)
    (city,) = [verdict for verdict in certificate.missing if verdict.column == "city"]
    said = missing_values.describe_missing(
        frozen, certificate.verdicts, (replace(city, real=real, computed=computed),)
    )
    is_proved = real and computed is not False
    promise = "a missing city never gives a higher score than any present value"
    assert (promise in said) == is_proved
    rest = "income or grade" if is_proved else "value"
    assert f"no promise compares a missing {rest} with a present one" in said


@pytest.mark.parametrize(("real", "computed"), OUTCOMES)
@pytest.mark.parametrize(("column", "fill"), [("income", repr(KNOTS[0])), ("grade", GRADES[0])])
def test_the_fill_is_promised_where_the_indicator_alone_has_its_direction(
    column: str, fill: str, real: bool, computed: bool | None
) -> None:
    """Whatever is proved of other features."""
    frozen = draw(0, -1, 1)
    certificate = certify(frozen)
    (missing,) = [verdict for verdict in certificate.missing if verdict.column == column]
    verdicts = tuple(
        replace(verdict, real=real, computed=computed)
        if verdict.feature == f"missing({column})"
        else replace(verdict, real=False, computed=False)
        for verdict in certificate.verdicts
    )
    said = missing_values.describe_missing(frozen, verdicts, (replace(missing, real=False),))
    promise = f"a missing {column} never gives a higher score than {fill}, and no promise"
    assert (promise in said) == (real and computed is not False)


def test_no_rank_between_two_categories_is_promised() -> None:
    frozen = draw(0, -1, 0)
    certificate = certify(frozen)
    (grade,) = [verdict for verdict in certificate.missing if verdict.column == "grade"]
    said = missing_values.describe_missing(
        frozen, certificate.verdicts, (replace(grade, real=False),)
    )
    assert "never" not in said


def test_of_more_than_eight_columns_eight_are_named() -> None:
    names = list("abcdefghi")
    assert missing_values._listed(names[:8]) == "a, b, c, d, e, f, g, h"
    assert missing_values._listed(names) == "a, b, c, d, e, f, g, h, …"
