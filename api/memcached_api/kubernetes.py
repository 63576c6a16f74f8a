"""Kubernetes' own types, as far as our specs offer them.

`SCHEMA` names the type in Kubernetes' OpenAPI document: descriptions and list types of the CRD come from there, bounds
from here.
"""

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

# The spellings `quantity.parse` takes. Tighter than controller-tools' pattern only in that an exponent is a whole
# number (as apimachinery demands, too) of at most three digits.
QUANTITY: Final = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?"

# An int-or-string in the CRD. The end of a text is `$` there, but `\Z` to Python.
Quantity = Annotated[
    int | Annotated[str, Meta(pattern=rf"^{QUANTITY}\Z", max_length=64)],
    Meta(extra_json_schema={"pattern": f"^{QUANTITY}$", "maxLength": 64}),
]

# Kubernetes itself knows five kinds of resources. Seven fit CEL's cost budget even on API servers that do not yet see
# the bound on a quantity's length.
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
