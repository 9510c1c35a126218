"""Problems of optimal transport that tests share."""

from __future__ import annotations

from typing import Any

import numpy as np


def random_problem(seed: int) -> tuple[Any, Any, Any, Any]:
    """Two clouds of random size, dimension, unit, offset and weights, with repeated points."""
    rng = np.random.default_rng(seed)
    d, n, m = int(rng.integers(1, 7)), *(int(k) for k in rng.integers(1, 40, 2))
    unit, offset = 10.0 ** rng.uniform(-12, 12), 10.0 ** rng.uniform(-3, 6)
    P, Q = rng.normal(size=(n, d)), rng.standard_t(2, size=(m, d)) * rng.uniform(0, 3)
    P[n // 2 :] = P[: n - n // 2]
    p, q = (rng.random(k) * (rng.random(k) > 0.2) + 1e-9 for k in (n, m))
    return (P + offset) * unit, (Q + offset) * unit, p, q
