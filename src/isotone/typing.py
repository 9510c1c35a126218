"""Types: arrays and choices that many parts of the package share."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Reals = NDArray[np.floating[Any]]
Bools = NDArray[np.bool_]
Signs = NDArray[np.int8]  # -1, 0 and +1
Integers = NDArray[np.int64]
Indices = NDArray[np.intp]

Precision = Literal["float64", "float32"]
Outputs = Literal["values", "logits"]
Metric = Literal["1", "2", "inf"]
Chain = Literal["one", "inf"]  # norm between layers: absolute sums of columns, or of rows
ClassificationLoss = Literal["cross_entropy", "hinge", "dynamic_hinge"]
RegressionLoss = Literal["squared_error", "absolute_error", "quantile"]
Gaps = Literal["error", "indicator"]  # what to do about missing values
