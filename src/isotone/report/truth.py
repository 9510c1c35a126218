"""Truth: what a table says about its target, in the numbers of the model's classes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from isotone.inputs.cells import class_numbers, floats, labels
from isotone.report.outcomes import Outcomes
from isotone.typing import Floats


def read_truth(cells: pa.Array, name: str, outcomes: Outcomes) -> Floats:
    """Numbers of the classes of all rows, or observed values."""
    if outcomes.kind == "values":
        return _values(cells, name)
    return _classes(cells, name, outcomes.classes)


def _values(cells: pa.Array, name: str) -> Floats:
    values = floats(cells, name)
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"the target {name!r} is {cells[row].as_py()!r:.40} in row {row} (data rows, counted "
            "from 0); every row needs a finite number: correct or drop such rows, or leave the "
            "target out"
        )
    return values


def _classes(cells: pa.Array, name: str, classes: tuple[str, ...]) -> Floats:
    found = class_numbers(cells, name, classes)
    bad = ~np.isfinite(found)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"the target {name!r} is {labels(cells)[row].as_py()!r:.40} in row {row} (data rows, "
            f"counted from 0); the model knows the classes {', '.join(classes[:10])}: correct or "
            "drop such rows, or name another column with --target"
        )
    return found
