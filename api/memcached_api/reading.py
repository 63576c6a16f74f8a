"""Decodes objects from JSON, without the fields that no rule reads: an unknown field of any size takes no memory."""

from functools import cache
from typing import Annotated, Any, Final, TypedDict, Union, cast

import msgspec
from msgspec import Meta, inspect

from .field_errors import FieldError, InvalidSpec

MAX_OBJECT: Final = 2 * 2**20
"""Maximum bytes of an object. etcd accepts at most 1.5 MiB (its default `--max-request-bytes`)."""

MAX_EXAMINED: Final = 256 * 2**10
"""Maximum bytes of a spec with mistyped values that is checked for all errors, which takes up to 25 times its size."""

_NULL: Final = b"null"

Scalar = str | int | float | bool | None


def read(raw: bytes, spec: type[msgspec.Struct]) -> Any:
    """The object in `raw`, with the metadata that admission reads and the known fields of the spec.

    If a value has a wrong type, the whole spec is returned, so that all errors can be reported. Raises InvalidSpec if
    the spec is too large for that; msgspec.DecodeError, UnicodeDecodeError or RecursionError if `raw` is not JSON, is
    nested too deeply, or has a number out of range.
    """
    if len(raw) == len(_NULL) and bytes(raw) == _NULL:
        return None
    if len(raw) > MAX_OBJECT:
        raise InvalidSpec(
            [
                FieldError(
                    "spec", len(raw), f"the object must be at most {MAX_OBJECT} bytes; the API server stores no more"
                )
            ]
        )
    try:
        return _decoder(spec).decode(raw)
    except msgspec.ValidationError as error:
        return _whole(raw, error)


def _whole(raw: bytes, error: msgspec.ValidationError) -> Any:
    try:
        obj = _PARTS.decode(raw)
    except msgspec.ValidationError:
        obj = {"spec": msgspec.Raw(raw)}
        if len(raw) <= MAX_EXAMINED:
            return msgspec.json.decode(raw)
    unread = obj.get("spec") or msgspec.Raw(b"null")
    if len(bytes(unread)) > MAX_EXAMINED:
        message = f"{error}; of more than {MAX_EXAMINED} bytes only the first error is reported"
        raise InvalidSpec([FieldError("spec", len(bytes(unread)), message)])
    return {**obj, "spec": msgspec.json.decode(unread)}


class _Metadata(TypedDict, total=False):
    name: Scalar
    generateName: Scalar
    deletionTimestamp: Scalar


class _Parts(TypedDict, total=False):
    metadata: _Metadata | None
    spec: msgspec.Raw


_PARTS: Final = msgspec.json.Decoder(_Parts)


@cache
def _decoder(spec: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    fields = {"metadata": _Metadata | None, "spec": _known(inspect.type_info(spec)) | None}
    return msgspec.json.Decoder(_typed_dict("Object", fields))


def _known(type_: inspect.Type) -> Any:
    """The type that decodes JSON for a spec type as dicts, lists and scalars, with known fields only."""
    match type_:
        case inspect.StructType():
            fields = {field.encode_name: Union[_known(field.type), None] for field in type_.fields}  # noqa: UP007
            return _typed_dict(type_.cls.__name__, fields)
        case inspect.ListType():
            return Annotated[list[Union[_known(type_.item_type), None]], Meta(max_length=type_.max_length)]  # noqa: UP007
        case inspect.DictType():
            value = Union[_known(type_.value_type), None]  # noqa: UP007
            return Annotated[dict[str, value], Meta(max_length=type_.max_length)]
        case inspect.Metadata():
            return _known(type_.type)
        case inspect.UnionType():
            given = [member for member in type_.types if not isinstance(member, inspect.NoneType)]
            return _known(given[0]) if len(given) == 1 else Scalar
        case _:
            return Scalar


def _typed_dict(name: str, fields: dict[str, Any]) -> Any:
    """A TypedDict that is created at run time, which type checkers do not support."""
    return cast("Any", TypedDict)(name, fields, total=False)
