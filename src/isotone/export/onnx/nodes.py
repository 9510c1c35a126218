"""A network as nodes of an ONNX graph: features made of raw columns, and the steps.

Raw columns are one input "X" of numbers, or one input per column, strings among them.
Units are rows and events are columns. Copies of columns are looked up: how many ends are not above
a value counts the place of the copy that moves, and Gather takes its numbers from tables.
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.export import exactness
from isotone.export.formulas import activate, clamp, log, rounds, snap, uses_exp
from isotone.export.onnx.graph import Graph, Tensor
from isotone.frozen.lookup import Copies
from isotone.frozen.network import FrozenNetwork
from isotone.frozen.program import Language
from isotone.frozen.steps import Dense, Members, Pointwise, Sort
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Column, Number, Ordered
from isotone.typing import Floats, Indices, Precision, Reals


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
    """One feature per category, and per pool of others; or the rank."""
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
    if column.pooled:
        return _pooled(graph, hits, None if None in column.categories else missing)
    zero = graph.where(reduce(graph.either, hits), 0.0, unknown)
    return [graph.where(hit, 1.0, zero) for hit in hits]


def _pooled(graph: Graph, hits: list[Tensor], unknown: Tensor | None) -> list[Tensor]:
    """One feature per category, and that of all others; NaN where they are unknown."""
    zero, other = graph.column(np.zeros(1)), graph.column(np.ones(1))
    for hit in hits:
        other = graph.where(hit, 0.0, other)
    if unknown is not None:
        zero, other = (graph.where(unknown, np.nan, x) for x in (zero, other))
    return [*(graph.where(hit, 1.0, zero) for hit in hits), other]


class Nodes(Language[Tensor]):
    """The score of features x, (n_features, n_rows).

    Parameters
    ----------
    frozen : in the precision of the graph
    ordered : sums in the order of the model, or else by products of matrices
    topk : sorts by TopK, or else by networks of comparators
    """

    def __init__(
        self, graph: Graph, frozen: FrozenNetwork, x: Tensor, *, ordered: bool, topk: bool
    ) -> None:
        if frozen.precision == "float32":
            exactness.refuse_scaling_beyond_float32(frozen.scaling)
        self.graph, self.frozen = graph, frozen
        self.ordered, self.topk = ordered, topk
        self.x = x
        self.cells: list[tuple[Tensor | None, Tensor]] = []

    def score(self) -> Tensor:
        """The outputs, (n_outputs, n_rows)."""
        frozen = self.frozen
        if frozen.copies is None:
            u = self._scaled(self.x)
            return self._sum(self.run(frozen.steps, u), frozen.residual, u)
        self.cells = self._cells(frozen.copies)
        g = self.run(frozen.steps, self.cells[0][1], copies=True)
        return self._look_up(g, frozen.residual, frozen.copies)

    def dense(self, step: Dense, h: Tensor) -> Tensor:
        return self._sum(self.graph.column(step.bias), step.weight, h)

    def look_up(self, step: Dense, h: Tensor) -> Tensor:
        assert self.frozen.copies is not None
        return self._look_up(self.graph.column(step.bias), step.weight, self.frozen.copies)

    def sort(self, step: Sort, h: Tensor) -> Tensor:
        if step.group_size == 1:
            return h
        if self.topk:
            return self.graph.topk(h, step.group_size)
        return _sort_network(self.graph, step.group_size, h)

    def pointwise(self, step: Pointwise, h: Tensor) -> Tensor:
        graph = self.graph
        wide: Precision = "float64" if uses_exp(step) else graph.precision
        return graph.cast(activate(graph, step, graph.cast(h, wide)), graph.precision)

    def members(self, step: Members, h: Tensor, copies: bool) -> Tensor:
        parts = zip(self.parts(step, h, copies), step.weights, strict=True)
        return reduce(operator.add, [part * weight for part, weight in parts])

    def _sum(self, start: Tensor, weight: Reals, h: Tensor) -> Tensor:
        """W h + start, by a product of matrices or in the order of `FrozenNetwork.score`."""
        if not self.ordered:
            return self.graph.matmul(weight, h) + start
        for k, row in enumerate(self.graph.rows(h)):
            start = start + row * self.graph.column(weight[:, k])
        return start

    def _look_up(self, total: Tensor, weight: Reals, copies: Copies) -> Tensor:
        """W φ + total, column after column, C before the copy that moves."""
        sums = copies.sums(weight)
        for (place, phi), first, count in zip(
            self.cells, copies.firsts, copies.counts, strict=True
        ):
            if place is None:
                total = total + phi * self.graph.column(weight[:, first])
            else:
                own = slice(first, first + count)
                total = total + self.graph.pick(sums[:, own], place)
                total = total + phi * self.graph.pick(weight[:, own], place)
        return total

    def _scaled(self, x: Tensor) -> Tensor:
        """What enters the first step, (n_features, n_rows)."""
        scaling, graph = self.frozen.scaling, self.graph
        x = self._logged(x, np.arange(scaling.n_features))
        x = (x - graph.column(scaling.center)) * graph.column(scaling.factor)
        return self._clamped(x, self.frozen.clip)

    def _clamped(self, x: Tensor, reach: float) -> Tensor:
        x = clamp(self.graph, x, -reach, reach)
        return x if self.frozen.grid is None else snap(self.graph, x, self.frozen.grid)

    def _cells(self, copies: Copies) -> list[tuple[Tensor | None, Tensor]]:
        """Of every column the place of the copy that moves, if there are several, and φ."""
        x = self._logged(self.x, copies.firsts)
        places = zip(self.graph.rows(x), copies.ends, copies.firsts, copies.counts, strict=True)
        return [self._cell(row, ends, int(first), count) for row, ends, first, count in places]

    def _cell(
        self, x: Tensor, ends: Reals, first: int, count: int
    ) -> tuple[Tensor | None, Tensor]:
        graph, own = self.graph, slice(first, first + count)
        center, factor = (getattr(self.frozen.scaling, name)[own] for name in ("center", "factor"))
        if count == 1:
            x = (x - graph.column(center)) * graph.column(factor)
            return None, self._clamped(x, self.frozen.clip)
        place = graph.count_up_to(x, ends)
        x = (x - graph.pick(center[None], place)) * graph.pick(factor[None], place)
        return place, self._clamped(x, 1.0)

    def _logged(self, x: Tensor, features: Indices) -> Tensor:
        """Rows of x, one for each of these features, those with a logarithm replaced by it."""
        graph, scaling = self.graph, self.frozen.scaling
        is_log = scaling.log[features]
        if not is_log.any():
            return x
        chosen, rest = np.flatnonzero(is_log), np.flatnonzero(~is_log)
        v = graph.take(x, chosen) + graph.column(scaling.offset[features][chosen])
        v = graph.op("Max", v, graph.column(scaling.floor[features][chosen]))
        v = graph.op("Log", v) if graph.precision == "float32" else log(graph, v)
        if len(rest) == 0:
            return v
        joined = graph.join([v, graph.take(x, rest)])
        return graph.take(joined, np.argsort(np.concatenate([chosen, rest])))


def _sort_network(graph: Graph, group_size: int, h: Tensor) -> Tensor:
    """Rounds of Min and Max on gathered rows; `place` is where every unit is now."""
    n = h.n_rows
    place = np.arange(n)
    for pairs in rounds(group_size, n):
        first, second = np.array(pairs).T
        rest = np.setdiff1d(np.arange(n), np.array(pairs))
        a, b = graph.take(h, place[first]), graph.take(h, place[second])
        kept = [graph.take(h, place[rest])] if len(rest) else []
        h = graph.join([graph.op("Min", a, b), graph.op("Max", a, b), *kept])
        place = np.argsort(np.concatenate([first, second, rest]))
    return graph.take(h, place)


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
