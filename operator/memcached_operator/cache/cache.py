"""What the operator has last seen of the cluster: one small copy per object, the newest resourceVersion wins.

A copy is kept as JSON: a quarter of the memory of a tree of dicts, and nothing for the garbage collector to walk
through. Who asks for an object gets one of their own.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from memcached_operator.kube import labels
from memcached_operator.kube.resource import Key, Object, Resource, controller_of, key_of, mapping

IndexKey = tuple[Any, ...]
"""Something objects have in common, by which they are looked up: their controller, or their instance labels."""

_MANAGER_FIELDS = ("manager", "operation", "subresource")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Entry(NamedTuple):
    """A state of an object, and what it has in common with others."""

    version: int
    index_keys: tuple[IndexKey, ...]
    json: bytes

    def object(self) -> Object:
        """The object, decoded anew."""
        return msgspec.json.decode(self.json)


class Cache:
    """Objects by key. Holds nothing that a fresh LIST would not give back."""

    def __init__(self) -> None:
        self._entries: dict[Resource, dict[Key, Entry]] = {}
        self._index: dict[IndexKey, set[Key]] = {}
        self._tombstones: dict[Key, int] = {}

    def get(self, key: Key) -> Object | None:
        """The newest known state of an object, or None."""
        entry = self.entry(key)
        return entry.object() if entry is not None else None

    def entry(self, key: Key) -> Entry | None:
        """The same, not yet decoded."""
        return self._entries.get(key.resource, {}).get(key)

    def keys(self, resource: Resource) -> list[Key]:
        """The key of every known object of a resource."""
        return list(self._entries.get(resource, ()))

    def all(self, resource: Resource) -> Iterator[Object]:
        """Every known object of a resource."""
        return map(Entry.object, self._entries.get(resource, {}).values())

    def owned_by(self, resource: Resource, uid: str) -> Iterator[Object]:
        """Every known object of a resource whose controller has this uid."""
        return self._lookup(("owner", resource, uid))

    def of_instance(self, resource: Resource, namespace: str, app_name: str, instance: str) -> Iterator[Object]:
        """Every known object of a resource that carries the labels of one instance."""
        return self._lookup(("instance", resource, namespace, app_name, instance))

    def put(self, resource: Resource, obj: Object) -> bool:
        """Note a state; False where it says nothing new (older, equal, or of an object that is gone since)."""
        key, version = key_of(resource, obj), version_of(obj)
        known = self.entry(key)
        # A deletion has a version of its own. An object read at the very version of its "deletion" only lost the label
        # that it is watched by.
        if (known is not None and known.version >= version) or self._tombstones.get(key, -1) > version:
            return False
        self._tombstones.pop(key, None)
        self._forget(key)
        entry = Entry(version, index_keys(key, obj), msgspec.json.encode(transform(obj)))
        self._entries.setdefault(resource, {})[key] = entry
        for index_key in entry.index_keys:
            self._index.setdefault(index_key, set()).add(key)
        return True

    def remove(self, key: Key, version: int) -> bool:
        """Note that an object was gone at this version; False where a newer state is known."""
        known = self.entry(key)
        if known is not None and known.version > version:
            return False
        # Remembered, because a reply to our own write may arrive after the event of its deletion.
        self._tombstones[key] = max(version, self._tombstones.get(key, -1))
        return self._forget(key)

    def clear_tombstone(self, key: Key) -> None:
        """Forget that an object was gone: it is about to be read, and what is read is later than that."""
        self._tombstones.pop(key, None)

    def replace(self, resource: Resource, namespace: str | None, items: Iterable[Object], version: int) -> list[Key]:
        """Take a whole list as read at `version`, of one namespace or of all: what it lacks is gone, and returned."""
        listed: set[Key] = set()
        # The list knows all that was deleted by then: what it has is there, even if an earlier one lacked it.
        self._tombstones = {key: at for key, at in self._tombstones.items() if key.resource != resource or at > version}
        for item in items:
            listed.add(key_of(resource, item))
            self.put(resource, item)
        missing = [key for key in self.keys(resource) if namespace in (None, key.namespace) and key not in listed]
        return [key for key in missing if self.remove(key, version)]

    def _lookup(self, index_key: IndexKey) -> Iterator[Object]:
        return (obj for key in self._index.get(index_key, ()) if (obj := self.get(key)) is not None)

    def _forget(self, key: Key) -> bool:
        known = self._entries.get(key.resource, {}).pop(key, None)
        if known is None:
            return False
        for index_key in known.index_keys:
            members = self._index[index_key]
            members.discard(key)
            if not members:
                del self._index[index_key]
        return True


def index_keys(key: Key, obj: Object) -> tuple[IndexKey, ...]:
    """By what an object is looked up: its controller, and the instance that its labels name."""
    return tuple(_index_keys(key, obj))


def _index_keys(key: Key, obj: Object) -> Iterator[IndexKey]:
    controller = controller_of(obj)
    if controller is not None:
        yield ("owner", key.resource, controller["uid"])
    own = mapping(obj, "metadata", "labels")
    if labels.INSTANCE in own:
        yield ("instance", key.resource, key.namespace, own.get(labels.NAME), own[labels.INSTANCE])


def version_of(obj: Object) -> int:
    """A resourceVersion as a number: within one resource a greater one is a later one (KEP-5504)."""
    return int(obj["metadata"].get("resourceVersion") or 0)


def transform(obj: Object) -> Object:
    """A copy without what no decision needs: the bulk of managedFields, and kubectl's copy of the whole object."""
    meta: Object = dict(obj["metadata"])
    fields: list[dict[str, Any]] = meta.get("managedFields") or []
    # Every entry stays, in its place: its index is how one of them is addressed in a patch.
    meta["managedFields"] = [{name: entry[name] for name in _MANAGER_FIELDS if name in entry} for entry in fields]
    annotations = meta.get("annotations")
    if annotations and _LAST_APPLIED in annotations:
        meta["annotations"] = {name: text for name, text in annotations.items() if name != _LAST_APPLIED}
    return {**obj, "metadata": meta}
