"""Effects: how much every column moves the prediction, as measured."""

from __future__ import annotations

import numpy as np

from isotone.explanation import importance
from isotone.frozen.axes import usual_values
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.columns import Category, Column
from isotone.report.table.sample import Sample
from isotone.typing import Floats

_SEED = 0


def effects(frozen: FrozenNetwork, sample: Sample | None, start: Floats) -> list[float]:
    """The effect of every column as `isotone.explanation.importance` measures it.

    Without rows, the range of the score between usual values of the column, from the start.

    Parameters
    ----------
    start : (n_features,), a row to begin with if there is no table
    """
    if sample is None:
        return [_range(frozen, column, start) for column in frozen.inputs.columns]
    rng, most = np.random.default_rng(_SEED), importance.most_pairs(frozen)
    share = sample.weight / sample.weight.sum()
    X = sample.X[rng.choice(len(sample), min(len(sample), most), p=share)]
    return [float(effect) for effect in importance.effects(frozen, X, _SEED)]


def _range(frozen: FrozenNetwork, column: Column, start: Floats) -> float:
    places = [frozen.inputs.encoded.index(name) for name in column.features]
    if isinstance(column, Category):
        values = np.eye(len(places))
    else:
        values = usual_values(frozen)[:, places]
    X = np.tile(start, (len(values), 1))
    X[:, places] = values
    return float(np.max(np.ptp(frozen.score_features(X), axis=0)))
