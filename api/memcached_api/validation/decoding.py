"""Decodes objects from JSON, without the fields that no rule reads: an unknown field of any size takes no memory."""

from functools import cache
from typing import Annotated, Any, Final, TypedDict, Union, cast

import msgspec
from msgspec import Meta, inspect

from memcached_api.validation.field_errors import FieldError, SpecDecodeError

MAX_OBJECT_SIZE: Final = 2 * 2**20
"""Maximum bytes of an object. etcd accepts at most 1.5 MiB (its default `--max-request-bytes`)."""

MAX_CHECKED_SIZE: Final = 256 * 2**10
"""Maximum bytes of a spec with type errors that is decoded as a whole, which takes up to 25 times its size."""

_NULL: Final = b"null"

Scalar = str | int | float | bool | None


def decode_object(raw: bytes, spec: type[msgspec.Struct]) -> Any:
    """The object in `raw`, with the metadata that admission reads and the known fields of the spec.

    If a value has a wrong type, the whole spec is returned, so that all errors can be reported. Raises SpecDecodeError
    if the spec is too large for that; msgspec.DecodeError, UnicodeDecodeError or RecursionError if `raw` is not JSON,
    is nested too deeply, or has a number out of range.
    """
    if len(raw) == len(_NULL) and bytes(raw) == _NULL:
        return None
    if len(raw) > MAX_OBJECT_SIZE:
        raise SpecDecodeError(
            [
                FieldError(
                    "spec",
                    len(raw),
                    f"the object must be at most {MAX_OBJECT_SIZE} bytes; the API server stores no more",
                )
            ]
        )
    try:
        return _decoder(spec).decode(raw)
    except msgspec.ValidationError as error:
        return _decode_whole(raw, error)


def _decode_whole(raw: bytes, error: msgspec.ValidationError) -> Any:
    try:
        obj = _PARTIAL_DECODER.decode(raw)
    except msgspec.ValidationError:
        obj = {"spec": msgspec.Raw(raw)}
        if len(raw) <= MAX_CHECKED_SIZE:
            return msgspec.json.decode(raw)
    raw_spec = obj.get("spec") or msgspec.Raw(b"null")
    if len(bytes(raw_spec)) > MAX_CHECKED_SIZE:
        message = f"{error}; only the first error of a spec of more than {MAX_CHECKED_SIZE} bytes is reported"
        raise SpecDecodeError([FieldError("spec", len(bytes(raw_spec)), message)])
    return {**obj, "spec": msgspec.json.decode(raw_spec)}


class _Metadata(TypedDict, total=False):
    name: Scalar
    generateName: Scalar
    deletionTimestamp: Scalar


class _PartialObject(TypedDict, total=False):
    metadata: _Metadata | None
    spec: msgspec.Raw


_PARTIAL_DECODER: Final = msgspec.json.Decoder(_PartialObject)


@cache
def _decoder(spec: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    fields = {"metadata": _Metadata | None, "spec": _known_fields(inspect.type_info(spec)) | None}
    return msgspec.json.Decoder(_typed_dict("Object", fields))


def _known_fields(type_: inspect.Type) -> Any:
    """The type that decodes the JSON of a spec type to dicts, lists and scalars, with known fields only."""
    match type_:
        case inspect.StructType():
            fields = {field.encode_name: Union[_known_fields(field.type), None] for field in type_.fields}  # noqa: UP007
            return _typed_dict(type_.cls.__name__, fields)
        case inspect.ListType():
            return Annotated[list[Union[_known_fields(type_.item_type), None]], Meta(max_length=type_.max_length)]  # noqa: UP007
        case inspect.DictType():
            value = Union[_known_fields(type_.value_type), None]  # noqa: UP007
            return Annotated[dict[str, value], Meta(max_length=type_.max_length)]
        case inspect.Metadata():
            return _known_fields(type_.type)
        case inspect.UnionType():
            members = [member for member in type_.types if not isinstance(member, inspect.NoneType)]
            return _known_fields(members[0]) if len(members) == 1 else Scalar
        case _:
            return Scalar


def _typed_dict(name: str, fields: dict[str, Any]) -> Any:
    """A TypedDict that is created at run time, which type checkers do not support."""
    return cast("Any", TypedDict)(name, fields, total=False)
