"""Does a live object already say what we want? Pure comparisons of JSON trees."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, cast

import msgspec

from memcached_operator.kube.resource import Object

INTENT = "memcached-operator.example.com/intent"
"""Annotation of every child: a digest of what was last applied. It shows that a field was *removed* from the intent,
which a comparison of values alone cannot see."""

ATOMIC = frozenset({"selector", "nodeSelector"})
"""Maps that Kubernetes replaces as a whole (`+structType=atomic`): a foreign entry changes the meaning of ours."""


ALLOCATED = frozenset({"nodePort"})
"""Fields that Kubernetes fills in and keeps where nobody names a value. To name no longer one that is in effect leaves
nothing over, so these are no part of the digest; their values are compared as all others are."""

MERGE_KEYS = (("uid",), ("port", "protocol"), ("containerPort", "protocol"), ("name",))
"""By what the API server matches the entries of a list: owner references, ports of a Service and of a container, and
everything else that has a name."""


def digest(obj: Object) -> str:
    """16 hex digits that change whenever the intent does."""
    return fingerprint(_chosen(obj))


def fingerprint(obj: Object) -> str:
    """16 hex digits that change whenever anything does."""
    return hashlib.sha256(msgspec.json.encode(obj, order="deterministic")).hexdigest()[:16]


def _chosen(value: Any) -> Any:
    """The value without what is ALLOCATED."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {name: _chosen(item) for name, item in fields if name not in ALLOCATED}
    return [_chosen(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def signed(obj: Object) -> Object:
    """The intent with its own digest in the INTENT annotation."""
    meta = obj["metadata"]
    annotations = {**meta.get("annotations", {}), INTENT: digest(obj)}
    return {**obj, "metadata": {**meta, "annotations": annotations}}


def covers(live: Any, desired: Any) -> bool:
    """True where every desired value stands in `live`; what others added beside it does not matter."""
    return bool(owned(live, desired) == desired)


def owned(live: Any, desired: Any) -> Any:
    """The values of `live` at the paths of `desired`, in the order of `desired`; a path that `live` lacks is left out.

    Lists are matched by MERGE_KEYS, as the API server merges them; any other list is matched item by item if it has the
    same length, else it is returned whole.
    """
    if isinstance(desired, Mapping) and isinstance(live, Mapping):
        return _owned_fields(cast("Mapping[str, Any]", live), cast("Mapping[str, Any]", desired))
    if _is_list(desired) and _is_list(live):
        return _owned_items(live, desired)
    return live


def _owned_fields(live: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in desired.items():
        if name in ALLOCATED and not value:
            found[name] = value  # a 0 there asks for any value
        elif name in live:
            found[name] = live[name] if name in ATOMIC else owned(live[name], value)
    return found


def _owned_items(live: Sequence[Any], desired: Sequence[Any]) -> Sequence[Any]:
    for merge_key in MERGE_KEYS:
        mine = _by(merge_key, desired)
        if mine and len(mine) == len(desired):
            found = _by(merge_key, live)
            return [owned(found[key], item) for key, item in mine.items() if key in found]
    return [*map(owned, live, desired)] if len(live) == len(desired) else live


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _by(merge_key: tuple[str, ...], items: Sequence[Any]) -> dict[tuple[Any, ...], Any]:
    """The items that have a number or a text under each part of the merge key, by these."""
    maps = [cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)]
    keyed = [(tuple(item.get(part) for part in merge_key), item) for item in maps]
    return {key: item for key, item in keyed if all(isinstance(part, str | int) for part in key)}
