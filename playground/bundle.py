"""Bundle: modules of JavaScript joined into one script, which a worker and Node can run.

Every module becomes a function that returns what it exports, after those that it imports from. The
modules are written for this: an import or export takes a whole line, and nothing is renamed.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENTRY = ROOT / "playground" / "src" / "worker.mjs"
PRELUDE = ("model.js", "certificate.js")  # of the report: the network, and radii of its decisions

_IMPORT = re.compile(r'^import (?:(\{[^}]*\})|\* as (\w+)) from "(\.[^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)


def program() -> str:
    """What the worker runs: the network of the report, and every module that `ENTRY` needs."""
    web = resources.files("isotone.report").joinpath("web")
    scripts = [web.joinpath(name).read_text(encoding="utf-8") for name in PRELUDE]
    return "\n".join([*scripts, "const modules = {};", *map(_wrapped, modules(ENTRY))])


def modules(entry: Path) -> list[Path]:
    """A module and all that it needs, each after those that it imports from."""
    found: list[Path] = []
    _visit(entry.resolve(), found, ())
    return found


def _visit(path: Path, found: list[Path], above: tuple[Path, ...]) -> None:
    if path in above:
        raise ValueError(
            f"{path.name} imports itself by way of {above[-1].name}; modules that are joined need "
            "an order: move what both use into a third"
        )
    for _, _, target in _IMPORT.findall(path.read_text(encoding="utf-8")):
        _visit((path.parent / target).resolve(), found, (*above, path))
    if path not in found:
        found.append(path)


def _wrapped(path: Path) -> str:
    """A module as a function that runs at once and returns its exports."""
    text = path.read_text(encoding="utf-8")
    names = ", ".join(_EXPORT.findall(text))
    body = re.sub(r"^export ", "", _IMPORT.sub(lambda m: _imported(path, m), text), flags=re.M)
    return f'modules["{_key(path)}"] = (() => {{\n{body}\nreturn {{ {names} }};\n}})();'


def _imported(path: Path, match: re.Match[str]) -> str:
    names, whole, target = match.groups()
    return f'const {names or whole} = modules["{_key((path.parent / target).resolve())}"];'


def _key(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
