"""The size of a reconcile, which anyone decides: decoded and planned, objects take up to 30 times as much memory."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from memcached_operator.kube.resource import PODS, Key
from memcached_operator.world.kind import WatchedKind
from memcached_operator.world.pod import Head, Pod, decoded
from memcached_operator.world.store import Entry, Store

MAX_PODS: Final = 6 * 2**20
"""Bytes as JSON of the pods in one snapshot. A thousand pods with agents have half of it. Decoded, small values take 10
times as much memory."""


class _Object(msgspec.Struct):
    metadata: Head


_DECODER = msgspec.json.Decoder(_Object)


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


def head(entry: Entry) -> Head:
    """The labels and owner references of an object, without decoding the rest. Without any if they are not valid."""
    try:
        return _DECODER.decode(entry.json).metadata
    except msgspec.ValidationError:
        return Head()


def smallest(entries: Iterable[Entry]) -> Iterator[Pod]:
    """The pods up to MAX_PODS bytes, the smallest first: copies with more content must not displace real pods."""
    left = MAX_PODS
    for entry in sorted(entries, key=lambda entry: len(entry.json)):
        left -= len(entry.json)
        if left < 0:
            break
        if (pod := decoded(entry.json)) is not None:
            yield pod
