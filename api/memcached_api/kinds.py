"""What the house knows of a kind: one record, from which its CRD, its reference page and its checks are made."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from . import reading
from .field_errors import MISTYPED, TOO_MANY, Fault, InvalidSpec
from .rules import Rule, rule_faults
from .structure import MOST_FAULTS, structural_faults
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
        """The object's spec, defaults filled in, unknown fields left out. Raises InvalidSpec with every fault found."""
        if wrong := self._not_an_object(obj):
            raise InvalidSpec(wrong)
        spec = _spec(obj)
        try:
            return msgspec.convert(spec, self.spec)
        except msgspec.ValidationError as error:
            spec = normalized(spec)
            if faults := structural_faults(spec, self.spec, "spec"):
                raise InvalidSpec(faults) from error
            return msgspec.convert(spec, self.spec)

    def read(self, raw: bytes) -> Any:
        """The object in `raw`, as `faults` and `decode` need it. Raises what `reading.read` does."""
        return reading.read(raw, self.spec)

    def faults(self, obj: Any) -> list[Fault]:
        """Every fault of an object, none if it is valid; never raises, whatever JSON it is given."""
        if wrong := self._not_an_object(obj):
            return wrong
        spec, structural = self._examined(_spec(obj))
        if len(structural) >= MOST_FAULTS or any(fault.kind == TOO_MANY for fault in structural):
            return structural  # the rules would have no end of things to look at
        unreadable = [fault for fault in structural if fault.kind == MISTYPED]
        ruled = list(rule_faults(self.rules, {"metadata": obj.get("metadata"), "spec": spec}, unreadable))
        blamed = {fault.field for fault in ruled}  # where a rule speaks, the bare bound need not: it names no remedy
        return [fault for fault in structural if fault.field not in blamed] + ruled

    def _not_an_object(self, obj: Any) -> list[Fault]:
        message = f"must be an object of kind {self.name}"
        return [] if isinstance(obj, Mapping) else [Fault("", obj, message, MISTYPED)]

    def _examined(self, spec: Any) -> tuple[Any, list[Fault]]:
        """The spec in a form that rules can read, and its structural faults: looked for only if msgspec meets one."""
        try:
            msgspec.convert(spec, self.spec)
        except msgspec.ValidationError:
            spec = normalized(spec)
            return spec, structural_faults(spec, self.spec, "spec")
        return spec, []


def _spec(obj: Mapping[str, Any]) -> Any:
    """The CRD's default for an absent spec is an empty one."""
    spec = obj.get("spec")
    return {} if spec is None else spec
