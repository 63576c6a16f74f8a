"""Collects all structural errors of a JSON value against a msgspec type; msgspec itself stops at the first."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import inspect

from memcached_api import quantity
from memcached_api.validation.field_errors import NOT_SUPPORTED, REQUIRED, TOO_LONG, TOO_MANY, TYPE_INVALID, FieldError
from memcached_api.values import is_array, is_integer, is_object

MAX_ERRORS: Final = 100
"""Maximum reported errors; an object of three megabytes can have a hundred thousand."""


def schema_errors(value: Any, cls: type[msgspec.Struct], path: str) -> list[FieldError]:
    """The first MAX_ERRORS errors, in the order of the type's fields. Unknown fields and nulls are ignored."""
    return list(islice(_check(value, _type_info(cls), path), MAX_ERRORS))


@cache
def _type_info(cls: type[msgspec.Struct]) -> inspect.Type:
    return inspect.type_info(cls)


def _check(value: Any, type_: inspect.Type, path: str) -> Iterator[FieldError]:
    yield from _CHECKS[type(type_)](value, type_, path)


def _object(value: Any, type_: inspect.StructType, path: str) -> Iterator[FieldError]:
    if not is_object(value):
        yield _type_invalid(path, value, "an object")
        return
    for field in type_.fields:
        item, below = value.get(field.encode_name), f"{path}.{field.encode_name}".lstrip(".")
        if item is not None:
            yield from _check(item, field.type, below)
        elif field.required:
            yield FieldError(below, None, "must be set", REQUIRED)


def _map(value: Any, type_: inspect.DictType, path: str) -> Iterator[FieldError]:
    if not is_object(value):
        yield _type_invalid(path, value, "an object")
        return
    if (max_items := type_.max_length) is not None and len(value) > max_items:
        yield _too_many(value, max_items, path)
        return
    for key, item in value.items():
        yield from _check(item, type_.value_type, f"{path}[{key}]")


def _list(value: Any, type_: inspect.ListType, path: str) -> Iterator[FieldError]:
    if not is_array(value):
        yield _type_invalid(path, value, "a list")
        return
    if (max_items := type_.max_length) is not None and len(value) > max_items:
        yield _too_many(value, max_items, path)
        return
    for index, item in enumerate(value):
        yield from _check(item, type_.item_type, f"{path}[{index}]")


def _too_many(value: Any, max_items: int, path: str) -> FieldError:
    return FieldError(path, len(value), f"must have at most {max_items} items", TOO_MANY)


def _integer(value: Any, type_: inspect.IntType, path: str) -> Iterator[FieldError]:
    if not is_integer(value):
        yield _type_invalid(path, value, "an integer")
    elif type_.ge is not None and value < type_.ge:
        yield FieldError(path, value, f"must be at least {type_.ge}")
    elif type_.le is not None and value > type_.le:
        yield FieldError(path, value, f"must be at most {type_.le}")


def _string(value: Any, type_: inspect.StrType, path: str) -> Iterator[FieldError]:
    if not isinstance(value, str):
        yield _type_invalid(path, value, "a string")
    elif type_.max_length is not None and len(value) > type_.max_length:
        yield FieldError(path, value, f"may not be more than {type_.max_length} characters", TOO_LONG)
    elif type_.min_length is not None and len(value) < type_.min_length:
        yield FieldError(path, value, "must not be empty; remove the field or give it a value")


def _choice(value: Any, type_: inspect.LiteralType, path: str) -> Iterator[FieldError]:
    if not isinstance(value, str):
        yield _type_invalid(path, value, "a string")
    elif value not in type_.values:
        values = ", ".join(f'"{choice}"' for choice in type_.values)
        yield FieldError(path, value, f"supported values: {values}", NOT_SUPPORTED)


def _boolean(value: Any, _: inspect.BoolType, path: str) -> Iterator[FieldError]:
    if not isinstance(value, bool):
        yield _type_invalid(path, value, "true or false")


def _union(value: Any, type_: inspect.UnionType, path: str) -> Iterator[FieldError]:
    """The specs use these unions: `X | None`, int-or-string, and quantities. Nulls are skipped earlier."""
    members = [member for member in type_.types if not isinstance(member, inspect.NoneType)]
    if len(members) == 1:
        yield from _check(value, members[0], path)
    elif any(isinstance(member, inspect.StrType) and member.pattern for member in members):
        yield from _quantity(value, path)
    else:
        yield from _integer_or_string(value, members, path)


def _integer_or_string(value: Any, members: list[inspect.Type], path: str) -> Iterator[FieldError]:
    member_type = inspect.StrType if isinstance(value, str) else inspect.IntType
    for member in members:
        if isinstance(member, member_type) and (isinstance(value, str) or is_integer(value)):
            yield from _check(value, member, path)
            return
    yield _type_invalid(path, value, "an integer or a string")


def _quantity(value: Any, path: str) -> Iterator[FieldError]:
    if not isinstance(value, str) and not is_integer(value):
        yield _type_invalid(path, value, 'an integer or a string such as "64Mi" or "500m"')
        return
    try:
        quantity.parse_quantity(value)
    except ValueError as error:
        yield FieldError(path, value, str(error), TYPE_INVALID)


def _annotated(value: Any, type_: inspect.Metadata, path: str) -> Iterator[FieldError]:
    yield from _check(value, type_.type, path)


def _type_invalid(path: str, value: Any, expected: str) -> FieldError:
    return FieldError(path, value, f"must be {expected}", TYPE_INVALID)


_CHECKS: Final[dict[type, Callable[[Any, Any, str], Iterator[FieldError]]]] = {
    inspect.StructType: _object,
    inspect.DictType: _map,
    inspect.ListType: _list,
    inspect.BoolType: _boolean,
    inspect.IntType: _integer,
    inspect.StrType: _string,
    inspect.LiteralType: _choice,
    inspect.UnionType: _union,
    inspect.Metadata: _annotated,
}
