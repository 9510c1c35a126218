"""Mutants: a module of the package with one node of one function, or of one constant, changed.

A mutant is put into a running process without touching a file: the code of the function is
exchanged in place, so that everyone who imported it has it. Constants are computed anew, with
those of the module that are made of them, and given to all modules that hold them. Bodies of
classes, default arguments, decorators and annotations are not changed.
"""

from __future__ import annotations

import ast
import copy
import gc
import hashlib
import importlib
import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType, ModuleType

from bench.mutation.operators import changes

_SPOKEN = ("__str__", "__repr__", "_repr_html_")  # functions that only say something


@dataclass(frozen=True)
class Mutant:
    """One change.

    Parameters
    ----------
    module : its name
    function : qualified name of the outermost function, or name of the constant
    before, after : the code that is changed, and what it becomes
    nth : which of several that read the same
    lines : where it is today, from the first line of its statement on
    place : the number of the node, and of the change, in a walk over the tree of the module
    """

    module: str
    function: str
    before: str
    after: str
    nth: int
    lines: tuple[int, int]
    place: tuple[int, int]

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What stays the same when other lines change."""
        return self.module, self.function, self.before, self.after, self.nth

    @property
    def rank(self) -> float:
        """A number in [0, 1) that is drawn from the key alone: a sample that edits hardly move."""
        digest = hashlib.sha256("\0".join(map(str, self.key)).encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2.0**64

    def __str__(self) -> str:
        which = f" (nth = {self.nth})" if self.nth else ""
        place = f"{self.module}:{self.lines[1]} {self.function}"
        return f"{place}: {self.before}  =>  {self.after}{which}"


def find_mutants(module: str) -> list[Mutant]:
    """All mutants of a module."""
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    for k, (owner, node, start) in enumerate(_nodes(_tree(module))):
        for n, other in enumerate(changes(node)):
            before, after = ast.unparse(node), ast.unparse(ast.fix_missing_locations(other))
            key = owner, before, after
            lines = start, node.end_lineno  # type: ignore[attr-defined]
            found.append(Mutant(module, *key, seen[key], lines, (k, n)))
            seen[key] += 1
    return found


def put(mutant: Mutant) -> None:
    """Let this process run the mutant."""
    tree = _tree(mutant.module)
    number, change = mutant.place
    owner, node, _ = list(_nodes(tree))[number]
    other = copy.deepcopy(list(changes(node))[change])
    ast.fix_missing_locations(ast.copy_location(other, node))
    _Exchange(node, other).visit(tree)
    module = importlib.import_module(mutant.module)
    if (str(module.__file__), owner) in functions():
        _put_function(module, owner, compile(tree, str(module.__file__), "exec"))
    else:
        _put_constant(module, owner, tree)


def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def _nodes(tree: ast.Module) -> Iterator[tuple[str, ast.AST, int]]:
    """What may be changed, with the outermost function or the constant, and the statement's line.

    Only what has a place in the text: operators and contexts have none.
    """
    for statement in tree.body:
        name = _assigned(statement)
        parts = _within(statement, statement.lineno) if name else ()
        yield from ((name, *part) for part in parts)
        yield from _in_functions(statement, "")


def _assigned(statement: ast.stmt) -> str:
    """The constant that a statement of a module sets."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    target = statement.target if isinstance(statement, ast.AnnAssign) else target
    return target.id if isinstance(target, ast.Name) else ""


def _in_functions(statement: ast.stmt, prefix: str) -> Iterator[tuple[str, ast.AST, int]]:
    if isinstance(statement, ast.ClassDef):
        for inner in statement.body:
            yield from _in_functions(inner, f"{prefix}{statement.name}.")
    elif isinstance(statement, ast.FunctionDef) and not _speaks(statement.name):
        for inner in statement.body:
            for part in _changeable(inner, inner.lineno):
                yield prefix + statement.name, *part


def _speaks(name: str) -> bool:
    return name in _SPOKEN or name.lstrip("_").startswith("describe")


def _changeable(node: ast.AST, start: int) -> Iterator[tuple[ast.AST, int]]:
    """A node and those within, but not what is said or annotated."""
    start = node.lineno if isinstance(node, ast.stmt) else start
    if hasattr(node, "lineno"):
        yield node, start
    if not isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
        yield from _within(node, start)


def _within(node: ast.AST, start: int) -> Iterator[tuple[ast.AST, int]]:
    skipped = node.annotation if isinstance(node, ast.AnnAssign) else None
    for child in ast.iter_child_nodes(node):
        if child is not skipped and not _is_idle(child):
            yield from _changeable(child, start)


def _is_idle(node: ast.AST) -> bool:
    """Defaults of an inner function, and the `strict` of a zip, which only guards against us."""
    return isinstance(node, ast.arguments) or (
        isinstance(node, ast.keyword) and node.arg == "strict"
    )


class _Exchange(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        found: ast.AST = self.new if node is self.old else self.generic_visit(node)
        return found


@cache
def functions() -> dict[tuple[str, str], list[FunctionType]]:
    """All functions of this process by file and qualified name, wrapped or not.

    Found once, before any mutant: a walk over all objects takes longer than most tests.
    """
    found: dict[tuple[str, str], list[FunctionType]] = {}
    for each in gc.get_objects():
        if type(each) is FunctionType:
            key = each.__code__.co_filename, each.__code__.co_qualname
            found.setdefault(key, []).append(each)
    return found


def _put_function(module: ModuleType, qualified: str, code: CodeType) -> None:
    new = {each.co_firstlineno: each for each in _codes(code) if each.co_qualname == qualified}
    for function in functions()[str(module.__file__), qualified]:
        function.__code__ = new[function.__code__.co_firstlineno]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _put_constant(module: ModuleType, name: str, tree: ast.Module) -> None:
    """Set the constant, and those of the module that are made of it."""
    changed = {name}
    for statement in tree.body:
        target = _assigned(statement)
        if target == name or (target and changed & _named(statement)):
            changed.add(target)
            _set(module, target, statement)


def _named(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _set(module: ModuleType, name: str, statement: ast.stmt) -> None:
    old = vars(module).get(name)
    exec(compile(ast.Module([statement], []), str(module.__file__), "exec"), vars(module))
    for other in list(sys.modules.values()):
        if getattr(other, "__dict__", {}).get(name) is old:
            setattr(other, name, vars(module)[name])
