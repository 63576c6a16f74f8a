"""Records which lines a test executes. A call before each statement is much faster than a tracer."""

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any, Final, cast

from mutation.replacing import before_import

ROOTS: Final = ("api", "operator", "webhooks", "agent")
"""Folders with the code that is changed and recorded."""
BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")
HIT: Final = "__mutation_hit__"

Masks = dict[str, int]
"""The lines of files: bit n is line n."""


def mask(lines: range) -> int:
    """The mask of consecutive lines."""
    return (1 << lines.stop) - (1 << lines.start)


class Recorder:
    """Records the lines of the modules that are imported after its creation."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._spans: list[tuple[str, int]] = []
        self._hit: set[int] = set()
        self._roots = tuple(f"{tree / root}/" for root in ROOTS)
        setattr(builtins, HIT, self._hit.add)
        before_import(lambda path: self._code(Path(path)) if path.startswith(self._roots) else None)

    def take(self) -> Masks:
        """The lines that were executed since the last call."""
        masks: Masks = {}
        for path, lines in map(self._spans.__getitem__, self._hit):
            masks[path] = masks.get(path, 0) | lines
        self._hit.clear()
        return masks

    def _code(self, path: Path) -> CodeType:
        tree, name = ast.parse(path.read_text()), str(path.relative_to(self._tree))
        for node in list(ast.walk(tree)):
            self._instrument(node, name)
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)

    def _instrument(self, node: ast.AST, path: str) -> None:
        if isinstance(node, ast.Lambda):
            call = self._call(path, mask(_range(node.body)))
            node.body = ast.Subscript(ast.Tuple([call, node.body], ast.Load()), ast.Constant(1), ast.Load())
            return
        for name in ("body", "orelse", "finalbody"):
            block: Any = getattr(node, name, None)
            if isinstance(block, list):
                statements = cast("list[ast.stmt]", block)
                statements[:] = [new for each in statements for new in self._recorded(each, path)]

    def _recorded(self, statement: ast.stmt, path: str) -> Iterator[ast.stmt]:
        # A docstring and imports from __future__ are only valid at the start.
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)) and not (
            isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        ):
            call = ast.Expr(self._call(path, _own_lines(statement)))
            yield ast.copy_location(call, statement)
        yield statement

    def _call(self, path: str, lines: int) -> ast.Call:
        self._spans.append((path, lines))
        return ast.Call(ast.Name(HIT, ast.Load()), [ast.Constant(len(self._spans) - 1)], [])


def _own_lines(statement: ast.stmt) -> int:
    """The lines of a statement without those of the statements in it."""
    inner = 0
    for child in _inner(statement):
        inner |= mask(_range(child))
    return mask(_range(statement)) & ~inner | 1 << statement.lineno


def _inner(node: ast.AST) -> Iterator[ast.stmt]:
    for name in BLOCKS:
        block: Any = getattr(node, name, None)
        for child in cast("list[ast.AST]", block) if isinstance(block, list) else []:
            if isinstance(child, ast.stmt):
                yield child
            else:
                yield from _inner(child)


def _range(node: ast.stmt | ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)
