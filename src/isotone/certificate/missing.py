r"""Missing values: whether one is never better, or never worse, than any value of its column.

A missing number enters as its fill with the indicator at 1, a missing category as one of its own.
Let u be the inputs of a row in which the value of a column is missing, and u' those of the same
row with a value of that column. Only inputs of the column differ, by :math:`d_k = u_k - u'_k`, and
with f = g + r·u and bounds L of the slopes of g

.. math:: s\,(f(u) - f(u')) \ge \sum_k \left(s\,r_k d_k - L_k |d_k|\right).

Where this is at least 2E for every value, computed scores obey the direction s to the last bit.
Inputs of numbers and ranks rise with the value: above the fill every :math:`d_k` lies between that
of the highest value and 0, below it between 0 and that of the lowest. A term is concave in
:math:`d_k`, hence least at an end. Sums are those of the stored numbers, exact or rounded down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from isotone.certificate.verdicts import Verdict
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.columns import Category, Column, Number, Ordered, missing_code, missing_name
from isotone.rounding import add
from isotone.typing import Floats

_LARGEST = float(np.finfo(np.float64).max)
_ENDS = -_LARGEST, _LARGEST
_ROUNDING, _UNDERFLOW = 2.0**-48, 2.0**-1060  # more than a term and its sum lose


@dataclass(frozen=True, slots=True)
class MissingVerdict:
    """Whether a missing value is never better (-1), or never worse (+1), than any value.

    Parameters
    ----------
    about : what is compared: the score, or the probability of a class that is named
    least : bound on the difference to any value, in the declared direction, of exact scores or
        differences of logits; at least 0 is needed for `real`
    needed : what is needed for `computed`, 2E
    computed : None if nothing is promised about computed scores (`grid` is None)
    """

    output: int
    column: str
    direction: int
    about: str
    least: float
    needed: float
    real: bool
    computed: bool | None


@dataclass(frozen=True)
class _Move:
    """How far an input is moved by taking a value away: by `d`, or by anything from 0 to it."""

    feature: int
    d: Fraction
    is_exact: bool


def judge_missing(
    frozen: FrozenNetwork, slope_bounds: Floats, errors: Floats
) -> tuple[MissingVerdict, ...]:
    """One for every output and column whose indicator of missing values has a direction."""
    if not (np.all(np.isfinite(slope_bounds)) and np.all(np.isfinite(errors))):
        return ()
    ends = _Ends.of(frozen)
    return tuple(
        _judge(frozen, slope_bounds, errors, ends, column, output, direction)
        for column in _with_missing(frozen)
        for output, direction in enumerate(_directions(frozen, ends, column))
        if direction
    )


@dataclass(frozen=True, eq=False)
class _Ends:
    """Inputs of the network, (n_inputs,) each, where all features are at an end.

    Parameters
    ----------
    zero, one : all features are 0, or 1
    fill, low, high : columns of numbers and ranks have their fills, lowest or highest values
    places : of every feature the inputs that it is
    """

    zero: Floats
    one: Floats
    fill: Floats
    low: Floats
    high: Floats
    places: dict[str, range]

    @classmethod
    def of(cls, frozen: FrozenNetwork) -> _Ends:
        inputs = frozen.inputs
        rows = np.zeros((5, len(inputs.encoded)))
        rows[1] = 1.0
        for column, place in zip(inputs.columns, inputs.places, strict=True):
            if column.fill is not None:
                rows[2:, place] = column.fill, *value_range(column)
        stops = np.searchsorted(inputs.sources, range(len(inputs.encoded) + 1)).tolist()
        spans = (range(*stop) for stop in pairwise(stops))
        places = dict(zip(inputs.encoded, spans, strict=True))
        zero, one, fill, low, high = frozen.snap(rows).astype(np.float64)
        return cls(zero, one, fill, low, high, places)

    def moves(self, feature: str, after: Floats, before: Floats, is_exact: bool) -> list[_Move]:
        """How inputs of a feature move from one end to another, or to anything on the way."""
        return [
            _Move(k, Fraction(after[k]) - Fraction(before[k]), is_exact)
            for k in self.places[feature]
            if after[k] != before[k]
        ]


def _judge(
    frozen: FrozenNetwork,
    slope_bounds: Floats,
    errors: Floats,
    ends: _Ends,
    column: Column,
    output: int,
    direction: int,
) -> MissingVerdict:
    errors_of = [errors[output]]
    if frozen.of_classes:
        errors_of = add(errors[output], np.delete(errors, output)).tolist()
    least = np.array(
        [_least(frozen, slope_bounds, output, direction, moves) for moves in _values(ends, column)]
    ).min(axis=0)
    needed = 2.0 * np.array(errors_of)
    return MissingVerdict(
        output=output,
        column=column.name,
        direction=direction,
        about=frozen.about(output),
        least=float(least.min()),
        needed=float(needed.max()),
        real=bool(np.all(least >= 0)),
        computed=None if frozen.grid is None else bool(np.all(least >= needed)),
    )


def _least(
    frozen: FrozenNetwork, slope_bounds: Floats, output: int, direction: int, moves: list[_Move]
) -> Floats:
    """Lower bounds of changes, in a direction, when inputs move.

    Of an output, exactly rounded, or of the differences of a logit to all others.
    """
    if not frozen.of_classes:
        residual, slopes = frozen.residual[output], slope_bounds[output]
        return np.array([_down(_sum(residual, slopes, direction, moves))])
    features, d = [move.feature for move in moves], np.array([float(m.d) for m in moves])
    r, slopes = frozen.residual[:, features], slope_bounds[:, features]
    others, exact = np.arange(len(r)) != output, np.array([m.is_exact for m in moves], bool)
    with np.errstate(over="ignore", invalid="ignore"):
        rise = direction * (r[output] - r[others]) * d
        fall = (slopes[output] + slopes[others]) * np.abs(d)
        terms = np.where(exact, rise - fall, np.minimum(rise - fall, 0.0))
        size = (np.abs(rise) + fall).sum(axis=1)
        least = terms.sum(axis=1) - len(moves) * (_ROUNDING * size + _UNDERFLOW)
    return np.where(np.isnan(least), -math.inf, least)


def _sum(residual: Floats, slopes: Floats, direction: int, moves: list[_Move]) -> Fraction:
    """The least change of an output, in a direction, when inputs move."""
    result = Fraction(0)
    for move in moves:
        r, bound = Fraction(residual[move.feature]), Fraction(slopes[move.feature])
        term = direction * r * move.d - bound * abs(move.d)
        result += term if move.is_exact else min(term, Fraction(0))
    return result


def _values(ends: _Ends, column: Column) -> list[list[_Move]]:
    """Moves of the inputs for every category, or for the lowest and for the highest value."""
    indicator = missing_name(column.name)
    flag = ends.moves(indicator, ends.one, ends.zero, True)
    if isinstance(column, Category):
        present = [name for name in column.features if name != indicator]
        return [flag + ends.moves(name, ends.zero, ends.one, True) for name in present]
    both = ends.low, ends.high
    return [flag + ends.moves(column.name, ends.fill, end, False) for end in both]


def value_range(column: Number | Ordered) -> tuple[float, float]:
    """The lowest and the highest number that a column can have."""
    return (0.0, len(column.categories) - 1.0) if isinstance(column, Ordered) else _ENDS


def _with_missing(frozen: FrozenNetwork) -> list[Column]:
    return [column for column in frozen.inputs.columns if missing_code(column) is not None]


def _directions(frozen: FrozenNetwork, ends: _Ends, column: Column) -> list[int]:
    """The declared direction of every output along the indicator of a column; 0 if none."""
    declared = frozen.monotonic_cst[:, ends.places[missing_name(column.name)]]
    agree = np.all(declared == declared[:, :1], axis=1)
    directions: list[int] = np.where(agree, declared[:, 0], 0).tolist()
    return directions


def _down(exact: Fraction) -> float:
    """The largest float that is not above a fraction, or one below it."""
    try:
        number = float(exact)
    except OverflowError:
        return -math.inf if exact < 0 else _LARGEST
    return number if Fraction(number) <= exact else math.nextafter(number, -math.inf)


def promise_nothing(frozen: FrozenNetwork) -> str:
    """The same where no promise is made at all."""
    columns = _with_missing(frozen)
    return f"of {_listed([c.name for c in columns])}: nothing is promised" if columns else ""


def describe_missing(
    frozen: FrozenNetwork,
    verdicts: tuple[Verdict, ...],
    missing: tuple[MissingVerdict, ...],
) -> str:
    """What is and is not promised for missing values, in words; nothing if there are none."""
    columns = _with_missing(frozen)
    if not columns:
        return ""
    parts = [
        f"of {_listed([c.name for c in columns])}: directions hold among rows in which the value "
        "is present, and among rows in which it is missing"
    ]
    promises: dict[str, list[str]] = {}
    for verdict in missing:
        if promise := _promise(frozen, verdicts, verdict):
            promises.setdefault(promise, []).append(verdict.column)
    parts += [  # exact or up to an error: an export quotes this beside what it guarantees itself
        f"just as exactly, a missing {_one_of(names)} {promise}"
        for promise, names in promises.items()
    ]
    named = {name for names in promises.values() for name in names}
    rest = [column.name for column in columns if column.name not in named]
    if rest:
        what = "value" if len(rest) == len(columns) else _one_of(rest)
        parts.append(f"no promise compares a missing {what} with a present one")
    return "; ".join(parts)


def _promise(
    frozen: FrozenNetwork, verdicts: tuple[Verdict, ...], verdict: MissingVerdict
) -> str | None:
    """What was proved of a missing value beside others: any of them, its fill, or nothing."""
    better = f"gives a {'higher' if verdict.direction < 0 else 'lower'} {verdict.about} than"
    if verdict.real and verdict.computed is not False:
        return f"never {better} any present value"
    key = verdict.output, missing_name(verdict.column)
    plain = [v for v in verdicts if (v.output, v.feature) == key]
    fill = _raw_fill(frozen.inputs.column(verdict.column))
    if fill is None or not all(v.real and v.computed is not False for v in plain):
        return None
    return f"never {better} {fill}, and no promise compares it with other values"


def _raw_fill(column: Column) -> str | None:
    """The value that stands in for a missing one, if a row may hold it."""
    if column.fill is None:
        return None
    if not isinstance(column, Ordered):
        return repr(column.fill)
    ranks = range(len(column.categories))
    return column.categories[int(column.fill)] if column.fill in ranks else None


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _one_of(names: list[str]) -> str:
    *most, last = names
    return f"{_listed(most)} or {last}" if most else last
