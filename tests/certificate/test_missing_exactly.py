"""What missing values change at least, compared with all rows there are: the same number.

Networks of one dense step whose weights have every pattern of signs: one of them is as steep
against the promise as the bounds of its slopes allow, so that the bound is reached.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone import Category, FrozenNetwork, Inputs, Knots, Number, Ordered, Scaling
from isotone.certificate import missing
from isotone.certificate.missing import MissingVerdict, describe_missing, judge_missing
from isotone.certificate.verdicts import Verdict
from isotone.frozen.steps import Dense
from isotone.typing import Floats
from rationals import exact_score

KNOTS = [-2.0, 0.0, 1.0, 3.0]
INPUTS = Inputs(
    (
        Number("n", fill=0.5),
        Ordered("o", ("low", "mid", "high"), fill=1.5),
        Category("c", ("u", "v", None)),
        Number("k", fill=1.0),
        Number("plain"),
    ),
    (0, 1, 2, 3, 4, 5, 5, 5, 6, 7, 8, 9),  # k has knots; then plain and indicators of n, o, k
)
N = len(INPUTS.copies)
OF = {  # inputs of every column, with its indicator
    "n": (0, 9),
    "o": (1, 10),
    "c": (2, 3, 4),
    "k": (5, 6, 7, 11),
}
FLAG = {"n": 9, "o": 10, "c": 4, "k": 11}
BIG = 1e300
VALUES: dict[str, list[Any]] = {
    "n": [-BIG, -3.0, 0.25, 0.5, 0.75, 3.0, BIG],
    "o": ["low", "mid", "high"],
    "c": ["u", "v"],
    "k": [-BIG, *KNOTS, 0.5, 2.0, BIG],
}


def scaling() -> Scaling:
    center, factor = np.zeros(N), np.ones(N)
    tiles = Knots.at([KNOTS]).scaling
    center[5:8], factor[5:8] = tiles.center, tiles.factor
    plain = Scaling.identity(N)
    return Scaling(plain.log, plain.offset, plain.floor, center, factor)


def network(weight: Floats, residual: Floats, direction: int, **options: Any) -> FrozenNetwork:
    """g + r u, with the direction of the first output along all indicators."""
    cst = np.zeros(residual.shape, np.int8)
    cst[0, list(FLAG.values())] = direction
    steps = (Dense(weight, np.zeros(len(weight))),)
    given = {"inputs": INPUTS, "clip": 8.0} | options
    names = INPUTS.features
    return FrozenNetwork(names, scaling(), steps, residual, np.full(N, 1e9), cst, **given)


def score_of(frozen: FrozenNetwork, column: str, value: Any) -> list[Fraction]:
    row = {"n": 0.25, "o": "low", "c": "v", "k": 0.5, "plain": 0.0} | {column: value}
    (u,) = frozen.snap(frozen.encode({name: [cell] for name, cell in row.items()}))
    return exact_score(frozen, u)


def least_change(frozen: FrozenNetwork, column: str, direction: int) -> Fraction:
    """Of the first output, or of what it is above each other one, when a value is lost."""
    without = score_of(frozen, column, None)
    changes = []
    for value in VALUES[column]:
        moved = [a - b for a, b in zip(without, score_of(frozen, column, value), strict=True)]
        rivals = [moved[0] - other for other in moved[1:]] if frozen.of_classes else moved[:1]
        changes += [direction * rise for rise in rivals]
    return min(changes)


def verdict_of(
    frozen: FrozenNetwork, column: str, slopes: Floats, errors: Floats | None = None
) -> MissingVerdict:
    given = np.zeros(len(slopes)) if errors is None else errors
    (found,) = (v for v in judge_missing(frozen, slopes, given) if v.column == column)
    return found


def numbers(seed: int, n_outputs: int) -> tuple[Floats, Floats]:
    """Sizes of weights, and residuals, in sixteenths."""
    rng = np.random.default_rng(seed)
    size, residual = rng.integers(0, 33, (n_outputs, N)), rng.integers(-64, 65, (n_outputs, N))
    residual[:, 5:8] = rng.choice([0, -3, 3]) * (seed % 3 > 0)  # of copies, see below
    return size / 16.0, residual / 16.0


@pytest.mark.parametrize("column", OF)
@pytest.mark.parametrize("direction", [-1, 1])
@pytest.mark.parametrize("seed", range(6))
def test_the_least_change_of_a_score_is_found_exactly(
    seed: int, direction: int, column: str
) -> None:
    size, residual = numbers(seed, 1)
    if column == "k":  # steps that outweigh the residual: no value lies beyond one that is better
        size[0, 5:8] = 0.25 + np.abs(residual[0, 5:8])
    found = verdict_of(network(size, residual, direction), column, size)
    signs = itertools.product((-1.0, 1.0), repeat=len(OF[column]))
    exact = min(
        least_change(network(turned(size, column, s), residual, direction), column, direction)
        for s in signs
    )
    assert Fraction(found.least) == exact
    assert found.real == (exact >= 0)
    assert (found.direction, found.output, found.about) == (direction, 0, "score")


def turned(size: Floats, column: str, signs: Any) -> Floats:
    """Weights of these signs, and those of all outputs but the first against it."""
    weight = size.copy()
    weight[0, OF[column]] *= signs
    weight[1:, OF[column]] *= np.negative(signs)
    return weight


@pytest.mark.parametrize("column", ["n", "o", "c"])
@pytest.mark.parametrize("direction", [-1, 1])
@pytest.mark.parametrize("seed", range(4))
def test_the_least_change_against_every_rival_is_found_nearly(
    seed: int, direction: int, column: str
) -> None:
    size, residual = numbers(seed, 3)
    frozen = network(size, residual, direction, outputs="logits")
    signs = itertools.product((-1.0, 1.0), repeat=len(OF[column]))
    exact = min(
        least_change(
            network(turned(size, column, s), residual, direction, outputs="logits"),
            *(column, direction),
        )
        for s in signs
    )
    found = verdict_of(frozen, column, size)
    assert exact - Fraction(2.0**-38) <= Fraction(found.least) < exact
    assert found.real == (found.least >= 0)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize(("direction", "least"), [(1, -4.0), (-1, -1.0)])
def test_what_one_copy_gains_makes_up_for_no_other(
    n_outputs: int, direction: int, least: float
) -> None:
    """Below the fill two copies may move by 2: the score by -4 at one, by +1 at the other."""
    residual = np.zeros((n_outputs, N))
    residual[0, 5:8] = -2.0, 0.5, 0.0
    options: dict[str, Any] = {"outputs": "logits" if n_outputs > 1 else "values"}
    for flag in (0.0, 16.0):  # of the indicator all counts
        residual[0, 11] = flag
        found = verdict_of(
            network(0 * residual, residual, direction, **options), "k", 0 * residual
        )
        assert found.least == pytest.approx(least + direction * flag, abs=1e-11)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_verdict_needs_twice_the_error_and_not_more(n_outputs: int) -> None:
    residual = np.zeros((n_outputs, N))
    residual[0, 9] = 3.0
    options: dict[str, Any] = {"outputs": "logits" if n_outputs > 1 else "values"}
    frozen, slopes = network(0 * residual, residual, 1, **options), 0 * residual
    least = verdict_of(frozen, "n", slopes).least
    for error, computed in ((least / 2, True), (np.nextafter(least / 2, 9.0), False)):
        errors = np.zeros(n_outputs)
        errors[-1] = error
        found = verdict_of(frozen, "n", slopes, errors)
        assert (found.real, found.computed, found.needed) == (True, computed, 2 * error)
    ungridded = replace(frozen, grid=None)
    assert verdict_of(ungridded, "n", slopes, np.full(n_outputs, 9.0)).computed is None


def test_errors_of_two_logits_are_added_upward_and_the_worst_is_needed() -> None:
    residual = np.zeros((3, N))
    frozen = network(residual, residual, 1, outputs="logits")
    found = verdict_of(frozen, "n", residual, np.array([1.0, 2.0**-60, 0.0]))
    assert found.needed == 2 * np.nextafter(1.0, 2.0)


def test_one_rival_that_is_not_beaten_is_enough() -> None:
    residual = np.zeros((3, N))
    residual[:, 9] = 1.0, 2.0, 0.0  # ahead of the last, behind the second
    found = verdict_of(network(0 * residual, residual, 1, outputs="logits"), "n", 0 * residual)
    assert (found.real, found.computed) == (False, False)
    assert found.least == pytest.approx(-1.0)


def test_nothing_at_all_is_no_change() -> None:
    zero = np.zeros((1, N))
    found = verdict_of(network(zero, zero, 1), "n", zero)
    assert (found.least, found.real, found.computed) == (0.0, True, True)
    residual = zero.copy()
    residual[0, 9] = -5e-324
    assert not verdict_of(network(zero, residual, 1), "n", zero).real


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_bounds_that_are_not_finite_give_no_verdict(n_outputs: int) -> None:
    zero = np.zeros((n_outputs, N))
    frozen = network(zero, zero, 1, outputs="logits" if n_outputs > 1 else "values")
    good, bad = np.zeros(n_outputs), zero.copy()
    bad[0, 3] = np.inf
    assert len(judge_missing(frozen, zero, good)) == 4
    assert judge_missing(frozen, bad, good) == ()
    bad_errors = good.copy()
    bad_errors[0] = np.nan
    assert judge_missing(frozen, zero, bad_errors) == ()


def test_what_overflows_is_no_promise() -> None:
    residual = np.zeros((3, N))
    residual[0, 9], residual[1:, 9] = 1.7e308, -1.7e308
    frozen = network(0 * residual, residual, 1, outputs="logits")
    found = verdict_of(frozen, "n", np.full((3, N), 1.7e308))
    assert (found.least, found.real) == (-np.inf, False)


@pytest.mark.parametrize("n_moves", [1, 3, 50])
def test_bounds_against_rivals_leave_room_for_rounding(n_moves: int) -> None:
    """Sixteen times what terms that are rounded, and as many sums of them, can lose."""
    rng = np.random.default_rng(n_moves)
    inputs = Inputs((Category("c", (*map(str, range(n_moves)), None)),))
    n = n_moves + 1
    r, slopes = rng.normal(size=(2, n)), rng.uniform(0, 1, (2, n))
    frozen = FrozenNetwork(
        *(inputs.features, Scaling.identity(n), (Dense(0 * r, np.zeros(2)),), r, np.ones(n)),
        np.zeros((2, n), np.int8),
        outputs="logits",
        inputs=inputs,
    )
    d = [Fraction(x) for x in rng.normal(size=n).tolist()]
    moves = [missing._Move(k, x, True) for k, x in enumerate(d)]
    (found,) = missing._least(frozen, slopes, 0, 1, moves).tolist()
    rise = [(Fraction(r[0, k]) - Fraction(r[1, k])) * x for k, x in enumerate(d)]
    fall = [(Fraction(slopes[0, k]) + Fraction(slopes[1, k])) * abs(x) for k, x in enumerate(d)]
    room = Fraction(2.0**-49) * n * (sum(map(abs, rise)) + sum(fall))
    exact = sum(rise) - sum(fall)
    assert exact - 3 * room <= Fraction(found) <= exact - room
    nothing = missing._least(frozen, 0 * slopes, 0, 1, [missing._Move(0, Fraction(0), True)] * n)
    assert -n * 2.0**-1059 <= nothing[0] <= -n * 2.0**-1061


def test_ranges_of_columns_are_those_of_their_ranks_or_all_numbers() -> None:
    largest = np.finfo(float).max
    assert missing.value_range(Number("x")) == (-largest, largest)
    for n in (1, 2, 5):
        assert missing.value_range(Ordered("x", tuple("abcde"[:n]))) == (0.0, n - 1.0)


@pytest.mark.parametrize(
    ("exact", "expected"),
    [
        (Fraction(1, 3), 1 / 3),
        (Fraction(1, 10), np.nextafter(0.1, 0)),
        (Fraction(-1, 3), np.nextafter(-1 / 3, -1)),
        (Fraction(-1, 10), -0.1),
        (Fraction(3, 4), 0.75),
        (Fraction(10) ** 400, np.finfo(float).max),
        (-(Fraction(10) ** 400), -np.inf),
        (Fraction(0), 0.0),
    ],
)
def test_fractions_are_rounded_down(exact: Fraction, expected: float) -> None:
    assert missing._down(exact) == expected
    if np.isfinite(expected):
        assert Fraction(expected) <= exact


@pytest.mark.parametrize(
    ("cst", "expected"),
    [((0, 1, 1), 1), ((0, 1, 0), None), ((1, 0, 0), None), ((0, -1, -1), -1), ((1, 0, 1), None)],
)
def test_an_indicator_has_a_direction_that_all_of_its_copies_share(
    cst: tuple[int, ...], expected: int | None
) -> None:
    tiles = Knots.at([[0.0, 1.0], [-0.25, 0.25, 1.25]])
    inputs = Inputs((Number("a", fill=0.0),), tuple(tiles.columns.tolist()))
    zero = np.zeros((1, 3))
    frozen = FrozenNetwork(
        *(inputs.features, tiles.scaling, (Dense(zero, np.zeros(1)),), zero, np.ones(3)),
        np.array([cst], np.int8),
        inputs=inputs,
    )
    found = judge_missing(frozen, zero, np.zeros(1))
    assert [verdict.direction for verdict in found] == ([expected] if expected else [])


ANY = "a missing {} never gives a higher score than any present value"
FILL = "a missing {} never gives a higher score than {}, and no promise compares it with other"
NONE = "no promise compares a missing {} with a present one"


def plain(real: bool, computed: bool | None, feature: str, output: int = 0) -> Verdict:
    return Verdict(output, feature, -1, "score", 0.0, 0.0, real, computed)


def said(
    real: bool, computed: bool | None, *along: tuple[bool, bool | None], column: str = "n"
) -> str:
    """In words, with what holds along the indicator of a column, and nothing along all others."""
    zero = np.zeros((1, N))
    verdict = MissingVerdict(0, column, -1, "score", 0.0, 0.0, real, computed)
    beside = plain(False, False, column), plain(False, False, f"missing({column})", 1)
    own = [plain(*each, f"missing({column})") for each in along]
    return describe_missing(network(zero, zero, -1), (*beside, *own), (verdict,))


def test_the_words_promise_what_the_verdicts_prove_and_no_more() -> None:
    yes, no = (True, True), (False, False)
    for good in ((True, True), (True, None)):
        assert ANY.format("n") in said(*good, yes)
        assert ANY.format("c") in said(*good, no, column="c")
        for bad in ((True, False), (False, True), (False, None), no):
            assert FILL.format("n", "0.5") in said(*bad, good)
            assert FILL.format("k", "1.0") in said(*bad, good, column="k")
            for unproved in ((True, False), (False, True), (False, None), no):
                assert "never" not in said(*bad, unproved)
                assert "never" not in said(*bad, good, unproved)
    for column in ("c", "o"):  # a category has no fill, and no row can hold rank 1.5
        found = said(False, False, yes, column=column)
        assert "never" not in found
        assert NONE.format("value") in found
    assert NONE.format("o, c or k") in said(True, True, yes)


def test_a_fill_that_is_a_rank_is_called_by_its_category() -> None:
    for fill, name in ((0.0, "low"), (1.0, "mid"), (2.0, "high"), (0.5, None)):
        assert missing._raw_fill(Ordered("o", ("low", "mid", "high"), fill=fill)) == name


@pytest.mark.parametrize("n", [1, 7, 8, 9, 20])
def test_eight_columns_are_listed_at_most(n: int) -> None:
    inputs = Inputs(tuple(Number(f"a{k}", fill=0.0) for k in range(n)))
    zero = np.zeros((1, 2 * n))
    frozen = FrozenNetwork(
        *(inputs.features, Scaling.identity(2 * n), (Dense(zero, np.zeros(1)),)),
        *(zero, np.ones(2 * n), zero.astype(np.int8)),
        inputs=inputs,
    )
    names = ", ".join(f"a{k}" for k in range(min(n, 8))) + (", …" if n > 8 else "")
    assert missing.promise_nothing(frozen) == f"of {names}: nothing is promised"
