"""Raw columns in SQL: missing values filled and flagged, categories as features."""

from __future__ import annotations

from isotone.export.statement import Expression, Statement
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
            indicators.append(
                statement.read(statement.if_missing(column.kind, name, "1e0", "0e0"))
            )
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
    text = f"CASE WHEN {code.text} = {k} THEN 1e0 WHEN {code.text} IS NOT NULL THEN 0e0 END"
    return statement.let(Expression(f"({text})", code.columns, statement.dialect))
