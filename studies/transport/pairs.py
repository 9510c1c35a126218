"""Pairs of clouds whose distance is asked for, and POT's exact answer."""

from __future__ import annotations

import numpy as np
import ot
from scipy.spatial.distance import cdist

from isotone.typing import Floats

KINDS = ("shifted", "ring", "clusters", "alike")


def draw_pair(kind: str, n: int, d: int, seed: int) -> tuple[Floats, Floats]:
    """Standard Gaussian points, and others: shifted by one, on a ring, in clusters, or alike."""
    rng = np.random.default_rng([seed, n, d])
    P, Q = rng.normal(size=(2, n, d))
    if kind == "shifted":
        Q = Q + np.eye(d)[0]
    elif kind == "ring":
        angle = rng.uniform(0, 2 * np.pi, n)
        Q[:, :2] = 2.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.1 * Q[:, :2]
    elif kind == "clusters":
        Q = 2.0 * rng.normal(size=(8, d))[rng.integers(8, size=n)] + 0.2 * Q
    return P, Q


def exact_distance(P: Floats, Q: Floats) -> float:
    """By network simplex; for float64 that is exact to about ten digits."""
    return float(ot.emd2([], [], cdist(P, Q), numItermax=10**7))
