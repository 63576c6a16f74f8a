"""Validation rules: each is defined in Python, for the webhooks, and in CEL, for the CRD.

A rule reads the JSON of the object, so that an invalid field does not hide the errors of others.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from .field_errors import FieldError
from .values import child, is_array, is_object


class Violation(NamedTuple):
    """A violation of a rule: the path below that of the rule (`.limits[memory]`), the value, and the message."""

    below: str
    value: Any
    message: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a kind.

    `at`: the path of the value, from the object's root; `[*]` means every entry of a list or map.
    `cel`: the same rule for the CRD, where `self` is the value at `at`, or the whole object for a path in `metadata`.
    `message`: the message for CEL; `message_cel`: a messageExpression with values; `field_path`: the fieldPath for CEL.
    `reads`: for a rule on several fields, these fields, below `at`. A violation implies that all of them are set, and
    an update that does not change them may keep the violation.
    """

    at: str
    violations: Callable[[Any], Iterable[Violation]]
    cel: str
    message: str
    message_cel: str = ""
    field_path: str = ""
    reads: tuple[str, ...] = ()


def value_rule(at: str, holds: Callable[[Any], bool], cel: str, message: str) -> Rule:
    """A rule about a single value."""

    def violations(value: Any) -> Iterable[Violation]:
        return () if holds(value) else (Violation("", value, message),)

    return Rule(at, violations, cel, message)


def rule_errors(rules: Iterable[Rule], obj: Any, broken: Sequence[FieldError] = ()) -> Iterator[FieldError]:
    """All violations of all rules. A rule is skipped if its input is `broken`, that is, has a wrong type."""
    for rule in rules:
        parent, fields, steps = _steps(rule.at)
        root = child(obj, *fields)
        if root is None:
            continue
        for path, value in _found(parent, root, steps):
            if not _is_broken(path, rule.reads, broken):
                yield from (
                    FieldError(f"{path}{below}", found, message) for below, found, message in rule.violations(value)
                )


def _found(path: str, value: Any, steps: tuple[str, ...]) -> Sequence[tuple[str, Any]]:
    """The values at a path with steps, each with its own path: for `spec.limits[*]`, `spec.limits[cpu]` and so on."""
    found = [(path, value)]
    for step in steps:
        found = [pair for path, value in found for pair in _children(path, value, step) if pair[1] is not None]
    return found


@cache
def _steps(at: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The path up to its first `[*]`, the fields of this part, and the remaining steps."""
    parent = at.partition("[*]")[0]
    fields, steps = tuple(parent.split(".")), at.replace("[*]", ".*").split(".")
    return parent, fields, tuple(steps[len(fields) :])


def _children(path: str, value: Any, step: str) -> Iterable[tuple[str, Any]]:
    if step != "*":
        return [(f"{path}.{step}" if path else step, value.get(step))] if is_object(value) else []
    if is_object(value):
        return [(f"{path}[{key}]", item) for key, item in value.items()]
    return [(f"{path}[{index}]", item) for index, item in enumerate(value)] if is_array(value) else []


def _is_broken(path: str, reads: tuple[str, ...], broken: Sequence[FieldError]) -> bool:
    if not broken:
        return False
    inputs = [f"{path}.{field}" for field in reads] or [path]
    return any(_within(error.field, field) or _within(field, error.field) for error in broken for field in inputs)


def _within(field: str, parent: str) -> bool:
    return field == parent or field.startswith((f"{parent}.", f"{parent}["))
