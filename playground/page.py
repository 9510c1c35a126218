"""The page: every script, style and example put together into one HTML file."""

from __future__ import annotations

import base64
import json
from html import escape
from pathlib import Path

import isotone
from isotone.report import page as report
from playground import bundle, example

WEB = Path(__file__).parent / "web"
SCRIPTS = ("playground.js", "panel.js")


def assemble() -> str:
    """The HTML text. It loads nothing, and a policy keeps it from doing so."""
    styles = [report.read("style.css"), _read("playground.css")]
    scripts = [*map(report.read, report.SCRIPTS), *map(_read, SCRIPTS)]
    parts = {
        "policy": report.policy(styles, scripts, "; worker-src blob:"),
        "version": escape(isotone.__version__),
        "styles": "\n".join(f"<style>{style}</style>" for style in styles),
        "blank": _data({"page": _blank(styles[0], scripts[: len(report.SCRIPTS)])}),
        "example": _data({path.name: _text(path) for path in (example.MODEL, example.TABLE)}),
        "worker": _data({"program": bundle.program()}),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    return report.fill(_read("page.html"), parts)


def _blank(style: str, scripts: list[str]) -> str:
    """A report in which only what depends on the model is left open."""
    kept = ("title", "lead", "badge", "figures", "verdict", "style", "data", "scripts")
    known = {"policy": report.policy([style], scripts), "version": escape(isotone.__version__)}
    return report.fill(report.read("page.html"), {name: f"%%{name}%%" for name in kept} | known)


def _read(name: str) -> str:
    return (WEB / name).read_text(encoding="utf-8")


def _text(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _data(content: dict[str, str]) -> str:
    """JSON that can stand inside a script element."""
    return json.dumps(content).replace("<", "\\u003c")
