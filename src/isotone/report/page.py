"""The page: files of this package put together into one, with nothing left to load.

A Content-Security-Policy names the SHA-256 of every script and style, so a browser runs nothing
else and sends nothing anywhere. Data are JSON in which no character can end a script, and the
scripts put names into the page as text, never as HTML.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

import isotone
from isotone.frozen.notebook import visible

MAX_BYTES = 3_000_000
SCRIPTS = (
    "model.js",
    "certificate.js",
    "numbers.js",
    "hover.js",
    "charts.js",
    "zoom.js",
    "controls.js",
    "explorer.js",
    "answer.js",
    "threshold.js",
    "flips.js",
    "responses.js",
    "heatmap.js",
    "panels.js",
    "residuals.js",
    "shapley.js",
    "reasons.js",
    "recourse.js",
    "importance.js",
    "rivals.js",
    "quality.js",
    "robustness.js",
    "state.js",
    "start.js",
)


def assemble(parts: Mapping[str, str], data: Mapping[str, Any]) -> str:
    """The HTML text; parts by their marks in page.html are HTML already."""
    style, scripts = read("style.css"), [read(name) for name in SCRIPTS]
    every = {
        **parts,
        "policy": policy([style], scripts),
        "style": style,
        "version": escape(isotone.__version__),
        "data": to_json(data),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    return fill(read("page.html"), every)


def assemble_still(title: str, lead: str, body: str) -> str:
    """A page in the same style without scripts; `lead` and `body` are HTML already."""
    style = read("style.css")
    parts = {
        "policy": policy([style], []),
        "title": escape(visible(title)),
        "style": style,
        "version": escape(isotone.__version__),
        "lead": lead,
        "body": body,
    }
    return fill(read("still.html"), parts)


def excess(text: str) -> int:
    """By how many bytes a page exceeds the limit; 0 or less if it does not."""
    return len(text.encode("utf-8")) - MAX_BYTES


def refuse_excess(text: str) -> None:
    """Raise `ValueError` if a page is too large."""
    if excess(text) > 0:
        raise ValueError(
            f"the report would take {len(text.encode('utf-8')) / 1e6:.1f} MB even without rows "
            f"of a table; it must stay below {MAX_BYTES / 1e6:.0f} MB: use a smaller network, or "
            "a table with fewer columns"
        )


def to_json(data: Any) -> str:
    """JSON that can stand inside a script element; what is not finite becomes null."""
    text = json.dumps(_plain(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {visible(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, str):
        return visible(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read(name: str) -> str:
    """A file of the page."""
    return resources.files("isotone.report").joinpath("web", name).read_text(encoding="utf-8")


def fill(template: str, parts: Mapping[str, str]) -> str:
    """The template with parts at their marks; what a part holds is not looked at again."""
    pieces = template.split("%%")
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def policy(styles: Sequence[str], scripts: Sequence[str], more: str = "") -> str:
    """A Content-Security-Policy that allows these styles and scripts, and nothing else."""
    allowed = [" ".join(map(_hash, each)) or "'none'" for each in (scripts, styles)]
    return (
        f"default-src 'none'; script-src {allowed[0]}; style-src {allowed[1]}; "
        f"img-src data: blob:; base-uri 'none'; form-action 'none'{more}"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
