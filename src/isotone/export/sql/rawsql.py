"""Raw columns in SQL: missing values filled and flagged, categories as features."""

from __future__ import annotations

from dataclasses import replace

from isotone.export.sql.statement import Expression, Statement
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Column, Number, missing_code


def raw_features(statement: Statement, inputs: Inputs) -> list[Expression]:
    """The features of the network; NULL where a row holds what training never saw."""
    features, indicators = [], []
    for column in inputs.columns:
        code = _code(statement, column)
        if isinstance(column, Category):
            features += [_hot(statement, code, k) for k in range(len(column.categories))]
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
        code = statement.place(name, places)
    missing = missing_code(column)
    if missing is not None:
        code = statement.if_missing(column.kind, name, statement.number(missing).text, code)
    return statement.read(code)


def _hot(statement: Statement, code: Expression, k: int) -> Expression:
    """1 where the code is k, 0 where it is another, NULL where it is NULL."""
    one, zero = statement.number(1.0).text, statement.number(0.0).text
    known = f"WHEN {code.text} IS NOT NULL THEN {zero}"
    text = f"(CASE WHEN {code.text} = {k} THEN {one} {known} END)"
    return statement.let(Expression(text, code.columns, statement.dialect, finest=0))
