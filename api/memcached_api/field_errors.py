"""What is wrong with an object, in the words Kubernetes uses for it."""

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from .values import is_array, is_object

# Kinds of errors: the `reason` of a Status cause, and the words for it (k8s.io/apimachinery pkg/util/validation/field).
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

MAX_SHOWN: Final = 100
"""Characters of a value that a message repeats."""


class FieldError(NamedTuple):
    """One error of an object: the field, its value, and a message that names the remedy.

    Two errors are equal when all of it is, so a error whose numbers changed counts as a new one.
    """

    field: str
    value: Any
    message: str
    kind: str = INVALID

    def __str__(self) -> str:
        """Read as Kubernetes' own field errors do: `spec.size: Invalid value: 0: must be at least 1`."""
        return f"{self.field_text}: {self.detail}"

    @property
    def field_text(self) -> str:
        """The field as a message names it: a key of a map is chosen by the user, and may be long."""
        return plain(self.field)

    @property
    def detail(self) -> str:
        """The error without its field, as a Status cause has it."""
        words = _WORDS[self.kind]
        return (
            f"{words}: {self.message}"
            if self.kind == REQUIRED
            else f"{words}: {format_value(self.value)}: {self.message}"
        )


class InvalidSpec(ValueError):  # noqa: N818 (named as the condition's reason)
    """An object whose spec cannot be decoded; `errors` says why, one entry per field."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors: Final = list(errors)
        super().__init__(sentence(self.errors))


def format_value(value: Any) -> str:
    """A scalar as JSON, cut at 100 characters; of an object or a list only its type, as the API server shows it."""
    if is_object(value):
        return '"object"'
    if is_array(value):
        return '"array"'
    return quoted(value) if isinstance(value, str) else cut(json.dumps(value, default=str))


def quoted(text: str) -> str:
    """A text as JSON, cut at 100 characters: on one line, and whatever is in it ends with the closing quote."""
    short = cut(text)
    return json.dumps(short, ensure_ascii=not short.isprintable())


def plain(text: str) -> str:
    """A text that is usually a plain name: as it is where it is short and printable, else quoted."""
    return text if len(text) <= MAX_SHOWN and text.isprintable() else quoted(text)


def cut(text: str) -> str:
    """A text of at most 100 characters, or its beginning."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def sentence(errors: Iterable[FieldError], more: int = 0) -> str:
    """All errors in one line, and how many `more` there are; several stand in brackets, as Kubernetes has it."""
    texts = [str(error) for error in errors]
    if more:
        texts.append(f"and {more} more")
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def summary(errors: Sequence[FieldError], limit: int) -> str:
    """The first errors in one line of at most `limit` characters, and how many more there are; always the first."""
    ends = accumulate(len(str(error)) + len(", ") for error in errors)
    fitting = max(1, sum(end <= limit - len("[and 1000000 more]") for end in ends))
    return sentence(errors[:fitting], len(errors) - fitting)
