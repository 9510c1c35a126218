"""The table of the demo: validation candidates, as a physicist would have them in one file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from studies.trigger.analysis.tables import Candidates, Tables
from studies.trigger.simulation.candidates import FEATURES


def write(tables: Tables, path: Path) -> None:
    """Write candidates that no model was trained on.

    Background is all that collisions give, true heavy flavor included, since all of it is read
    out. Signal has four times its natural lifetime, so that there are hadrons beyond 10 ps.
    """
    parts = [_columns(tables.collisions.validation, 0), _columns(tables.longlived.validation, 1)]
    pa.parquet.write_table(pa.concat_tables(parts), path)


def _columns(candidates: Candidates, is_signal: int) -> pa.Table:
    beauty = candidates.channel < 20_000_000
    flavor = np.where(beauty, "beauty", "charm") if is_signal else np.full(len(beauty), "")
    return pa.table(
        {name: candidates.X[:, i] for i, name in enumerate(FEATURES)}
        | {
            "is_signal": np.full(len(candidates), is_signal),
            "event": candidates.event,
            "collision": candidates.collision,
            "channel": candidates.channel,
            "flavor": flavor,
            "proper_time": candidates.proper_time,
        }
    )
