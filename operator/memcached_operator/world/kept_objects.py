"""Decides what the store keeps of each object. Anyone may write objects with our labels, of any size and number."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from memcached_operator.kube import labels
from memcached_operator.kube.resource import PODS, Key, Object, Resource, controller_of, nested_map
from memcached_operator.world import kept_fields
from memcached_operator.world.kept_fields import Kept
from memcached_operator.world.kind import WatchedKind
from memcached_operator.world.pod import has_completed
from memcached_operator.world.store import IndexKey, Store

MAX_POD: Final = 8192
"""Bytes of the used fields of a pod that is kept in any case. A pod with an agent has about 3 KiB of them."""

MAX_SIZE: Final = 1000
"""Pods of an object that are kept in any case: as many as a Memcached with slots may have."""

MAX_SLOT: Final = 100 * 1024
"""Bytes of the Service of a slot that is kept in any case. It usually has 2 KiB, with all annotations and labels that a
spec can contain 98 KiB. A Memcached can have MAX_SIZE of them."""

SURGE: Final = 16
"""Pods that are kept besides twice the size of an object, for a rollout and for pods that are being deleted."""


class Retention:
    """Keeps custom resources and their children whole, and of pods the used fields.

    A child is an object with the name of a child of an existing custom resource, whatever its labels.
    """

    def __init__(self, kinds: Iterable[WatchedKind]) -> None:
        self._kinds = tuple(kinds)
        self._by_resource = {kind.resource: kind for kind in self._kinds}
        self._by_app = {kind.app_name: kind for kind in self._kinds}

    def keep(self, store: Store, key: Key, obj: Object) -> Kept:
        """The part of an object that is kept."""
        if key.resource in self._by_resource:
            return Kept(kept_fields.whole(obj))
        if key.resource == PODS:
            return self._pod(store, key, obj)
        kept = kept_fields.whole(obj)
        return Kept(kept, self.is_needed(store, key, kept))

    def drops(self, resource: Resource, obj: Object) -> bool:
        """True for most completed pods. Evicted ones stay until they are deleted, and must not displace the others."""
        if resource != PODS or not has_completed(obj):
            return False
        meta = obj["metadata"]
        is_held = bool(meta.get("deletionTimestamp") and meta.get("finalizers"))
        return not is_held and self.only_newest_of(resource, obj) is None

    def only_newest_of(self, resource: Resource, obj: Object) -> IndexKey | None:
        """The pods of a controller that were evicted, or rejected by their nodes: a plan reports the last reason."""
        if resource != PODS or not has_completed(obj) or not obj["status"].get("reason"):
            return None
        meta, own = obj["metadata"], nested_map(obj, "metadata", "labels")
        if meta.get("deletionTimestamp"):
            return None
        instance = (meta.get("namespace"), own.get(labels.NAME), own.get(labels.INSTANCE))
        controller = controller_of(obj)
        return ("failed", *instance, controller and controller["name"])

    def size(self, resource: Resource, obj: Object) -> int:
        """The number of pods of a custom resource, at most MAX_SIZE; 0 for another object.

        That of its status counts too: slots that are still in use are kept after the size has been reduced.
        """
        if resource not in self._by_resource:
            return 0
        size, replicas = nested_map(obj, "spec").get("size"), nested_map(obj, "status").get("replicas")
        sizes = (size if isinstance(size, int) else 1, replicas if isinstance(replicas, int) else 0)
        return min(max(sizes), MAX_SIZE)

    def is_needed(self, store: Store, key: Key, kept: Object) -> bool:
        """Whether an existing custom resource can have a child of this name, and few children like it."""
        sizes = [
            size
            for kind in self._kinds
            if key.resource in kind.owns
            for name, size in kind.owners(key.resource, key.name)
            if (owner := store.entry(Key(kind.resource, key.namespace, name))) is not None and owner.size >= size
        ]
        return 0 in sizes or (bool(sizes) and len(msgspec.json.encode(kept)) <= MAX_SLOT)

    def of_deleted(self, store: Store, kind: WatchedKind, cr: Object) -> Iterator[Key]:
        """The objects that were needed for a custom resource that does not exist any more."""
        meta = cr["metadata"]
        for resource in (*kind.owns, PODS):
            yield from store.owned_by(resource, meta["namespace"], meta["uid"])
            yield from store.keys_of_instance(resource, meta["namespace"], kind.app_name, meta["name"])

    def _pod(self, store: Store, key: Key, obj: Object) -> Kept:
        used = kept_fields.pod(obj)
        own = nested_map(obj, "metadata", "labels")
        kind = self._by_app.get(own.get(labels.NAME, ""))
        instance = own.get(labels.INSTANCE, "")
        cr = None if kind is None else store.entry(Key(kind.resource, key.namespace, instance))
        if kind is None or cr is None or len(msgspec.json.encode(used)) > MAX_POD:
            return Kept(used, needed=False)
        known = store.count_of_instance(PODS, key.namespace, kind.app_name, instance)
        return Kept(used, needed=known <= 2 * cr.size + SURGE)
