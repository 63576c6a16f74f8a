"""The size of a reconcile, which anyone decides: decoded and planned, objects take up to 30 times as much memory."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from memcached_operator.kube.resource import PODS, Key, Object
from memcached_operator.world.kind import WatchedKind
from memcached_operator.world.store import Entry, Store

MAX_PODS: Final = 6 * 2**20
"""Bytes as JSON of the pods in one snapshot. A thousand pods with agents have half of it. Decoded, small values take 10
times as much memory."""


class _Head(msgspec.Struct):
    metadata: "_Metadata"


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    labels: dict[str, str] = {}
    owner_references: list[dict[str, Any]] = []


_DECODER = msgspec.json.Decoder(_Head)


class Sizes:
    """The bytes as JSON that a reconcile of an object decodes."""

    def __init__(self, store: Store, kinds: Iterable[WatchedKind]) -> None:
        self._store = store
        self._kinds = {kind.resource: kind for kind in kinds}

    def of(self, key: Key) -> int:
        """The bytes of a custom resource, of its children and of its pods; 0 if it is not known."""
        cr, kind = self._store.entry(key), self._kinds[key.resource]
        if cr is None:
            return 0
        uid = _DECODER.decode(cr.json).metadata.uid
        children = (child for resource in kind.owns for child in self._store.owned_by(resource, key.namespace, uid))
        pods = self._store.keys_of_instance(PODS, key.namespace, kind.app_name, key.name)
        return sum(map(self._store.bytes_of, (key, *children))) + min(MAX_PODS, sum(map(self._store.bytes_of, pods)))


def head(entry: Entry) -> Object:
    """The labels and owner references of an object, without decoding the rest."""
    found = _DECODER.decode(entry.json).metadata
    return {"metadata": {"labels": found.labels, "ownerReferences": found.owner_references}}


def smallest(entries: Iterable[Entry]) -> Iterator[Object]:
    """The objects up to MAX_PODS bytes, the smallest first: copies with more content must not displace real pods."""
    left = MAX_PODS
    for entry in sorted(entries, key=lambda entry: len(entry.json)):
        left -= len(entry.json)
        if left < 0:
            break
        yield entry.object()
