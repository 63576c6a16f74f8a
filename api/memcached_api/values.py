"""Checks and normalizes JSON values of unknown structure, as the API server does."""

from typing import Any, Final, TypeGuard

MIN_INTEGER: Final = -(2**63)
MAX_INTEGER: Final = 2**63 - 1
MAX_INT32: Final = 2**31 - 1


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def is_integer(value: object) -> TypeGuard[int | float]:
    """Whether the API server accepts the value as an integer, such as 3 and 3.0.

    It rejects true, and integers of more than 64 bits (53 for a float).
    """
    if isinstance(value, float):
        return value.is_integer() and abs(value) < 2**53
    return isinstance(value, int) and not isinstance(value, bool) and MIN_INTEGER <= value <= MAX_INTEGER


def nested_field(value: object, *fields: str) -> Any:
    """The value at a path of fields; None if it does not exist."""
    nested: Any = value
    for field in fields:
        if not isinstance(nested, dict):  # not `is_object`, whose calls would take a tenth of the time of a review
            return None
        nested = nested.get(field)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return nested  # pyright: ignore[reportUnknownVariableType]


def normalized(value: Any, depth: int = 8) -> Any:
    """The value as the API server stores it: 3.0 becomes 3, and a null field is dropped.

    `depth`: maximum levels to descend; deeper values are unknown fields.
    """
    if is_object(value) and depth:
        return {key: normalized(item, depth - 1) for key, item in value.items() if item is not None}
    if is_array(value) and depth:
        return [normalized(item, depth - 1) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
