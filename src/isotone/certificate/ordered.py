r"""Rounding errors in float32 when sums are formed in the order of the engine.

`isotone.certificate.bounds.rounding_errors` holds for every order of summation and charges
:math:`\gamma_n` for n terms. A float32 network with a grid has one order everywhere, that of
`isotone.frozen.reference`: long sums in parts, the residual on its own. Here every rounding of it
is charged by itself, once for a sum and, as some processors have no fused multiply-add, once for
a product:

.. math:: |\mathrm{fl}(s) - s| \le \tfrac12 \mathrm{ulp}(\max |s|)

The largest :math:`|s|` comes from intervals that hold what is computed: of the inputs the clip,
after a sort the k-th smallest ends in a group. Whole numbers of a power of two p are not rounded
at all while they are at most :math:`2^{24} p`: a first step and a residual of few bits are exact.

The score is the rounded sum of g and of the residual sum. Rounding is monotone, so that this last
one moves a score but never moves one against a direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from isotone.certificate import bounds
from isotone.certificate.bounds import Change
from isotone.certificate.widths import lowest_digits
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.program import Language
from isotone.frozen.reference import parts_of, sums_in_parts
from isotone.frozen.steps import Dense, Members, Pointwise, Sort
from isotone.rounding import add, multiply, total, totals
from isotone.typing import Floats

_DIGITS = 24
_LARGEST = 2.0**126
_LEAST_UNIT = 2.0**-126  # smaller ones are not followed


class UnknownRangeError(ArithmeticError):
    """A step whose computed units are not followed, or that may overflow."""


@dataclass(frozen=True, eq=False)
class ScoreErrors:
    """Bounds on the errors of computed scores, (n_outputs,) each.

    Parameters
    ----------
    score : E, how far a computed score is from the exact one
    order : exact scores that differ by twice this are computed in the same order
    """

    score: Floats
    order: Floats


def find_errors(frozen: FrozenNetwork) -> ScoreErrors:
    """Errors of what `FrozenNetwork.score` computes, in the order in which it sums."""
    wide = bounds.rounding_errors(frozen)
    if not sums_in_parts(frozen) or frozen.copies is not None:
        return ScoreErrors(wide, wide)
    try:
        g, residual = _follow(frozen)
        last = g.sums.plus(residual).rounding()
    except UnknownRangeError:
        return ScoreErrors(wide, wide)
    order = add(g.each, residual.fresh)
    score = np.minimum(wide, add(order, last))
    # of classes it is differences of logits that must keep their order
    return ScoreErrors(score, score if frozen.of_classes else np.minimum(wide, order))


def _follow(frozen: FrozenNetwork) -> tuple[Computed, Sums]:
    """What is known of g, and of the residual sum."""
    n = frozen.n_features
    reach, grid = np.full(n, frozen.clip), np.full(n, frozen.grid or 0.0)
    u = Computed(Sums(-reach, reach, grid, np.zeros(n)), Change.of(0.0, 0.0), np.zeros(n))
    return _Ordered().run(frozen.steps, u), _add_terms(None, frozen.residual, u, slice(0, n))


@dataclass(frozen=True, eq=False)
class Sums:
    """Computed numbers.

    Parameters
    ----------
    low, high : what they lie between
    unit : powers of two of which they are whole multiples; 0 if unknown, infinite for zeros
    fresh : what the roundings on the way to them add up to
    """

    low: Floats
    high: Floats
    unit: Floats
    fresh: Floats

    @classmethod
    def of(cls, numbers: Floats) -> Sums:
        return cls(numbers, numbers, _units_of(numbers), np.zeros(len(numbers)))

    def plus(self, other: Sums) -> Sums:
        """The exact sums of both."""
        low, high = _outward(self.low + other.low, self.high + other.high)
        return Sums(low, high, np.minimum(self.unit, other.unit), add(self.fresh, other.fresh))

    def times(self, weight: Floats) -> Sums:
        """The exact products, as numbers without a past."""
        ends = np.array([weight * self.low, weight * self.high])
        with np.errstate(invalid="ignore"):  # zeros times an unknown unit
            units = _units_of(weight) * np.minimum(self.unit, _LARGEST)
        unit = np.where(weight == 0, np.inf, units)
        unit = np.where(unit < _LEAST_UNIT, 0.0, unit)
        return Sums(*_outward(ends.min(axis=0), ends.max(axis=0)), unit, np.zeros(unit.shape))

    def rounded(self) -> Sums:
        error = self.rounding()
        low, high = _outward(self.low - error, self.high + error)
        return Sums(low, high, np.where(error > 0, 0.0, self.unit), add(self.fresh, error))

    def rounding(self) -> Floats:
        """How far rounding to float32 can move each: half a unit in the last place, or nothing."""
        size = np.maximum(np.abs(self.low), np.abs(self.high))
        if not np.all(size < _LARGEST):
            raise UnknownRangeError
        exponent = np.maximum(np.frexp(size)[1] - _DIGITS - 1, -150)
        is_held = size <= np.ldexp(self.unit, _DIGITS)
        return np.where(is_held, 0.0, np.ldexp(1.0, exponent))


@dataclass(frozen=True, eq=False)
class Computed:
    """The computed units after a step.

    Parameters
    ----------
    error, each : how far they are from the exact ones, together, and every one (n_units,)
    """

    sums: Sums
    error: Change
    each: Floats

    def at(self, k: int) -> Sums:
        one = slice(k, k + 1)
        return Sums(self.sums.low[one], self.sums.high[one], self.sums.unit[one], np.zeros(1))


def _add_terms(start: Sums | None, weight: Floats, h: Computed, part: slice) -> Sums:
    """W h of a part of the inputs, added to `start` one after the other."""
    found = start
    for k in range(part.start, part.stop):
        term = h.at(k).times(weight[:, k]).rounded()
        found = term if found is None else found.plus(term).rounded()
    assert found is not None
    return found


class _Ordered(Language[Computed]):
    """Intervals, units and errors after every step."""

    def dense(self, step: Dense, h: Computed) -> Computed:
        weight, bias = step.weight.astype(np.float64), Sums.of(step.bias.astype(np.float64))
        parts = parts_of(weight.shape[1], len(weight), in_parts=True)
        sums = reduce(
            lambda before, part: before.plus(_add_terms(None, weight, h, part)).rounded(),
            parts[1:],
            _add_terms(bias, weight, h, parts[0]),
        )
        each = np.minimum(h.error.rows(step.norms)[:, 0], _fill(h.error, np.abs(weight)))
        return Computed(sums, h.error.through(step.norms) + _of(sums.fresh), add(each, sums.fresh))

    def sort(self, step: Sort, h: Computed) -> Computed:
        """The k-th smallest lies between the k-th smallest ends."""
        low, high, unit, each = (
            a.reshape(-1, step.group_size) for a in (h.sums.low, h.sums.high, h.sums.unit, h.each)
        )
        least, most = (np.repeat(a, step.group_size) for a in (unit.min(axis=1), each.max(axis=1)))
        ends = np.sort(low, axis=1).ravel(), np.sort(high, axis=1).ravel()
        return Computed(Sums(*ends, least, np.zeros(least.shape)), h.error, most)

    def pointwise(self, step: Pointwise, h: Computed) -> Computed:
        raise UnknownRangeError

    def members(self, step: Members, h: Computed, copies: bool) -> Computed:
        parts, sizes = self.parts(step, h, copies), np.abs(step.weights)
        terms = [
            part.sums.times(np.full(len(part.each), weight)).rounded()
            for weight, part in zip(step.weights, parts, strict=True)
        ]
        sums = reduce(lambda before, term: before.plus(term).rounded(), terms)
        both = reduce(add, multiply(sizes[:, None, None], [part.error.both for part in parts]))
        each = reduce(add, multiply(sizes[:, None], [part.each for part in parts]))
        return Computed(sums, Change(both) + _of(sums.fresh), add(each, sums.fresh))


def _of(errors: Floats) -> Change:
    """Independent errors as a change of all together."""
    return Change.of(total(errors), errors.max())


def _fill(error: Change, size: Floats) -> Floats:
    r"""The largest :math:`\sum_k |w_{jk}| t_k` of every row, for t with these two norms.

    No entry of t is above the ∞-norm, and all add up to the 1-norm: the largest weights get most.
    """
    one, inf = error.both[:, 0].tolist()
    if inf == 0.0:
        return np.zeros(len(size))
    n = float(np.nextafter(one / inf, np.inf))
    largest = np.sort(size, axis=1)[:, ::-1]
    whole = min(int(n), size.shape[1])
    rest = largest[:, whole] if whole < size.shape[1] else np.zeros(len(size))
    filled = totals(np.pad(largest[:, :whole], ((0, 0), (0, 1))))  # none of them is a sum too
    return multiply(inf, add(filled, multiply(n - whole, rest)))


def _units_of(numbers: Floats) -> Floats:
    """The largest powers of two of which numbers are whole multiples."""
    with np.errstate(over="ignore"):  # of zeros
        return np.ldexp(1.0, lowest_digits(numbers))


def _outward(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    return np.nextafter(low, -np.inf), np.nextafter(high, np.inf)
