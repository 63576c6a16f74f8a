"""What the API server knows about the fields of a type: which lists are merged by key, and which values are one field.

The rules are those of structured-merge-diff v6 (`schema.Map`, `schema.List`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, cast

import msgspec

from memcached_operator.kube.resource import Object


@dataclass(frozen=True, eq=False)
class Type:
    """The type of a map or a list. Values of other types, and lists without `keys` or `unique`, are one field.

    `fields`: types of the fields by name. `item`: the type of all other values of a map, and of the items of a list.
    `named`: every key is a field of a struct, whether listed or not. `atomic`: a map that is one field. `keys`: a list
    that is a map with these keys, of which `defaults` has defaults. `unique`: a list that is a set of scalars. `kept`:
    the fields that a struct has even if they are not set, and their values then. `custom`: unknown fields are pruned,
    and `initial` has the defaults of fields.
    """

    fields: "Mapping[str, Type]" = field(default_factory=dict[str, "Type"])
    item: "Type | None" = None
    named: bool = False
    atomic: bool = False
    keys: tuple[str, ...] = ()
    unique: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    kept: Mapping[str, Any] = field(default_factory=dict[str, Any])
    custom: bool = False
    initial: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @cached_property
    def rest(self) -> "Type":
        """The type of the items of a list, and of the values of a map that are no fields."""
        return self.item or ANY

    def child(self, name: str) -> "Type":
        """The type of a field of a map."""
        return self.fields.get(name) or self.rest

    def is_field(self, name: str) -> bool:
        """Whether a key of a map is the name of a field: only maps with other keys are themselves members of sets."""
        return self.named or name in self.fields

    @property
    def merged(self) -> bool:
        """Whether a list is merged item by item."""
        return bool(self.keys) or self.unique

    def is_granular(self, value: Any) -> bool:
        """Whether a value consists of several fields."""
        if isinstance(value, dict):
            return not self.atomic
        return isinstance(value, list) and self.merged

    def element(self, item: Any) -> str:
        """The path element of an item of a merged list, such as `k:{"name":"x"}` or `v:"x"`."""
        if not self.keys:
            return f"v:{msgspec.json.encode(item).decode()}"
        found = cast("Object", item)
        keys = {key: found.get(key, self.defaults.get(key)) for key in sorted(self.keys)}
        present = {key: value for key, value in keys.items() if value is not None}
        return f"k:{msgspec.json.encode(present).decode()}"


ANY: Final = Type(named=True)
"""A struct of a built-in type in which every list is one field; also the type of scalars."""
UNTYPED: Type = Type()
"""A part of an object without a schema: every map is a map, every list is one field."""
object.__setattr__(UNTYPED, "item", UNTYPED)
MAP: Final = Type(item=ANY)
"""A map with any keys, such as labels."""
ATOMIC: Final = Type(named=True, atomic=True)
"""A struct that is one field."""
ATOMIC_MAP: Final = Type(item=ANY, atomic=True)
RAW: Final = Type(atomic=True)
"""A part of a built-in type without a schema (RawExtension), which is stored as it is."""
SET: Final = Type(unique=True)


def struct(fields: Mapping[str, Type] | None = None, **kept: Any) -> Type:
    """A struct of a built-in type. `kept`: see Type."""
    return Type(fields=fields or {}, named=True, kept=kept)


def keyed(*keys: str, item: Type = ANY, **defaults: Any) -> Type:
    """A list that is a map with these keys. `defaults`: see Type."""
    return Type(keys=keys, item=item, defaults=defaults)


def items(item: Type) -> Type:
    """A list that is one field, of items of this type."""
    return Type(item=item)


def empty(kind: Type) -> Object:
    """The object of a type of which nothing is set: Go's zero value in JSON."""
    found: Object = {}
    for name, value in kind.kept.items():
        found[name] = empty(kind.child(name)) if value == {} else value
    return found


def of_custom_resource(schema: Mapping[str, Any], metadata: Type) -> Type:
    """The type of a custom resource. `schema`: its `openAPIV3Schema`. `metadata`: the type of the metadata."""
    found = _converted(schema)
    own = {"apiVersion": ANY, "kind": ANY, "metadata": metadata}
    return replace(found, fields={**found.fields, **own})


def _converted(schema: Mapping[str, Any]) -> Type:
    """The type of a part of a structural schema (k8s.io/kube-openapi, pkg/schemaconv)."""
    if schema.get("x-kubernetes-preserve-unknown-fields") and "properties" not in schema:
        return UNTYPED
    if schema.get("type") == "array":
        keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        properties: Object = schema["items"].get("properties", {})
        defaults = {key: properties[key]["default"] for key in keys if "default" in properties[key]}
        is_set = schema.get("x-kubernetes-list-type") == "set"
        return Type(item=_converted(schema["items"]), keys=keys, unique=is_set, defaults=defaults, custom=True)
    if schema.get("type") != "object":
        return ANY
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    if isinstance(values := schema.get("additionalProperties"), dict):
        return Type(item=_converted(cast("Object", values)), atomic=atomic, custom=True)
    fields: Object = schema.get("properties", {})
    initial = {name: part["default"] for name, part in fields.items() if "default" in part}
    types = {name: _converted(part) for name, part in fields.items()}
    return Type(fields=types, atomic=atomic, custom=True, initial=initial)
