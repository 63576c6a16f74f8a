"""Compares live objects with desired objects. Pure functions on JSON trees."""

import hashlib
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from memcached_operator.kube.resource import Object

DROPPED_FIELDS = frozenset({("spec", "updateStrategy", "rollingUpdate", "maxUnavailable")})
"""Fields that a cluster drops if their feature gate is disabled (MaxUnavailableStatefulSet: by default up to 1.34, and
in some later versions). If the live object has no such field, it counts as current: applying it again has no effect."""

UNSTORED: Mapping[tuple[str, ...], Any] = {
    ("spec", "paused"): False,
    ("spec", "minReadySeconds"): 0,
    ("spec", "externalIPs"): [],
}
"""Values that the API server stores by leaving the field out, besides null."""

ATOMIC_FIELDS = frozenset(
    {
        "selector",
        "nodeSelector",
        "tolerations",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
        "labelSelector",
        "podSelector",
        "namespaceSelector",
        "ingress",
        "policyTypes",
    }
)
"""Values that Kubernetes replaces as a whole (`+structType=atomic`, `+listType=atomic`). An additional entry changes
their meaning: in a NetworkPolicy, it can admit more clients; in a toleration, it limits the taints."""


ALLOCATED_FIELDS = frozenset({"nodePort"})
"""Fields that Kubernetes allocates and keeps if the applied object omits them. Removing one from the intent changes
nothing, so they are not part of the digest. Their values are compared like those of all other fields."""

MERGE_KEYS = (("uid",), ("port", "protocol"), ("containerPort", "protocol"), ("name",))
"""The merge keys of lists: owner references, ports of a Service, ports of a container, and all other named entries."""


def fingerprint(obj: Object) -> str:
    """16 hex digits of a hash of the whole object."""
    return digest(encoded(obj))


def encoded(obj: Any) -> bytes:
    """The object as JSON, with the fields in alphabetical order."""
    return msgspec.json.encode(obj, order="deterministic")


def digest(text: bytes) -> str:
    """16 hex digits of a hash."""
    return hashlib.sha256(text).hexdigest()[:16]


def covers(live: Any, desired: Any) -> bool:
    """True if `live` has every desired value. Additional values in `live` are ignored."""
    return bool(projection(live, desired) == desired)


def projection(live: Any, desired: Any, path: tuple[str, ...] = ()) -> Any:
    """The values of `live` at the paths of `desired`, in the order of `desired`. Paths missing in `live` are omitted.

    Lists are matched by MERGE_KEYS, as the API server merges them. Other lists are matched item by item if they have
    the same length; otherwise the live list is returned as a whole. `path`: the names of the fields above.
    """
    # JSON has no other containers. A check of the abstract types, such as Mapping, takes ten times as long.
    if isinstance(desired, dict) and isinstance(live, dict):
        return _project_fields(cast("Object", live), cast("Object", desired), path)
    if isinstance(desired, list) and isinstance(live, list):
        return _project_items(cast("list[Any]", live), cast("list[Any]", desired))
    return live


def _project_fields(live: Object, desired: Object, path: tuple[str, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in desired.items():
        if name in ALLOCATED_FIELDS and not value:
            fields[name] = value  # 0 accepts any allocated value
        elif name in live:
            fields[name] = live[name] if name in ATOMIC_FIELDS else projection(live[name], value, (*path, name))
        elif (*path, name) in DROPPED_FIELDS or UNSTORED.get((*path, name)) == value:
            fields[name] = value
    return fields


def _project_items(live: list[Any], desired: list[Any]) -> list[Any]:
    for merge_key in MERGE_KEYS:
        desired_items = _by_merge_key(merge_key, desired)
        if desired_items and len(desired_items) == len(desired):
            live_items = _by_merge_key(merge_key, live)
            return [
                projection(live_items[key], item, _IN_LIST) for key, item in desired_items.items() if key in live_items
            ]
    if len(live) != len(desired):
        return live
    return [projection(one, other, _IN_LIST) for one, other in zip(live, desired, strict=True)]


_IN_LIST = ("[]",)
"""The path of an item of a list; DROPPED_FIELDS has none."""


def _by_merge_key(merge_key: tuple[str, ...], items: list[Any]) -> dict[tuple[Any, ...], Any]:
    """The items by merge key. Items whose merge key is not a number or a string in each part are left out."""
    maps = [cast("Object", item) for item in items if isinstance(item, dict)]
    keyed = [(tuple(item.get(part) for part in merge_key), item) for item in maps]
    return {key: item for key, item in keyed if all(isinstance(part, str | int) for part in key)}
