"""Automatic choices: what "auto" stands for, given the rows and the widths alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from isotone.estimators.directions import spread
from isotone.estimators.preparation.observations import folds, hold_out
from isotone.inputs.scaling import Kind, Log, Scaling
from isotone.training.rows import Rows
from isotone.typing import Floats, Indices

LADDER = [2.0**k for k in range(-4, 5)]  # the λ that are tried, in scaled units
FEWEST = 12  # rows from which on λ can be chosen
FALLBACK = 1.0  # λ for fewer
_N_FOLDS = 3
_CROSS_VALIDATED = 2048  # rows up to which λ is chosen on folds, beyond which on one part
FEWEST_EPOCHS = 4  # of a search, and one more than its patience
_VISITS, _MOST_EPOCHS, _FEW_EPOCHS = 1_000_000, 200, 24
_SIZES = (64, 4000), (128, 16000), (256, np.inf)  # of batches of a search, up to so many rows
_BATCHES = 8  # per epoch, unless they would become too small or too large
_SMALLEST_BATCH, _LARGEST_BATCH = 32, 512
_LARGEST_GROUP = 8
_WIDE, _WIDEST = 256, 512  # layers of units in groups: time grows with the square
_KINDS = ("auto", "identity", "standard", "robust", "log")
_SKEWED = 1.0  # skewness from which a logarithm is tried; that of an exponential column is 2
_TAILED = 10.0  # fourth moment in units of the squared variance; 3 for a Gaussian


def group_size(hidden_layer_sizes: tuple[int, ...], n_groups: int = 1) -> int | None:
    """The largest that divides all widths, or None, a full sort, if there is none.

    With several groups of columns, whose units are sorted apart: 8 if all of them then fit into
    the widths, 4 if they fit into a few more, and else 2; see `widths`.
    """
    if n_groups > 1:
        narrow = min(hidden_layer_sizes, default=0)
        limits = (8, narrow), (4, max(narrow, _WIDE))
        return next((size for size, most in limits if size * n_groups <= most), 2)
    common = math.gcd(*hidden_layer_sizes)
    sizes = [size for size in range(2, _LARGEST_GROUP + 1) if common % size == 0]
    return sizes[-1] if sizes and common else None


def widths(hidden_layer_sizes: tuple[int, ...], size: int | None, n_groups: int) -> list[int]:
    """Widths at which every group of columns has the same number of sorts of `size` units.

    A group gets its share of a layer, rounded up to whole sorts.

    >>> widths((32, 16), size=4, n_groups=3)
    [36, 24]
    """
    if n_groups == 1 or not hidden_layer_sizes:
        return list(hidden_layer_sizes)
    if size is None:
        raise ValueError(
            f"`group_size=None` sorts whole layers, but `interaction_cst` has {n_groups} groups "
            "of columns, whose units must not be sorted together; choose 'auto', 4 or 8"
        )
    found = [
        n_groups * size * math.ceil(width / (n_groups * size)) for width in hidden_layer_sizes
    ]
    if max(found) > _WIDEST:
        raise ValueError(
            f"`interaction_cst` has {n_groups} groups of columns, and sorts of {size} units for "
            f"each would make a layer of {max(found)} units; at most {_WIDEST} are possible: give "
            "fewer groups, narrower `hidden_layer_sizes` or a smaller `group_size`"
        )
    return found


def batch_size(n_rows: int) -> int:
    """An eighth of the rows, but between 32 and 512."""
    return int(np.clip(n_rows // _BATCHES, _SMALLEST_BATCH, _LARGEST_BATCH))


def searched_batch_size(n_rows: int) -> int:
    """64 up to 4000 rows, 128 up to 16 000, then 256, but never more than there are rows."""
    return min(next(size for size, most in _SIZES if n_rows <= most), n_rows)


def n_epochs(n_rows: int) -> int:
    """Most epochs of a search: 200 up to 5000 rows, 24 from 40 000 to a million, then fewer."""
    most = max(1, _FEW_EPOCHS * _VISITS // n_rows)
    return min(int(np.clip(_VISITS // n_rows, _FEW_EPOCHS, _MOST_EPOCHS)), most)


def learning_rate(is_learned: bool) -> float:
    """A smaller one where λ are learned, as these are learned faster than weights."""
    return 0.005 if is_learned else 0.02


def start(has_knots: bool) -> float:
    """λ that are learned begin here: copies of a column add up."""
    return 0.01 if has_knots else 0.1


def scan_folds(rows: Rows, fraction: float, seed: int) -> Indices:
    """Rows that candidates of λ are judged by: all in turn, or a fraction if there are many."""
    if len(rows) <= _CROSS_VALIDATED:
        return folds(rows, _N_FOLDS, seed)
    return hold_out(rows, fraction, seed)


def fit_scaling(
    value: Any,
    rows: Rows,
    features: Sequence[str],
    straight: Collection[str] = (),
    bits: Collection[int] = (),
) -> Scaling:
    """The scaling a user asks for: a kind, or kinds per feature; "auto" chooses.

    Columns of the rows beyond the features are indicators and stay as they are.

    Parameters
    ----------
    straight : features that get no logarithm
    bits : numbers of features that are 0 or 1 and stay so
    """
    weight = rows.weights()
    kinds = _kinds(value, features)
    for i in bits:
        kinds[i] = "identity"
    chosen = [
        choose_scaling(rows.x[:, i], weight, features[i] in straight) if kind == "auto" else kind
        for i, kind in enumerate(kinds)
    ]
    chosen += ["identity"] * (rows.x.shape[1] - len(features))
    names = [*features, *(f"indicator {i}" for i in range(len(chosen) - len(features)))]
    return Scaling.fit(rows.x, chosen, sample_weight=weight, features=names)


def _kinds(value: Any, features: Sequence[str]) -> list[Any]:
    if isinstance(value, str | Log):
        kinds = [value] * len(features)
    else:
        kinds = spread("scaling", value, features, "auto")
    for kind in kinds:
        if not isinstance(kind, Log) and kind not in _KINDS:
            raise ValueError(
                f"`scaling` holds {kind!r}; it must be a known kind: choose from {_KINDS} and "
                "isotone.Log(offset=..., floor=...)"
            )
    return kinds


def choose_scaling(x: Floats, weight: Floats, is_straight: bool = False) -> Kind | Log:
    """Logarithm for skewed columns that are not negative, robust for tails, else standard."""
    if np.all((x == x.min()) | (x == x.max())):
        return "standard"  # two values are as skewed on any scale
    skew, tail = _moments(x, weight)
    if x.min() >= 0 and skew > _SKEWED and not is_straight:
        offset = 0.0 if x.min() > 0 else float(np.median(x[x > 0]))
        if abs(_moments(np.log(x + offset), weight)[0]) < skew / 2:
            return Log(offset=offset)
    low, high = np.quantile(x, [0.25, 0.75], method="inverted_cdf", weights=weight)
    return "robust" if tail > _TAILED and high > low else "standard"


def _moments(x: Floats, weight: Floats) -> tuple[float, float]:
    """Third and fourth standardized moment; those of a constant column are 0."""
    center = x - np.average(x, weights=weight)
    spread = np.sqrt(np.average(center**2, weights=weight))
    if not spread > 0:
        return 0.0, 0.0
    z = center / spread
    return float(np.average(z**3, weights=weight)), float(np.average(z**4, weights=weight))
