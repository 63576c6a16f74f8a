"""Compares live objects with desired objects. Pure functions on JSON trees."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from memcached_operator.kube.resource import Object

UNSTORED: Mapping[tuple[str, ...], object] = {
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


def fingerprint(obj: object) -> str:
    """16 hex digits of a hash of the whole object. It must stay the same: annotations of pods and workloads have it."""
    return digest(encoded(obj))


def encoded(obj: object) -> bytes:
    """The object as JSON, with the fields in alphabetical order."""
    return msgspec.json.encode(obj, order="deterministic")


def digest(text: bytes) -> str:
    """16 hex digits of a hash."""
    return hashlib.sha256(text).hexdigest()[:16]


def covers(live: object, desired: object, path: tuple[str, ...] = ()) -> bool:
    """True if `live` has every desired value: if `projection(live, desired)` equals `desired`.

    Additional values in `live` are ignored. `path`: the names of the fields above. It builds nothing and ends at the
    first difference, because each reconcile compares every child.
    """
    if live == desired:  # most parts are equal, and Python compares trees much faster than this function
        return True
    if isinstance(desired, dict) and isinstance(live, dict):
        return _covers_fields(cast("Object", live), cast("Object", desired), path)
    if isinstance(desired, list) and isinstance(live, list):
        pairs = _pairs(cast("list[object]", live), cast("list[object]", desired))
        return pairs is not None and all(covers(other, item, _IN_LIST) for other, item in pairs)
    return False


def _covers_fields(live: Object, desired: Object, path: tuple[str, ...]) -> bool:
    for name, value in desired.items():
        other = live.get(name, _MISSING)
        if other == value or (name in ALLOCATED_FIELDS and not value):  # 0 accepts any allocated value
            continue
        if other is _MISSING:
            if not _is_absent(path, name, value):
                return False
        elif name in ATOMIC_FIELDS or not covers(other, value, (*path, name)):
            return False
    return True


def _is_absent(path: tuple[str, ...], name: str, value: object) -> bool:
    """Whether a live object without a field has its desired value."""
    return UNSTORED.get((*path, name)) == value


def projection(live: object, desired: object, path: tuple[str, ...] = ()) -> object:
    """The values of `live` at the paths of `desired`, in the order of `desired`. Paths missing in `live` are omitted.

    Lists are matched by MERGE_KEYS, as the API server merges them. Other lists are matched item by item if they have
    the same length; otherwise the live list is returned as a whole. `path`: the names of the fields above.
    """
    # JSON has no other containers. A check of the abstract types, such as Mapping, takes ten times as long.
    if isinstance(desired, dict) and isinstance(live, dict):
        return _project_fields(cast("Object", live), cast("Object", desired), path)
    if isinstance(desired, list) and isinstance(live, list):
        pairs = _pairs(cast("list[object]", live), cast("list[object]", desired))
        if pairs is not None:
            return [projection(other, item, _IN_LIST) for other, item in pairs if other is not _MISSING]
    return cast("Any", live)


def _project_fields(live: Object, desired: Object, path: tuple[str, ...]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for name, value in desired.items():
        if name in ALLOCATED_FIELDS and not value:
            fields[name] = value
        elif name in live:
            fields[name] = live[name] if name in ATOMIC_FIELDS else projection(live[name], value, (*path, name))
        elif _is_absent(path, name, value):
            fields[name] = value
    return fields


_MISSING: Final = object()
"""Stands for a live item that does not exist."""


def _pairs(live: list[object], desired: list[object]) -> list[tuple[object, object]] | None:
    """Each desired item after its live one, or after _MISSING; None for lists that cannot be matched."""
    for merge_key in MERGE_KEYS:
        if not desired or not isinstance(desired[0], dict) or merge_key[0] not in desired[0]:
            continue
        desired_items = _by_merge_key(merge_key, desired)
        if desired_items and len(desired_items) == len(desired):
            live_items = _by_merge_key(merge_key, live)
            return [(live_items.get(key, _MISSING), item) for key, item in desired_items.items()]
    return list(zip(live, desired, strict=True)) if len(live) == len(desired) else None


_IN_LIST = ("[]",)
"""The path of an item of a list; UNSTORED has none."""


def _by_merge_key(merge_key: tuple[str, ...], items: list[object]) -> dict[tuple[object, ...], object]:
    """The items by merge key. Items whose merge key is not a number or a string in each part are left out."""
    maps = [cast("Object", item) for item in items if isinstance(item, dict)]
    keyed = [(tuple(item.get(part) for part in merge_key), item) for item in maps]
    return {key: item for key, item in keyed if all(isinstance(part, str | int) for part in key)}
