"""Categories: which ones the columns of a table on disk hold."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.compute as pc

from isotone.data.table import Table
from isotone.inputs.cells import labels
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Number

MAX_CATEGORIES = 64


def find_inputs(table: Table, columns: Sequence[str], categorical: Sequence[str]) -> Inputs:
    """Columns of numbers, and of the categories that some hold; this reads those once."""
    found: dict[str, set[str | None]] = {name: set() for name in categorical}
    for batch in table.batches(categorical) if categorical else ():
        for name, seen in found.items():
            seen |= set(pc.unique(labels(batch.column(name))).to_pylist())
            check_number(name, len(seen))
    return Inputs(
        tuple(
            Category(name, in_order(found[name])) if name in found else Number(name)
            for name in columns
        )
    )


def in_order(found: set[str | None]) -> tuple[str | None, ...]:
    """Texts in alphabetical order, and then None for a missing value."""
    missing = (None,) if None in found else ()
    return (*sorted(text for text in found if text is not None), *missing)


def check_number(name: str, n_categories: int) -> None:
    """Refuse a column of too many categories."""
    if n_categories > MAX_CATEGORIES:
        raise ValueError(
            f"column {name!r} holds more than {MAX_CATEGORIES} categories, each of which would "
            "become a feature; leave it out, or merge rare ones"
        )
