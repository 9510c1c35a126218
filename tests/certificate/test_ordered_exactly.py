"""Errors in the engine's order of sums are those of exact interval arithmetic, and are reached.

The model here is written from the text of `isotone.certificate.ordered`, in fractions: every
bound must be at least the exact one, and above it by no more than its own rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest

from isotone import FrozenNetwork, Scaling
from isotone.certificate import bounds, ordered
from isotone.certificate.bounds import Change
from isotone.certificate.ordered import Sums, UnknownRangeError, find_errors
from isotone.frozen import reference
from isotone.frozen.reference import parts_of
from isotone.frozen.steps import Dense, Members, Sort, Step, Steps, residual_block
from networks import copied

MANY = Fraction(2) ** 2000  # the unit of zeros


@dataclass(frozen=True)
class Number:
    """What is known of one computed number."""

    low: Fraction
    high: Fraction
    unit: Fraction
    fresh: Fraction = Fraction(0)

    @property
    def half_ulp(self) -> Fraction:
        size = max(abs(self.low), abs(self.high))
        if size <= 2**24 * self.unit:
            return Fraction(0)
        power = -150
        while Fraction(2) ** (power + 25) <= size:  # sizes of 2^(p+24) to 2^(p+25) err by 2^p
            power += 1
        return Fraction(2) ** power

    def rounded(self) -> Number:
        error = self.half_ulp
        unit = Fraction(0) if error else self.unit
        return Number(self.low - error, self.high + error, unit, self.fresh + error)

    def plus(self, other: Number) -> Number:
        unit = min(self.unit, other.unit)
        return Number(self.low + other.low, self.high + other.high, unit, self.fresh + other.fresh)

    def times(self, weight: float) -> Number:
        ends = sorted((Fraction(weight) * self.low, Fraction(weight) * self.high))
        unit = unit_of(weight) * min(self.unit, Fraction(2) ** 126) if weight else MANY
        return Number(*ends, unit if unit >= Fraction(2) ** -126 else Fraction(0))


def unit_of(number: float) -> Fraction:
    """The largest power of two of which it is a whole number."""
    above, below = number.as_integer_ratio()
    return Fraction(above & -above, below) if number else MANY


def exactly(number: float) -> Number:
    return Number(Fraction(number), Fraction(number), unit_of(number))


@dataclass(frozen=True)
class Units:
    """Numbers, errors of every one, their sum and their maximum."""

    numbers: list[Number]
    each: list[Fraction]
    one: Fraction
    inf: Fraction


def add_terms(start: Number | None, row: Sequence[float], numbers: Sequence[Number]) -> Number:
    terms = [n.times(w).rounded() for n, w in zip(numbers, row, strict=True)]
    found = terms.pop(0) if start is None else start
    return reduce(lambda sum_, term: sum_.plus(term).rounded(), terms, found)


def filled(one: Fraction, inf: Fraction, sizes: list[Fraction]) -> Fraction:
    """The largest sum of sizes times shares, none above inf, all together at most one."""
    found, left = Fraction(0), one
    for size in sorted(sizes, reverse=True):
        found, left = found + size * min(left, inf), max(left - inf, Fraction(0))
    return found


def after_dense(step: Dense, h: Units) -> Units:
    weight = [[Fraction(float(w)) for w in row] for row in step.weight]
    size = [[abs(w) for w in row] for row in weight]
    sums, each = [], []
    for row, sizes, bias in zip(step.weight.tolist(), size, step.bias.tolist(), strict=True):
        first, *others = parts_of(len(row), len(weight), in_parts=True)
        found = add_terms(exactly(bias), row[first], h.numbers[first])
        for part in others:
            found = found.plus(add_terms(None, row[part], h.numbers[part])).rounded()
        passed = min(max(sizes) * h.one, sum(sizes) * h.inf, filled(h.one, h.inf, sizes))
        sums, each = [*sums, found], [*each, passed + found.fresh]
    columns, fresh = list(zip(*size, strict=True)), [s.fresh for s in sums]
    one = min(max(map(sum, columns)) * h.one, sum(map(sum, size)) * h.inf)  # type: ignore[arg-type]
    inf = min(max(map(max, size)) * h.one, max(map(sum, size)) * h.inf)  # type: ignore[type-var]
    return Units(without_past(sums), each, one + sum(fresh), inf + max(fresh))


def without_past(sums: list[Number]) -> list[Number]:
    return [replace(s, fresh=Fraction(0)) for s in sums]


def after_sort(step: Sort, h: Units) -> Units:
    numbers: list[Number] = []
    each: list[Fraction] = []
    for start in range(0, len(h.each), step.group_size):
        group = h.numbers[start : start + step.group_size]
        ends = zip(sorted(n.low for n in group), sorted(n.high for n in group), strict=True)
        numbers += [Number(low, high, min(n.unit for n in group)) for low, high in ends]
        each += [max(h.each[start : start + step.group_size])] * len(group)
    return replace(h, numbers=numbers, each=each)


def after_members(step: Members, h: Units) -> Units:
    parts = [after(inner, h) for inner in step.members]
    rows = [
        [n.times(weight).rounded() for n in part.numbers]
        for weight, part in zip(step.weights, parts, strict=True)
    ]
    sums = [reduce(lambda a, b: a.plus(b).rounded(), each) for each in zip(*rows, strict=True)]
    sizes, fresh = [abs(Fraction(w)) for w in step.weights], [s.fresh for s in sums]

    def weighed(values: list[Fraction]) -> Fraction:
        return sum((s * v for s, v in zip(sizes, values, strict=True)), Fraction(0))

    each = [weighed([part.each[k] for part in parts]) + sums[k].fresh for k in range(len(sums))]
    one, inf = weighed([p.one for p in parts]), weighed([p.inf for p in parts])
    return Units(without_past(sums), each, one + sum(fresh), inf + max(fresh))


def after(steps: Steps, h: Units) -> Units:
    for step in steps:
        match step:
            case Dense():
                h = after_dense(step, h)
            case Sort():
                h = after_sort(step, h)
            case Members():
                h = after_members(step, h)
    return h


def expected(frozen: FrozenNetwork) -> tuple[list[Fraction], list[Fraction]]:
    """Errors of scores and of their order, without a look at what holds for any order."""
    clip, zero = Fraction(frozen.clip), Fraction(0)
    assert frozen.grid is not None
    inputs = [Number(-clip, clip, Fraction(frozen.grid))] * frozen.n_features
    g = after(frozen.steps, Units(inputs, [zero] * len(inputs), zero, zero))
    residual = [add_terms(None, row, inputs) for row in frozen.residual.tolist()]
    order = [e + r.fresh for e, r in zip(g.each, residual, strict=True)]
    last = [n.plus(r).half_ulp for n, r in zip(g.numbers, residual, strict=True)]
    return [o + s for o, s in zip(order, last, strict=True)], order


def single(steps: tuple[Step, ...], residual: Any, **changes: Any) -> FrozenNetwork:
    residual = np.atleast_2d(np.asarray(residual, "f4")).astype(float)
    n_outputs, n = residual.shape
    start = FrozenNetwork(
        features=tuple(f"x{i}" for i in range(n)),
        scaling=Scaling.identity(n),
        steps=steps,
        residual=residual,
        lipschitz=np.full(n, 100.0),
        monotonic_cst=np.zeros((n_outputs, n), np.int8),
        precision="float32",
        clip=8.0,
        grid=2.0**-6,
    )
    return replace(start, **changes)


def dense(seed: int, n_out: int, n_in: int, digits: int | None = None) -> Dense:
    """Of so many bits if they are given."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n_out, n_in + 1)) * 2.0 ** rng.integers(-3, 2, (n_out, n_in + 1))
    if digits is not None:
        numbers = np.rint(numbers * 2.0**digits) * 2.0**-digits
        numbers[0, 0] = 0.0
    return Dense(numbers[:, 1:].astype("f4"), numbers[:, 0].astype("f4"))


BLOCK = residual_block(0.25, 0.75, (dense(3, 12, 12), Sort(3), dense(4, 12, 12)))
HEADS = Members((0.25, -0.5), ((dense(5, 1, 12),), (dense(6, 9, 12), Sort(9), dense(7, 1, 9))))


def dense_of(weight: list[list[float]], bias: float = 0.0) -> Dense:
    return Dense(np.array(weight, "f4"), np.full(len(weight), bias, "f4"))


THIRD = float(np.float32(1 / 3))
FAR = dense_of([[THIRD * 2.0**-19]], 2.0**34)  # errs by 2^10 and 2^-42
ONE = dense_of([[1.0]])
BITS = dense_of([[THIRD * 2.0**-k for k in (0, 2, 3, 7, 9, 12, 14, 16)]], 2.0**34)
SHARES = np.random.default_rng(0).random(10, dtype="f4").tolist()
FIRST = residual_block(THIRD, -THIRD, (dense(9, 3, 3),))
TINY = Dense(np.full((1, 6), 1e-41, "f4"), np.zeros(1, "f4"))
NETWORKS = {
    "one part": single((dense(0, 6, 3), Sort(2), dense(1, 1, 6)), [0.3, 0.0, -1.7]),
    "many parts": single((dense(0, 20, 3), Sort(5), dense(1, 1, 20)), [1.0, 1.0, 1.0]),
    "wide": single((dense(0, 3, 40), Sort(3), dense(1, 1, 3)), np.linspace(-1, 1, 40)),
    "members": single((dense(2, 12, 3), Sort(2), BLOCK, HEADS), [0.3, 0.25, 0.0]),
    "outputs": single((dense(0, 6, 3), Sort(2), dense(1, 3, 6)), np.eye(3) / 3, clip=2.0),
    "few bits": single((dense(0, 6, 3, 7), Sort(2), dense(1, 1, 6, 3)), [0.5, 0.0, -1.75]),
    "few then many": single((dense(0, 6, 3, 9), Sort(3), dense(1, 1, 6)), [0.1, 0.0, 0.0]),
    "tiny": single((dense(0, 6, 3), Sort(2), TINY), [1e-40] * 3),
    "sorted outputs": single((dense(8, 2, 3), Sort(2)), [[0.1, 0.0, 0.0], [1.0, 0.0, 1.0]]),
    "sorted inputs": single((Sort(2),), [[0.1, 0.0], [1.0, 0.3]]),
    "block first": single((FIRST, dense(1, 1, 3)), [0.0] * 3),
    "zeros": single((dense(0, 6, 3), dense_of([[0.0, 1.0, 0.0, THIRD, -1.0, 0.0]])), [0.1] * 3),
    "one member": single((Members((THIRD,), ((dense(0, 6, 3),),)), dense(1, 1, 6)), [0.1] * 3),
    "member last": single((dense(0, 6, 3), Members((THIRD,), ((dense(1, 1, 6),),))), [0.1] * 3),
    "coarse and fine": single(
        (dense_of([[1.0, 0.0], [1.0, 2.0**-9]]), Sort(2), dense_of([[1.0 + 2.0**-12, 1.0]])),
        [0.0, 0.0],
    ),
    # whose errors have more than 53 bits together, so that their sum is rounded
    "far apart": single((dense_of([[THIRD]], 2.0**34),), [THIRD * 2.0**-30]),
    "farther apart": single(
        (dense_of([[THIRD]], 2.0**34), dense_of([[1.0 + 2.0**-20]], 2.0**-9)), [THIRD * 2.0**-50]
    ),
    "far after a step": single(
        (dense_of([[THIRD]], 2.0**34), dense_of([[2.0**-30]], 2.0**34)), [0.0]
    ),
    "far after a member": single((Members((1.0,), ((FAR,),)),), [0.0]),
    **{f"{w} of a member": single((Members((w,), ((BITS,),)),), [0.0] * 8) for w in SHARES},
    **{
        f"{w} of a member, and on": single((Members((w,), ((BITS,),)), ONE), [0.0] * 8)
        for w in SHARES
    },
    "nothing": single((Dense(np.zeros((1, 2), "f4"), np.zeros(1, "f4")),), [0.0, 0.1]),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_errors_are_those_of_exact_intervals(name: str) -> None:
    frozen = NETWORKS[name]
    found, wide = find_errors(frozen), bounds.rounding_errors(frozen)
    for bound, exact in zip((found.score, found.order), expected(frozen), strict=True):
        for one, other, limit in zip(bound.tolist(), exact, wide.tolist(), strict=True):
            least = min(other, Fraction(limit))
            assert least <= Fraction(one) <= least * (1 + Fraction(1, 2**40))


def sums_of(numbers: Sequence[Number]) -> Sums:
    """The same as floats, which hold them."""
    columns = zip(*((n.low, n.high, n.unit, n.fresh) for n in numbers), strict=True)
    return Sums(*(np.array([float(min(x, Fraction(2) ** 1023)) for x in c]) for c in columns))


def draw_numbers(seed: int) -> list[Number]:
    """With all bits and with few, known units and unknown, sizes at the edges of formats."""
    rng = np.random.default_rng(seed)
    found = []
    for unit in (0.0, 2.0**-24, 2.0**-10, 2.0**-6, 1.0):
        for size in (2.0**-149, 2.0**-126, 2.0**-30, 1.0, 2.0**24 * unit or 1.0, 2.0**60):
            ends = np.sort(rng.normal(size=2)) * size
            edges = (-size, float(np.nextafter(size, 0.0))), (0.0, size), (-2 * size, -size)
            for low, high in (ends.tolist(), *edges):
                fresh = Fraction(float(rng.random()) * 2.0**-20)
                found.append(Number(Fraction(low), Fraction(high), Fraction(unit), fresh))
    return found


def check(found: Sums, exact: Sequence[Number]) -> None:
    """What is found holds what is exact, and is hardly wider."""
    for k, one in enumerate(exact):
        low, high, fresh = (Fraction(float(x[k])) for x in (found.low, found.high, found.fresh))
        room = max(abs(one.low), abs(one.high)) / 2**48 + Fraction(2) ** -1070
        assert one.low - room <= low < one.low
        assert one.high < high <= one.high + room
        assert one.fresh <= fresh <= one.fresh * (1 + Fraction(1, 2**48))
        unit = float(found.unit[k])
        assert unit == np.inf if one.unit >= 2**1023 else Fraction(unit) == one.unit


def test_rounded_numbers_are_followed_to_the_last_bit() -> None:
    numbers = draw_numbers(0)
    check(sums_of(numbers).rounded(), [n.rounded() for n in numbers])
    found = sums_of(numbers).rounding().tolist()
    assert found == [float(n.half_ulp) for n in numbers]
    assert {n.half_ulp > 0 for n in numbers} == {True, False}


def test_sums_and_products_are_followed_to_the_last_bit() -> None:
    numbers = draw_numbers(1)
    others = numbers[::-1]
    pairs = zip(numbers, others, strict=True)
    check(sums_of(numbers).plus(sums_of(others)), [a.plus(b) for a, b in pairs])
    for weight in (0.0, 1.0, -1.0, 2.0, 0.3, -(2.0**-120), 2.0**-121, 2.0**-149):
        found = sums_of(numbers).times(np.full(len(numbers), weight))
        check(found, [replace(n, fresh=Fraction(0)).times(weight) for n in numbers])


def test_a_number_that_may_overflow_is_one_too_many() -> None:
    size = np.array([1.0, 2.0**127])
    with pytest.raises(UnknownRangeError):
        Sums(-size, size, np.zeros(2), np.zeros(2)).rounding()
    assert np.all(Sums(-size / 4, size / 4, np.zeros(2), np.zeros(2)).rounding() > 0)


def test_the_largest_weights_are_filled_exactly() -> None:
    rng = np.random.default_rng(0)
    size = np.abs(rng.normal(size=(50, 7)))
    size[0], size[1], size[2] = 0.0, 1.0, THIRD
    size[3:20] = 0.0
    size[3:20, 3] = rng.random(17)  # one of them alone: what is left is multiplied with it
    for one, inf in ((rng.random() * 9, rng.random()) for _ in range(40)):
        found = ordered._fill(Change.of(one, inf), size)
        for bound, row in zip(found.tolist(), size.tolist(), strict=True):
            exact = filled(Fraction(one), Fraction(inf), [Fraction(w) for w in row])
            assert exact <= Fraction(bound) <= exact * (1 + Fraction(1, 2**45))
    assert ordered._fill(Change.of(0.0, 0.0), size).tolist() == [0.0] * 50


def test_errors_reach_the_bound() -> None:
    """Eight products just above half a unit in the last place, all rounded away."""
    step = dense_of([[2.0**-24 * (1 - 2.0**-20)] * 8], 1.0)
    frozen = single((step,), [0.0] * 8)
    error = find_errors(frozen).order[0]
    exact = 1.0 + 8 * float(step.weight[0, 0])
    lost = exact - float(reference.score(frozen, np.ones((1, 8)))[0])
    assert 0.99 * error < lost <= error


def test_copies_of_columns_get_the_bound_of_any_order() -> None:
    frozen = copied(1, 1, precision="float32")
    wide = bounds.rounding_errors(frozen)
    assert frozen.grid is not None
    assert np.array_equal(find_errors(frozen).score, wide)
    assert np.array_equal(find_errors(frozen).order, wide)
