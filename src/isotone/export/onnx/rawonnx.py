"""Raw columns in ONNX: one input "X" of numbers, or one input per column, strings among them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.export.onnx.graph import Graph, Tensor
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Column, Number, Ordered
from isotone.typing import Floats, Precision


def raw_features(graph: Graph, inputs: Inputs, text: bool) -> Tensor:
    """The features of the network, (n_features, n_rows); NaN for what training never saw.

    Parameters
    ----------
    text : whether categories are strings, and not codes
    """
    if inputs.is_plain:
        return graph.transpose(graph.input("X", len(inputs.columns)))
    features, indicators = [], []
    for column in inputs.columns:
        if isinstance(column, Number):
            x = graph.row(column.name)
            missing = graph.is_nan(x)
            features.append(x if column.fill is None else graph.where(missing, column.fill, x))
        else:
            cells = graph.row(column.name, strings=text)
            missing = graph.equals(cells, "") if text else graph.is_nan(cells)
            features += _categories(graph, column, cells, missing, text)
        if column.fill is not None:
            indicators.append(graph.where(missing, 1.0, graph.column(np.zeros(1))))
    return graph.join([*features, *indicators])


def _categories(
    graph: Graph, column: Category | Ordered, cells: Tensor, missing: Tensor, text: bool
) -> list[Tensor]:
    """One feature per category, or the rank."""
    unknown = graph.column(np.full(1, np.nan))
    hits = [
        graph.equals(cells, (name or "") if text else float(k))
        for k, name in enumerate(column.categories)
    ]
    if None in column.categories:  # NaN, too, or the code of the missing category
        place = column.categories.index(None)
        hits[place] = graph.either(hits[place], missing)
    if isinstance(column, Ordered):
        rank = unknown if column.fill is None else graph.where(missing, column.fill, unknown)
        for k, hit in enumerate(hits):
            rank = graph.where(hit, float(k), rank)
        return [rank]
    known = hits[0]
    for hit in hits[1:]:
        known = graph.either(known, hit)
    zero = graph.where(known, 0.0, unknown)
    return [graph.where(hit, 1.0, zero) for hit in hits]


def feeds_of(
    inputs: Inputs, codes: Floats, precision: Precision, text: bool
) -> dict[str, NDArray[Any]]:
    """What a session is run with, for rows of these codes."""
    if inputs.is_plain:
        return {"X": codes.astype(precision)}
    cells = inputs.decode(codes)
    return {
        column.name: _strings(cells[column.name])
        if text and not isinstance(column, Number)
        else _numbers(column, codes[:, i]).astype(precision)
        for i, column in enumerate(inputs.columns)
    }


def _strings(cells: list[Any]) -> NDArray[Any]:
    return np.array(["" if cell is None else cell for cell in cells], dtype=object)


def _numbers(column: Column, codes: Floats) -> Floats:
    """Numbers, or codes, among which a missing category has none of its own."""
    if not isinstance(column, Category) or None not in column.categories:
        return codes
    return np.where(codes == column.categories.index(None), np.nan, codes)
