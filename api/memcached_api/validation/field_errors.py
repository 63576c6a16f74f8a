"""Field errors of an object, in the format of Kubernetes."""

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from memcached_api.values import is_array, is_object

# Types of errors: the `reason` of a Status cause, and its text (k8s.io/apimachinery pkg/util/validation/field).
INVALID: Final = "FieldValueInvalid"
TYPE_INVALID: Final = "FieldValueTypeInvalid"
REQUIRED: Final = "FieldValueRequired"
NOT_SUPPORTED: Final = "FieldValueNotSupported"
TOO_LONG: Final = "FieldValueTooLong"
TOO_MANY: Final = "FieldValueTooMany"

_TYPE_TEXTS: Final = {
    INVALID: "Invalid value",
    TYPE_INVALID: "Invalid value",
    REQUIRED: "Required value",
    NOT_SUPPORTED: "Unsupported value",
    TOO_LONG: "Too long",
    TOO_MANY: "Too many",
}

MAX_VALUE_LENGTH: Final = 100
"""Maximum characters of a value in a message."""

MAX_FIELD_LENGTH: Final = 200
"""Maximum characters of a field in a message: the longest path in an affinity has 164."""


class FieldError(NamedTuple):
    """One error of an object: the field, its value, and a message that names the remedy.

    Two errors are equal if all parts are equal. So an error with another value, or of a rule on several fields with
    another value of one of them (`inputs`), counts as a new one. `blocks`: that of the rule.
    """

    field: str
    value: Any
    message: str
    type: str = INVALID
    inputs: tuple[Any, ...] = ()
    blocks: bool = False

    def __str__(self) -> str:
        """Format as Kubernetes formats field errors: `spec.size: Invalid value: 0: must be at least 1`."""
        return f"{self.field_text}: {self.body}"

    @property
    def field_text(self) -> str:
        """The field for messages: quoted and truncated if needed, because the user chooses the keys of maps."""
        return quote_if_needed(self.field, MAX_FIELD_LENGTH)

    @property
    def body(self) -> str:
        """The error without its field, as in a Status cause."""
        words = _TYPE_TEXTS[self.type]
        return (
            f"{words}: {self.message}"
            if self.type == REQUIRED
            else f"{words}: {format_value(self.value)}: {self.message}"
        )


class SpecDecodeError(ValueError):
    """An object whose spec cannot be decoded. `errors`: one entry per field."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors: Final = list(errors)
        super().__init__(aggregate(self.errors))


def format_value(value: Any) -> str:
    """A scalar as JSON, truncated to 100 characters. As in the API server, an object or a list is shown as its type."""
    if is_object(value):
        return '"object"'
    if is_array(value):
        return '"array"'
    return quote(value) if isinstance(value, str) else truncate(json.dumps(value, default=str))


def quote(text: str, length: int = MAX_VALUE_LENGTH) -> str:
    """A string as JSON, truncated to `length` characters: always one line, with a closing quote."""
    short = truncate(text, length)
    return json.dumps(short, ensure_ascii=not short.isprintable())


def quote_if_needed(text: str, length: int = MAX_VALUE_LENGTH) -> str:
    """The text unchanged if it has at most `length` characters and is printable, otherwise quoted."""
    return text if len(text) <= length and text.isprintable() else quote(text, length)


def truncate(text: str, length: int = MAX_VALUE_LENGTH) -> str:
    """The text, truncated to `length` characters and `…`."""
    return text if len(text) <= length else f"{text[:length]}…"


def aggregate(errors: Iterable[FieldError], more: int = 0) -> str:
    """All errors on one line, in brackets if there are several, as in Kubernetes. `more`: number of omitted errors."""
    texts = [str(error) for error in errors]
    if more:
        texts.append(f"and {more} more")
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def summary(errors: Sequence[FieldError], limit: int) -> str:
    """The first errors on one line of at most `limit` characters, and the number of omitted ones. Never empty."""
    ends = accumulate(len(str(error)) + len(", ") for error in errors)
    fitting = max(1, sum(end <= limit - len("[and 1000000 more]") for end in ends))
    return aggregate(errors[:fitting], len(errors) - fitting)
