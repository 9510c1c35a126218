r"""Importance: how much columns matter for the scores of a table, all rows together.

Two measures, neither of which a permitted slope would give: that says little about a column that
hardly varies, or that the network ignores.

Mean size of contributions: the mean of :math:`|\phi_i|` over rows, in units of the score.

Effect: how much scores change when a value is that of another row. For pairs of rows (x, x') and
with x_c for x whose column c is that of x',

.. math:: I_c = \langle |f(x_c) - f(x)| \rangle / \sum_d \langle |f(x_d) - f(x)| \rangle

f is a score: a logit, or the target. With several outputs I is the mean of theirs; of several
logits only differences mean something, so the mean of the logits is subtracted first. This is the
`feature_importances_` of the estimators, which take pairs of their training rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isotone.explanation.background import Background
from isotone.explanation.reasons import Reasons
from isotone.frozen.network import FrozenNetwork
from isotone.typing import Floats, Indices

_MOST_PAIRS, _FEWEST_PAIRS = 2048, 16
_CELLS = 2**25  # features of all rows to be scored, beyond which there are fewer pairs
_AT_ONCE = 2**21  # of these


@dataclass(frozen=True, eq=False)
class Importance:
    """How much every column matters, (n_columns,) each.

    Parameters
    ----------
    contribution : mean size of its contributions, in units of what was explained
    effect : its share of what scores change by when single values are those of other rows
    """

    columns: tuple[str, ...]
    contribution: Floats
    effect: Floats


def measure_importance(
    frozen: FrozenNetwork, reasons: Reasons, table: Any, *, seed: int = 0
) -> Importance:
    """Importance of columns for rows that were explained.

    Parameters
    ----------
    reasons : what `explain` said of the rows
    table : rows, or the path of a table, of which pairs are drawn to measure effects
    seed : of the draw
    """
    known = np.isfinite(reasons.score)
    sizes = np.abs(reasons.contributions[known & ~np.isnan(reasons.contributions).any(axis=1)])
    n_pairs = most_pairs(frozen)
    x = Background.of(frozen, table, n_rows=n_pairs, seed=seed, on_unseen="skip").features
    mean = sizes.mean(axis=0) if len(sizes) else np.zeros(len(reasons.columns))
    return Importance(reasons.columns, mean, effects(frozen, x, seed))


def most_pairs(frozen: FrozenNetwork) -> int:
    """How many pairs of rows are worth their time."""
    cells = len(frozen.inputs.columns) * len(frozen.inputs.encoded)
    return int(np.clip(_CELLS // cells, _FEWEST_PAIRS, _MOST_PAIRS))


def effects(frozen: FrozenNetwork, x: Floats, seed: int) -> Floats:
    """Effect of every raw column, (n_columns,), of sum 1; all 0 if scores are constant.

    Parameters
    ----------
    x : features of rows, each of which is compared with another one of them
    """
    n_columns = len(frozen.inputs.columns)
    other = x[np.random.default_rng(seed).permutation(len(x))]
    step = max(_AT_ONCE // x.size, 1)
    parts = np.split(np.arange(n_columns), range(step, n_columns, step))
    changes = np.concatenate([_changes(frozen, x, other, columns) for columns in parts])
    total = changes.sum(axis=0)
    shares = changes[:, total > 0] / total[total > 0]
    return shares.mean(axis=1) if shares.size else np.zeros(n_columns)


def _changes(frozen: FrozenNetwork, x: Floats, other: Floats, columns: Indices) -> Floats:
    """Mean absolute change of the outputs, (len(columns), n_outputs).

    One column after the other is that of the other rows.
    """
    owners = np.array(frozen.inputs.owners)
    changed = np.tile(x, (len(columns), 1, 1))
    for rows, column in zip(changed, columns, strict=True):
        own = np.flatnonzero(owners == column)
        rows[:, own] = other[:, own]
    scores = _scores(frozen, changed.reshape(-1, x.shape[1])).reshape(*changed.shape[:2], -1)
    change: Floats = np.abs(scores - _scores(frozen, x)).mean(axis=1)
    return change


def _scores(frozen: FrozenNetwork, features: Floats) -> Floats:
    scores = frozen.score_features(features).astype(np.float64).reshape(len(features), -1)
    several = frozen.outputs == "logits" and scores.shape[1] > 1
    return scores - scores.mean(axis=1, keepdims=True) if several else scores
