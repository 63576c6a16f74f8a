"""Edits of sources that name a definition and compare syntax: layout, comments and the file do not matter."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import dedent

import msgspec


class EditError(Exception):
    """An edit does not apply; the message says why."""


class Edit(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename={"within": "in"}):
    """Replace one expression, or consecutive statements, of a definition.

    `within` (`in` in YAML): qualified name of a function, method, class or constant, such as `Applier._change`. If
    several modules define it: `apply:Applier._change`, with the end of the module's name. `old` must occur exactly once
    in it. `new`: empty to remove statements.
    """

    within: str
    old: str
    new: str = ""


def apply_edit(edit: Edit, sources: Sequence[Path]) -> tuple[Path, str]:
    """Apply an edit to the modules in these directories: the file and its new text. Raises EditError."""
    module, _, name = edit.within.rpartition(":")
    found = [
        (path, tree, node)
        for path, tree in _modules(sources, module, name)
        for node in _definitions(tree, name.split("."))
    ]
    if len(found) != 1:
        places = ", ".join(path.name for path, _, _ in found) or "none"
        raise EditError(f"{edit.within}: want one definition, found {len(found)} ({places})")
    path, tree, node = found[0]
    if (count := _replace(node, _parsed(edit.old), _parsed(edit.new))) != 1:
        raise EditError(f"{edit.within} in {path.name}: want one occurrence, found {count}, of\n{edit.old}")
    return path, ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _parsed(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(dedent(text)).body
    except SyntaxError as error:
        raise EditError(f"not Python: {error}:\n{text}") from error


def _modules(sources: Sequence[Path], module: str, name: str) -> Iterator[tuple[Path, ast.Module]]:
    """The modules that may define a name."""
    last = name.rpartition(".")[2]
    for path in sorted(path for root in sources for path in root.rglob("*.py")):
        text = path.read_text()
        if last in text and f".{'.'.join(path.with_suffix('').parts)}".endswith(f".{module}" if module else ""):
            yield path, ast.parse(text)


def _definitions(node: ast.AST, names: Sequence[str]) -> Iterator[ast.AST]:
    """The definitions of a qualified name, directly in the body of a node or of its conditions."""
    for child in ast.iter_child_nodes(node):
        if names[0] not in _names_of(child):
            if isinstance(child, (ast.If, ast.Try, ast.With)):
                yield from _definitions(child, names)
        elif len(names) == 1:
            yield child
        else:
            yield from _definitions(child, names[1:])


def _names_of(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return (name,)
        case _:
            return ()


def _replace(node: ast.AST, old: list[ast.stmt], new: list[ast.stmt]) -> int:
    """Replace every occurrence within a node; returns their number."""
    match old, new:
        case [ast.Expr(value=before)], [ast.Expr(value=after)]:
            replacement = _Expressions(ast.dump(before), after)
            replacement.generic_visit(node)
            return replacement.count
        case _:
            return sum(_replace_statements(each, old, new) for each in list(ast.walk(node)))


class _Expressions(ast.NodeTransformer):
    """Replaces expressions."""

    def __init__(self, old: str, new: ast.expr) -> None:
        self.count = 0
        self._old = old
        self._new = new

    def visit(self, node: ast.AST) -> ast.AST:
        """Replace this expression, or look into it."""
        if isinstance(node, ast.expr) and ast.dump(node) == self._old:
            self.count += 1
            return self._new
        return self.generic_visit(node)


def _replace_statements(node: ast.AST, old: list[ast.stmt], new: list[ast.stmt]) -> int:
    """Replace statements directly in the bodies of a node."""
    expected, count = [ast.dump(each) for each in old], 0
    for name in ("body", "orelse", "finalbody"):
        statements: list[ast.stmt] = getattr(node, name, [])
        if not isinstance(statements, list):  # pyright: ignore[reportUnnecessaryIsInstance] - the body of a lambda
            continue
        for start in reversed(range(len(statements) - len(old) + 1)):
            if [ast.dump(each) for each in statements[start : start + len(old)]] == expected:
                statements[start : start + len(old)] = new or [ast.Pass()]
                count += 1
    return count
