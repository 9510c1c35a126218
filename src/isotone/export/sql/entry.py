"""What enters the first step, in SQL: scaled features, or copies of them that are looked up.

Features are made of raw columns: missing values are filled and flagged, categories are one feature
each. A tree of comparisons with the places between the copies of a column finds the copy that
moves. Its numbers are chosen by such trees as well; those of a layer with many units are in a
constant table, which is joined by the number of the copy.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import numpy as np

from isotone.export.formulas import clamp, log, snap
from isotone.export.sql.expression import Expression, vanishing
from isotone.export.sql.statement import Statement
from isotone.frozen.lookup import Copies
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Column, Number, missing_code
from isotone.typing import Reals

Units = list[Expression]

_MOST_TERMS = 256  # in one sum: databases limit the depth of an expression to 1000
_MANY = 256  # numbers of a column in one layer: a join costs time to plan, which few do not repay
_LARGEST = sys.float_info.max


def raw_features(statement: Statement, inputs: Inputs) -> list[Expression]:
    """The features of the network; NULL where a row holds what training never saw."""
    features, indicators = [], []
    for column in inputs.columns:
        code = _code(statement, column)
        if isinstance(column, Category):
            features += [_hot(statement, code, k) for k in range(len(column.features))]
        else:
            features.append(code)
        if column.fill is not None:
            name = statement.column(column.name)
            one, zero = statement.number(1.0).text, statement.number(0.0).text
            missing = statement.read(statement.if_missing(column.kind, name, one, zero))
            indicators.append(replace(missing, finest=0))
    return [*features, *indicators]


def _code(statement: Statement, column: Column) -> Expression:
    """The number that stands for a cell, see `isotone.inputs.columns`; NULL if there is none."""
    name = statement.column(column.name)
    if isinstance(column, Number):
        code = statement.finite(name)
    else:
        places = {text: k for k, text in enumerate(column.categories) if text is not None}
        other = column.other if isinstance(column, Category) else None
        code = statement.place(name, places, other)
    missing = missing_code(column)
    if missing is not None:
        code = statement.if_missing(column.kind, name, statement.number(missing).text, code)
    elif isinstance(column, Category) and column.pooled:
        code = statement.if_missing(column.kind, name, "NULL", code)
    return statement.read(code)


def _hot(statement: Statement, code: Expression, k: int) -> Expression:
    """1 where the code is k, 0 where it is another, NULL where it is NULL."""
    one, zero = statement.number(1.0).text, statement.number(0.0).text
    known = f"WHEN {code.text} IS NOT NULL THEN {zero}"
    text = f"(CASE WHEN {code.text} = {k} THEN {one} {known} END)"
    return statement.let(Expression(text, code.columns, statement.dialect, finest=0))


def scaled(statement: Statement, frozen: FrozenNetwork, i: int, x: Expression) -> Expression:
    """One feature as it enters the first step; NULL unless it is a finite number."""
    scaling = frozen.scaling
    if scaling.log[i]:
        shifted = statement.let(x + float(scaling.offset[i]))
        x = log(statement, statement.maximum(shifted, float(scaling.floor[i])))
    factor = float(scaling.factor[i])
    x = near(statement, x - float(scaling.center[i]), 2.0 * frozen.clip / factor)
    return _clamped(statement, x * factor, frozen.clip, frozen.grid)


def near(statement: Statement, x: Expression, reach: float) -> Expression:
    """`x` clamped where its product is clipped anyway, because PostgreSQL refuses to overflow."""
    if statement.dialect != "postgresql":
        return x
    reach = min(reach, _LARGEST)
    return statement.let(clamp(statement, x, -reach, reach))


def _clamped(statement: Statement, x: Expression, reach: float, grid: float | None) -> Expression:
    x = statement.let(clamp(statement, statement.let(x), -reach, reach))
    return x if grid is None else snap(statement, x, grid)


def sum_of(statement: Statement, start: Expression, weights: Reals, h: Units) -> Expression:
    """start + w₀ h₀ + w₁ h₁ + …, which SQL adds from the left, as `score` does.

    A weight of zero stays: its product is NULL where the unit is.
    """
    for k, (weight, unit) in enumerate(zip(weights, h, strict=True)):
        if k and k % _MOST_TERMS == 0:
            start = statement.let(start)
        start = start.plus_product(float(weight), unit)
    return statement.let(start)


@dataclass(frozen=True, eq=False)
class LookUp:
    """Of every column the place of the copy that moves, counted from 0, and that copy."""

    statement: Statement
    copies: Copies
    place: Units
    phi: Units

    @classmethod
    def of(cls, statement: Statement, frozen: FrozenNetwork, copies: Copies, x: Units) -> LookUp:
        place, phi = [], []
        for s, (first, count) in enumerate(zip(copies.firsts, copies.counts, strict=True)):
            if count == 1:
                place.append(statement.number(0.0))
                phi.append(scaled(statement, frozen, int(first), x[s]))
            else:
                ends = copies.ends[s][np.isfinite(copies.ends[s])]
                numbers = [statement.number(float(k)) for k in range(count)]
                found = statement.among(x[s], ends.tolist(), numbers)
                place.append(statement.let(found))
                phi.append(_moving(statement, frozen, x[s], place[s], slice(first, first + count)))
        return cls(statement, copies, place, phi)

    def add(self, start: Units, weight: Reals) -> Units:
        """start + W φ, column after column, C before the copy that moves."""
        rows = zip(start, weight, self.copies.sums(weight), strict=True)
        return [self._add(unit, w, sums, len(start)) for unit, w, sums in rows]

    def _add(self, total: Expression, weights: Reals, sums: Reals, n_units: int) -> Expression:
        """One unit; a stage joins the table of one column."""
        let, places = self.statement.let, zip(self.copies.firsts, self.copies.counts, strict=True)
        for s, (first, count) in enumerate(places):
            phi, own = self.phi[s], slice(first, first + count)
            if count == 1:
                total = total.plus_product(float(weights[first]), phi)
            else:
                pick = _Pick(self.statement, self.place[s], joins=count * n_units > _MANY)
                total = total.plus(pick(sums[own])).plus(pick.product(phi, weights[own]))
                total = let(total) if pick.joins else total
            if s % (_MOST_TERMS // 4) == _MOST_TERMS // 4 - 1:
                total = let(total)
        return let(total)


@dataclass(frozen=True)
class _Pick:
    """Numbers of the copy at a place, which was let: by comparisons, or from a joined table."""

    statement: Statement
    place: Expression
    joins: bool = False

    def __call__(self, values: Reals) -> Expression:
        if self.joins:
            return self.statement.look_up(self.place, values.tolist())
        leaves = [self.statement.number(float(value)) for value in values]
        return self.statement.among(self.place, [float(k) for k in range(1, len(leaves))], leaves)

    def product(self, x: Expression, factors: Reals) -> Expression:
        """x times a factor; `x` was let.

        Where it can vanish, which PostgreSQL refuses, the bound of the factor is picked as well.
        """
        product = x * self(factors)
        smallest = float(np.min(np.abs(factors), where=factors != 0, initial=1.0))
        can_vanish = vanishing(smallest) >= 2.0 ** min(x.finest, 1000)
        if self.statement.dialect != "postgresql" or not can_vanish:
            return product
        bound = self(np.array([vanishing(float(factor)) for factor in factors]))
        bound = bound if self.joins else self.statement.let(bound)
        return self.statement.unless_within(x, bound, product)


def _moving(
    statement: Statement, frozen: FrozenNetwork, x: Expression, place: Expression, own: slice
) -> Expression:
    """φ of the copy that moves: clamp((x − c) a, −1, 1), snapped."""
    pick, factors = _Pick(statement, place), frozen.scaling.factor[own]
    distance = statement.let(x - pick(frozen.scaling.center[own]))
    if statement.dialect == "postgresql":  # which refuses to overflow
        reach = statement.let(pick(np.minimum(2.0 / factors, _LARGEST)))
        distance = statement.let(statement.between(distance, reach))
    return _clamped(statement, pick.product(distance, factors), 1.0, frozen.grid)
