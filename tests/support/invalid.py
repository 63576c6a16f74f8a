"""The rows of the tables of invalid objects: a spec that violates rules, and the parts of its errors."""

import re
from typing import Any, Final, NamedTuple

Spec = dict[str, Any]


class InvalidObject(NamedTuple):
    """A spec that violates rules, and what the error must contain: field, value and remedy of each violation."""

    spec: Spec
    expected: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the row in the output of a test."""
        return f"{self.expected[0]} {self.spec}"[:300]


Table = tuple[InvalidObject, ...]
STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[([^\]]+)\]")
"""A step of a path: a field, the index of an item, or the key of an entry."""


def row(spec: Spec, *expected: str) -> InvalidObject:
    """A row with a whole spec."""
    return InvalidObject(spec, expected)


def at(path: str, value: Any, *message: str, given: Spec | None = None, **beside: Any) -> InvalidObject:
    """A row with one invalid value. Its errors name the field, and the value or, of a label or annotation, the key.

    `path` is written as in errors, such as `envs[0].name` or `resources.limits[memory]`. `given` has other fields of
    the spec, and `beside` those of the same object.
    """
    *parents, last = (int(key) if key.isdecimal() else name or key for name, key in STEP.findall(path))
    spec: Any = given or {}
    for step, each in {**beside, last: value}.items():
        spec = _with(spec, (*parents, step), each)
    field, _, key = re.sub(r"\[(\D.*)\]$", r" \1", f"spec.{path}").partition(" ")
    scalar = isinstance(value, str | int | float) and not isinstance(value, bool)
    shown = str(value) if scalar and not field.endswith(("labels", "annotations")) else ""
    return InvalidObject(spec, (field, *filter(None, (key, shown)), *message))


def _with(outer: Any, steps: tuple[str | int, ...], value: Any) -> Any:
    """The object or list with a value at a path. It may be the next item of a list."""
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        items: list[Any] = outer or []
        return [*items[:step], _with(items[step] if step < len(items) else None, rest, value), *items[step + 1 :]]
    fields: Spec = outer or {}
    return {**fields, step: _with(fields.get(step), rest, value)}
