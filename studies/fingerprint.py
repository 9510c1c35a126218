"""Fingerprint: a digest of the code that decides a study's numbers, so that results can be cached.

Comments, docstrings and the place of a module decide nothing. What is hashed of a file is
its syntax tree without docstrings, and an import of ours counts as the code that it brings. C++ is
hashed byte by byte.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import isotone

ROOT = Path(__file__).parent.parent
FOLDERS = {"isotone": Path(isotone.__file__).parent, "studies": ROOT / "studies"}
# What runs studies and what fetches files, which are held by their own digests.
MACHINERY = ("studies.study", "studies.tabular.files")
PINNED = ("numpy", "torch", "scikit-learn", "matplotlib")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
ENGINE = "isotone._engine"  # the compiled part


def fingerprint(module: str, parameters: str) -> str:
    """A digest of a study: its source, whatever of ours it imports, and its parameters."""
    versions = (f"{name} {importlib.metadata.version(name)}" for name in PINNED)
    return digest(sources(module), parameters, *versions)


def digest(paths: Iterable[Path], *texts: str) -> str:
    """Of what files say, wherever they are, and of texts."""
    parts = sorted(_digest_of(path) for path in paths)
    return _sha256("\0".join([*parts, *texts]))


def sources(*modules: str) -> set[Path]:
    """The files that modules of `studies` or `isotone` are made of, as far as they are ours."""
    found: set[Path] = set()
    names = list(modules)
    while names:
        path = file_of(name := names.pop())
        if name == ENGINE:
            found |= {path for path in (ROOT / "cpp").rglob("*.[ch]pp") if path.is_file()}
        elif path is not None and path not in found:
            found.add(path)
            names += imported(path)
    return {path for path in found if not is_facade(path)}


def imported(path: Path) -> list[str]:
    """The modules of ours that a file imports, or whose names it mentions."""
    return [module for module, _ in read(path).imports]


@dataclass(frozen=True)
class Code:
    """A file without docstrings and imports of ours, and what these bring: module and names."""

    text: str
    imports: tuple[tuple[str, str], ...]


@cache  # files are parsed once per process, studies share most of them
def read(path: Path) -> Code:
    reader = _Reader(_reexports(path).items())
    tree = reader.visit(ast.parse(path.read_text()))
    return Code(ast.dump(tree), tuple(sorted(reader.imports)))


class _Reader(ast.NodeTransformer):
    """Takes away what decides nothing, and collects imports of ours."""

    def __init__(self, reexports: Iterable[tuple[str, str]]) -> None:
        self.imports = {(home, name) for name, home in reexports}

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        body = getattr(node, "body", None)
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            del node.body[0]
        if body == []:  # `pass` is as good
            body.append(ast.Pass())
        return node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if _is_for_types(node) else self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        ours = [alias for alias in node.names if _is_ours(alias.name)]
        bare = ("isotone", None)  # whose names are followed where they are mentioned
        aliases = {(alias.name, alias.asname) for alias in ours} - {bare}
        self.imports |= {(name, asname or "") for name, asname in aliases}
        node.names = [alias for alias in node.names if alias not in ours]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        if not _is_ours(node.module or ""):
            return node
        for alias in node.names:
            names = f"{alias.name} {alias.asname or ''}"
            self.imports.add((home(f"{node.module}.{alias.name}"), names))
        return None

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        name = ast.unparse(node)
        if not re.fullmatch(r"isotone(\.[a-zA-Z]\w*)+", name):
            return self.generic_visit(node)
        self.imports.add((home(name), name))
        return node


def home(name: str) -> str:
    """The module that defines a dotted name, or is that name; packages offer names of others."""
    if name == ENGINE or file_of(name) is not None or "." not in name:
        return name
    package = home(name.rpartition(".")[0])
    path = file_of(package)
    return _reexports(path).get(name.rpartition(".")[2], package) if path else package


@cache
def _reexports(path: Path) -> dict[str, str]:
    """Names that a package offers on first use, and their homes, as it tells type checkers."""
    if path.name != "__init__.py":
        return {}
    blocks = filter(_is_for_types, ast.parse(path.read_text()).body)
    imports = (node for block in blocks for node in ast.walk(block))
    return {
        alias.name: str(node.module)
        for node in imports
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def is_facade(path: Path) -> bool:
    """Whether a file does nothing but offer names of other modules."""
    return bool(_reexports(path))


def files_of(modules: Iterable[str]) -> set[Path]:
    """Of these modules alone."""
    paths = {module: file_of(module) for module in modules}
    if missing := [module for module, path in paths.items() if path is None]:
        raise ValueError(
            f"{', '.join(missing)} have no file of ours, but what they hold must be hashed; "
            "name modules of studies or isotone by their full path"
        )
    return {path for path in paths.values() if path is not None and not is_facade(path)}


def file_of(module: str) -> Path | None:
    top, *rest = module.split(".")
    if top not in FOLDERS or module in MACHINERY:
        return None
    path = FOLDERS[top].joinpath(*rest)
    files = path.with_suffix(".py"), path / "__init__.py"
    return next((file for file in files if file.is_file()), None)


def _is_ours(module: str) -> bool:
    return module.split(".")[0] in FOLDERS


def _digest_of(path: Path) -> str:
    """Of a file and of what its imports bring, but not of what these import in turn."""
    if path.suffix != ".py":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return _sha256("\0".join([read(path).text, *sorted(_brought(path))]))


def _brought(path: Path) -> Iterator[str]:
    for module, names in read(path).imports:
        file = file_of(module)
        yield f"{names} {_sha256(read(file).text) if file else module}"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
