"""What is wrong with an object, in the words Kubernetes uses for it."""

import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from .values import is_array, is_object

# Kinds of faults: the `reason` of a Status cause, and the words for it (k8s.io/apimachinery pkg/util/validation/field).
INVALID: Final = "FieldValueInvalid"
MISTYPED: Final = "FieldValueTypeInvalid"
REQUIRED: Final = "FieldValueRequired"
UNSUPPORTED: Final = "FieldValueNotSupported"
TOO_LONG: Final = "FieldValueTooLong"
TOO_MANY: Final = "FieldValueTooMany"

_WORDS: Final = {
    INVALID: "Invalid value",
    MISTYPED: "Invalid value",
    REQUIRED: "Required value",
    UNSUPPORTED: "Unsupported value",
    TOO_LONG: "Too long",
    TOO_MANY: "Too many",
}

_SHOWN = 200  # characters of a value that a message repeats


class Fault(NamedTuple):
    """One fault of an object: the field, its value, and a message that names the remedy.

    Two faults are equal when all of it is, so a fault whose numbers changed counts as a new one.
    """

    field: str
    value: Any
    message: str
    kind: str = INVALID

    def __str__(self) -> str:
        """Read as Kubernetes' own field errors do: `spec.size: Invalid value: 0: must be at least 1`."""
        return f"{self.field}: {self.detail}"

    @property
    def detail(self) -> str:
        """The fault without its field, as a Status cause has it."""
        words = _WORDS[self.kind]
        return f"{words}: {self.message}" if self.kind == REQUIRED else f"{words}: {shown(self.value)}: {self.message}"


class InvalidSpec(ValueError):  # noqa: N818 (named as the condition's reason)
    """An object whose spec cannot be decoded; `faults` says why, one entry per field."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults: Final = list(faults)
        super().__init__(sentence(self.faults))


def shown(value: Any) -> str:
    """A scalar as JSON, cut at 200 characters; of an object or a list only its type, as the API server shows it."""
    if is_object(value):
        return '"object"'
    if is_array(value):
        return '"array"'
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def sentence(faults: Iterable[Fault]) -> str:
    """All faults in one line; several stand in brackets, as Kubernetes aggregates them."""
    texts = [str(fault) for fault in faults]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
