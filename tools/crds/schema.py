"""msgspec types → structural OpenAPI v3 schemas, as a CRD holds them."""

from collections.abc import Callable
from typing import Any, Final, cast

import msgspec
from msgspec import NODEFAULT, inspect

from crds import snapshot
from crds.descriptions import field_descriptions, kubernetes_type, type_description
from memcached_api import scheduling

Schema = dict[str, Any]

_INT32: Final = 2**31 - 1


_KNOWN: Final = (
    scheduling.LabelSelector,
    scheduling.LabelSelectorRequirement,
    scheduling.NodeAffinity,
    scheduling.NodeSelector,
    scheduling.NodeSelectorRequirement,
    scheduling.NodeSelectorTerm,
    scheduling.PodAffinity,
    scheduling.PodAffinityTerm,
    scheduling.PodAntiAffinity,
    scheduling.PreferredSchedulingTerm,
    scheduling.Toleration,
    scheduling.WeightedPodAffinityTerm,
)
"""Types without descriptions: they are known from every pod, and a CRD has them up to 14 times."""


def struct_schema(cls: type[msgspec.Struct]) -> Schema:
    """The schema of a struct with everything below it. Raises KeyError for a type that CRDs cannot express."""
    return _schema(inspect.type_info(cls))


def _schema(type_: inspect.Type) -> Schema:
    return _SCHEMAS[type(type_)](type_)


def _struct(type_: inspect.StructType) -> Schema:
    schema: Schema = {"description": type_description(type_.cls), "type": "object"}
    if required := [field.encode_name for field in type_.fields if field.required]:
        schema["required"] = required
    schema["properties"] = {field.encode_name: _field(field, type_.cls) for field in type_.fields}
    return schema | _markers(type_.cls)


def _field(field: inspect.Field, cls: type[msgspec.Struct]) -> Schema:
    schema = _schema(field.type)
    schema.pop("description", None)  # that of the type; the field's own says more
    if (default := _default(field)) is not None:
        schema["default"] = default
    return schema if cls in _KNOWN else {"description": field_descriptions(cls)[field.encode_name], **schema}


def _default(field: inspect.Field) -> Any:
    """The default that the API server is to write: an empty list, map or optional field is rather left out."""
    if field.default is not NODEFAULT:
        return field.default or None
    return {} if isinstance(field.type, inspect.StructType) and not field.required else None


def _markers(cls: type[msgspec.Struct]) -> Schema:
    """What Kubernetes says of its own type beyond a description, such as `x-kubernetes-map-type: atomic`."""
    name = kubernetes_type(cls)
    return {key: value for key, value in snapshot.described(name).items() if key.startswith("x-")} if name else {}


def _boolean(_: inspect.BoolType) -> Schema:
    return {"type": "boolean"}


def _integer(type_: inspect.IntType) -> Schema:
    schema: Schema = {"type": "integer", "format": "int32" if (type_.le or 2**63) <= _INT32 else "int64"}
    bounds = {"minimum": type_.ge, "maximum": type_.le}
    return schema | {key: bound for key, bound in bounds.items() if bound is not None}


def _string(type_: inspect.StrType) -> Schema:
    bounds = {"minLength": type_.min_length, "maxLength": type_.max_length}
    return {"type": "string"} | {key: bound for key, bound in bounds.items() if bound is not None}


def _list(type_: inspect.ListType) -> Schema:
    bound = {} if type_.max_length is None else {"maxItems": type_.max_length}
    # GitOps tools compare a list as a whole: a default that the API server writes into an item would be a difference.
    items = without(_schema(type_.item_type), "default")
    items.pop("description", None)  # the field of the list has one
    return {"type": "array", **bound, "items": items}


def without(schema: Schema, keyword: str) -> Schema:
    """The schema without a keyword, such as `description`. The keys of `properties` are names of fields."""
    bare = {key: value for key, value in schema.items() if key != keyword}
    if "properties" in bare:
        bare["properties"] = {name: without(field, keyword) for name, field in bare["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in bare:
            bare[key] = without(bare[key], keyword)
    return bare


def _map(type_: inspect.DictType) -> Schema:
    bound = {} if type_.max_length is None else {"maxProperties": type_.max_length}
    return {"type": "object", **bound, "additionalProperties": _schema(type_.value_type)}


def _choice(type_: inspect.LiteralType) -> Schema:
    return {"type": "string", "enum": list(type_.values)}


def _union(type_: inspect.UnionType) -> Schema:
    """`X | None` is an optional X; every other union of ours is an integer or a string."""
    given = [member for member in type_.types if not isinstance(member, inspect.NoneType)]
    if len(given) == 1:
        return _schema(given[0])
    return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


def _annotated(type_: inspect.Metadata) -> Schema:
    return _schema(type_.type) | cast("Schema", type_.extra_json_schema or {})


_SCHEMAS: Final[dict[type, Callable[[Any], Schema]]] = {
    inspect.StructType: _struct,
    inspect.DictType: _map,
    inspect.ListType: _list,
    inspect.BoolType: _boolean,
    inspect.IntType: _integer,
    inspect.StrType: _string,
    inspect.LiteralType: _choice,
    inspect.UnionType: _union,
    inspect.Metadata: _annotated,
}
