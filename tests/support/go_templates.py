"""Renders the templates of our chart: the part of Go's text/template and of Helm's functions that they use.

Anything else is an error, as is a name that does not exist, for which Helm would write an empty text. `make test-chart`
compares the results with those of Helm.
"""

import operator
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[()|]|[^\s()|]+')
BLOCKS = ("if", "with", "range", "define")


class TemplateError(Exception):
    """A template that the chart must not contain, or that Helm would reject."""


@dataclass
class Block:
    """`if`, `with`, `range` or `define`: its expression and what it contains, with that after `else`."""

    keyword: str = ""
    expression: str = ""
    body: list[Any] = field(default_factory=list[Any])
    otherwise: list[Any] | None = None

    @property
    def current(self) -> list[Any]:
        """Where the next part belongs."""
        return self.body if self.otherwise is None else self.otherwise


def parse(text: str) -> list[Any]:
    """The parts of a template: texts, blocks, and expressions as tuples of one string."""
    stack = [Block()]
    for part in _parts(text):
        if isinstance(part, str):
            stack[-1].current.append(part)
            continue
        keyword, _, rest = part[0].partition(" ")
        if keyword.startswith("/*"):
            continue
        if keyword in BLOCKS:
            stack.append(Block(keyword, rest))
        elif keyword == "else" and not rest:
            stack[-1].otherwise = []
        elif keyword == "end":
            closed = stack.pop()
            stack[-1].current.append(closed)
        else:
            stack[-1].current.append(part)
    if len(stack) != 1:
        raise TemplateError(f"a block is not closed: {stack[-1].keyword} {stack[-1].expression}")
    return stack[0].body


def _parts(text: str) -> Iterator[str | tuple[str]]:
    start, trim = 0, False
    for found in ACTION.finditer(text):
        before = text[start : found.start()]
        before = before.lstrip() if trim else before
        yield before.rstrip() if found[1] else before
        yield (found[2],)
        start, trim = found.end(), bool(found[3])
    rest = text[start:]
    yield rest.lstrip() if trim else rest


class Templates:
    """Some templates, which may include each other's definitions."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.parsed = {name: parse(text) for name, text in texts.items()}
        blocks = [each for parts in self.parsed.values() for each in parts if isinstance(each, Block)]
        self.named = {TOKEN.findall(each.expression)[0][1:-1]: each for each in blocks if each.keyword == "define"}

    def render(self, name: str, root: Mapping[str, Any]) -> str:
        """The text of one template. Raises TemplateError."""
        return self._text(self.parsed[name], root, root)

    def _text(self, parts: list[Any], dot: Any, root: Any) -> str:
        return "".join(self._part(each, dot, root) for each in parts)

    def _part(self, part: Any, dot: Any, root: Any) -> str:
        match part:
            case str():
                return part
            case Block():
                return self._block(part, dot, root)
            case (expression,):
                return _printed(self.value(expression, dot, root))
            case _:
                raise TemplateError(str(part))

    def _block(self, block: Block, dot: Any, root: Any) -> str:
        if block.keyword == "define":
            return ""
        value = self.value(block.expression, dot, root)
        if not value:
            return self._text(block.otherwise or [], dot, root)
        match block.keyword:
            case "range":
                return "".join(self._text(block.body, each, root) for each in value)
            case "with":
                return self._text(block.body, value, root)
            case _:
                return self._text(block.body, dot, root)

    def value(self, expression: str, dot: Any, root: Any) -> Any:
        """The value of an expression."""
        tokens: list[str] = TOKEN.findall(expression)
        value = self._pipeline(tokens, dot, root)
        if tokens:
            raise TemplateError(f"{expression}: unexpected {tokens[0]}")
        return value

    def _pipeline(self, tokens: list[str], dot: Any, root: Any) -> Any:
        piped: tuple[Any, ...] = ()
        while True:
            piped = (self._command(tokens, dot, root, piped),)
            if not tokens or tokens[0] != "|":
                return piped[0]
            tokens.pop(0)

    def _command(self, tokens: list[str], dot: Any, root: Any, piped: tuple[Any, ...]) -> Any:
        name = tokens[0] if tokens else ""
        is_function = bool(re.fullmatch(r"[A-Za-z]+", name))
        if is_function:
            tokens.pop(0)
        operands: list[Any] = []
        while tokens and tokens[0] not in ("|", ")"):
            operands.append(self._operand(tokens, dot, root))
        if not is_function:
            if len(operands) != 1 or piped:
                raise TemplateError(f"{name}: not one value")
            return operands[0]
        if name == "include":
            return self._text(self.named[operands[0]].body, operands[1], operands[1])
        if name not in FUNCTIONS:
            raise TemplateError(f"{name}: unknown function")
        return FUNCTIONS[name](*operands, *piped)

    def _operand(self, tokens: list[str], dot: Any, root: Any) -> Any:
        token = tokens.pop(0)
        if token == "(":
            value = self._pipeline(tokens, dot, root)
            tokens.pop(0)
            return value
        if token.startswith('"'):
            return token[1:-1]
        if token.isdecimal():
            return int(token)
        return _field(root if token.startswith("$") else dot, token)


def _field(value: Any, path: str) -> Any:
    if not re.fullmatch(r"\.|\$|\$?(\.\w+)+", path):
        raise TemplateError(f"{path}: unknown operand")
    for name in path.removeprefix("$").split("."):
        if name:
            try:
                value = value[name]
            except (KeyError, TypeError) as error:
                raise TemplateError(f"{path}: does not exist") from error
    return value


def _printed(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (str, int)):
        raise TemplateError(f"{value!r}: cannot be printed")
    return str(value)


def _quoted(value: Any) -> str:
    text = _printed(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=False, allow_unicode=True).removesuffix("\n").removesuffix("\n...")


def _formatted(text: str, *values: Any) -> str:
    return text % tuple(map(_printed, values))


def _and(*values: Any) -> Any:
    return next((each for each in values if not each), values[-1])


def _or(*values: Any) -> Any:
    return next((each for each in values if each), values[-1])


def _default(default: Any, value: Any) -> Any:
    return value or default


def _dict(*items: Any) -> dict[str, Any]:
    return dict(zip(items[::2], items[1::2], strict=True))


def _join(separator: str, items: list[Any]) -> str:
    return separator.join(map(_printed, items))


def _nindent(count: int, text: str) -> str:
    return "\n" + textwrap.indent(text, " " * count)


def _replace(old: str, new: str, text: str) -> str:
    return text.replace(old, new)


def _trunc(length: int, text: str) -> str:
    return text[:length]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and": _and,
    "default": _default,
    "dict": _dict,
    "eq": operator.eq,
    "index": operator.getitem,
    "join": _join,
    "len": len,
    "ne": operator.ne,
    "nindent": _nindent,
    "not": operator.not_,
    "or": _or,
    "printf": _formatted,
    "quote": _quoted,
    "replace": _replace,
    "toYaml": _yaml,
    "trunc": _trunc,
}
