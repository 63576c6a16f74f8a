"""JSON values of unknown shape: what they are, and what the API server makes of them."""

from typing import Any, Final, TypeGuard

LEAST: Final = -(2**63)
MOST: Final = 2**63 - 1


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def is_integer(value: object) -> TypeGuard[int | float]:
    """Whether the API server takes it for an integer: 3.0 yes, true no, nor what 64 bits (a float: 53) cannot hold."""
    if isinstance(value, float):
        return value.is_integer() and abs(value) < 2**53
    return isinstance(value, int) and not isinstance(value, bool) and LEAST <= value <= MOST


def child(value: object, *fields: str) -> Any:
    """The value at a path of fields; None where the path leads nowhere."""
    found: Any = value
    for field in fields:
        if not isinstance(found, dict):  # not `is_object`: of a review, a tenth of the time would be its call
            return None
        found = found.get(field)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return found  # pyright: ignore[reportUnknownVariableType]


def normalized(value: Any, depth: int = 8) -> Any:
    """The value as the API server stores it: 3.0 becomes 3, and a null field is dropped.

    `depth`: levels to go down; no type of ours is deeper, and what lies below is unknown to them anyway.
    """
    if is_object(value) and depth:
        return {key: normalized(item, depth - 1) for key, item in value.items() if item is not None}
    if is_array(value) and depth:
        return [normalized(item, depth - 1) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
