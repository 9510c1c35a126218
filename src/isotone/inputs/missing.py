"""Missing values: each is replaced by a fill, and flagged in an indicator of its column.

The network sees the median where a value is missing, and an indicator that is 1 there: it learns
what a missing value means. Among rows in which a value is present the indicator is 0, so
a direction that holds for the completed rows holds among the present values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isotone.typing import Floats


@dataclass(frozen=True)
class Missing:
    """How missing values (NaN) are filled and flagged.

    Parameters
    ----------
    features : names of all columns
    fills : what replaces a missing value, by number of the columns that may have some

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [np.nan, 6.0], [3.0, 7.0]])
    >>> Missing.fit(X, np.ones(3), ["age", "debt"]).complete(X)
    array([[1., 5., 0.],
           [1., 6., 1.],
           [3., 7., 0.]])
    """

    features: tuple[str, ...]
    fills: dict[int, float]

    @classmethod
    def fit(cls, X: Floats, weight: Floats, features: Sequence[str]) -> Missing:
        """Find the columns with missing values among rows that count, and their medians."""
        counts = weight > 0
        with_gaps = np.flatnonzero(np.isnan(X[counts]).any(axis=0))
        return cls(
            tuple(features),
            {int(i): _median(X[counts, i], weight[counts]) for i in with_gaps},
        )

    @property
    def indicators(self) -> list[str]:
        """Names of the indicator columns."""
        return [f"missing({self.features[i]})" for i in self.fills]

    def complete(self, X: Floats) -> Floats:
        """Filled columns and then the indicators, (n_rows, n_features + n_indicators)."""
        gaps = np.isnan(X)
        for i in np.flatnonzero(gaps.any(axis=0)):
            if i not in self.fills:
                row = int(gaps[:, i].argmax())
                raise ValueError(
                    f"`X` has NaN in feature {self.features[i]!r}, row {row}, "
                    "which had no missing values in training, so nothing was learned about them; "
                    "fill them"
                )
        columns = list(self.fills)
        filled = X.copy()
        for column, fill in self.fills.items():
            filled[gaps[:, column], column] = fill
        return np.column_stack([filled, gaps[:, columns]])


def _median(x: Floats, weight: Floats) -> float:
    present = np.argsort(weight)  # so that the order of the rows changes no sum of weights
    present = present[~np.isnan(x[present])]
    if len(present) == 0:
        return 0.0
    quantile = np.quantile(x[present], 0.5, method="inverted_cdf", weights=weight[present])
    return float(quantile)


def refuse_gaps(X: Floats, features: Sequence[str]) -> None:
    """Raise `ValueError` if there is a NaN."""
    gaps = np.argwhere(np.isnan(X))
    if len(gaps):
        row, column = gaps[0]
        raise ValueError(
            f"`X` has {len(gaps)} missing values (NaN), the first in feature "
            f"{features[column]!r}, row {row}; missing='error' refuses them: fill or drop such "
            "rows, or set missing='indicator'"
        )
