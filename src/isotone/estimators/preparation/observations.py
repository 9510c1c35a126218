"""Observations: the weighted set of rows to learn from.

A row that occurs twice is a row of weight two, and a row of weight zero is no row. What is learned
therefore depends only on the weighted set of rows: not on their order, and not on whether a weight
or a repetition says how much a row counts.

Where x determines the target, equal rows are one row: a copy would give the answer away. Where it
does not, as in every binned table, they are one row per observation. If all observations of (x, 0)
were left out together, only the 1s would remain at x, and validation would favor a model that
ignores them.

Rows that are not independent, such as the candidates of one event, form a group: it is left out as
a whole, so that no member is judged by rows whose relatives it has learned from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.data.groups import mixed
from isotone.training.rows import Rows
from isotone.typing import Floats, Indices

_LEAST = 2.0**-64  # of the largest weight: less would vanish in float32
_MOST = 2**13  # observations that are told apart; if there are more, one stands for several
_ASSUMED = 16
_FEWEST = 8  # rows of a fold that depends on their numbers


def observations(rows: Rows) -> Rows:
    """Merge equal rows, leave out those that do not count, and tell observations apart.

    The result is in the order of its numbers, with positive weights of mean 1. Rows of different
    groups are not merged.

    Parameters
    ----------
    rows : with targets (n_rows, n_targets), and a weight each

    >>> X, y = np.array([[2.0], [2.0], [2.0], [1.0], [1.0]]), np.array([[5, 5, 5, 0, 1]]).T
    >>> told_apart = observations(Rows(X, y, np.ones(5)))
    >>> np.hstack([told_apart.x, told_apart.y])
    array([[1., 0.],
           [1., 1.],
           [2., 5.]])
    """
    weight = rows.weights()
    exponent = np.frexp(weight.max())[1]  # of a power of two: sums neither overflow nor round
    weight = np.ldexp(weight, -exponent)
    # small weights first: sums then do not depend on the order of the rows, to the last bit
    order = np.argsort(weight)[np.count_nonzero(weight <= 0) :]
    tables = (rows.x, rows.y, *([] if rows.group is None else [rows.group[:, None]]))
    columns = (table[order, k] for table in tables for k in range(table.shape[1]))
    place = _rank(len(order), columns)
    total: Floats = np.asarray(np.bincount(place, weight[order]), np.float64)
    one = np.empty(len(total), np.intp)
    one[place] = order
    x, y = rows.x[one] + 0.0, rows.y[one] + 0.0  # -0.0 becomes 0.0
    count = _count(x, total, np.ldexp(1.0, min(-exponent, 1000)))
    each = np.repeat(np.maximum(total / total.max(), _LEAST) / count, count)
    group = None if rows.group is None else rows.group[one].repeat(count)
    return Rows(x.repeat(count, axis=0), y.repeat(count, axis=0), each / each.mean(), group)


def with_groups(rows: Rows, groups: Any) -> Rows:
    """Rows with the groups that `fit` was given, if any: a label for each row.

    Numbers of groups depend on their labels alone, so that more rows do not change them.
    """
    if groups is None:
        return rows
    labels = np.asarray(groups)
    if labels.shape != (len(rows),):
        raise ValueError(
            f"`groups` has shape {labels.shape}; there must be one label for each of {len(rows)} "
            "rows: give such an array"
        )
    known, place = np.unique(labels.astype(np.str_), return_inverse=True)
    if len(known) < 2:
        raise ValueError(
            f"`groups` holds one group, {str(known[0])!r:.40}; rows are learned from or left out "
            "by group, so there must be at least 2: give other groups, or leave it out"
        )
    digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in known.tolist()]
    numbers = np.frombuffer(b"".join(digests), np.int64)
    return replace(rows, group=numbers[place])


def taught_observations(rows: Rows, said: Floats | None) -> tuple[Rows, Floats | None]:
    """Observations, and what a teacher says of their targets, if there is one."""
    if said is None:
        return observations(rows), None
    n_targets = rows.y.shape[1]
    both = observations(replace(rows, y=np.hstack([rows.y, said])))
    return replace(both, y=both.y[:, :n_targets]), both.y[:, n_targets:]


def folds(rows: Rows, n_folds: int, seed: int) -> Indices:
    """A fold for every row, at random, with about the same targets in each.

    With groups every one of them is in one fold; if there are fewer groups than folds, some folds
    are empty, the last.
    """
    if rows.group is not None:
        whole, place = _by_group(rows)
        return folds(whole, n_folds, seed)[place]
    found = np.empty(len(rows), dtype=np.intp)
    found[_by_target(rows, np.random.default_rng(seed))] = np.arange(len(rows)) % n_folds
    return found


def lasting_folds(rows: Rows, n_folds: int, seed: int) -> Indices:
    """A fold for every row that depends on its numbers alone, so that more rows do not change it.

    Equal rows are told apart by their number. Few rows, of which a fold might get none, are dealt
    out as `folds` does. With groups, whose numbers last, these decide.

    Parameters
    ----------
    rows : in the order of their numbers; see `observations`
    """
    if rows.group is not None:
        whole, place = _by_group(rows)
        return _hashed_folds(whole, [np.unique(rows.group)], n_folds, seed)[place]
    table = np.hstack([rows.x, rows.y])
    is_new = np.append(True, np.any(table[1:] != table[:-1], axis=1))
    starts = np.flatnonzero(is_new)
    number = np.arange(len(table)) - starts[np.cumsum(is_new) - 1]
    return _hashed_folds(rows, [*table.T, number.astype(np.float64)], n_folds, seed)


def _hashed_folds(rows: Rows, columns: Iterable[NDArray[Any]], n_folds: int, seed: int) -> Indices:
    """Folds that depend on the bits of columns, or, if these are few, those of `folds`."""
    hashed = np.full(len(rows), seed, np.uint64)
    for column in columns:
        hashed = mixed(hashed ^ np.ascontiguousarray(column).view(np.uint64))
    found = (hashed % np.uint64(n_folds)).astype(np.intp)
    is_sound = np.bincount(found, minlength=n_folds).min() >= _FEWEST
    return found if is_sound else folds(rows, n_folds, seed)


def hold_out(rows: Rows, fraction: float, seed: int) -> Indices:
    """0 for a fraction of the rows, spread evenly over the targets, and -1 for the others.

    With groups it is a fraction of these.
    """
    if rows.group is not None:
        whole, place = _by_group(rows)
        return hold_out(whole, fraction, seed)[place]
    n_rows = len(rows)
    if n_rows < 2:
        raise ValueError(
            f"validation needs at least 2 distinct rows; got n_samples={n_rows}: give more, "
            "or set early_stopping=False"
        )
    n_held = min(max(round(fraction * n_rows), 1), n_rows - 1)
    rng = np.random.default_rng(seed)
    places = (np.arange(n_held) + rng.random()) * (n_rows / n_held)
    found = np.full(n_rows, -1, dtype=np.intp)
    found[_by_target(rows, rng)[places.astype(np.intp)]] = 0
    return found


def _by_group(rows: Rows) -> tuple[Rows, Indices]:
    """Groups as rows with the mean of their targets, by number; and the group of every row."""
    assert rows.group is not None
    known, place = np.unique(rows.group, return_inverse=True)
    total = np.bincount(place, rows.weights())
    sums = [np.bincount(place, rows.weights() * column) for column in rows.y.T]
    return Rows(known[:, None], np.column_stack(sums) / total[:, None]), place


def _by_target(rows: Rows, rng: np.random.Generator) -> Indices:
    """Numbers of the rows in the order of their first target, at random among equals."""
    shuffled = rng.permutation(len(rows))
    return shuffled[np.argsort(rows.y[shuffled, 0], kind="stable")]


def _rank(n_rows: int, columns: Iterable[Floats]) -> Indices:
    """The places of rows among the distinct ones, sorted by the first column, then by the next.

    A column is looked at only in rows that all columns before it leave equal: mostly a few.
    """
    order = np.arange(n_rows)
    is_new = order == 0  # whether a row differs from the one before it in this order
    for column in columns:
        tied = np.flatnonzero(~(is_new & np.append(is_new[1:], True)))
        if not len(tied):
            break
        values = column[order[tied]]
        inner = np.lexsort((values, np.cumsum(is_new)[tied]))
        order[tied], values = order[tied][inner], values[inner]
        is_new[tied[1:]] |= values[1:] != values[:-1]
    place = np.empty_like(order)
    place[order] = np.cumsum(is_new) - 1
    return place


def _count(x: Floats, total: Floats, one: float) -> Indices:
    """How many observations distinct sorted rows stand for: 1 where an x has one target only.

    Elsewhere, and everywhere if that is most of the table, a weight is a count of `one`. Weights
    that are below that on average count nothing; `_ASSUMED` are then taken for the mean.
    """
    place = np.cumsum(np.append(True, np.any(x[1:] != x[:-1], axis=1))) - 1
    uncertain = np.bincount(place)[place] > 1
    if total[uncertain].sum() > 0.5 * total.sum():
        uncertain[:] = True
    unit = one if one <= total.mean() else total.mean() / _ASSUMED
    unit = max(unit, total[uncertain].sum() / max(_MOST, 2 * len(total)))
    return np.where(uncertain, np.maximum(np.rint(total / unit), 1.0), 1.0).astype(np.intp)
