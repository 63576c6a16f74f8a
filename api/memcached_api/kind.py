"""The definition of a kind, from which its CRD, its API reference and its validation are generated."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from memcached_api.effects import Effect, FieldEffect, changed, fields_of
from memcached_api.validation import decoding
from memcached_api.validation.field_errors import TOO_MANY, TYPE_INVALID, FieldError, SpecDecodeError
from memcached_api.validation.rules import Rule, TransitionRule, rule_errors, transition_errors
from memcached_api.validation.schema import MAX_ERRORS, schema_errors
from memcached_api.values import normalized

Spec = TypeVar("Spec", bound=msgspec.Struct)


class Column(NamedTuple):
    """A column of `kubectl get`; those of priority 1 appear with `-o wide` only."""

    name: str
    type: str
    path: str
    description: str
    priority: int = 0


def _condition_path(type_: str, part: str) -> str:
    """The JSON path of a field of a condition, for a column."""
    return f'.status.conditions[?(@.type=="{type_}")].{part}'


STATE_COLUMNS: Final = (
    Column("Size", "integer", ".spec.size", "Desired number of pods"),
    Column("Ready", "integer", ".status.readyReplicas", "Pods that are ready"),
    Column("Available", "string", _condition_path("Available", "status"), "Whether enough pods are available"),
    Column("Degraded", "string", _condition_path("Degraded", "status"), "Whether there is a problem"),
)
"""The first columns of every kind."""

PROBLEM_COLUMNS: Final = (
    Column("Reason", "string", _condition_path("Degraded", "reason"), "Reason of Degraded", 1),
    Column("Message", "string", _condition_path("Degraded", "message"), "Message of Degraded, including the remedy", 1),
)
"""The last columns of every kind."""


class Checked(NamedTuple, Generic[Spec]):
    """The spec from which the children of a stored object are built, and all of its errors.

    `spec`: None if no sound children can be built: it cannot be decoded, or it violates a rule that blocks.
    """

    spec: Spec | None
    errors: list[FieldError]


@dataclass(frozen=True, slots=True)
class Kind(Generic[Spec]):
    """One custom resource kind. All `versions` have the same schema; the first is the storage version.

    `in_place`: whether its running pods can be changed. Otherwise, each change that affects the pods replaces them.
    `features`: the features that a field of the spec switches on, by its path below `spec`. A section is on while it is
    present, and `enabled`, if it has this field, is not false. A boolean is on with true. A mode, which is an
    enumeration, is off with its first value, the default.
    `refers_to`: the names of the kinds whose objects its objects name. It is served only together with these.
    """

    group: str
    versions: tuple[str, ...]
    name: str
    plural: str
    short_names: tuple[str, ...]
    description: str
    spec: type[Spec]
    status: type[msgspec.Struct]
    rules: tuple[Rule, ...]
    columns: tuple[Column, ...]
    transitions: tuple[TransitionRule, ...] = ()
    in_place: bool = False
    features: Mapping[str, str] = field(default_factory=dict[str, str])
    refers_to: tuple[str, ...] = ()
    fields: Mapping[str, FieldEffect] = field(init=False)
    """The effect of a change of each field by its path. A section that is added or removed changes its fields."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", dict(fields_of(self.spec, "spec")))

    def values(self, spec: Spec) -> dict[str, object]:
        """The values of the fields that affect the pods, by path, normalized for comparison. `spec` must be valid."""
        return {path: row.value(spec) for path, row in self.fields.items() if row.effect is not Effect.NOTHING}

    def changed_fields(self, new: Spec, old: Spec) -> list[str]:
        """The paths of the changed fields that affect the pods. Both specs must be valid."""
        return changed(self.values(new), self.values(old))

    def decode(self, obj: Mapping[str, Any]) -> Spec:
        """The spec, with defaults and without unknown fields. Raises SpecDecodeError with all structural errors."""
        if errors := self._not_an_object(obj):
            raise SpecDecodeError(errors)
        _, spec, errors = self._decode(_spec(obj))
        if spec is None:
            raise SpecDecodeError(errors)
        return spec

    def decode_object(self, raw: bytes) -> Any:
        """The object in `raw`, for `validate` and `decode`. Raises the errors of `decoding.decode_object`."""
        return decoding.decode_object(raw, self.spec)

    def validate(self, obj: Any) -> list[FieldError]:
        """All errors of an object that is written; empty if it is valid. Never raises, for any JSON value."""
        return self._check(obj, stored=False).errors

    def validate_change(self, obj: Any, old: Any) -> list[FieldError]:
        """The errors of a change from `old` to `obj`. Never raises, for any JSON values."""
        return list(transition_errors(self.transitions, obj, old))

    def check(self, obj: Any) -> Checked[Spec]:
        """The spec of a stored object from which its children are built, or None, and all errors.

        An object that was accepted under a weaker rule is valid. Never raises, for any JSON value.
        """
        spec, errors = self._check(obj, stored=True)
        return Checked(None if any(error.blocks for error in errors) else spec, errors)

    def _check(self, obj: Any, *, stored: bool) -> Checked[Spec]:
        if errors := self._not_an_object(obj):
            return Checked(None, errors)
        raw, spec, structural = self._decode(_spec(obj))
        if len(structural) >= MAX_ERRORS or any(error.type == TOO_MANY for error in structural):
            return Checked(spec, structural)  # the time to evaluate the rules would be unbounded
        type_errors = [error for error in structural if error.type == TYPE_INVALID]
        values = {"metadata": obj.get("metadata"), "spec": raw}
        violations = list(rule_errors(self.rules, values, type_errors, stored=stored))
        # A rule's error has a remedy, so it replaces the structural error of the same field.
        violated_fields = {error.field for error in violations}
        return Checked(spec, [error for error in structural if error.field not in violated_fields] + violations)

    def _not_an_object(self, obj: Any) -> list[FieldError]:
        message = f"must be an object of kind {self.name}"
        return [] if isinstance(obj, Mapping) else [FieldError("", obj, message, TYPE_INVALID)]

    def _decode(self, raw: Any) -> tuple[Any, Spec | None, list[FieldError]]:
        """The normalized spec, the decoded one, and the structural errors, collected only if msgspec finds one."""
        try:
            return raw, msgspec.convert(raw, self.spec), []
        except msgspec.ValidationError:
            raw = normalized(raw)
            errors = schema_errors(raw, self.spec, "spec")
            return raw, None if errors else msgspec.convert(raw, self.spec), errors


def _spec(obj: Mapping[str, Any]) -> Any:
    """The spec of an object. The CRD's default for an absent spec is an empty one."""
    spec = obj.get("spec")
    return {} if spec is None else spec
