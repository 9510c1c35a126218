"""Sample: the rows of a table that a report looks at, encoded as the model takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from isotone.checks import check_choice
from isotone.data.table import Table, open_table, split_tree, suffix_of
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.cells import class_numbers, floats, is_blank, labels
from isotone.inputs.chain import Rule, has_features
from isotone.inputs.frames import is_category
from isotone.report.outcomes import Outcomes
from isotone.typing import Floats, Indices

MAX_COLUMNS = 60  # that efficiencies are shown against
MAX_GROUPS = 12  # values of a column of text

Column = Floats | NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class Sample:
    """All rows of a table.

    Parameters
    ----------
    X : (n_rows, n_features), encoded
    y : (n_rows,), number of the class or observed value, None without a target
    weight : (n_rows,), how much every row counts
    columns : by name, numbers (NaN where missing) or texts of a few kinds
    trained : whether the model file names a table of this name
    left_out : numbers of the other rows of the table, with values never seen in training
    name : of the table, for people; by default that of the file
    """

    path: str
    X: Floats
    y: Floats | None
    weight: Floats
    columns: Mapping[str, Column]
    target: str | None
    weights: str | None
    trained: bool
    left_out: Indices = field(default_factory=lambda: np.empty(0, np.intp))
    name: str | None = None

    def __len__(self) -> int:
        return len(self.X)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name or _name(self.path),
            "n": len(self),
            "target": self.target,
            "weights": self.weights,
            "trained": self.trained,
            "n_left_out": len(self.left_out),
        }

    @cached_property
    def numbers(self) -> Indices:
        """Where the rows are in the table, counted from 0, (n_rows,)."""
        return np.setdiff1d(np.arange(len(self) + len(self.left_out)), self.left_out)


def read_sample(
    frozen: FrozenNetwork,
    path: str,
    outcomes: Outcomes,
    weights: str | None = None,
    asked: bool = False,
    on_unseen: Rule = "error",
) -> Sample:
    """Read a table: what the model takes, the target, weights, and whatever else it holds.

    Parameters
    ----------
    asked : whether the target was asked for; one that only the model file names may be absent
    on_unseen : what becomes of rows with values never seen in training: an "error", as if these
        were "missing", or left out ("skip"), as are those that nothing stands in for
    """
    check_choice("on_unseen", on_unseen, get_args(Rule))
    table, inputs = open_table(path), frozen.inputs
    table.require(inputs.names)
    target = outcomes.target if asked or outcomes.target in table.columns else None
    if target is not None and outcomes.kind == "values" and frozen.n_outputs > 1:
        target = _refuse_one_of_several(frozen, target) if asked else None
    shown = _shown(table, [name for name in (target, weights) if name])
    needed = [*inputs.names, *(name for name in (target, weights) if name)]
    X, rest, left_out, n_rows = [], [], [], 0
    for batch in table.batches(list(dict.fromkeys([*needed, *shown]))):
        features = inputs.encode(batch, n_rows, on_unseen)
        known = has_features(features)
        X.append(features[known])
        rest.append(batch.filter(pa.array(known)))
        left_out.append(n_rows + np.flatnonzero(~known))
        n_rows += batch.num_rows
    n_known = sum(map(len, X))
    if n_known == 0:
        raise ValueError(f"{path!r} has no rows to show; give a table with some, or none at all")
    columns = pa.Table.from_batches(rest)
    cells = {name: columns[name].combine_chunks() for name in columns.column_names}
    return Sample(
        path=path,
        X=np.concatenate(X),
        y=None if target is None else _truth(cells[target], target, outcomes),
        weight=np.ones(n_known) if weights is None else _weight(cells[weights], weights),
        columns=_columns({name: cells[name] for name in shown}),
        target=target,
        weights=weights,
        trained=_name(path) == _name(str(frozen.provenance.get("table", ""))),
        left_out=np.concatenate(left_out),
    )


def _name(path: str) -> str:
    return split_tree(path)[0].name


def _refuse_one_of_several(frozen: FrozenNetwork, target: str) -> NoReturn:
    raise ValueError(
        f"`target={target}` is one column but the model predicts {frozen.n_outputs} numbers, "
        "which one column cannot hold; leave it out"
    )


def _shown(table: Table, without: Sequence[str]) -> list[str]:
    """Columns that can be read, in the order of the table."""
    names = [n for n in table.columns if n not in without and table.columns.count(n) == 1]
    if suffix_of(table.path) == ".root":
        names = [name for name in names if _is_readable(table, name)]
    return names[:MAX_COLUMNS]


def _is_readable(table: Table, name: str) -> bool:
    try:
        table.schema([name])
    except ValueError:
        return False
    return True


def _truth(cells: pa.Array, name: str, outcomes: Outcomes) -> Floats:
    """Numbers of the classes of all rows, or observed values."""
    of_classes = outcomes.kind != "values"
    found = class_numbers(cells, name, outcomes.classes) if of_classes else floats(cells, name)
    bad = ~np.isfinite(found)
    if bad.any():
        row = int(bad.argmax())
        cell = (labels(cells) if of_classes else cells)[row].as_py()
        advice = (
            f"the model knows the classes {', '.join(outcomes.classes[:10])}: correct or drop "
            "such rows, or name another column with --target"
            if of_classes
            else "every row needs a finite number: correct or drop such rows, or leave the "
            "target out"
        )
        raise ValueError(
            f"the target {name!r} is {cell!r:.40} in row {row} (data rows, counted from 0); "
            f"{advice}"
        )
    return found


def _weight(cells: pa.Array, name: str) -> Floats:
    weight = floats(cells, name)
    bad = ~((weight >= 0) & np.isfinite(weight))
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(
            f"the weight {name!r} is {weight[row]:g} in row {row} (data rows, counted from 0); "
            "weights must be 0 or more: correct or drop such rows"
        )
    if not weight.any():
        raise ValueError(f"the weight {name!r} is 0 in all rows; some must count")
    return weight


def _columns(cells: Mapping[str, pa.Array]) -> dict[str, Column]:
    found = {name: _column(column, name) for name, column in cells.items()}
    return {name: column for name, column in found.items() if column is not None}


def _column(cells: pa.Array, name: str) -> Column | None:
    """Numbers, or texts of a few kinds; None for what is neither, such as names of rows."""
    try:
        if _is_text(cells.slice(0, 1000), name):
            texts = labels(cells)
            few = len(texts.unique()) <= MAX_GROUPS
            return np.array([text or "(none)" for text in texts.to_pylist()]) if few else None
        values = floats(cells, name)
    except ValueError:
        return None
    return values if np.isfinite(values).any() else None


def _is_text(head: pa.Array, name: str) -> bool:
    """Whether cells are categories, or the first say something and none of it is a number."""
    if is_category(head.type):
        return True
    return not np.isfinite(floats(head, name)).any() and not is_blank(head).all()
