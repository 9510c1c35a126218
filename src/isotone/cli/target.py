"""The target of `isotone train`: numbers, or classes with their names."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from isotone.checks import refuse_rivals
from isotone.cli.columns import SIGNS, Direction, suggest
from isotone.cli.options import spelled
from isotone.data.categories import MAX_CATEGORIES
from isotone.inputs.cells import decoded, floats, is_blank, labels
from isotone.inputs.frames import is_category
from isotone.typing import Floats, Indices, RegressionLoss

_FEW = 10  # whole numbers that might be meant as classes
_REGRESSION = get_args(RegressionLoss)


@dataclass(frozen=True)
class Target:
    """What is learned.

    Parameters
    ----------
    classes : names, in the order of their numbers; None if the target is a number
    is_text : whether the classes have names that are not numbers
    few : whether there are just a few whole numbers, which could be classes as well
    chosen : whether the user chose the second of two classes; else it is the last in order
    """

    name: str
    classes: tuple[str, ...] | None = None
    is_text: bool = False
    few: bool = False
    chosen: bool = False

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
            hint = "" if self.chosen else f" (or: --positive {shlex.quote(other)})"
            return f"probability of {self.name} = {positive}, rather than {other}{hint}"
        return f"probabilities of {self.name} = {', '.join(self.classes)}"

    def monotonic_cst(
        self, directions: Sequence[Direction], features: Sequence[str]
    ) -> list[int] | list[list[int]]:
        """Directions of the features; with more than two classes, for every class."""
        table = np.zeros((self.n_outputs, len(features)), dtype=np.int8)
        for direction in directions:
            output, sign = self._output(direction, directions)
            place = output, features.index(direction.column)
            if table[place] == -sign:
                raise ValueError(
                    f"{direction.column!r} is both increasing and decreasing for {self.name!r}; "
                    "choose one of them"
                )
            table[place] = sign
        if self.n_outputs > 1:
            refuse_rivals(table, features, self.classes or ())
        rows: list[list[int]] = table.tolist()
        return rows[0] if self.n_outputs == 1 else rows

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
            if len(classes) == 2 and (not self.is_text or self.chosen):
                return 0, direction.sign
            like = [d for d in given if d.sign == direction.sign]
            named_all = [d.name if d.of_class else f"{d.name}:{classes[-1]}" for d in like]
            raise ValueError(
                f"`{direction.option}` must say of which class of {self.name!r} the probability "
                f"is meant, one of {', '.join(classes)}; write "
                f"`{spelled(SIGNS[direction.sign], *named_all)}`, for example"
            )
        k = self._class(direction.option, named)
        return (k, direction.sign) if len(classes) > 2 else (0, direction.sign * (2 * k - 1))

    def _class(self, option: str, named: str) -> int:
        """The number of a class by its name, in which 1.0 and true may stand for 1.

        The name as it is written comes first, so a class is found whatever others look like.
        """
        classes = self.classes or ()
        for read in (str, str.casefold, _number):
            wanted = read(named)
            found = [k for k, name in enumerate(classes) if read(name) == wanted is not None]
            if len(found) == 1:
                return found[0]
        raise ValueError(
            f"`{option}` names a class that {self.name!r} does not hold; {suggest(named, classes)}"
        )

    def with_positive(self, named: str | None, y: Floats) -> tuple[Target, Floats]:
        """The target and its values such that a model of two classes is about the class named."""
        if named is None:
            return self, y
        option = f"--positive {named}"
        if self.classes is None:
            raise ValueError(
                f"`{option}` names a class but {self.name!r} is learned as a number; leave it "
                "out, or add `--loss cross_entropy`"
            )
        if len(self.classes) > 2:
            raise ValueError(
                f"`{option}` is for two classes but {self.name!r} holds "
                f"{', '.join(self.classes[:10])}; leave it out: a model of several classes gives "
                "the probability of each"
            )
        if self._class(option, named) == 1:
            return replace(self, chosen=True), y
        return replace(self, classes=self.classes[::-1], chosen=True), 1.0 - y


def read_target(
    name: str, column: pa.Array, loss: str, numbers: Indices, varied: bool = True
) -> tuple[Target, Floats]:
    """The target, and its values or the numbers of its classes.

    Classes are: text, what is stored as categories, numbers of which there are just two, and whole
    numbers if the `loss` is one for classes.

    Parameters
    ----------
    numbers : those of the rows within the table, for messages
    varied : refuse one value in all rows
    """
    category = is_category(column.type)
    column = decoded(column)
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


def _number(text: str) -> float | None:
    """The number that the name of a class may stand for."""
    words = {"false": 0.0, "true": 1.0}
    try:
        return words[text.casefold()] if text.casefold() in words else float(text)
    except ValueError:
        return None


def _check_gaps(name: str, numbers: Indices, gaps: NDArray[Any]) -> None:
    if gaps.any():
        raise ValueError(
            f"the target {name!r} is missing in {gaps.sum()} rows, the first of them row "
            f"{numbers[gaps.argmax()]} (data rows, counted from 0); nothing can be learned from "
            "such rows: drop them"
        )


def _of_texts(name: str, texts: list[str]) -> tuple[Target, Floats]:
    classes, index = np.unique(np.array(texts), return_inverse=True)
    if len(classes) > MAX_CATEGORIES:
        raise ValueError(
            f"the target {name!r} holds {len(classes)} different texts, such as {texts[0]!r}; at "
            f"most {MAX_CATEGORIES} classes can be learned: merge rare ones, or correct the "
            "column if it should hold numbers"
        )
    return Target(name, tuple(classes.tolist()), is_text=True), index.astype(np.float64)


def _of_numbers(name: str, values: Floats, loss: str) -> tuple[Target, Floats]:
    unique, index = np.unique(values, return_inverse=True)
    if loss in _REGRESSION or (not loss and len(unique) != 2):
        few = len(unique) <= _FEW and not loss and bool(np.all(unique == np.rint(unique)))
        return Target(name, few=few), values
    if len(unique) > 2 and (len(unique) > MAX_CATEGORIES or np.any(unique != np.rint(unique))):
        raise ValueError(
            f"`--loss {loss}` needs classes but {name!r} holds {len(unique)} numbers such as "
            f"{unique[0]:g} and {unique[1]:g}; choose --loss squared_error, or make a column of "
            "classes"
        )
    return Target(name, tuple(f"{value:.17g}" for value in unique)), index.astype(np.float64)


def _check_variety(name: str, cells: NDArray[Any]) -> None:
    if np.all(cells == cells[0]):
        raise ValueError(
            f"the target {name!r} is {cells[0]} in all rows, so there is nothing to learn; add "
            "other rows, or choose another target"
        )
