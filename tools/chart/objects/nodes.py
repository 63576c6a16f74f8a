"""Objects with places that values of the chart fill or switch off, and their text as a template.

`$` is the root of the values in every block, so an expression means the same everywhere.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from project.yaml_text import yaml_of

NAMESPACE: Final = "memcached-operator-system"
"""The namespace in config/, for which the chart writes that of the release."""


@dataclass(frozen=True)
class Expression:
    """A value that the template computes, as one scalar."""

    text: str


@dataclass(frozen=True)
class Block:
    """A value that the template computes, as YAML below its key."""

    text: str


@dataclass(frozen=True)
class If:
    """A value of a mapping, or an item of a list, that is written only if a condition holds, or else another one."""

    condition: str
    then: Any
    otherwise: Any = None


@dataclass(frozen=True)
class More:
    """A key of a mapping, or an item of a list: further entries from a value, if it is not empty."""

    text: str


@dataclass(frozen=True)
class Included:
    """A key of a mapping: the entries of a named template."""

    name: str


Node = Expression | Block | If | More | Included


def text_of(value: dict[Any, Any]) -> str:
    """A mapping as the text of a template."""
    return "".join(f"{line}\n" for line in _lines(value, 0))


def _lines(value: Any, indent: int) -> Iterator[str]:
    """The entries of a mapping, or the items of a list."""
    if isinstance(value, dict):
        for key, each in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from _entry(key, each, indent)
    else:
        for each in value:
            yield from _item(each, indent)


def _entry(key: Any, value: Any, indent: int) -> Iterator[str]:
    pad = " " * indent
    match key, value:
        case ((More() | Included()), _):
            yield from _more(key, indent)
        case _, If():
            yield from _branches(value, indent, partial(_entry, key))
        case _, Expression(text):
            yield f"{pad}{key}: {{{{ {text} }}}}"
        case _, Block(text):
            yield f"{pad}{key}:"
            yield f"{pad}  {{{{- {text} | nindent {indent + 2} }}}}"
        case _ if _is_plain(value):
            yield from _plain({key: value}, indent)
        case _:
            yield f"{pad}{key}:"
            yield from _lines(value, indent + 2)


def _item(value: Any, indent: int) -> Iterator[str]:
    match value:
        case More():
            yield from _more(value, indent)
        case If():
            yield from _branches(value, indent, _item)
        case Expression(text):
            yield f"{' ' * indent}- {{{{ {text} }}}}"
        case _ if _is_plain(value):
            yield from _plain([value], indent)
        case _:
            first, *rest = _lines(_with_plain_start(value), indent + 2)
            yield f"{' ' * indent}- {first.lstrip()}"
            yield from rest


def _with_plain_start(value: dict[Any, Any]) -> dict[Any, Any]:
    """A mapping that begins with a plain entry, if it has one: an action after the dash of an item is hard to read."""
    plain = {key: each for key, each in value.items() if _is_plain({key: each})}
    first = dict(list(plain.items())[:1])
    return first | {key: each for key, each in value.items() if key not in first}


def _more(node: More | Included, indent: int) -> Iterator[str]:
    pad = " " * indent
    if isinstance(node, Included):
        yield f'{pad}{{{{- include "{node.name}" $ | nindent {indent} }}}}'
    else:
        yield f"{pad}{{{{- with {node.text} }}}}"
        yield f"{pad}{{{{- toYaml . | nindent {indent} }}}}"
        yield f"{pad}{{{{- end }}}}"


def _branches(node: If, indent: int, lines: Callable[[Any, int], Iterator[str]]) -> Iterator[str]:
    pad = " " * indent
    yield f"{pad}{{{{- if {node.condition} }}}}"
    yield from lines(node.then, indent)
    if node.otherwise is not None:
        yield f"{pad}{{{{- else }}}}"
        yield from lines(node.otherwise, indent)
    yield f"{pad}{{{{- end }}}}"


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list):
        return all(map(_is_plain, value))  # pyright: ignore[reportUnknownArgumentType]
    return not isinstance(value, Node)


def _plain(value: Any, indent: int) -> Iterator[str]:
    """YAML without places, except for the namespace. Braces of a template in it stay as they are."""
    text = yaml_of(value).replace("{{", '{{ "{{" }}')
    text = re.sub(rf"(?m)(?<=: ){NAMESPACE}$", "{{ $.Release.Namespace | quote }}", text)
    for line in text.replace(NAMESPACE, "{{ $.Release.Namespace }}").splitlines():
        yield " " * indent + line if line else ""
