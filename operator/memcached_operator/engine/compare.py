"""Does a live object already say what we want? Pure comparisons of JSON trees."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from memcached_operator.engine.resource import Object

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
    """True where every desired value stands in `live`; what others added beside it does not matter.

    Lists are matched by MERGE_KEYS, as the API server merges them; any other list must be equal item by item.
    """
    if isinstance(desired, Mapping):
        if not isinstance(live, Mapping):
            return False
        mine, theirs = cast("Mapping[str, Any]", desired), cast("Mapping[str, Any]", live)
        return all(
            name in theirs and (theirs[name] == value if name in ATOMIC else covers(theirs[name], value))
            for name, value in mine.items()
            # A 0 there asks for any value.
            if value or name not in ALLOCATED
        )
    if isinstance(desired, Sequence) and not isinstance(desired, str):
        return _covers_list(live, cast("Sequence[Any]", desired))
    return bool(live == desired)


def _covers_list(live: Any, desired: Sequence[Any]) -> bool:
    if not isinstance(live, Sequence) or isinstance(live, str):
        return False
    theirs = cast("Sequence[Any]", live)
    for merge_key in MERGE_KEYS:
        mine = _by(merge_key, desired)
        if mine and len(mine) == len(desired):
            found = _by(merge_key, theirs)
            return all(key in found and covers(found[key], item) for key, item in mine.items())
    return len(theirs) == len(desired) and all(map(covers, theirs, desired))


def _by(merge_key: tuple[str, ...], items: Sequence[Any]) -> dict[tuple[Any, ...], Any]:
    """The items that have a number or a text under each part of the merge key, by these."""
    maps = [cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)]
    keyed = [(tuple(item.get(part) for part in merge_key), item) for item in maps]
    return {key: item for key, item in keyed if all(isinstance(part, str | int) for part in key)}
