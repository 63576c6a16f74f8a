"""The texts in the sources of a module, which users read in messages, help and advice."""

import ast
from collections.abc import Iterator
from pathlib import Path


def literals(path: Path) -> Iterator[str]:
    """The texts of a module, without its docstrings. What is inserted is `{}`."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(each.value) if isinstance(each, ast.Constant) else "{}" for each in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts | docstrings:
            yield node.value
