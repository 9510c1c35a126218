"""The target of `isotone train`: numbers, or classes with their names."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from isotone.checks import refuse_rivals, suggest
from isotone.cli.console.options import spelled
from isotone.cli.table.columns import SIGNS, Direction
from isotone.estimators.columns import MAX_CATEGORIES
from isotone.inputs.cells import (
    class_number,
    decoded,
    floats,
    is_blank,
    labels,
    truths_as_numbers,
)
from isotone.inputs.columns import missing_name
from isotone.inputs.frames import is_category
from isotone.typing import Floats, Indices, RegressionLoss

_FEW = 10  # whole numbers that might be meant as classes
_EXACT = 2.0**53  # below which a float can be a whole number by name
_REGRESSION = get_args(RegressionLoss)


@dataclass(frozen=True)
class TargetColumn:
    """What is learned.

    Parameters
    ----------
    labels : the classes, texts or numbers in order; None if the target is a number
    is_text : whether the classes have names without an order, unlike numbers, false and true
    few : whether there are just a few whole numbers, which could be classes as well
    positive : which of two classes scores are about, if the user chose; else the last in order
    """

    name: str
    labels: tuple[Any, ...] | None = None
    is_text: bool = False
    few: bool = False
    positive: Any = None

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Names of the classes; of two, that which scores are about is the second."""
        if self.labels is None:
            return None
        turned = len(self.labels) == 2 and self.second == self.labels[0]
        return tuple(str(label) for label in self.labels[:: -1 if turned else 1])

    @property
    def second(self) -> Any:
        """Of two classes, the one that scores are about."""
        two = self.labels is not None and len(self.labels) == 2
        return (self.labels or (None,))[-1] if two and self.positive is None else self.positive

    @property
    def n_outputs(self) -> int:
        """One for numbers and for two classes."""
        return 1 if self.classes is None or len(self.classes) == 2 else len(self.classes)

    def describe(self) -> str:
        """What the scores of a model are about."""
        if self.classes is None:
            hint = " (for classes instead: --loss cross_entropy)" if self.few else ""
            return f"{self.name}, as a number{hint}"
        if len(self.classes) == 2:
            other, positive = self.classes
            chosen = self.positive is not None
            hint = "" if chosen else f" (or: --positive {shlex.quote(other)})"
            return f"probability of {self.name} = {positive}, rather than {other}{hint}"
        return f"probabilities of {self.name} = {', '.join(self.classes)}"

    def monotonic_cst(
        self, directions: Sequence[Direction], features: Sequence[str]
    ) -> dict[Any, Any]:
        """Directions by feature, also of missing ones; with several classes, for every class."""
        names = list(dict.fromkeys([*features, *map(missing_name, features)]))
        table = np.zeros((self.n_outputs, len(names)), dtype=np.int8)
        for direction in directions:
            output, sign = self._output(direction, directions)
            place = output, names.index(direction.column)
            if table[place] == -sign:
                raise ValueError(
                    f"{direction.column!r} is both increasing and decreasing for {self.name!r}; "
                    "choose one of them"
                )
            table[place] = sign
        if self.n_outputs > 1:
            refuse_rivals(table, names, self.classes or ())
        rows = [
            {name: s for name, s in zip(names, row, strict=True) if s} for row in table.tolist()
        ]
        return rows[0] if self.n_outputs == 1 else dict(zip(self.labels or (), rows, strict=True))

    def _output(self, direction: Direction, given: Sequence[Direction]) -> tuple[int, int]:
        """The output that a direction is about, and its sign there."""
        named, classes = direction.of_class, self.classes
        if classes is None:
            if named is not None:
                raise ValueError(
                    f"`{direction.option}` names a class but {self.name!r} is learned as a "
                    f"number; leave out ':{named}', or add `--loss cross_entropy`"
                )
            return 0, direction.sign
        if named is None:
            if len(classes) == 2 and (not self.is_text or self.positive is not None):
                return 0, direction.sign
            raise ValueError(self._wants_a_class(direction, given))
        k = self._class(direction.option, named)
        return (k, direction.sign) if len(classes) > 2 else (0, direction.sign * (2 * k - 1))

    def _wants_a_class(self, direction: Direction, given: Sequence[Direction]) -> str:
        """What is wrong with a direction that could be about any of the classes."""
        classes = self.classes or ()
        like = [d for d in given if d.sign == direction.sign]
        names = [d.name if d.of_class else f"{d.name}:{classes[-1]}" for d in like]
        ways = [spelled(SIGNS[direction.sign], *names)]
        if len(classes) == 2:
            ways.append(shlex.join(["--positive", classes[-1]]))
        return (
            f"`{direction.option}` must name the class of {self.name!r} whose probability it is "
            f"about, one of {', '.join(classes)}; write {' or '.join(f'`{w}`' for w in ways)}, "
            "for example"
        )

    def _class(self, option: str, named: str) -> int:
        """The number of a class by its name, in which 1.0 and true may stand for 1.

        The name as it is written comes first, so a class is found whatever others look like.
        """
        classes = self.classes or ()
        for read in (str, str.casefold, class_number):
            found = [k for k, name in enumerate(classes) if read(name) == read(named)]
            if len(found) == 1:
                return found[0]
        advice = suggest(named, classes, f"choose from {', '.join(classes[:20])}")
        raise ValueError(f"`{option}` names a class that {self.name!r} does not hold; {advice}")

    def with_positive(self, named: str | None) -> TargetColumn:
        """The target whose scores, of two classes, are about the class named."""
        if named is None:
            return self
        option = f"--positive {named}"
        if self.labels is None:
            raise ValueError(
                f"`{option}` names a class but {self.name!r} is learned as a number; leave it "
                "out, or add `--loss cross_entropy`"
            )
        if len(self.labels) > 2:
            raise ValueError(
                f"`{option}` is for two classes but {self.name!r} holds "
                f"{', '.join(map(str, self.labels[:10]))}; leave it out: a model of several "
                "classes gives the probability of each"
            )
        return replace(self, positive=self.labels[self._class(option, named)])


def read_target(
    name: str, column: pa.Array, loss: str, numbers: Indices, varied: bool = True
) -> tuple[TargetColumn, NDArray[Any]]:
    """The target, and its value or class in every row.

    Classes are: text, truths, what is stored as categories, numbers of which there are just two,
    and whole numbers if the `loss` is one for classes.

    Parameters
    ----------
    numbers : those of the rows within the table, for messages
    varied : refuse one value in all rows
    """
    category = is_category(column.type)
    column = decoded(column)
    if loss in _REGRESSION:
        column = truths_as_numbers(column)
    elif pa.types.is_boolean(column.type):
        column = column.cast(pa.string())
    values = floats(column, name)
    lost = ~np.isfinite(values)
    blank = lost.copy()
    blank[lost] = is_blank(column.filter(pa.array(lost)))
    text = category or (bool((lost & ~blank).any()) and lost.mean() >= 0.5)
    cells = np.array(labels(column).to_pylist(), dtype=object) if text else values
    # among texts, "none" is a class like any other
    gaps = np.array([cell is None for cell in cells]) if text else blank
    _check_gaps(name, numbers, gaps)
    if lost.any() and not text:
        row = int(lost.argmax())
        raise ValueError(
            f"the target {name!r} is {column[row].as_py()!r} in row {numbers[row]} (data rows, "
            "counted from 0) but a number in most rows; correct or drop such rows"
        )
    if varied:
        _check_variety(name, cells)
    return _of_texts(name, cells.tolist()) if text else _of_numbers(name, values, loss)


def target_values(target: TargetColumn, cells: pa.Array) -> NDArray[Any]:
    """The value or class in other cells of a target that was read already."""
    column = decoded(cells)
    if target.labels is None:
        return floats(truths_as_numbers(column), target.name)
    if not isinstance(target.labels[0], str):
        numbers: NDArray[Any] = floats(column, target.name)
        return numbers.astype(np.asarray(target.labels).dtype)
    encoded = labels(column).dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    known = np.array([_name(text, target.labels) for text in texts], dtype=np.str_)
    return known[np.asarray(encoded.indices.to_numpy(), dtype=np.intp)]


def _name(text: str, known: tuple[Any, ...]) -> str:
    """The class that a text names; two numbers may be written in several ways."""
    number = math.nan if text in known else class_number(text)
    return text if math.isnan(number) else repr(number).removesuffix(".0")


def _check_gaps(name: str, numbers: Indices, gaps: NDArray[Any]) -> None:
    if gaps.any():
        raise ValueError(
            f"the target {name!r} is missing in {gaps.sum()} rows, the first of them row "
            f"{numbers[gaps.argmax()]} (data rows, counted from 0); nothing can be learned from "
            "such rows: drop them"
        )


def _of_texts(name: str, texts: list[str]) -> tuple[TargetColumn, NDArray[Any]]:
    y = np.array(texts)
    classes = np.unique(y)
    if len(classes) > MAX_CATEGORIES:
        raise ValueError(
            f"the target {name!r} holds {len(classes)} different texts, such as {texts[0]!r}; at "
            f"most {MAX_CATEGORIES} classes can be learned: merge rare ones, or correct the "
            "column if it should hold numbers"
        )
    if sorted(map(str.casefold, classes.tolist())) == ["false", "true"]:
        return TargetColumn(name, tuple(sorted(classes.tolist(), key=str.casefold))), y
    return TargetColumn(name, tuple(classes.tolist()), is_text=True), y


def _of_numbers(name: str, values: Floats, loss: str) -> tuple[TargetColumn, NDArray[Any]]:
    unique = np.unique(values)
    whole = bool(np.all(unique == np.rint(unique)))
    if loss in _REGRESSION or (not loss and len(unique) != 2):
        return TargetColumn(name, few=len(unique) <= _FEW and not loss and whole), values
    if len(unique) > 2 and (len(unique) > MAX_CATEGORIES or not whole):
        raise ValueError(
            f"`--loss {loss}` needs classes but {name!r} holds {len(unique)} numbers such as "
            f"{unique[0]:g} and {unique[1]:g}; choose --loss squared_error, or make a column of "
            "classes"
        )
    if not whole:  # two of them, which scikit-learn would not take for classes
        names = [repr(value).removesuffix(".0") for value in unique.tolist()]
        return TargetColumn(name, tuple(names)), np.array(names)[np.searchsorted(unique, values)]
    y = values.astype(np.int64) if np.abs(unique).max() < _EXACT else values
    return TargetColumn(name, tuple(np.unique(y).tolist())), y


def _check_variety(name: str, cells: NDArray[Any]) -> None:
    if np.all(cells == cells[0]):
        raise ValueError(
            f"the target {name!r} is {cells[0]} in all rows, so there is nothing to learn; add "
            "other rows, or choose another target"
        )
