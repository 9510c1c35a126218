"""C++ text: numbers, names and what a generated file says about the model it was made from."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path

from isotone.export.claim import Claim
from isotone.files import write_whole
from isotone.files.locks import sole_use
from isotone.frozen.network import FrozenNetwork
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Category, Column, Number, Ordered, missing_code
from isotone.typing import Precision, Reals

WIDTH = 99
TYPES = {"float64": "double", "float32": "float"}

_RESERVED = """
NULL abs div errno exit exp index j0 j1 jn log rand read remove rename select signal stderr
stdin stdout time write y0 y1 yn
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t
char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
false float for friend goto if inline int isotone long main mutable namespace new noexcept not
not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires
return short signed sizeof static static_assert static_cast std struct switch template this
thread_local throw true try typedef typeid typename union unsigned using virtual void volatile
wchar_t while xor xor_eq
"""


def identifier(name: str | None, path: Path) -> str:
    """The name of the model in C++: `name`, or else made from the last part of `path`."""
    made = re.sub(r"[^A-Za-z0-9]+", "_", path.name.split(".")[0]).strip("_")
    chosen = made if name is None else name
    valid = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", chosen) and "__" not in chosen
    if not valid or chosen in _RESERVED.split():
        raise ValueError(
            f"{chosen!r} cannot be the name of a C++ namespace; give another `name`, of letters, "
            "digits and single underscores, that is not a keyword"
        )
    return chosen


def write_files(path: Path, content: dict[str, str]) -> None:
    """Write texts into a directory, which is made if its parent is there."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"{str(path)!r} is a file; this export needs the name of a directory")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no directory {str(path.parent)!r}; create it first")
    with sole_use(path):
        for name, content_of_file in content.items():
            write_whole(path / name, content_of_file)


def number(value: float, precision: Precision = "float64") -> str:
    """A literal that is read as exactly this number."""
    if math.isinf(value):
        return f"{'-' * (value < 0)}std::numeric_limits<{TYPES[precision]}>::infinity()"
    return float(value).hex() + ("f" if precision == "float32" else "")


def numbers(values: Reals, precision: Precision, indent: str) -> str:
    """Literals in lines, between braces."""
    return braces((number(value, precision) for value in values.ravel().tolist()), indent)


def braces(items: Iterable[str], indent: str) -> str:
    """Items in lines, between braces."""
    lines, line = [], indent
    for item in items:
        if line != indent and len(line) + len(item) + 2 > WIDTH:
            lines.append(line.rstrip())
            line = indent
        line += f"{item}, "
    return "\n".join(["{", *lines, line.rstrip(), indent[:-4] + "}"])


def text(value: str) -> str:
    """A string literal, plain ASCII whatever is in it."""
    escaped = re.sub(r'(["\\?])', r"\\\1", value)  # the question marks of trigraphs too
    plain = "".join(chr(b) if 32 <= b < 127 else f"\\{b:03o}" for b in escaped.encode("utf-8"))
    return f'"{plain}"'


def comment(value: str) -> str:
    """A text that stays within its comment, whatever is in it.

    It has one line, and no backslash or trigraph that would join the next line to it.
    """
    safe = (c if c.isprintable() and c != "\\" else "\N{REPLACEMENT CHARACTER}" for c in value)
    return "".join(safe).replace("??/", "? ?/")


def lines_of_text(value: str, indent: str) -> str:
    """A long string literal in lines; C++ joins them."""
    size = WIDTH - 30
    parts = [value[start : start + size] for start in range(0, len(value), size)]
    return "\n".join(indent + text(part) for part in parts)


def heading(frozen: FrozenNetwork, claim: Claim) -> str:
    """Comment lines: the model, and what is claimed of this file."""
    content = claim.summary()
    verdict = "holds" if claim.holds else "does not hold"
    entries = {
        "isotone": content["isotone"],
        "fingerprint": content["fingerprint"],
        "columns": ", ".join(f'"{name}"' for name in frozen.inputs.names),
        "outputs": f"{frozen.n_outputs}, {frozen.outputs}, {frozen.precision}",
        "directions": json.dumps(content["monotonic_cst"]),
        "certificate": f"{verdict}; guarantee: {claim.guarantee}",
        "missing": claim.about_missing or "no missing value has a score",
        "arithmetic": claim.arithmetic,
        "provided": claim.provided,
        "constants": json.dumps(content["model"]["constants"]),
        "rounding": json.dumps(content["model"]["rounding_errors"]),
    }
    return "\n".join(f"//   {name:12} {comment(value)}" for name, value in entries.items())


def _category_tables(inputs: Inputs, keyword: str) -> list[str]:
    """The texts that codes of categories stand for, by number of the column."""
    lines = []
    for i, column in enumerate(inputs.columns):
        if isinstance(column, Number):
            continue
        texts = ", ".join(text("" if t is None else t) for t in column.categories)
        about = comment(f'of "{column.name}"{_about_other(column)}')
        table = f"{keyword} const char* categories_{i}[] = {{{texts}}};  "
        lines.append(f"{table if texts else ''}// {about}")  # no array of C++ is empty
    return lines


def _about_other(column: Category | Ordered) -> str:
    if not isinstance(column, Category) or column.other is None:
        return ""
    return f"; {column.other}, or any number that is no place, is every other category"


def encoding(inputs: Inputs) -> list[str]:
    """Statements that make the features x of the raw numbers and codes `raw`.

    What the model does not know becomes `unknown`.
    """
    unknown = "constexpr double unknown = std::numeric_limits<double>::quiet_NaN();"
    lines = [unknown, "(void)unknown;"]
    for i, column in enumerate(inputs.columns):
        place = len([line for line in lines if line.startswith("x[")])
        values = _values(column, i)
        lines += [] if isinstance(column, Number) else [_known(column, i)]
        lines += [f"x[{place + k}] = {value};" for k, value in enumerate(values)]
    flagged = [i for i, column in enumerate(inputs.columns) if column.fill is not None]
    first = len(inputs.uncompleted)
    return lines + [
        f"x[{first + k}] = raw[{i}] != raw[{i}] ? 1.0 : 0.0;" for k, i in enumerate(flagged)
    ]


def _values(column: Column, i: int) -> list[str]:
    """The features of a column as expressions of its number or code."""
    code, missing = f"raw[{i}]", missing_code(column)
    if missing is not None:
        code = f"({code} != {code} ? {number(missing)} : {code})"
    if isinstance(column, Number):
        return [code]
    if isinstance(column, Ordered):
        return [f"known_{i} ? {code} : unknown"]
    hits = [f"{code} == {k}.0" for k in range(len(column.categories))]
    if column.pooled:
        hits.append(" && ".join(f"!({hit})" for hit in hits) or "true")
    return [f"known_{i} ? ({hit} ? 1.0 : 0.0) : unknown" for hit in hits]


def _known(column: Category | Ordered, i: int) -> str:
    known = [f"raw[{i}] == {k}.0" for k in range(len(column.categories))]
    if isinstance(column, Category) and column.pooled:
        known = [f"raw[{i}] == raw[{i}]"]
    known += [] if missing_code(column) is None else [f"raw[{i}] != raw[{i}]"]
    return f"const bool known_{i} = {' || '.join(known)};"


def constants(frozen: FrozenNetwork, claim: Claim, keyword: str) -> str:
    """Constants that programs can ask for."""
    names = ", ".join(text(name) for name in frozen.inputs.names)
    certificate = json.dumps(claim.to_dict())
    holds, last_bit = (
        "true" if found else "false" for found in (claim.holds, claim.to_the_last_bit)
    )
    return "\n".join(
        [
            f"using Number = {TYPES[frozen.precision]};  // of a score",
            f"{keyword} int n_columns = {len(frozen.inputs.columns)};  // of a raw row",
            f"{keyword} int n_features = {len(frozen.inputs.encoded)};",
            f"{keyword} int n_outputs = {frozen.n_outputs};",
            f"{keyword} const char* column_names[] = {{{names}}};",
            *_category_tables(frozen.inputs, keyword),
            f"{keyword} char fingerprint[] = {text(frozen.fingerprint)};",
            f"{keyword} bool certificate_holds = {holds}, monotone_to_the_last_bit = {last_bit};",
            f"{keyword} char certificate[] =  // JSON",
            f"{lines_of_text(certificate, ' ' * 4)};",
        ]
    )
