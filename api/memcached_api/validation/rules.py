"""Validation rules: each is defined in Python, for the webhooks, and in CEL, for the CRD.

A rule reads the JSON of the object, so that an invalid field does not hide the errors of others.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from memcached_api.validation.field_errors import FieldError
from memcached_api.values import is_array, is_object, nested_field


class Violation(NamedTuple):
    """A violation of a rule: the path relative to the rule's (`.limits[memory]`), the value, and the message."""

    subpath: str
    value: Any
    message: str


class Parts(NamedTuple):
    """A path up to its first `[*]`, the fields of this part, the remaining steps, and the field of the spec, if any."""

    parent: str
    fields: tuple[str, ...]
    steps: tuple[str, ...]
    top: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a kind.

    `path`: the path of the value, from the object's root; `[*]` means every entry of a list or map. Empty: the object,
    and the paths of violations begin with `metadata` or `spec`.
    `cel`: the same rule for the CRD. `self` is the value at `path`, or the whole object for a path in `metadata`.
    `message`, `message_expression`, `field_path`: the message, messageExpression and fieldPath of the CEL rule.
    `inputs`: for a rule on several fields, these fields, below `path`. A violation implies that all of them are set,
    and an update that does not change them may keep the violation.
    `optional_inputs`: other fields of such a rule, each with its default in CEL if it is a number or a boolean,
    otherwise with "". A rule that has no other inputs is evaluated by every update.
    `list_inputs`: further optional inputs: lists of strings, of which none is empty.
    `stored_violations`: instead of `violations` for stored objects, if these were accepted under a weaker rule.
    `blocks`: the children of a stored object that violates the rule stay as they are: see `blocking`. Otherwise, the
    controller goes on reconciling the object, and its status reports the violation.
    """

    path: str
    violations: Callable[[Any], Iterable[Violation]]
    cel: str
    message: str
    message_expression: str = ""
    field_path: str = ""
    inputs: tuple[str, ...] = ()
    optional_inputs: tuple[tuple[str, str], ...] = ()
    list_inputs: tuple[str, ...] = ()
    stored_violations: Callable[[Any], Iterable[Violation]] | None = None
    blocks: bool = False
    parts: Parts = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _split(self.path))

    @property
    def fields(self) -> list[str]:
        """The paths of all inputs: the required ones, the optional ones and the lists."""
        return [*self.inputs, *(field for field, _ in self.optional_inputs), *self.list_inputs]


@dataclass(frozen=True, slots=True)
class TransitionRule:
    """A rule about a change: `path`, `cel`, `message` and `field_path` are those of a Rule; `oldSelf` is the old value.

    `violations`: those of a new value, with an old one. CEL evaluates it only if both exist.
    """

    path: str
    violations: Callable[[Any, Any], Iterable[Violation]]
    cel: str
    message: str
    field_path: str = ""


def transition_errors(rules: Iterable[TransitionRule], obj: Any, old: Any) -> Iterator[FieldError]:
    """All violations of a change from `old` to `obj`."""
    for rule in rules:
        fields = rule.path.split(".")
        before, after = nested_field(old, *fields), nested_field(obj, *fields)
        if before is not None and after is not None:
            for subpath, value, message in rule.violations(after, before):
                yield FieldError(f"{rule.path}{subpath}", value, message)


def blocking(*rules: Rule) -> tuple[Rule, ...]:
    """These rules, as rules that block.

    Only for a rule whose violation makes a child unsound: the API server rejects it, its pods do not start or serve,
    the kernel ends them, or more clients can connect than the spec admits. A rule that is as old as its field may block
    too: no stored object violates it.
    """
    return tuple(replace(rule, blocks=True) for rule in rules)


def value_rule(path: str, holds: Callable[[Any], bool], cel: str, message: str) -> Rule:
    """A rule about a single value."""

    def violations(value: Any) -> Iterable[Violation]:
        return () if holds(value) else (Violation("", value, message),)

    return Rule(path, violations, cel, message)


def field_rule(path: str, field: str, holds: Callable[[Mapping[str, Any]], bool], cel: str, message: str) -> Rule:
    """A rule about an object that is reported for one of its fields, such as `tls.port`."""
    names = field.split(".")

    def violations(obj: Mapping[str, Any]) -> Iterable[Violation]:
        return () if holds(obj) else (Violation(f".{field}", nested_field(obj, *names), message),)

    return Rule(path, violations, cel, message, field_path=f".{field}")


def rule_errors(
    rules: Iterable[Rule], obj: Any, type_errors: Sequence[FieldError] = (), *, stored: bool = False
) -> Iterator[FieldError]:
    """All violations of all rules. A rule is skipped if one of its inputs has one of these type errors.

    `stored`: the object is stored already, so a weaker rule may apply to it.
    """
    spec = nested_field(obj, "spec")
    present = spec.keys() if is_object(spec) else ()
    for rule in rules:
        parts = rule.parts
        if parts.top and parts.top not in present:
            continue  # quickly, because most fields are absent from most objects
        root = nested_field(obj, *parts.fields)
        if root is None:
            continue
        violations = (stored and rule.stored_violations) or rule.violations
        for path, value in _select(parts.parent, root, parts.steps):
            if not type_errors or not _has_type_error(path, rule.fields, type_errors):
                yield from (
                    FieldError(
                        f"{path}{violation.subpath}",
                        violation.value,
                        violation.message,
                        inputs=_inputs(rule, value),
                        blocks=rule.blocks,
                    )
                    for violation in violations(value)
                )


def _inputs(rule: Rule, value: Any) -> tuple[Any, ...]:
    """The values of all inputs, as the CRD's rule compares them with those of the old object. None: absent."""
    if not rule.inputs:
        return ()
    defaults = dict(rule.optional_inputs)
    inputs = ((nested_field(value, *_names(field)), defaults.get(field)) for field in rule.fields)
    return tuple(json.loads(default) if item is None and default else item for item, default in inputs)


def _names(field: str) -> list[str]:
    """The names of a path: `limits[memory]` has two."""
    return field.replace("[", ".").replace("]", "").split(".")


def _select(path: str, value: Any, steps: tuple[str, ...]) -> Sequence[tuple[str, Any]]:
    """The values at a path with steps, each with its own path: for `spec.limits[*]`, `spec.limits[cpu]` and so on."""
    pairs = [(path, value)]
    for step in steps:
        pairs = [pair for path, value in pairs for pair in _children(path, value, step) if pair[1] is not None]
    return pairs


def _split(path: str) -> Parts:
    parent = path.partition("[*]")[0]
    if not path:
        return Parts("", (), (), "")
    fields, steps = tuple(parent.split(".")), path.replace("[*]", ".*").split(".")
    top = fields[1] if fields[0] == "spec" and len(fields) > 1 else ""
    return Parts(parent, fields, tuple(steps[len(fields) :]), top)


def _children(path: str, value: Any, step: str) -> Iterable[tuple[str, Any]]:
    if step != "*":
        return [(f"{path}.{step}" if path else step, value.get(step))] if is_object(value) else []
    if is_object(value):
        return [(f"{path}[{key}]", item) for key, item in value.items()]
    return [(f"{path}[{index}]", item) for index, item in enumerate(value)] if is_array(value) else []


def _has_type_error(path: str, inputs: Sequence[str], type_errors: Sequence[FieldError]) -> bool:
    fields = [f"{path}.{field}" for field in inputs] or [path]
    return any(_within(error.field, field) or _within(field, error.field) for error in type_errors for field in fields)


def _within(field: str, parent: str) -> bool:
    return field == parent or field.startswith((f"{parent}.", f"{parent}["))
