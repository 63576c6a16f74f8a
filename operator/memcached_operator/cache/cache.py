"""The object cache: one copy per object; the newest resourceVersion wins.

Each copy is stored as JSON, which takes a quarter of the memory of a tree of dicts and adds no work for the garbage
collector. Each read decodes a new copy.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from memcached_operator.kube import labels
from memcached_operator.kube.resource import Key, Object, Resource, controller_of, key_of, nested_map

IndexKey = tuple[Any, ...]
"""A key of the index: the controller of an object, its instance labels, or the namespace of a foreign object."""

_MANAGER_FIELDS = ("manager", "operation", "subresource", "time")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Entry(NamedTuple):
    """One version of an object, and its index keys.

    `from_live_read`: the version is known from a live read, and its event has not arrived yet.
    """

    version: int
    index_keys: tuple[IndexKey, ...]
    json: bytes
    from_live_read: bool = False

    def object(self) -> Object:
        """Decode a new copy of the object."""
        return msgspec.json.decode(self.json)


class Cache:
    """Objects by key. All of its content can be restored by a LIST.

    `observed`: the resources of which the cache also finds the objects of others, except those for which `ignores` is
    True.
    """

    def __init__(self, observed: Iterable[Resource] = (), ignores: Callable[[Object], bool] = lambda _: False) -> None:
        self._observed = frozenset(observed)
        self._ignores = ignores
        self._entries: dict[Resource, dict[Key, Entry]] = {}
        self._index: dict[IndexKey, set[Key]] = {}
        self._tombstones: dict[Key, int] = {}
        self.revision = 0
        """Incremented by every change."""

    def get(self, key: Key) -> Object | None:
        """The newest known version of an object, or None."""
        entry = self.entry(key)
        return entry.object() if entry is not None else None

    def entry(self, key: Key) -> Entry | None:
        """The newest known version of an object, not decoded, or None."""
        return self._entries.get(key.resource, {}).get(key)

    def keys(self, resource: Resource) -> list[Key]:
        """The key of every known object of a resource."""
        return list(self._entries.get(resource, ()))

    def list_objects(self, resource: Resource) -> Iterator[Object]:
        """Every known object of a resource."""
        return map(Entry.object, self._entries.get(resource, {}).values())

    def owned_by(self, resource: Resource, uid: str) -> list[Key]:
        """The key of every known object of a resource whose controller has this uid."""
        return list(self._index.get(("owner", resource, uid), ()))

    def of_instance(self, resource: Resource, namespace: str, app_name: str, instance: str) -> Iterator[Object]:
        """Every known object of a resource that carries the labels of one instance."""
        keys = self._index.get(("instance", resource, namespace, app_name, instance), ())
        return (obj for key in keys if (obj := self.get(key)) is not None)

    def foreign(self, resource: Resource, namespace: str) -> Iterator[Object]:
        """Every known object of an observed resource in a namespace that is not a child of a custom resource."""
        keys = self._index.get(("foreign", resource, namespace), ())
        return (obj for key in sorted(keys, key=lambda key: key.name) if (obj := self.get(key)) is not None)

    def index_keys(self, key: Key, obj: Object) -> tuple[IndexKey, ...]:
        """The index keys of an object: its controller, the instance that its labels name, and whether it is foreign."""
        return tuple(self._index_keys(key, obj))

    def _index_keys(self, key: Key, obj: Object) -> Iterator[IndexKey]:
        controller = controller_of(obj)
        if controller is not None:
            yield ("owner", key.resource, controller["uid"])
        own = nested_map(obj, "metadata", "labels")
        if labels.INSTANCE in own:
            yield ("instance", key.resource, key.namespace, own.get(labels.NAME), own[labels.INSTANCE])
        if self.is_foreign(key, obj):
            yield ("foreign", key.resource, key.namespace)

    def is_foreign(self, key: Key, obj: Object) -> bool:
        """True for an observed object that is not ignored and no child: those have a controller and our label."""
        if key.resource not in self._observed or self._ignores(obj):
            return False
        managed = nested_map(obj, "metadata", "labels").get(labels.MANAGED_BY) == labels.MANAGER
        return not managed or controller_of(obj) is None

    def put_event(self, resource: Resource, obj: Object) -> bool:
        """Store the version of an event. Returns False if the event has no effect.

        It has one if its version is newer, or known only from a live read: other reconciliations may depend on it.
        """
        if self.put(resource, obj):
            return True
        key = key_of(resource, obj)
        known = self.entry(key)
        if known is None or not known.from_live_read or known.version != version_of(obj):
            return False
        self._entries[resource][key] = known._replace(from_live_read=False)
        return True

    def put(self, resource: Resource, obj: Object, *, from_live_read: bool = False) -> bool:
        """Store a version of an object. Returns False if it is not newer, or if the object was deleted later."""
        key, version = key_of(resource, obj), version_of(obj)
        known = self.entry(key)
        # A deletion has its own resourceVersion. If an object is read at the resourceVersion of its DELETED event, it
        # still exists and has only lost the label that the watch selects.
        if (known is not None and known.version >= version) or self._tombstones.get(key, -1) > version:
            return False
        self._tombstones.pop(key, None)
        self._forget(key)
        self.revision += 1
        entry = Entry(version, self.index_keys(key, obj), msgspec.json.encode(transform(obj)), from_live_read)
        self._entries.setdefault(resource, {})[key] = entry
        for index_key in entry.index_keys:
            self._index.setdefault(index_key, set()).add(key)
        return True

    def remove(self, key: Key, version: int) -> bool:
        """Record that an object did not exist at this version. Returns False if a newer version is known."""
        known = self.entry(key)
        if known is not None and known.version > version:
            return False
        # A tombstone is needed because the response to a write may arrive after the DELETED event.
        self._tombstones[key] = max(version, self._tombstones.get(key, -1))
        return self._forget(key)

    def clear_tombstone(self, key: Key) -> None:
        """Remove the tombstone of an object before a live read, whose result is newer."""
        self._tombstones.pop(key, None)

    def replace(self, resource: Resource, namespace: str | None, items: Iterable[Object], version: int) -> list[Key]:
        """Replace the objects of one namespace, or of all, by a list read at `version`. Returns the removed keys."""
        listed: set[Key] = set()
        # The list reflects every deletion up to `version`, so it supersedes older tombstones.
        self._tombstones = {key: at for key, at in self._tombstones.items() if key.resource != resource or at > version}
        for item in items:
            listed.add(key_of(resource, item))
            self.put(resource, item)
        missing = [key for key in self.keys(resource) if namespace in (None, key.namespace) and key not in listed]
        return [key for key in missing if self.remove(key, version)]

    def clear(self, resource: Resource) -> None:
        """Forget every object of a resource that the API server does not serve any more."""
        for key in self.keys(resource):
            self._forget(key)

    def _forget(self, key: Key) -> bool:
        known = self._entries.get(key.resource, {}).pop(key, None)
        if known is None:
            return False
        self.revision += 1
        for index_key in known.index_keys:
            members = self._index[index_key]
            members.discard(key)
            if not members:
                del self._index[index_key]
        return True


def version_of(obj: Object) -> int:
    """A resourceVersion as a number. Within one resource, a greater number is newer (KEP-5504)."""
    return int(obj["metadata"].get("resourceVersion") or 0)


def transform(obj: Object) -> Object:
    """A copy without data that the controller never reads: most of managedFields, and kubectl's last-applied copy."""
    meta: Object = dict(obj["metadata"])
    fields: list[dict[str, Any]] = meta.get("managedFields") or []
    # Every entry keeps its index, because a patch addresses an entry by its index.
    meta["managedFields"] = [{name: entry[name] for name in _MANAGER_FIELDS if name in entry} for entry in fields]
    annotations = meta.get("annotations")
    if annotations and _LAST_APPLIED in annotations:
        meta["annotations"] = {name: text for name, text in annotations.items() if name != _LAST_APPLIED}
    return {**obj, "metadata": meta}
