"""JSON: what docs/exports.md says is enough to score a row with the bits of `score`."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotone import export
from isotone.elementary import log
from networks import copied, seams

Vector = list[float]


class Page:
    """Scores one row of numbers as the page says, in double precision."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data, self.copies = data, data["inputs"]["copies"]

    def score(self, X: Vector) -> Vector:
        self.u = [self._input(j, X[source]) for j, source in enumerate(self.copies)]
        return self._look_up(self._run(self.data["steps"], None), self.data["residual"])

    def _input(self, j: int, v: float) -> float:
        scaling, q = self.data["scaling"], self.data["grid"]
        if scaling["log"][j]:
            v = float(log(np.array([max(v + scaling["offset"][j], scaling["floor"][j])]))[0])
        reach = 1.0 if self.copies.count(self.copies[j]) > 1 else self.data["clip"]
        u = min(max((v - scaling["center"][j]) * scaling["factor"][j], -reach), reach)
        return u if q is None else round(u / q) * q

    def _look_up(self, start: Vector, weights: list[Vector]) -> Vector:
        h = list(start)
        for _, group in groupby(range(len(self.copies)), key=lambda j: self.copies[j]):
            copies = list(group)
            t = next((j for j in copies if self.u[j] != 1.0), copies[-1])
            for k, W in enumerate(weights):
                if len(copies) > 1:
                    exact = [Fraction(W[j]) * ((j < t) - (j > t)) for j in copies]
                    h[k] += float(sum(exact))
                h[k] += W[t] * self.u[t]
        return h

    def _run(self, steps: list[Any], h: Vector | None) -> Vector:
        for step in steps:
            h = getattr(self, "_" + step["kind"])(h, **step)
        assert h is not None
        return h

    def _dense(self, h: Vector | None, weight: list[Vector], bias: Vector, **_: Any) -> Vector:
        if h is None:
            return self._look_up(bias, weight)
        result = list(bias)
        for k, W in enumerate(weight):
            for w, unit in zip(W, h, strict=True):
                result[k] += w * unit
        return result

    def _sort(self, h: Vector, group_size: int, **_: Any) -> Vector:
        groups = (h[i : i + group_size] for i in range(0, len(h), group_size))
        return [unit for group in groups for unit in sorted(group)]

    def _members(
        self, h: Vector | None, weights: Vector, members: list[list[Any]], **_: Any
    ) -> Vector:
        parts = [self._run(steps, h) if steps or h is None else h for steps in members]
        first, *others = zip(weights, parts, strict=True)
        result = [first[0] * unit for unit in first[1]]
        for weight, part in others:
            result = [r + weight * unit for r, unit in zip(result, part, strict=True)]
        return result


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("grid", [None, 2.0**-20])
def test_the_page_is_enough_to_score_a_model_with_knots(
    n_members: int, grid: float | None, tmp_path: Path
) -> None:
    frozen = copied(2, n_members, grid=grid)
    export.write(frozen, "json", tmp_path / "model.json")
    page = Page(json.loads((tmp_path / "model.json").read_text()))
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 4)) < 0.5, rng.choice(seams(), (50, 4)), rng.normal(size=(50, 4)))
    assert [page.score(x) for x in X.tolist()] == frozen.score(X).tolist()
