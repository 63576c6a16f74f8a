"""Kubernetes' own types, as far as our specs offer them.

`SCHEMA` names the type in Kubernetes' OpenAPI document: descriptions and list types of the CRD come from there, bounds
from here.
"""

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from .quantity import canonical
from .values import LEAST, MOST

LIST_BY_NAME: Final[dict[str, Any]] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
LIST_BY_TYPE: Final[dict[str, Any]] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}

# The spellings `quantity.parse` takes. Tighter than controller-tools' pattern only in that an exponent is a whole
# number (as apimachinery demands, too) of at most three digits.
QUANTITY: Final = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?"

# An int-or-string in the CRD. The end of a text is `$` there, but `\Z` to Python.
Quantity = Annotated[
    Annotated[int, Meta(ge=LEAST, le=MOST)] | Annotated[str, Meta(pattern=rf"^{QUANTITY}\Z", max_length=64)],
    Meta(extra_json_schema={"pattern": f"^{QUANTITY}$", "maxLength": 64}),
]

# Kubernetes itself knows five kinds of resources. Seven fit into half of CEL's cost budget, even on API servers before
# 1.34, which do not see the bound on a quantity's length.
Resources = Annotated[dict[str, Quantity], Meta(max_length=7)]


class LocalObjectReference(msgspec.Struct, frozen=True, rename="camel"):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.LocalObjectReference"

    name: Annotated[str, Meta(max_length=253)]
    """Name of an object of this namespace."""


class ResourceRequirements(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Without `claims`: dynamic resource allocation has no use for a cache."""

    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.ResourceRequirements"

    limits: Resources = {}
    requests: Resources = {}


class _KeySelector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    name: Annotated[str, Meta(min_length=1, max_length=253)]
    """Name of an object of this namespace."""

    key: Annotated[str, Meta(min_length=1, max_length=253)]
    """Key in its data."""

    optional: bool | None = None
    """Whether the pods start without it, too."""


class ConfigMapKeySelector(_KeySelector, frozen=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.ConfigMapKeySelector"


class SecretKeySelector(_KeySelector, frozen=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.SecretKeySelector"


class ObjectFieldSelector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.ObjectFieldSelector"

    api_version: Annotated[str, Meta(min_length=1, max_length=63)] | None = None
    field_path: Annotated[str, Meta(min_length=1, max_length=512)]


class ResourceFieldSelector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Without `containerName`: there is but one container."""

    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.ResourceFieldSelector"

    resource: Annotated[str, Meta(min_length=1, max_length=63)]
    divisor: Quantity | None = None


class EnvVarSource(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Without `fileKeyRef`: there are no volumes."""

    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.EnvVarSource"

    config_map_key_ref: ConfigMapKeySelector | None = None
    secret_key_ref: SecretKeySelector | None = None
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None


class EnvVar(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.EnvVar"

    name: Annotated[str, Meta(max_length=253)]
    """Name of the variable: letters, digits, `_`, `-` and `.`, no digit first."""

    value: Annotated[str, Meta(max_length=65536)] | None = None
    value_from: EnvVarSource | None = None


def stored(env: EnvVar) -> dict[str, Any]:
    """The variable in the spelling in which the API server stores it: equal where it is equal for a container."""
    entry = msgspec.to_builtins(env)
    if not env.value:
        entry.pop("value", None)  # an empty one is not stored
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
    """Name of the port, unique in the list. When there are several ports, admission names those without a name
    `<protocol>-<port>`, such as `tcp-80`."""

    protocol: Literal["TCP", "UDP", "SCTP"] = "TCP"
    """`TCP`, `UDP` or `SCTP`."""

    port: PortNumber
    """Port of the Service."""

    target_port: TargetPort | None = None
    """Port the program listens on: its number, or the name of another entry of the list that has the number. When
    absent, the same as `port`."""

    node_port: Annotated[int, Meta(ge=30000, le=32767)] | None = None
    """Port on every node. When absent, Kubernetes chooses one, and it stays for as long as the port keeps its number
    or its name."""

    app_protocol: Annotated[str, Meta(max_length=317)] | None = None
    """Protocol of the application, a hint for load balancers: a standard name such as `http`, or one with a domain
    before it such as `kubernetes.io/h2c`."""
