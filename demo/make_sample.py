"""Write candidates.csv: toy two-track candidates drawn from simple distributions, no physics.

Signal: displaced and of some momentum. Background: mostly prompt and soft, a little of it very far
out (material) or very fast (fakes): what makes an unconstrained classifier give up the extremes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

N = 6000
NAMES = ["fd_chi2", "sum_pt", "vertex_chi2", "min_ip_chi2", "is_signal"]


def draw(rng: np.random.Generator) -> np.ndarray:
    signal = rng.random(N) < 0.5
    material = ~signal & (rng.random(N) < 0.15)
    fake = ~signal & ~material & (rng.random(N) < 0.1)
    log_ip = rng.normal(np.select([signal, material], [5.0, 8.5], 2.5), 1.3)
    log_fd = log_ip + rng.normal(1.5, 0.8, N)
    log_pt = rng.normal(np.select([signal, material, fake], [1.3, 0.4, 2.4], 0.6), 0.5)
    vertex = rng.chisquare(1, N) * np.where(signal, 1.0, 2.0)
    return np.column_stack([np.exp(log_fd), np.exp(log_pt), vertex, np.exp(log_ip), signal])


if __name__ == "__main__":
    rows = draw(np.random.default_rng(20220901))
    columns = [pa.array([float(f"{v:.5g}") for v in column]) for column in rows[:, :4].T]
    table = pa.table([*columns, pa.array(rows[:, 4].astype(int))], names=NAMES)
    pyarrow.csv.write_csv(table, Path(__file__).with_name("candidates.csv"))
