"""What the house knows of a kind: one record, from which its CRD, its reference page and its checks are made."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from . import reading
from .field_errors import MISTYPED, TOO_MANY, FieldError, InvalidSpec
from .rules import Rule, rule_errors
from .structure import MAX_ERRORS, schema_errors
from .values import normalized

Spec = TypeVar("Spec", bound=msgspec.Struct)


class Column(NamedTuple):
    """A column of `kubectl get`; those of priority 1 appear with `-o wide` only."""

    name: str
    type: str
    path: str
    description: str
    priority: int = 0


def condition_path(type_: str, part: str) -> str:
    """The path of one part of one condition, for a column."""
    return f'.status.conditions[?(@.type=="{type_}")].{part}'


@dataclass(frozen=True, slots=True)
class Kind(Generic[Spec]):
    """One kind of ours. `versions` share one schema; the first is the stored one."""

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

    def decode(self, obj: Mapping[str, Any]) -> Spec:
        """The object's spec, defaults filled in, unknown fields left out. Raises InvalidSpec with every error found."""
        if wrong := self._not_an_object(obj):
            raise InvalidSpec(wrong)
        spec = _spec(obj)
        try:
            return msgspec.convert(spec, self.spec)
        except msgspec.ValidationError as error:
            spec = normalized(spec)
            if errors := schema_errors(spec, self.spec, "spec"):
                raise InvalidSpec(errors) from error
            return msgspec.convert(spec, self.spec)

    def read(self, raw: bytes) -> Any:
        """The object in `raw`, as `errors` and `decode` need it. Raises what `reading.read` does."""
        return reading.read(raw, self.spec)

    def validate(self, obj: Any) -> list[FieldError]:
        """Every error of an object, none if it is valid; never raises, whatever JSON it is given."""
        if wrong := self._not_an_object(obj):
            return wrong
        spec, structural = self._examined(_spec(obj))
        if len(structural) >= MAX_ERRORS or any(error.kind == TOO_MANY for error in structural):
            return structural  # the rules would have no end of things to look at
        unreadable = [error for error in structural if error.kind == MISTYPED]
        ruled = list(rule_errors(self.rules, {"metadata": obj.get("metadata"), "spec": spec}, unreadable))
        blamed = {error.field for error in ruled}  # where a rule speaks, the bare bound need not: it names no remedy
        return [error for error in structural if error.field not in blamed] + ruled

    def _not_an_object(self, obj: Any) -> list[FieldError]:
        message = f"must be an object of kind {self.name}"
        return [] if isinstance(obj, Mapping) else [FieldError("", obj, message, MISTYPED)]

    def _examined(self, spec: Any) -> tuple[Any, list[FieldError]]:
        """The spec in a form that rules can read, and its structural errors: looked for only if msgspec meets one."""
        try:
            msgspec.convert(spec, self.spec)
        except msgspec.ValidationError:
            spec = normalized(spec)
            return spec, schema_errors(spec, self.spec, "spec")
        return spec, []


def _spec(obj: Mapping[str, Any]) -> Any:
    """The CRD's default for an absent spec is an empty one."""
    spec = obj.get("spec")
    return {} if spec is None else spec
