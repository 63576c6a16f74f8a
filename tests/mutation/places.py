"""The places of a module at which a mutant changes its syntax tree."""

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, NamedTuple, cast

COMPARISONS = (ast.Eq, ast.NotEq), (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)
ARITHMETIC = (ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv), (ast.Div, ast.Mult), (ast.Mod, ast.Mult)
PAIRS = (*COMPARISONS, *ARITHMETIC, (ast.And, ast.Or))
SWAPPED: dict[type[Any], type[Any]] = {b: a for a, b in PAIRS} | dict(PAIRS)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
SKIPPED = ("annotation", "returns", "decorator_list")
"""Fields of the tree without an effect at run time, or with one that is rarely visible (`frozen=True`)."""

Key = tuple[str, str, str, int]
"""A function or class, the text of a line, an operator, and a number if these are equal. It remains if lines move."""
Change = tuple[str, Any, Callable[[], object]]
"""An operator, the node that gives the position, and what changes the tree."""


class Place(NamedTuple):
    """A change of one line."""

    key: Key
    lines: range
    column: int
    change: Callable[[], object]


def places(source: str) -> tuple[ast.Module, list[Place]]:
    """The tree of a module, and its places in the order of their lines."""
    tree, lines, numbers = ast.parse(source), source.splitlines(), Counter[tuple[str, str, str]]()
    result: list[Place] = []
    for node, scope in _nodes(tree, ""):
        for operator, at, change in _changes(node):
            first: int = at.lineno
            key = (scope, lines[first - 1].strip(), operator)
            result.append(Place((*key, numbers[key]), range(first, at.end_lineno + 1), at.col_offset, change))
            numbers[key] += 1
    return tree, sorted(result, key=lambda place: (place.lines.start, place.column, place.key))


def mutated(source: str, path: str, key: Key) -> CodeType:
    """The code of a module after one change."""
    tree, found = places(source)
    next(place for place in found if place.key == key).change()
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def _nodes(node: ast.AST, scope: str) -> Iterator[tuple[Any, str]]:
    for field, value in ast.iter_fields(node):
        for child in cast("list[Any]", value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST) and field not in SKIPPED and not _is_skipped(child):
                inner = f"{scope}.{child.name}" if isinstance(child, SCOPES) else scope
                if not (field == "slice" and isinstance(child, ast.Tuple)):  # a type such as Mapping[str, int]
                    yield child, inner
                yield from _nodes(child, inner)


def _is_skipped(node: ast.AST) -> bool:
    """True for docstrings and logging."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or ast.unparse(node).startswith("log.")
    return False


def _changes(node: Any) -> Iterator[Change]:  # noqa: C901
    match node:
        case ast.Compare():
            for i, (old, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
                yield "comparison", right, lambda i=i, old=old: _set(node.ops, i, SWAPPED[type(old)]())
        case ast.BoolOp():
            yield "and-or", node.values[1], lambda: setattr(node, "op", SWAPPED[type(node.op)]())
        case ast.BinOp() | ast.AugAssign() if type(node.op) in SWAPPED:
            right = node.right if isinstance(node, ast.BinOp) else node.value
            yield "arithmetic", right, lambda: setattr(node, "op", SWAPPED[type(node.op)]())
        case ast.If() | ast.IfExp() | ast.While():
            yield "negate", node.test, lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
        case ast.comprehension():
            for i, test in enumerate(node.ifs):
                yield "negate", test, lambda i=i, test=test: _set(node.ifs, i, ast.UnaryOp(ast.Not(), test))
        case ast.UnaryOp(op=ast.Not()):
            yield "drop-not", node, lambda: setattr(node, "operand", ast.UnaryOp(ast.Not(), node.operand))
        case ast.Constant():
            for operator, value in _other_values(node.value):
                yield operator, node, lambda value=value: setattr(node, "value", value)
        case ast.Return(value=ast.AST()) if not _is_nothing(node.value):
            yield "return-none", node, lambda: setattr(node, "value", ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
            yield "drop-call", node, lambda: setattr(node, "value", ast.Constant(None))
        case ast.Tuple(ctx=ast.Load()) | ast.List(ctx=ast.Load()) if len(node.elts) > 1:
            for i, element in enumerate(node.elts):
                yield "drop-element", element, lambda i=i: node.elts.pop(i)
        case ast.Dict():
            for i, value in enumerate(node.values):
                yield "drop-entry", value, lambda i=i: (node.keys.pop(i), node.values.pop(i))
        case _:
            return


def _is_nothing(value: ast.expr | None) -> bool:
    """True for None, and for False, which rarely differs from it."""
    return isinstance(value, ast.Constant) and (value.value is None or value.value is False)


def _other_values(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, bool):
        yield "boolean", not value
    elif isinstance(value, int | float):
        yield "plus-one", value + 1
        yield "minus-one", value - 1
    elif isinstance(value, str):
        yield "text" if " " in value else "name", f"{value}~"


def _set(items: list[Any], index: int, value: object) -> None:
    items[index] = value
