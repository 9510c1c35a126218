"""Sorting networks in rounds: comparators that touch different units and can act at once."""

from __future__ import annotations

from isotone._engine import comparators

Pairs = list[tuple[int, int]]


def rounds(group_size: int, n_units: int) -> list[Pairs]:
    """GroupSort of `n_units` as rounds of pairs (i, j): i gets the smaller, j the larger."""
    depth = [0] * group_size
    result: list[Pairs] = []
    for i, j in comparators(group_size):
        at = max(depth[i], depth[j])
        depth[i] = depth[j] = at + 1
        if at == len(result):
            result.append([])
        result[at] += [(start + i, start + j) for start in range(0, n_units, group_size)]
    return result
