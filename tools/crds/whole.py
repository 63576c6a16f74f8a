"""The types of Kubernetes that the reference page and the descriptors describe as a whole.

They have many nested fields, which mean the same as in every other Kubernetes object.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import inspect

from memcached_api.scheduling import (
    LabelSelector,
    NodeAffinity,
    PodAffinity,
    PodAntiAffinity,
    PodSecurityContext,
    Toleration,
    TopologySpreadConstraint,
)

WHOLE: Final = (
    LabelSelector,
    NodeAffinity,
    PodAffinity,
    PodAntiAffinity,
    PodSecurityContext,
    Toleration,
    TopologySpreadConstraint,
)


def whole_fields(cls: type[Any], item: str = "[]") -> dict[str, type[Any]]:
    """The fields below a struct whose type is one of WHOLE, with that type. The key is the path of the field.

    `item`: what follows the name of a list in the path of a field of its entries.
    """
    return dict(_whole_fields(cls, "", item))


def _whole_fields(cls: type[Any], prefix: str, item: str) -> Iterator[tuple[str, type[Any]]]:
    for field in msgspec.structs.fields(cls):
        path = f"{prefix}{field.encode_name}"
        for struct, suffix in _structs(inspect.type_info(field.type), item):
            if struct in WHOLE:
                yield path, struct
            else:
                yield from _whole_fields(struct, f"{path}{suffix}.", item)


def _structs(type_: inspect.Type, item: str) -> Iterator[tuple[type[Any], str]]:
    """The structs of a type, each with what follows the field's name in the paths below."""
    match type_:
        case inspect.Metadata():
            yield from _structs(type_.type, item)
        case inspect.StructType():
            yield type_.cls, ""
        case inspect.UnionType():
            for member in type_.types:
                yield from _structs(member, item)
        case inspect.ListType():
            yield from ((struct, item) for struct, _ in _structs(type_.item_type, item))
        case _:
            return
