"""Specs close to the limits of the rules: rows of the rules' tables with small changes, and limits of the schemas."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from random import Random
from typing import Any, Final, cast

from faults.schemas import spec_schema
from memcached_api.kind import Kind
from memcached_api.memcached.types import MEMCACHED
from memcached_operator.kube.resource import Object
from support.fields.leaves import Path, build, smallest
from support.fields.places import parts
from support.placing_edges import EDGES
from support.rule_tables import tables_of

Draft = Callable[[Random], Object]
"""Draws fields of a spec."""
WITHIN: Final = 0.85
"""Probability that a change of an object or a list is one of something within it."""
OTHERS: Final = ("", "", "0", "A", "-", "_", ".", ":", "/", "\n", "ä", "\u212a")
"""What replaces a character of a text, or is added to it."""
MAPS: Final = ("labels", "annotations", "matchLabels", "nodeSelector", "limits", "requests")
"""Objects whose keys are chosen by the user."""


@dataclass(frozen=True)
class Rows:
    """The specs of a kind's tables: `invalid` and `valid` ones, and those of placing_edges.

    `values`: the values of each field in all specs, by path.
    """

    invalid: Sequence[Object]
    valid: Sequence[Object]
    edges: Sequence[Object]

    @cached_property
    def values(self) -> Mapping[Path, Sequence[Any]]:
        found: dict[Path, list[Any]] = {}
        for path, value in (pair for spec in (*self.invalid, *self.valid, *self.edges) for pair in parts(spec)):
            found.setdefault(path, []).append(value)
        return found


def near_rows(kind: Kind[Any]) -> list[Draft]:
    """Drafts of each row of a kind with none, one or two changes."""
    tables = tables_of(kind)
    invalid = [row.spec for row in (*tables.rules, *tables.types)]
    edges = [spec for spec, _ in EDGES.values()] if kind is MEMCACHED else []
    rows = Rows(invalid, list(tables.valid.values()), edges)
    drafts = (((0, 0, 1, 2), rows.invalid), ((1, 1, 1, 2), rows.valid), ((1,), rows.edges))
    return [partial(_near_row, rows, spec, count) for counts, specs in drafts for count in counts for spec in specs]


def _near_row(rows: Rows, spec: Object, changes: int, rng: Random) -> Object:
    for _ in range(changes):
        spec = changed_part(rng, spec, partial(_near, rows))
    return spec


def changed_part(rng: Random, value: Any, change: Callable[[Random, Any, Path], Any], path: Path = ()) -> Any:
    """A value with a change of itself or of something within it. The change gets the path of what it changes."""
    if isinstance(value, dict) and value and rng.random() < WITHIN:
        fields = cast("Object", value)
        name = rng.choice(list(fields))
        return {**fields, name: changed_part(rng, fields[name], change, (*path, name))}
    if isinstance(value, list) and value and rng.random() < WITHIN:
        items = cast("list[Any]", value)
        at = rng.randrange(len(items))
        return [*items[:at], changed_part(rng, items[at], change, (*path, "[]")), *items[at + 1 :]]
    return change(rng, value, path)


def _near(rows: Rows, rng: Random, value: Any, path: Path) -> Any:
    """A value that differs a little, or one that another row has in this place."""
    other = rng.choice(rows.values.get(path, [value]))
    if isinstance(value, dict):
        return _near_object(rng, cast("Object", value), other, renamed=path[-1:] and path[-1] in MAPS)
    if isinstance(value, list):
        return _near_list(rng, cast("list[Any]", value), other)
    if rng.random() < 0.3:
        return other
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice((-1, 1))
    return near_text(rng, value) if isinstance(value, str) else other


def _near_object(rng: Random, fields: Object, other: Any, *, renamed: Any) -> Object:
    """The object without a field, with one of another object, or, if the user chooses its keys, with another key."""
    name = rng.choice(list(fields)) if fields else ""
    rest = {key: value for key, value in fields.items() if key != name}
    if renamed and fields:
        return {**rest, near_text(rng, name): fields[name]}
    if not isinstance(other, dict) or not other or rng.random() < 0.2:
        return rest
    found = cast("Object", other)
    added = rng.choice(list(found))
    return {**fields, added: found[added]}


def _near_list(rng: Random, items: list[Any], other: Any) -> list[Any]:
    """The list with one item less or more, which may be one of another list, or with only one item."""
    more = cast("list[Any]", other) if isinstance(other, list) else items
    added = [*items, rng.choice(more)] if more else items
    alone = [rng.choice(items)] if items else items
    return rng.choice((items[1:], items[:-1], alone, [*items, *items[-1:]], added, added, more))


def near_text(rng: Random, text: str) -> str:
    """The text with a number one higher or lower, or another character at one position, one more, or one less."""
    numbers = list(re.finditer("[0-9]+", text))
    if numbers and rng.random() < 0.5:
        found = rng.choice(numbers)
        number = max(int(found[0]) + rng.choice((-1, 1)), 0)
        return f"{text[: found.start()]}{number:0{len(found[0])}}{text[found.end() :]}"
    at = rng.choice((0, len(text), rng.randint(0, len(text))))
    return text[:at] + rng.choice(OTHERS) + text[at + rng.randint(0, 1) :]


def at_limits_of_schema(kind: Kind[Any]) -> list[Draft]:
    """Drafts of the smallest specs in which one field is at a limit of the schema, or beyond it."""
    schema = spec_schema(kind.group, kind.plural)
    specs = [build(schema, path, value) for path, value in _limits(schema, ())]
    return [lambda _, spec=spec: spec for spec in specs]


AROUND: Final[Mapping[str, Callable[[Mapping[str, Any], Any], tuple[Any, ...]]]] = {
    "enum": lambda _, values: (values[0], f"{values[0]}a"),
    "minimum": lambda _, limit: (limit, limit - 1),
    "maximum": lambda _, limit: (limit, limit + 1),
    "minLength": lambda _, limit: ("a" * (limit - 1),),
    "maxLength": lambda _, limit: ("a" * limit, "a" * (limit + 1)),
    "maxItems": lambda schema, limit: tuple([smallest(schema["items"])] * size for size in (limit, limit + 1)),
    "maxProperties": lambda schema, limit: tuple(
        {f"a{number}": smallest(schema["additionalProperties"]) for number in range(size)}
        for size in (limit, limit + 1)
    ),
}
"""Values at a limit of a schema and beyond it, by the name of the limit."""


def _limits(schema: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, Any]]:
    """Every path with a limit, with each value around it."""
    for name, around in AROUND.items():
        if name in schema:
            yield from ((path, value) for value in around(schema, schema[name]))
    for name, inner in schema.get("properties", {}).items():
        yield from _limits(inner, (*path, name))
    for name, step in (("items", "[]"), ("additionalProperties", "a")):
        if name in schema:
            yield from _limits(schema[name], (*path, step))
