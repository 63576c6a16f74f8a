"""The snapshot of Kubernetes' own types. `make generated` shows outdated files."""

from typing import Any

import msgspec

from crds import snapshot
from crds.descriptions import kubernetes_type
from memcached_api import conditions, kubernetes, scheduling

TYPES: dict[str, Any] = {
    name: found
    for module in (conditions, kubernetes, scheduling)
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, msgspec.Struct) and (name := kubernetes_type(found))
}
"""Our structs for types of Kubernetes, by the name of the type."""


def test_our_types_of_kubernetes_have_only_fields_of_kubernetes() -> None:
    assert TYPES.keys() == set(snapshot.TYPES)
    for name, struct in TYPES.items():
        assert set(struct.__struct_encode_fields__) <= snapshot.described(name)["properties"].keys(), name
