r"""Joint directions: whether a score never falls when several columns move together.

A direction d gives columns a rate in raw units each. "a matters at least as much as b" is the
direction in which a rises by as much as b falls. Between rows x and x + t d whose scaled values
are within the clip, scaled values move by t D with :math:`D_i = a_i d_i`, and

.. math:: f(x + t d) - f(x) \ge t\,(r \cdot D - L_D), \qquad L_D \ge |\nabla g \cdot D|.

The bound :math:`L_D` is that of a network with one input whose first weights are W D. It is less
than :math:`\sum_i L_i |D_i|` where columns of W cancel, so that a joint direction can hold
although none of its columns has a direction of its own.

Computed scores are those of rows on the grid. Each input is off by up to half a cell at both
ends, so along d they may fall by what these cells and the rounding errors permit, and no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from isotone.certificate import bounds
from isotone.certificate.slopes import Interval
from isotone.frozen.joint import JointDirection, check_joint, describe_joint
from isotone.frozen.lookup import Copies
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.steps import Dense, change_first, starts_dense
from isotone.rounding import add, digits_up, gamma, multiply, total
from isotone.typing import Floats, Reals

_TINY = 2.0**-500  # inputs that move by less are bounded apart,
_HUGE = 2.0**500  # and those that move by more
_UNDERFLOW = 2.0**-1070  # more than a product loses
_LARGEST = float(np.finfo(np.float64).max)
_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class JointVerdict:
    """Whether a score never falls along a joint direction.

    Parameters
    ----------
    direction : rates of columns, in raw units
    about : what never falls: the score, or the probability of a class that is named
    slope : of the exact score, or logit, per unit of the direction, between rows in the clip
    drop : how far a computed one may fall along it, because rows are rounded to the grid
    real : whether the exact one never falls, and the drop is bounded
    """

    output: int
    direction: tuple[tuple[str, float], ...]
    about: str
    slope: Interval
    drop: float
    real: bool

    def __str__(self) -> str:
        verdict = f"never falls by more than {digits_up(self.drop)}" if self.real else "may fall"
        return f"along {describe_joint(dict(self.direction))} the {self.about} {verdict}"


def judge_joint(
    frozen: FrozenNetwork, slope_bounds: Floats, errors: Floats, direction: JointDirection
) -> tuple[JointVerdict, ...]:
    """The verdict of every output along one direction."""
    if frozen.of_classes:
        raise ValueError(
            f"a joint direction is about a single output, and there are {frozen.n_outputs} "
            "classes; ask for it where there is one score, or two classes"
        )
    rates = check_joint(direction, frozen.inputs, frozen.scaling)
    moves = _moves(frozen, rates)
    inputs, steepest = list(moves), _slope_along(frozen, moves, slope_bounds)
    off = copies_of(frozen).slack[inputs]
    verdicts = []
    for output, bound in enumerate(steepest.tolist()):
        residual = frozen.residual[output]
        slope = _interval(sum((Fraction(residual[i]) * moves[i] for i in inputs), _ZERO), bound)
        steepness = add(np.abs(residual[inputs]), slope_bounds[output, inputs])
        cells = total(multiply(steepness, off)) if np.all(np.isfinite(off)) else math.inf
        drop = float(add(multiply(2.0, errors[output]), cells))
        verdicts.append(
            JointVerdict(
                output=output,
                direction=tuple(rates.items()),
                about=frozen.about(output),
                slope=slope,
                drop=drop,
                real=slope.low >= 0 and math.isfinite(drop),
            )
        )
    return tuple(verdicts)


def copies_of(frozen: FrozenNetwork) -> Copies:
    """The inputs of a network as copies of features, one of each if there are no knots."""
    one = tuple(range(frozen.n_features))
    numbers = frozen.scaling, frozen.clip, frozen.grid, frozen.precision
    return frozen.copies or Copies.of(one, *numbers)


def _interval(rise: Fraction, bound: float) -> Interval:
    """r·D, give or take what g may add."""
    if not math.isfinite(bound):
        return Interval(-math.inf, math.inf)
    return Interval(-_up(Fraction(bound) - rise), _up(rise + Fraction(bound)))


def _moves(frozen: FrozenNetwork, rates: JointDirection) -> dict[int, Fraction]:
    """By how much inputs of the network move along a direction."""
    inputs, found = frozen.inputs, {}
    for name, rate in rates.items():
        i = int(inputs.firsts[inputs.places[inputs.names.index(name)]])
        found[i] = Fraction(frozen.scaling.factor[i]) * Fraction(rate)
    return found


def _slope_along(
    frozen: FrozenNetwork, moves: dict[int, Fraction], slope_bounds: Floats
) -> Floats:
    """Bounds of the slope of every output of g along moves of its inputs."""
    if not starts_dense(frozen.steps):
        return _apart(slope_bounds, moves)
    usual = {i: move for i, move in moves.items() if _TINY < abs(move) < _HUGE}
    others = {i: move for i, move in moves.items() if i not in usual}
    together = change_first(
        frozen.steps, lambda step: Dense(_combine(step.weight, usual), step.bias)
    )
    least = np.minimum(_apart(slope_bounds, usual), bounds.slopes(together, 1)[:, 0])
    return add(least, _apart(slope_bounds, others))


def _apart(slope_bounds: Floats, moves: dict[int, Fraction]) -> Floats:
    """The same, input by input: the sum of L |D|."""
    sizes = np.array([_up(abs(move)) for move in moves.values()])
    return np.array([total(multiply(row, sizes)) for row in slope_bounds[:, list(moves)]])


def _combine(weight: Reals, moves: dict[int, Fraction]) -> Floats:
    r"""Sizes of W D, rounded up, (n_units, 1).

    Products and sums err by :math:`\gamma_{n+2}` times the sum of their sizes, the rounding of D
    included; twice that also bounds the error of the sum of the sizes.
    """
    own = weight[:, list(moves)].astype(np.float64)
    rates = np.array([float(move) for move in moves.values()])
    with np.errstate(over="ignore", invalid="ignore"):
        size, most = np.abs(own @ rates), np.abs(own) @ np.abs(rates)
    doubt = multiply(2.0 * gamma(len(rates) + 2, 2.0**-53), most)
    bounded = add(add(size, doubt), len(rates) * _UNDERFLOW)
    return np.where(np.isfinite(bounded), bounded, _LARGEST)[:, None]


def _up(exact: Fraction) -> float:
    """The smallest float that is not below a fraction, or one above it."""
    try:
        number = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -_LARGEST
    return number if Fraction(number) >= exact else math.nextafter(number, math.inf)
