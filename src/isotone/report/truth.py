"""Truth: what a table says about its target, in the numbers of the model's classes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from isotone.inputs.cells import decoded, floats, labels, truths_as_numbers
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
    """Matched as text, and where that fails as numbers: 1.0, and true, is the class 1."""
    number = {text: float(k) for k, text in enumerate(classes)}
    texts = labels(cells).to_pylist()
    found = np.array([number.get(text, np.nan) for text in texts])
    lost = np.isnan(found)
    if lost.any():
        values = floats(truths_as_numbers(decoded(cells)), name)
        for k, text in enumerate(classes):
            value = _number(text)
            found[lost & (values == value)] = k
    bad = np.isnan(found)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"the target {name!r} is {texts[row]!r:.40} in row {row} (data rows, counted from 0); "
            f"the model knows the classes {', '.join(classes[:10])}: correct or drop such rows, "
            "or name another column with --target"
        )
    return found


def _number(text: str) -> float:
    try:
        return float({"false": "0", "true": "1"}.get(text.casefold(), text))
    except ValueError:
        return np.nan
