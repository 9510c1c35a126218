"""The steps of a network in fixed point as adders and comparators, by da4ml.

Products with constants become additions and subtractions of shifted numbers, which da4ml shares
between sums. All variables are whole numbers, as in `isotone.export.native.whole`: of the fraction
of a constant da4ml keeps 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from da4ml.trace import FixedVariableArray, HWConfig, comb_trace

from isotone.certificate.widths import Whole, WholeNumbers
from isotone.compiled import engine
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.program import Language
from isotone.frozen.steps import Dense, Members, Pointwise, Sort

_ONE_PER_ADDER = HWConfig(1, -1, -1)  # a unit of latency is one adder, whatever its width

Variables = Any  # an array of da4ml


def trace(frozen: FrozenNetwork, inputs: Whole, scores: Whole) -> Any:
    """The combinational logic from the inputs to the scores, whole numbers of their units."""
    reach = np.ldexp(inputs.each, -inputs.exponent)
    u = FixedVariableArray.from_lhs(-reach, reach, np.ones_like(reach), hwconf=_ONE_PER_ADDER)
    g = _Circuit().run(frozen.steps, _Wires(u, inputs))
    residual = np.ldexp(frozen.residual, inputs.exponent - scores.exponent)
    return comb_trace(u, g.in_units(scores) + u @ residual.T, keep_dead_inputs=True)


@dataclass(frozen=True, eq=False)
class _Wires:
    """Variables of da4ml, (n_units,), and what they are whole numbers of."""

    values: Variables
    whole: Whole

    def in_units(self, other: Whole, weight: float = 1.0) -> Variables:
        """The values times a weight, as whole numbers of another unit."""
        return self.values * float(np.ldexp(weight, self.whole.exponent - other.exponent))


class _Circuit(Language[_Wires]):
    """What every step makes of the wires."""

    def __init__(self) -> None:
        self.numbers = WholeNumbers("float64")

    def dense(self, step: Dense, h: _Wires) -> _Wires:
        whole = self.numbers.dense(step, h.whole)
        weight = np.ldexp(step.weight, h.whole.exponent - whole.exponent)
        return _Wires(h.values @ weight.T + np.ldexp(step.bias, -whole.exponent), whole)

    def sort(self, step: Sort, h: _Wires) -> _Wires:
        units = list(h.values)
        for start in range(0, len(units), step.group_size):
            for i, j in engine.comparators(step.group_size):
                pair = units[start + i], units[start + j]
                units[start + i], units[start + j] = _exchange(*pair)
        values = FixedVariableArray(np.array(units), h.values.solver_options, h.values.hwconf)
        return _Wires(values, self.numbers.sort(step, h.whole))

    def pointwise(self, step: Pointwise, h: _Wires) -> _Wires:
        whole = self.numbers.pointwise(step, h.whole)
        values, one = h.in_units(whole), float(np.ldexp(1.0, -whole.exponent))
        match step.name:
            case "relu":
                values = np.maximum(values, 0.0)
            case "abs":
                values = np.maximum(values, -values)
            case "hardtanh":
                values = np.minimum(np.maximum(values, -one), one)
            case _:  # leaky_relu; every other is rounded
                choose = np.maximum if step.negative_slope <= 1 else np.minimum
                values = choose(values, h.in_units(whole, step.negative_slope))
        return _Wires(values, whole)

    def members(self, step: Members, h: _Wires, copies: bool) -> _Wires:
        whole = self.numbers.members(step, h.whole, copies)
        parts = zip(self.parts(step, h, copies), step.weights, strict=True)
        return _Wires(reduce(np.add, (p.in_units(whole, weight) for p, weight in parts)), whole)


def _exchange(a: Variables, b: Variables) -> tuple[Variables, Variables]:
    """The smaller and the larger of two variables, by one comparison."""
    if a.high <= b.low:
        return a, b
    if b.high <= a.low:
        return b, a
    less, step = a - b, float(min(a.step, b.step))
    low = float(min(a.low, b.low)), float(min(a.high, b.high)), step
    high = float(max(a.low, b.low)), float(max(a.high, b.high)), step
    return (
        less.msb_mux(a, b, qint=low, zt_sensitive=False),
        less.msb_mux(b, a, qint=high, zt_sensitive=False),
    )
