r"""Interactions: which columns a score can combine, from the zeros among the stored numbers.

A score is a sum of terms, each a function of some columns. What enters the network is a sum of one
term, a function of its column; a dense step and a sum of members add the terms that they read with
weights other than zero; a sort, or an activation, makes a single term of all that it reads. So

.. math:: f(x) = \sum_k f_k(x_i : i \in G_k)

follows from the stored numbers alone, and columns a and b that share no :math:`G_k` do not
interact: for all values of the others,

.. math:: f(a, b) - f(a', b) - f(a, b') + f(a', b') = 0,

for computed scores up to 4E. Terms of the same columns are one. Where there are too many, or too
much work, they are taken together, which is true as well, but says less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.frozen.network import FrozenNetwork
from isotone.frozen.program import Language
from isotone.frozen.steps import Dense, Members, Pointwise, Sort
from isotone.typing import Bools, Indices

MOST_TERMS = 2048
_MOST_WORK = 2**34  # products
_FEW = 20  # groups, and columns of each, that a person is shown

Groups = tuple[tuple[str, ...], ...]


def find_interactions(frozen: FrozenNetwork) -> Groups:
    """The names of columns by group: every output is a sum of functions of one group each.

    No group lies within another. A column that no score depends on is in none.
    """
    inputs, n_columns = frozen.inputs, len(frozen.inputs.columns)
    if n_columns > MOST_TERMS:
        return (inputs.names,)
    owners = np.array(inputs.owners)[list(inputs.sources)]
    units = _Walk().run(frozen.steps, _Terms.of(owners, n_columns))
    linear = owners[np.any(frozen.residual != 0, axis=0)]
    sets = np.vstack([np.eye(n_columns, dtype=bool)[np.unique(linear)], units.used()])
    return tuple(tuple(inputs.names[i] for i in np.flatnonzero(group)) for group in _largest(sets))


def describe_interactions(frozen: FrozenNetwork, groups: Groups) -> str:
    """What columns do not do together, in words; nothing if all of them may interact."""
    if len(groups) < 2:
        return ""
    what = "every output" if frozen.n_outputs > 1 else "the score"
    if all(len(group) == 1 for group in groups):
        return f"{what} is a sum of functions of single columns: no two columns interact"
    shown = [", ".join(group[:_FEW]) + ", …" * (len(group) > _FEW) for group in groups[:_FEW]]
    *first, last = [f"({names})" for names in shown]
    if len(groups) > _FEW:
        first, last = [*first, last], f"{len(groups) - _FEW} more groups"
    listed = f"{', '.join(first)} and {last}"
    return (
        f"{what} is a sum of one function each of {listed}: columns interact only within a group"
    )


@dataclass(frozen=True, eq=False)
class _Terms:
    """Units as sums of terms.

    Parameters
    ----------
    reads : (n_units, n_terms), the terms of every unit
    columns : (n_terms, n_columns), the columns of every term
    """

    reads: Bools
    columns: Bools

    @classmethod
    def of(cls, owners: Indices, n_columns: int) -> _Terms:
        """Inputs of the network, each of them a function of one column, its owner."""
        return cls(owners[:, None] == np.arange(n_columns), np.eye(n_columns, dtype=bool))

    def through(self, step: Dense) -> _Terms:
        return _Terms(_join(step.weight != 0, self.reads), self.columns)

    def merged(self, group_size: int) -> _Terms:
        """Each group of units becomes functions of all that it reads."""
        if self.reads.all():
            return self.together()
        reads = np.logical_or.reduceat(self.reads, range(0, len(self.reads), group_size))
        patterns, place = _distinct(reads)
        columns, kind = _distinct(_join(patterns, self.columns))
        read = kind[place][:, None] == np.arange(len(columns))
        return _Terms(np.repeat(read, group_size, axis=0), columns)

    def __add__(self, other: _Terms) -> _Terms:
        if np.array_equal(self.columns, other.columns):
            return _Terms(self.reads | other.reads, self.columns)
        both = np.hstack([self.reads, other.reads])
        columns, place = _distinct(np.vstack([self.columns, other.columns]))
        reads = np.zeros((len(both), len(columns)), bool)
        for k, old in enumerate(both.T):
            reads[:, place[k]] |= old
        return _Terms(reads, columns)

    def used(self) -> Bools:
        """The columns of the terms that some unit reads, (n_terms, n_columns)."""
        return self.columns[self.reads.any(axis=0)]

    def together(self) -> _Terms:
        """All terms as one."""
        reads = np.any(self.reads, axis=1, keepdims=True)
        return _Terms(reads, np.any(self.used(), axis=0, keepdims=True))


class _Walk(Language[_Terms]):
    """The terms of the units, step by step."""

    def __init__(self) -> None:
        self.work = _MOST_WORK  # that is left

    def dense(self, step: Dense, h: _Terms) -> _Terms:
        return self._few(h, step.weight.size * len(h.columns)).through(step)

    def sort(self, step: Sort, h: _Terms) -> _Terms:
        return self._few(h, len(h.reads) * h.columns.size).merged(step.group_size)

    def pointwise(self, step: Pointwise, h: _Terms) -> _Terms:
        return self._few(h, len(h.reads) * h.columns.size).merged(1)

    def members(self, step: Members, h: _Terms, copies: bool) -> _Terms:
        pairs = zip(step.weights, self.parts(step, h, copies), strict=True)
        n_units, n_columns = step.width(len(h.reads)), h.columns.shape[1]
        total = _Terms(np.zeros((n_units, 0), bool), np.zeros((0, n_columns), bool))
        for weight, part in pairs:
            total = self._few(total + self._few(part)) if weight else total
        return total

    def _few(self, h: _Terms, work: int = 0) -> _Terms:
        """The terms, or all of them as one if they would be too many or too much work."""
        self.work -= work
        return h if len(h.columns) <= MOST_TERMS and self.work > 0 else h.together()


def _join(reads: Bools, of: Bools) -> Bools:
    """Where a row of the one and a column of the other have something in common."""
    with np.errstate(invalid="ignore"):  # raised by what lies in the spare lanes of a kernel
        return np.asarray(reads.astype(np.float32) @ of.astype(np.float32) > 0)


def _distinct(sets: Bools) -> tuple[Bools, Indices]:
    """The different rows, in the order of their bits, and which of them every row is."""
    rows = [row.tobytes() for row in np.packbits(sets, axis=1)]
    last = {row: k for k, row in enumerate(rows)}
    kinds = {row: k for k, row in enumerate(sorted(last))}
    chosen = np.array([last[row] for row in kinds], np.intp)
    return sets[chosen], np.array([kinds[row] for row in rows], np.intp)


def _largest(sets: Bools) -> Bools:
    """The rows that lie within no other, in the order of their columns."""
    rows = _distinct(sets)[0][::-1].astype(np.float32)
    outside = rows @ (1 - rows).T  # how many columns of one are not in the other
    within = (outside == 0).sum(axis=1) > 1
    kept: Bools = rows[~within & rows.any(axis=1)].astype(bool)
    return kept
