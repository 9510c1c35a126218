"""Operators: what a mutant of an expression or of a statement may be.

Each takes a node of a syntax tree and gives what may stand in its place. Texts are never changed,
nor what is said in an error or printed: a certificate does not depend on them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

Operator = Callable[[ast.AST], Iterator[ast.AST]]

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_NAMES = {
    "min": "max",
    "minimum": "maximum",
    "ones": "zeros",
    "all": "any",
    "floor": "ceil",
    "logical_and": "logical_or",
    "left": "right",
    "steepest": "flattest",
    "subtract": "add",
}
_SWAPPED = _NAMES | {new: old for old, new in _NAMES.items() if old != "subtract"}
_UNWRAPPED = ("abs", "sorted", "rint", "nextafter", "sqrt", "away_from_zero", "toward_zero")
_OUTWARD = ("add", "multiply", "divide")  # of `isotone.rounding`


def compare(node: ast.AST) -> Iterator[ast.AST]:
    """< becomes ≤ and ≥, == becomes !=, and so on."""
    if isinstance(node, ast.Compare):
        for k, found in enumerate(node.ops):
            for other in _COMPARISONS[type(found)]:
                ops = [*node.ops[:k], other(), *node.ops[k + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)


def compute(node: ast.AST) -> Iterator[ast.AST]:
    """+ becomes -, * becomes /, and so on; a text is not added to."""
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        if not (_is_text(node.left) or _is_text(node.right)):
            yield ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
        yield ast.AugAssign(node.target, _ARITHMETIC[type(node.op)](), node.value)


def drop_sign(node: ast.AST) -> Iterator[ast.AST]:
    """-x, ~x and `not x` become x."""
    if isinstance(node, ast.UnaryOp):
        yield node.operand


def drop_condition(node: ast.AST) -> Iterator[ast.AST]:
    """`a and b` becomes a, and becomes b; the same with `or`."""
    if isinstance(node, ast.BoolOp):
        for k in range(len(node.values)):
            rest = [*node.values[:k], *node.values[k + 1 :]]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def negate(node: ast.AST) -> Iterator[ast.AST]:
    """A condition that is a plain value is negated."""
    if isinstance(node, ast.If | ast.IfExp) and isinstance(node.test, ast.Name | ast.Call):
        turned = ast.UnaryOp(ast.Not(), node.test)
        kind = type(node)
        yield kind(turned, node.body, node.orelse)  # type: ignore[arg-type]


def change_constant(node: ast.AST) -> Iterator[ast.AST]:
    """A number grows and shrinks by one; True becomes False."""
    if not isinstance(node, ast.Constant):
        return
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)


def call_another(node: ast.AST) -> Iterator[ast.AST]:
    """`min` becomes `max`, `ones` becomes `zeros`, `abs(x)` becomes x, sums are rounded down."""
    if not isinstance(node, ast.Call):
        return
    name = _name(node.func)
    if name in _SWAPPED:
        yield ast.Call(_renamed(node.func, _SWAPPED[name]), node.args, node.keywords)
    if name in _UNWRAPPED:
        yield node.args[0]
    if isinstance(node.func, ast.Name) and name in _OUTWARD and len(node.args) == 2:
        yield _inward(node)


def turn_around(node: ast.AST) -> Iterator[ast.AST]:
    """Infinity becomes minus infinity."""
    if isinstance(node, ast.Attribute) and node.attr == "inf":
        yield ast.UnaryOp(ast.USub(), node)


def drop_statement(node: ast.AST) -> Iterator[ast.AST]:
    """A check is left out, a loop ends at once."""
    if isinstance(node, ast.Raise) or _is_call(node):
        yield ast.Pass()
    elif isinstance(node, ast.Continue):
        yield ast.Break()


OPERATORS: tuple[Operator, ...] = (
    *(compare, compute, drop_sign, drop_condition, negate),
    *(change_constant, call_another, turn_around, drop_statement),
)


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Everything that may stand in the place of a node."""
    for operator in OPERATORS:
        yield from operator(node)


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _renamed(node: ast.expr, name: str) -> ast.expr:
    if isinstance(node, ast.Attribute):
        return ast.Attribute(node.value, name, node.ctx)
    return ast.Name(name, ast.Load())


def _inward(call: ast.Call) -> ast.AST:
    """-add(-a, -b) is a lower bound on a + b, and -multiply(-a, b) one on a · b."""
    first, second = call.args
    second = _minus(second) if _name(call.func) == "add" else second
    return _minus(ast.Call(call.func, [_minus(first), second], call.keywords))


def _minus(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Constant):
        return ast.Constant(-node.value)  # type: ignore[operator]
    negative = ast.Attribute(ast.Name("np", ast.Load()), "negative", ast.Load())
    return ast.Call(negative, [node], [])
