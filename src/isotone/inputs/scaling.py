"""Scaling: an increasing, invertible map per column, fitted on training rows, part of the model.

Columns of similar size around zero: `"standard"` (mean and standard deviation). Heavy tails:
`"robust"` (median and quartiles). Positive columns that span decades, such as a χ²: `"log"`, or
`Log(offset=..., floor=...)`. Columns whose units carry the meaning of λ: `"identity"`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.elementary import exp, log
from isotone.inputs.frames import categorical_columns
from isotone.typing import Bools, Floats, Reals

Kind = Literal["identity", "standard", "robust", "log"]


@dataclass(frozen=True)
class Log:
    """Ask for log(x + `offset`), with x + `offset` never below `floor`.

    Without a `floor` it is the smallest x + `offset` among the training rows. The steepest slope
    in raw units is that at the floor, so a tiny floor makes a weak promise.
    """

    offset: float = 0.0
    floor: float | None = None
    standardize: bool = True


@dataclass(frozen=True, eq=False)
class Scaling:
    r"""Per column :math:`x = (v - c)\,a`, with v the raw number or its logarithm.

    The computed map is monotone, not only the real one: rounding is monotone, and `log` snaps
    its argument. Arrays hold one entry per column and are read-only.

    Parameters
    ----------
    log : which columns take the logarithm
    offset, floor : v = log(max(X + offset, floor)) in those columns
    center, factor : c and a above; a is positive

    Examples
    --------
    >>> scaling = Scaling.fit([[1.0, 1.0], [3.0, 100.0]], ["standard", "log"])
    >>> scaling.transform([[5.0, 10.0]])
    array([[3., 0.]])
    """

    log: Bools
    offset: Floats
    floor: Floats
    center: Floats
    factor: Floats

    def __post_init__(self) -> None:
        for field in fields(self):
            kind = np.bool_ if field.name == "log" else np.float64
            array: NDArray[Any] = np.array(getattr(self, field.name), dtype=kind)
            array.flags.writeable = False
            object.__setattr__(self, field.name, array)
        self._check()

    def _check(self) -> None:
        arrays = (self.offset, self.floor, self.center, self.factor)
        if self.log.ndim != 1 or {array.shape for array in arrays} != {self.log.shape}:
            shapes = {field.name: getattr(self, field.name).shape for field in fields(self)}
            raise ValueError(
                f"a scaling needs arrays of one length, one entry per column; got {shapes}"
            )
        if not np.isfinite(arrays).all():
            raise ValueError("a scaling needs finite numbers; got NaN or infinity")
        for name, bad in (("factor", self.factor <= 0), ("floor", self.log & (self.floor <= 0))):
            if bad.any():
                column = int(np.argmax(bad))
                raise ValueError(
                    f"`{name}` of column {column} is {getattr(self, name)[column]}; it must be "
                    "positive, or the map would not be increasing"
                )

    @classmethod
    def identity(cls, n_features: int) -> Scaling:
        """Leave every column as it is."""
        zeros, ones = np.zeros(n_features), np.ones(n_features)
        return cls(np.zeros(n_features, bool), zeros, ones, zeros, ones)

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        kinds: Kind | Log | Sequence[Kind | Log] = "standard",
        *,
        sample_weight: ArrayLike | None = None,
        features: Sequence[str] | None = None,
    ) -> Scaling:
        """Choose centers and factors from training rows.

        Parameters
        ----------
        X : (n_rows, n_features)
        kinds : one kind for all columns, or one per column
        sample_weight : (n_rows,), positive; how often every row counts
        features : names of the columns, for messages
        """
        table = finite_table(X, features)
        if len(table) == 0:
            raise ValueError("`X` has no rows; a scaling is fitted on at least one")
        each = [kinds] * table.shape[1] if isinstance(kinds, str | Log) else list(kinds)
        if len(each) != table.shape[1]:
            raise ValueError(
                f"`kinds` names {len(each)} columns but `X` has {table.shape[1]}; give one kind, "
                "or one per column"
            )
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        names = [str(i) for i in range(len(each))] if features is None else map(repr, features)
        columns = [
            _fit_column(x, kind, name, weight)
            for x, kind, name in zip(table.T, each, names, strict=True)
        ]
        return cls(*(np.array(values) for values in zip(*columns, strict=True)))

    @classmethod
    def join(cls, parts: Sequence[Scaling]) -> Scaling:
        """The columns of several, one after the other."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))

    def take(self, columns: Sequence[int]) -> Scaling:
        """Some of the columns."""
        return Scaling(*(getattr(self, field.name)[list(columns)] for field in fields(self)))

    @property
    def n_features(self) -> int:
        return len(self.log)

    def transform(self, X: ArrayLike) -> Floats:
        """Scale raw rows (n_rows, n_features)."""
        v = np.array(X, dtype=np.float64)
        if v.ndim != 2 or v.shape[1] != self.n_features:
            raise ValueError(
                f"`X` has shape {v.shape}; the scaling has {self.n_features} columns: give "
                f"(n_rows, {self.n_features})"
            )
        for i in np.flatnonzero(self.log):
            v[:, i] = log(np.maximum(v[:, i] + self.offset[i], self.floor[i]))
        return (v - self.center) * self.factor

    def inverse(self, x: ArrayLike) -> Floats:
        """Go back to raw units; inverse of `transform` above the floor, up to rounding."""
        v = np.asarray(x, dtype=np.float64) / self.factor + self.center
        for i in np.flatnonzero(self.log):
            v[..., i] = exp(v[..., i]) - self.offset[i]
        return v

    def steepest(self) -> Floats:
        """Largest slope dx/dX of every column: a, or a / floor for a logarithm (not rounded)."""
        with np.errstate(over="ignore", divide="ignore"):
            return np.where(self.log, self.factor / self.floor, self.factor)

    def flattest(self) -> Floats:
        """Smallest slope dx/dX of every column: a, or 0 for a logarithm."""
        return np.where(self.log, 0.0, self.factor)

    def slip(self, reach: Floats) -> Floats:
        """Bound on how far rounding and snapping shift scaled numbers of at most `reach`."""
        with np.errstate(over="ignore"):
            linear = 2.0**-48 * (reach + np.abs(self.center * self.factor))
            # a difference to the center that overflows would be clipped early
            early = (self.center != 0) & (self.factor * np.finfo(float).max < reach)
        linear = np.where(early, np.inf, linear)
        return np.where(self.log, 2.0**-22 * self.factor + linear, linear)

    def describe(self, column: int, digits: int = 6) -> str:
        """The map of one column as a formula whose numbers have `digits` digits."""
        center, factor = self.center[column], self.factor[column]
        x = "x" if not self.log[column] else self._describe_log(column, digits)
        if center:
            x = f"({x} {'-' if center > 0 else '+'} {abs(center):.{digits}g})"
        return x if factor == 1 else f"{x} / {1.0 / factor:.{digits}g}"

    def _describe_log(self, column: int, digits: int) -> str:
        offset = self.offset[column]
        x = f"x {'-' if offset < 0 else '+'} {abs(offset):.{digits}g}" if offset else "x"
        return f"log(max({x}, {self.floor[column]:.{digits}g}))"

    def to_dict(self) -> dict[str, list[Any]]:
        return {field.name: getattr(self, field.name).tolist() for field in fields(self)}

    @classmethod
    def from_dict(cls, data: dict[str, list[Any]]) -> Scaling:
        """What `to_dict` gave; anything else raises `ValueError`."""
        if not all(isinstance(flag, bool) for flag in data["log"]):
            raise ValueError(
                f"`log` of a scaling must hold true or false; got {data['log']!r:.100}"
            )
        names = [field.name for field in fields(cls) if field.name != "log"]
        return cls(np.array(data["log"], bool), **{name: numbers(data[name]) for name in names})


def without_na(values: NDArray[Any]) -> NDArray[Any]:
    """The same, with NaN for the NA of pandas, which is an object, not a float."""
    if values.dtype != object:
        return values
    is_na = np.frompyfunc(lambda value: type(value).__name__ == "NAType", 1, 1)
    return np.where(np.asarray(is_na(values), bool), np.nan, values)


def as_numbers(X: ArrayLike, features: Sequence[str] | None = None) -> Reals:
    """`X` as an array (n_rows, n_features): float32 and float64 as they are, others as float64."""
    categories = categorical_columns(X)
    try:
        if categories:
            raise TypeError(f"{', '.join(categories)} hold categories")
        table = np.asarray(X)
        if isinstance(X, np.ma.MaskedArray) or table.dtype.kind not in "biufO":
            raise TypeError(f"it is of type {type(X).__name__} and holds {table.dtype}")
        if table.dtype not in (np.dtype("f4"), np.dtype("f8")):
            table = without_na(table).astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"`X` is not a numeric table ({error}); convert its columns") from error
    if table.ndim != 2 or (features is not None and table.shape[1] != len(features)):
        columns = (
            "columns" if features is None else f"{len(features)} columns: {', '.join(features)}"
        )
        advice = ": give [X] if it is one row" if table.ndim == 1 else ""
        raise ValueError(f"`X` has shape {table.shape}; it must have rows and {columns}{advice}")
    return table


def finite_table(X: ArrayLike, features: Sequence[str] | None = None) -> Floats:
    """`X` as an array of finite numbers in float64, (n_rows, n_features)."""
    table = as_numbers(X, features).astype(np.float64)
    if not np.all(np.isfinite(table)):
        row, column = np.argwhere(~np.isfinite(table))[0]
        name = f"column {column}" if features is None else f"feature {features[column]!r}"
        raise ValueError(
            f"{name} is {table[row, column]} in row {row} (counted from 0); only finite numbers "
            "can be used: drop or fill such rows"
        )
    return table


def numbers(values: Any) -> Floats:
    """A list from a file as an array; `ValueError` unless it holds numbers and nothing else."""
    if not isinstance(values, list) or not set(map(type, values)) <= {int, float}:
        raise ValueError(f"a list of numbers was expected; got {values!r:.100}")
    return np.array(values, dtype=np.float64)


def _fit_column(
    x: Floats, kind: Kind | Log, column: str, weight: Floats | None
) -> tuple[bool, float, float, float, float]:
    if kind == "identity":
        return False, 0.0, 1.0, 0.0, 1.0
    if kind == "standard":
        return False, 0.0, 1.0, *_center_and_factor(x, weight)
    if kind == "robust":
        method: Any = "linear" if weight is None else "inverted_cdf"
        low, middle, high = np.quantile(x, [0.25, 0.5, 0.75], method=method, weights=weight)
        # 1.349 standard deviations lie between the quartiles of a Gaussian
        return False, 0.0, 1.0, float(middle), _reciprocal((high - low) / 1.349)
    if kind == "log" or isinstance(kind, Log):
        return _fit_log(x, Log() if kind == "log" else kind, column, weight)
    raise ValueError(
        f"`kinds` holds {kind!r} for column {column}; choose 'identity', 'standard', 'robust', "
        "'log' or Log(offset=..., floor=...)"
    )


def _fit_log(
    x: Floats, kind: Log, column: str, weight: Floats | None
) -> tuple[bool, float, float, float, float]:
    floor = float(np.min(x + kind.offset)) if kind.floor is None else kind.floor
    if kind.floor is not None and not 0 < floor < np.inf:
        raise ValueError(f"`floor={floor}` of column {column} must be positive and finite")
    if not 0 < floor < np.inf:
        raise ValueError(
            f"column {column} has a minimum of {x.min()}, where log(x + {kind.offset}) is "
            "undefined; use Log(offset=...) with a larger offset, or give a positive floor"
        )
    v = log(np.maximum(x + kind.offset, floor))
    if not kind.standardize:
        return True, kind.offset, floor, 0.0, 1.0
    return True, kind.offset, floor, *_center_and_factor(v, weight)


def _center_and_factor(v: Floats, weight: Floats | None) -> tuple[float, float]:
    """Mean and 1 / standard deviation."""
    if weight is None:
        return float(v.mean()), _reciprocal(v.std())
    mean = np.average(v, weights=weight)
    return float(mean), _reciprocal(np.sqrt(np.average((v - mean) ** 2, weights=weight)))


def _reciprocal(spread: float) -> float:
    """1 / spread, or 1 for a constant column, which has nothing to scale."""
    factor = 1.0 / float(spread) if spread > 0 else 1.0  # infinite, without a word, if it is tiny
    return factor if math.isfinite(factor) else 1.0
