"""Columns of text among the features of `isotone train`: what to do with them."""

from __future__ import annotations

import re

import pyarrow as pa

from isotone.cli.console.options import spelled
from isotone.cli.table.columns import Columns
from isotone.data.table import Table
from isotone.estimators.columns import MAX_CATEGORIES
from isotone.inputs.cells import holds_text, is_text
from isotone.inputs.frames import is_category

_YES_OR_NO = {"yes", "no", "y", "n", "t", "f", "on", "off", "none", ""}


def refuse_text(table: Table, columns: Columns) -> None:
    """Name all columns of text at once, and what to do with them."""
    encoded = *columns.categorical, *columns.orders
    names = [name for name in columns.features if name not in encoded]
    batch = next(iter(table.batches(names)), None) if names else None
    texts = [] if batch is None else [n for n in names if holds_text(batch.column(n), n)]
    if not texts:
        return
    assert batch is not None
    example = batch.column(texts[0]).drop_null()[0].as_py()
    others = [name for name in columns.features if name not in texts]
    few = [n for n in texts if _has_few(batch.column(n))]
    categorical = [n for n in columns.features if n in few or n in columns.categorical]
    advice = [f"leave out such columns with `{spelled('features', *others)}`"] if others else []
    if any(pa.types.is_temporal(batch.column(n).type) for n in texts):
        advice += ["convert times to numbers, such as days since some date"]
    if {str(cell).strip().lower() for cell in batch.column(texts[0]).to_pylist()} <= _YES_OR_NO:
        advice += ["replace yes and no with 1 and 0, or true and false"]
    advice += [f"declare categories with `{spelled('categorical', *categorical)}`"] if few else []
    advice += ["declare those that have an order with `--ordered`"] if few else []
    if re.fullmatch(r"\s*[+-]?\d*,\d+\s*", str(example)):
        advice = ["write decimals with a point, as in 0.5"]
    what = f"column {texts[0]!r} holds" if len(texts) == 1 else f"columns {', '.join(texts)} hold"
    kinds = {_describe(batch.column(n).type) for n in texts}
    raise ValueError(
        f"{what} {' and '.join(sorted(kinds))}, such as {example!r:.40} in {texts[0]!r}; a "
        "feature must hold numbers: "
        f"{', or '.join(advice) or 'choose another table'}"
    )


def _describe(kind: pa.DataType) -> str:
    if is_category(kind):
        return "categories"
    return "text" if is_text(kind) else "non-numeric values"


def _has_few(column: pa.Array) -> bool:
    """Whether a column could be one of categories."""
    kind = column.type
    if pa.types.is_temporal(kind) or pa.types.is_nested(kind):
        return False
    return len(column.unique()) <= MAX_CATEGORIES
