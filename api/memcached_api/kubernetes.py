"""Kubernetes types that the specs use.

`SCHEMA` is the type's name in the OpenAPI document of Kubernetes, which provides descriptions and list types for the
CRD. The bounds are defined here.
"""

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from memcached_api.effects import Effect, FieldEffect, Needs, Part
from memcached_api.quantity import canonical, canonical_resource, parse_quantity
from memcached_api.values import MAX_INTEGER, MIN_INTEGER

LIST_BY_NAME: Final[dict[str, Any]] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
LIST_BY_TYPE: Final[dict[str, Any]] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}

# The syntax that `parse_quantity` accepts. It differs from controller-tools' pattern only in the exponent: an integer,
# as in apimachinery, of at most three digits.
QUANTITY: Final = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?"

# An int-or-string in the CRD. The end of a string is `$` in the CRD's patterns and `\Z` in Python's, where `$` also
# matches before a final newline.
Quantity = Annotated[
    Annotated[int, Meta(ge=MIN_INTEGER, le=MAX_INTEGER)]
    | Annotated[str, Meta(pattern=rf"^{QUANTITY}\Z", max_length=64)],
    Meta(extra_json_schema={"pattern": f"^{QUANTITY}$", "maxLength": 64}),
]

# Kubernetes itself defines five kinds of resources. Seven fit into half of CEL's cost budget, even on API servers
# before 1.34, which ignore the bound on a quantity's length.
ResourceList = Annotated[dict[str, Quantity], Meta(max_length=7)]


class LocalObjectReference(msgspec.Struct, frozen=True, rename="camel"):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.LocalObjectReference"

    name: Annotated[str, Meta(max_length=253)]
    """Name of an object in this namespace."""


class ResourceRequirements(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """ResourceRequirements without `claims`: dynamic resource allocation is not supported."""

    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.ResourceRequirements"

    limits: ResourceList = {}
    requests: ResourceList = {}


def _numbers(resources: ResourceRequirements) -> list[dict[str, object]]:
    """Limits and requests as numbers."""
    return [
        {name: parse_quantity(canonical_resource(amount)) for name, amount in part.items()}
        for part in (resources.limits, resources.requests)
    ]


_AMOUNTS: Final = FieldEffect(Effect.RESIZE, Needs.AMOUNTS, Part.RESOURCES, sizes=True)
Resources = Annotated[ResourceRequirements, _AMOUNTS.unless(_numbers(ResourceRequirements()), _numbers)]
"""The compute resources of a container of a custom resource."""


class _KeySelector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    name: Annotated[str, Meta(min_length=1, max_length=253)]
    """Name of an object in this namespace."""

    key: Annotated[str, Meta(min_length=1, max_length=253)]
    """Key in the object's data."""

    optional: bool | None = None
    """Whether the pods start even if the object or the key does not exist."""


class ConfigMapKeySelector(_KeySelector, frozen=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.ConfigMapKeySelector"


class SecretKeySelector(_KeySelector, frozen=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.SecretKeySelector"


class ObjectFieldSelector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.ObjectFieldSelector"

    api_version: Annotated[str, Meta(min_length=1, max_length=63)] | None = None
    field_path: Annotated[str, Meta(min_length=1, max_length=512)]


class ResourceFieldSelector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A ResourceFieldSelector without `containerName`, because a pod has only one container."""

    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.ResourceFieldSelector"

    resource: Annotated[str, Meta(min_length=1, max_length=63)]
    divisor: Quantity | None = None


class EnvVarSource(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An EnvVarSource without `fileKeyRef`, because the pods have no volumes."""

    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.EnvVarSource"

    config_map_key_ref: ConfigMapKeySelector | None = None
    secret_key_ref: SecretKeySelector | None = None
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None


class EnvVar(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.EnvVar"

    name: Annotated[str, Meta(max_length=253)]
    """Name of the variable: letters, digits, `_`, `-` and `.`. It must not start with a digit."""

    value: Annotated[str, Meta(max_length=65536)] | None = None
    value_from: EnvVarSource | None = None


def canonical_env(env: EnvVar) -> dict[str, Any]:
    """The variable in canonical form, as the API server stores it. Variables with the same effect are equal."""
    entry = msgspec.to_builtins(env)
    if not env.value:
        entry.pop("value", None)  # the API server does not store an empty value
    source = env.value_from and env.value_from.resource_field_ref
    if source and source.divisor is not None:
        entry["valueFrom"]["resourceFieldRef"]["divisor"] = canonical(source.divisor)
    return entry


PortNumber = Annotated[int, Meta(ge=1, le=65535)]
TargetPort = Annotated[
    PortNumber | Annotated[str, Meta(max_length=15)],
    Meta(extra_json_schema={"maxLength": 15}),
]


class ServicePort(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.ServicePort"

    name: Annotated[str, Meta(max_length=63)] | None = None
    """Name of the port, unique in the list. If the list contains several ports, it defaults to `<protocol>-<port>`,
    such as `tcp-80`."""

    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    """`TCP`, `UDP` or `SCTP`. Defaults to `TCP`."""

    port: PortNumber
    """Port of the Service."""

    target_port: TargetPort | None = None
    """Port that the container listens on: a number, or the name of another entry of the list that sets a numeric
    `targetPort`. Defaults to `port`."""

    node_port: PortNumber | None = None
    """Port on every node, in the range of the cluster, by default 30000–32767. If absent, Kubernetes allocates one. It
    is kept as long as the number or the name of the port stays the same."""

    app_protocol: Annotated[str, Meta(max_length=317)] | None = None
    """Application protocol, a hint for load balancers: a standard name such as `http`, or a name with a domain prefix
    such as `kubernetes.io/h2c`."""
