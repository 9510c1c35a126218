"""Texts: reasons in sentences, from a template for every column.

.. code-block:: toml

    [income]
    raises = "an income of {value:,.0f} is in your favor"
    lowers = "an income of {value:,.0f} is low"
    missing = "your income is not known"        # optional, if the value is missing

A template may use `{value}`, the value in the table, `{column}`, its name, and `{contribution}`,
with formats as in Python. A column without templates says its name and its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from typing import Any

from isotone.checks import suggest
from isotone.files.untrusted import read_toml
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.columns import Number

_KINDS = ("raises", "lowers", "missing")
_FIELDS = ("value", "column", "contribution")


@dataclass(frozen=True)
class Texts:
    """Templates by column and by what the column does.

    Examples
    --------
    >>> texts = Texts({"debt": {"lowers": "a debt of {value:,.0f} is high"}})
    >>> texts.sentence("debt", 12500.0, -0.7), texts.sentence("city", "Oslo", 0.1)
    ('a debt of 12,500 is high', 'city is Oslo')
    """

    templates: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path, frozen: FrozenNetwork) -> Texts:
        """The templates of a TOML file, checked against the columns of a model."""
        content, names = read_toml(path), frozen.inputs.names
        for name, entry in content.items():
            if name not in names:
                advice = suggest(name, names, f"its columns are {', '.join(names[:20])}")
                raise ValueError(
                    f"{str(path)!r} has texts for {name!r}, which is not a column of the model; "
                    f"{advice}"
                )
            if not isinstance(entry, dict) or not set(entry) <= set(_KINDS):
                raise ValueError(
                    f"{str(path)!r} has {entry!r:.100} for {name!r}; it must have texts for "
                    f"{', '.join(_KINDS)}, or some of these: correct it"
                )
            for kind, template in entry.items():
                is_number = isinstance(frozen.inputs.column(name), Number) and kind != "missing"
                _check(f"the text {kind!r} of {name!r} in {str(path)!r}", template, is_number)
        return cls(content)

    def sentence(self, column: str, value: Any, contribution: float) -> str:
        """What a column does, in words; the value is that of the table, None if missing."""
        known = self.templates.get(column, {})
        kind = "raises" if contribution > 0 else "lowers"
        if value is None and "missing" in known:
            kind = "missing"
        elif value is None or kind not in known:
            return f"{column} is {'missing' if value is None else _shown(value)}"
        shown = _Value(value) if isinstance(value, float) else value
        return known[kind].format(value=shown, column=column, contribution=contribution)


class _Value(float):
    """A number that without a format shows no more digits than it needs."""

    def __format__(self, spec: str) -> str:
        return super().__format__(spec or ".10g")


def _shown(value: Any) -> str:
    return f"{_Value(value)}" if isinstance(value, float) else str(value)


def _check(what: str, template: Any, is_number: bool) -> None:
    """Raise `ValueError` unless a template is a text that can be filled in."""
    try:
        fields = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
        unknown = [name for name in fields if name not in _FIELDS]
        if unknown:
            raise ValueError(f"{{{unknown[0]}}} is unknown")
        template.format(value=1.5 if is_number else "text", column="", contribution=1.5)
    except (ValueError, TypeError, AttributeError, IndexError, KeyError) as error:
        raise ValueError(
            f"{what} is {template!r:.100}, which cannot be filled in ({error}); it may use "
            f"{', '.join(f'{{{name}}}' for name in _FIELDS)}: correct it"
        ) from error
