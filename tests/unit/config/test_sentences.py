"""No code reads a sentence that this project writes.

Texts are matched with words of Kubernetes, kubectl and memcached only. None of them is in a sentence of the sources.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from unit.config.rendered import ROOT

READERS: Final = ("kubectl_memcached", "memcached_operator", "memcached_webhooks")
FOLDERS: Final = ("agent", "api", "operator", "plugin", "webhooks")
METHODS: Final = re.compile(
    r"compile|search|(?:full)?match|sub|split|find(?:all|iter)?|(?:starts|ends)with|remove\w+|r?partition|index|replace|count"
)
"""Of texts, patterns and the module `re`: a text is matched with their arguments."""
LITERAL: Final = re.compile(r"[^\\^$|?*+()\[\]{}\n]{8,}")
"""A part of a pattern without special characters."""
REGULAR: Final = re.compile(r"\\|\||\(\?")
"""A part of a regular expression."""
OTHERS: Final = re.compile(
    r' does not exist|TLS handshake|"? ?not found|missing required label|must be |.* secret key: |slab class |'
    r".* not allowed| is being deleted"
)
"""Words of Kubernetes, kubectl or memcached that a sentence of the project has, too."""
BOUND: Final = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.comprehension)

Names = dict[str, ast.expr]
"""Names in a scope: their values, or what they are items of."""


@cache
def modules() -> dict[str, ast.Module]:
    """The sources by the name of the module."""
    found = {path.relative_to(ROOT / folder): path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    return {".".join(name.with_suffix("").parts): ast.parse(path.read_text()) for name, path in found.items()}


def bound(nodes: Iterable[ast.AST]) -> Names:
    """The names that statements bind."""
    found: Names = {}
    for node in nodes:
        if isinstance(node, BOUND):
            value = node.iter if isinstance(node, ast.For | ast.comprehension) else node.value
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
            found |= dict.fromkeys(names, value) if value else {}
    return found


@cache
def constants(module: str) -> Names:
    """The constants of a module, also those that it imports."""
    body = modules()[module].body if module in modules() else []
    imports = [(node.module or "", each) for node in body if isinstance(node, ast.ImportFrom) for each in node.names]
    imported = ((each.asname or each.name, constants(source).get(each.name)) for source, each in imports)
    found = {name: value for name, value in imported if value} | bound(body)
    for source, each in imports:
        of_module = modules().get(f"{source}.{each.name}", ast.Module([], []))
        found |= {f"{each.asname or each.name}.{name}": value for name, value in bound(of_module.body).items()}
    return found


def matched(tree: ast.AST) -> Iterator[ast.expr]:
    """What texts are compared or matched with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and METHODS.fullmatch(node.func.attr):
            yield from node.args
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn | ast.Eq | ast.NotEq):
            yield from (node.left, *node.comparators)
        elif isinstance(node, ast.MatchValue):
            yield node.value


def texts(node: ast.AST, names: Names, depth: int = 3) -> Iterator[ast.Constant]:
    """The texts in an expression, and in the values of its names."""
    parts: Iterable[ast.AST] = [] if isinstance(node, ast.Attribute) else ast.iter_child_nodes(node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node
    elif isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in names and depth:
        parts, depth = [names[ast.unparse(node)]], depth - 1
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        parts = [node.func.value, *(node.args if METHODS.fullmatch(node.func.attr) else [])]
    yield from (text for each in parts for text in texts(each, names, depth))


@cache
def patterns() -> dict[ast.AST, tuple[str, str]]:
    """The texts with which the readers match, and their modules."""
    found: dict[ast.AST, tuple[str, str]] = {}
    for module, tree in modules().items():
        functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
        for scope in (*functions, tree) if module.startswith(READERS) else ():
            names = constants(module) | (bound(ast.walk(scope)) if scope is not tree else {})
            found |= {each: (str(each.value), module) for node in matched(scope) for each in texts(node, names)}
    return found


def sentences() -> Iterator[str]:
    """The other texts of at least four words, and parts of one. What is inserted is `{}`."""
    for tree in modules().values():
        inserted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
        others = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)} | patterns().keys()
        parts = {part for node in inserted for part in node.values} | others
        found = [[each] for each in ast.walk(tree) if isinstance(each, ast.Constant) and each not in parts]
        for values in (*found, *(node.values for node in inserted if not others & {*node.values})):
            strings = (each.value if isinstance(each, ast.Constant) else "{}" for each in values)
            text = "".join(each for each in strings if isinstance(each, str))
            yield from [text] if len(text.split()) >= 4 and not REGULAR.search(text) else []


def test_no_text_is_matched_with_words_of_a_sentence() -> None:
    written = "\n".join(sentences())
    parts = {(words, module) for text, module in patterns().values() for words in LITERAL.findall(text)}
    found = {(words, module) for words, module in parts if " " in words.strip() and words in written}
    assert {(words, module) for words, module in found if not OTHERS.fullmatch(words)} == set()
