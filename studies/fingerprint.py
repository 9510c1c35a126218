"""Fingerprint: a digest of all code that a study depends on, so that results can be cached."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
from functools import cache
from pathlib import Path

import isotone

ROOT = Path(__file__).parent.parent
PACKAGE = Path(isotone.__file__).parent
MACHINERY = "studies.study"  # runs studies, but is no part of what they find
PINNED = ("numpy", "torch", "scikit-learn", "matplotlib")


def fingerprint(module: str, parameters: str) -> str:
    """A digest of a study: its source, whatever of ours it imports, and its parameters."""
    digest = hashlib.sha256(parameters.encode())
    for path in sorted(sources(module)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for name in PINNED:
        digest.update(f"{name} {importlib.metadata.version(name)}\0".encode())
    return digest.hexdigest()


def sources(module: str) -> set[Path]:
    """The files that a module of `studies` or `isotone` is made of, as far as they are ours."""
    found: set[Path] = set()
    names = [module]
    while names:
        name = names.pop()
        path = None if name == MACHINERY else _file(name)
        if path is not None and path not in found:
            found.add(path)
            names += _imported(path)
    if any(path.is_relative_to(PACKAGE) for path in found):
        found |= {path for path in (ROOT / "cpp").rglob("*.[ch]pp") if path.is_file()}
    return found


@cache  # files are parsed once per process, studies share most of them
def _imported(path: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
            names += [_home(node.module, alias.name) for alias in node.names]
    return names


def _home(module: str, name: str) -> str:
    """Where a name is defined: `isotone` maps its public names to modules."""
    if module == "isotone" and name in isotone._HOME:
        return f"isotone.{isotone._HOME[name]}"
    return f"{module}.{name}"


def _file(module: str) -> Path | None:
    top, *rest = module.split(".")
    if top not in ("isotone", "studies") or not rest:
        return None
    base = PACKAGE if top == "isotone" else ROOT / "studies"
    path = base.joinpath(*rest)
    files = path.with_suffix(".py"), path / "__init__.py"
    return next((file for file in files if file.is_file()), None)
