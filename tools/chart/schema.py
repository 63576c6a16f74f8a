"""values.schema.json: Helm rejects other values and unknown names before it sends anything."""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from crds.schema import struct_schema
from memcached_api.kubernetes import LocalObjectReference, ResourceRequirements
from memcached_api.scheduling import Affinity, Toleration
from memcached_api.shared.pod_template import NetworkPolicyPeer
from memcached_api.values import is_object

Schema = dict[str, Any]

STRING: Final[Schema] = {"type": "string"}
STRINGS: Final[Schema] = {"type": "array", "items": STRING}
BOOLEAN: Final[Schema] = {"type": "boolean"}
REPLICAS: Final[Schema] = {"type": "integer", "minimum": 1}
REPOSITORY: Final[Schema] = {"type": "string", "minLength": 1, "pattern": "^[^@\\s]+$"}
IMAGE_TAG: Final[Schema] = {"type": "string", "pattern": "^([A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$"}
DIGEST: Final[Schema] = {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}
DOMAIN: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": 75}
NAMESPACES: Final[Schema] = {
    "type": "array",
    "uniqueItems": True,
    "items": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"},
}
RESERVED: Final = (
    r"app\.kubernetes\.io/(component|instance|managed-by|name)",
    r"cert-manager\.io/inject-ca-from",
    "control-plane",
    "grafana_dashboard",
    r"kubectl\.kubernetes\.io/default-container",
    r"(meta\.)?helm\.sh/.*",
    r"rbac\.authorization\.k8s\.io/.*",
)
"""Labels and annotations that the chart sets itself: in YAML, a key must not occur twice."""
LABELS: Final[Schema] = {
    "type": "object",
    "propertyNames": {"not": {"pattern": f"^({'|'.join(RESERVED)})$"}},
    "additionalProperties": STRING,
}
OTHERS: Final[Mapping[str, Schema]] = {
    "global": {"description": "Values of a parent chart. The chart uses none.", "type": "object"},
    "enabled": {"description": "For the condition of a parent chart. The chart ignores it.", **BOOLEAN},
}
"""Names that Helm or a parent chart writes."""
TYPES: Final = (Affinity, LocalObjectReference, NetworkPolicyPeer, ResourceRequirements, Toleration)
"""Types of Kubernetes that values have: as in our CRDs, without unknown fields."""
_KEPT: Final = (
    "additionalProperties", "anyOf", "description", "enum", "items", "maxItems", "maxLength", "maxProperties",
    "maximum", "minItems", "minLength", "minimum", "pattern", "properties", "required", "type",
)  # fmt: skip


def choice(*names: str) -> Schema:
    """One of some strings."""
    return {"type": "string", "enum": list(names)}


def many(items: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": items}


def kubernetes(cls: type[msgspec.Struct]) -> Schema:
    """One of TYPES."""
    return {"$ref": f"#/definitions/{cls.__name__}"}


def closed(properties: Schema, description: str = "") -> Schema:
    """An object with these properties only."""
    text = {"description": description} if description else {}
    return {**text, "type": "object", "properties": properties, "additionalProperties": False}


def document(properties: Schema) -> Schema:
    """The whole schema."""
    definitions = {cls.__name__: _closed(struct_schema(cls)) for cls in TYPES}
    root = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": definitions}
    return root | closed({**properties, **OTHERS})


def _closed(schema: Schema) -> Schema:
    found = {key: value for key, value in schema.items() if key in _KEPT}
    for key in ("items", "additionalProperties"):
        if is_object(found.get(key)):
            found[key] = _closed(found[key])
    if "properties" in found:
        properties = cast("Schema", found["properties"])
        found["properties"] = {name: _closed(each) for name, each in properties.items()}
        found["additionalProperties"] = False
    return found
