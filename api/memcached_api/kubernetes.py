"""Kubernetes' own types, as far as our specs offer them.

`SCHEMA` names the type in Kubernetes' OpenAPI document: descriptions and list types of the CRD come from there, bounds
from here.
"""

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

# The spellings a quantity may have: sigs.k8s.io/controller-tools' pattern for resource.Quantity.
_NUMBER: Final = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_QUANTITY: Final = rf"^(\+|-)?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_NUMBER}))?$"

# An int-or-string in the CRD. Floats are decoded too: the API server takes 3.0 for 3.
Quantity = Annotated[int | str | float, Meta(extra_json_schema={"pattern": _QUANTITY, "maxLength": 64})]

# At most 16 kinds of resources in a map: Kubernetes itself knows five, and CEL's cost budget needs a bound.
Resources = Annotated[dict[str, Quantity], Meta(max_length=16)]


class LocalObjectReference(msgspec.Struct, frozen=True, rename="camel"):
    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.LocalObjectReference"

    name: Annotated[str, Meta(max_length=253)]
    """Name of an object of this namespace."""


class ResourceRequirements(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Without `claims`: dynamic resource allocation has no use for a cache."""

    SCHEMA: ClassVar[str] = "io.k8s.api.core.v1.ResourceRequirements"

    limits: Resources = {}
    requests: Resources = {}
