"""The object store: one copy per object; the newest resourceVersion wins.

Each copy is stored as JSON, which takes a quarter of the memory of a tree of dicts and adds no work for the garbage
collector. Each read decodes a new copy.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

import msgspec

from memcached_operator.kube import labels
from memcached_operator.kube.resource import Key, Object, Resource, controller_of, key_of, nested_map
from memcached_operator.world.allowances import Allowances
from memcached_operator.world.kept_fields import Kept
from memcached_operator.world.references import References

IndexKey = tuple[str | Resource | Key | None, ...]
"""A key of the index: the controller of an object, its instance labels, or an object that it names."""

MAX_TOMBSTONES = 10_000
"""Deletions that are remembered until the next list. Older ones are forgotten first."""


class Entry(NamedTuple):
    """One version of an object."""

    version: int
    """The resourceVersion."""
    index_keys: tuple[IndexKey, ...]
    json: bytes
    """What is kept of the object."""
    needed: bool = True
    """A plan can depend on it."""
    size: int = 0
    """The number of pods of a custom resource."""
    from_live_read: bool = False
    """The version is known from a live read, and its event has not arrived yet."""

    def object(self) -> Object:
        """Decode a new copy of the object."""
        return msgspec.json.decode(self.json)

    @property
    def names(self) -> bool:
        """Whether it names another object."""
        return any(name == "referrer" for name, *_ in self.index_keys)

    def has(self, version: int) -> bool:
        """True if it is this version, and a plan can depend on it: only a list decides that again."""
        return self.version == version and self.needed


class RetentionRules(Protocol):
    """Decides what is kept of each object."""

    def keep(self, store: "Store", key: Key, obj: Object) -> Kept:
        """The part of an object that is kept, if it belongs into the store."""
        ...

    def drops(self, resource: Resource, obj: Object) -> bool:
        """True for an object that nothing reads, as if it did not exist."""
        ...

    def only_newest_of(self, resource: Resource, obj: Object) -> IndexKey | None:
        """The group of which only the object is kept that was created last; None without one. Of those created in the
        same second, the last one by name.
        """
        ...

    def size(self, resource: Resource, obj: Object) -> int:
        """The number of pods of a custom resource; 0 for another object."""
        ...


class Store:
    """Objects by key, as far as `retention` keeps them. All of its content can be restored by a LIST.

    `references`: which objects name which others. `enqueue`: called, at each change of an object, with the keys of
    those whose plans read what has changed of it. Own writes and live reads are such changes, although they cause no
    event.
    """

    def __init__(
        self,
        retention: RetentionRules,
        references: References | None = None,
        enqueue: Callable[[Iterable[Key]], None] = lambda _: None,
    ) -> None:
        self._retention = retention
        self._references = references or References({})
        self._enqueue = enqueue
        self._allowances = Allowances()
        self._entries: dict[Resource, dict[Key, Entry]] = {}
        self._index: dict[IndexKey, set[Key]] = {}
        self._tombstones: dict[Key, int] = {}
        self._shown: dict[Key, dict[Callable[[Object], object], object]] = {}
        self.revision = 0
        """Incremented by every change."""

    def get(self, key: Key) -> Object | None:
        """The newest known version of an object, or None."""
        entry = self.entry(key)
        return entry.object() if entry is not None else None

    def entry(self, key: Key) -> Entry | None:
        """The newest known version of an object, not decoded, or None."""
        return self._entries.get(key.resource, {}).get(key)

    def bytes_of(self, key: Key) -> int:
        """The bytes as JSON of what is kept of an object; 0 if it is not known."""
        return len(entry.json) if (entry := self.entry(key)) is not None else 0

    def keys(self, resource: Resource) -> list[Key]:
        """The key of every known object of a resource."""
        return list(self._entries.get(resource, ()))

    def list_objects(self, resource: Resource) -> Iterator[Object]:
        """Every known object of a resource."""
        return map(Entry.object, self._entries.get(resource, {}).values())

    def owned_by(self, resource: Resource, namespace: str, uid: str) -> list[Key]:
        """The key of every known object of a resource in a namespace whose controller has this uid."""
        return list(self._index.get(("owner", resource, namespace, uid), ()))

    def entries_of_instance(self, resource: Resource, namespace: str, app_name: str, instance: str) -> Iterator[Entry]:
        """Every known object of a resource that carries the labels of one instance, not decoded."""
        keys = self.keys_of_instance(resource, namespace, app_name, instance)
        return (entry for key in keys if (entry := self.entry(key)) is not None)

    def keys_of_instance(self, resource: Resource, namespace: str, app_name: str, instance: str) -> list[Key]:
        """The key of every known object of a resource that carries the labels of one instance."""
        return list(self._index.get(("instance", resource, namespace, app_name, instance), ()))

    def referrers(self, key: Key) -> list[Key]:
        """The key of every known object that names this one."""
        return list(self._index.get(("referrer", key), ()))

    def naming(self, resource: Resource) -> Iterable[Resource]:
        """The resources whose objects can name those of a resource."""
        return self._references.naming(resource)

    def names(self, key: Key, obj: Object, named: Key) -> bool:
        """Whether an object names another one."""
        return named in self._references.named(key, obj)

    def references_of(self, key: Key, obj: Object) -> tuple[dict[Key, object], dict[Key, object]]:
        """What the plans of an object read of the existing ones that it names, and of those that name it."""
        found = self._references
        return found.read_by(key, obj, self.get), found.shown_to(key, self.referrers, self._shown_by)

    def _shown_by(self, key: Key, shows: Callable[[Object], object]) -> object:
        """What an existing object shows, decoded once per version: very many objects can name the same one."""
        known = self._shown.setdefault(key, {})
        if shows not in known:
            known[shows] = shows(self._entries[key.resource][key].object())
        return known[shows]

    def index_keys(self, key: Key, obj: Object) -> tuple[IndexKey, ...]:
        """The index keys of an object: its controller, the instance that its labels name, and what it names."""
        return tuple(self._index_keys(key, obj))

    def _index_keys(self, key: Key, obj: Object) -> Iterator[IndexKey]:
        controller = controller_of(obj)
        if controller is not None:
            yield ("owner", key.resource, key.namespace, controller["uid"])
        own = nested_map(obj, "metadata", "labels")
        if labels.INSTANCE in own:
            yield ("instance", key.resource, key.namespace, own.get(labels.NAME), own[labels.INSTANCE])
        if group := self._retention.only_newest_of(key.resource, obj):
            yield group
        for named in self._references.named(key, obj):
            yield ("referrer", named)

    def put_event(self, resource: Resource, obj: Object) -> bool:
        """Store the version of an event. Returns False if the event has no effect.

        It has one if its version is newer, or known only from a live read: other reconciliations may depend on it.
        """
        key = key_of(resource, obj)
        known = self.entry(key)
        # Most events are of own writes, whose reply was stored: only a list decides again what is kept of them.
        if not (known is not None and known.has(version_of(obj))) and self.put(resource, obj):
            return True
        known = self.entry(key)
        if known is None or not known.from_live_read or known.version != version_of(obj):
            return False
        self._entries[resource][key] = known._replace(from_live_read=False)
        return True

    def is_known(self, key: Key, version: str) -> bool:
        """True if an event of this resourceVersion has no effect: its object is stored, not only from a live read."""
        known = self.entry(key)
        return known is not None and not known.from_live_read and known.has(int(version or 0))

    def put(self, resource: Resource, obj: Object, *, from_live_read: bool = False) -> bool:
        """Store a version of an object. Returns False if it is not newer, or if the object was deleted later."""
        key, version = key_of(resource, obj), version_of(obj)
        known = self.entry(key)
        # A deletion has its own resourceVersion. If an object is read at the resourceVersion of its DELETED event, it
        # still exists and has only lost the label that the watch selects.
        if (known is not None and known.version > version) or self._tombstones.get(key, -1) > version:
            return False
        earlier = self._others_of_group(key, obj)
        if self._retention.drops(resource, obj) or any(_age(other) > _age(obj) for other in earlier.values()):
            return known is not None and self.remove(key, version)
        kept = self._retention.keep(self, key, obj)
        if known is not None and known.version == version and known.needed == kept.needed:
            return False
        self._tombstones.pop(key, None)
        size = self._retention.size(resource, obj)
        text = msgspec.json.encode(kept.obj)
        entry = Entry(version, self.index_keys(key, obj), text, kept.needed, size, from_live_read)
        for other in earlier:
            self._forget(other)
        self._store(key, entry)
        return known is None or known.version < version

    def _others_of_group(self, key: Key, obj: Object) -> dict[Key, Object]:
        """What is known of the group of which only the newest object is kept."""
        group = self._retention.only_newest_of(key.resource, obj)
        others = () if group is None else self._index.get(group, ())
        return {other: entry.object() for other in others if other != key and (entry := self.entry(other)) is not None}

    def _store(self, key: Key, entry: Entry) -> None:
        """Store an entry, unless nothing needs it and it exceeds a limit of its namespace."""
        before = self._discard(key)
        if not entry.needed and not self._allowances.reserve(key.namespace, len(entry.json)):
            self._report(key, before, None)
            return
        self.revision += 1
        self._entries.setdefault(key.resource, {})[key] = entry
        for index_key in entry.index_keys:
            self._index.setdefault(index_key, set()).add(key)
        self._report(key, before, entry)

    def release(self, keys: Iterable[Key]) -> None:
        """Keep objects whose custom resource was deleted only within the limits of their namespace."""
        for key in keys:
            if (known := self.entry(key)) is not None:
                self._store(key, known._replace(needed=False))

    def count_of_instance(self, resource: Resource, namespace: str, app_name: str, instance: str) -> int:
        """The number of known objects of a resource that carry the labels of one instance."""
        return len(self._index.get(("instance", resource, namespace, app_name, instance), ()))

    def remove(self, key: Key, version: int) -> bool:
        """Record that an object did not exist at this version. Returns False if a newer version is known."""
        known = self.entry(key)
        if known is not None and known.version > version:
            return False
        # A tombstone is needed because the response to a write may arrive after the DELETED event.
        self._tombstones[key] = max(version, self._tombstones.pop(key, -1))
        if len(self._tombstones) > MAX_TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]
        return self._forget(key)

    def forget_tombstones(self, resource: Resource, namespace: str | None, version: int) -> None:
        """Remove the tombstones of a resource up to a version, in one namespace or in all."""
        self._tombstones = {
            key: at
            for key, at in self._tombstones.items()
            if at > version or key.resource != resource or namespace not in (None, key.namespace)
        }

    def newest(self, resource: Resource, namespace: str | None) -> int:
        """The highest resourceVersion that is known of a resource, in one namespace or in all; 0 without any."""
        known = ((key, entry.version) for key, entry in self._entries.get(resource, {}).items())
        deleted = ((key, version) for key, version in self._tombstones.items() if key.resource == resource)
        return max((at for key, at in (*known, *deleted) if namespace in (None, key.namespace)), default=0)

    def distrust(self, resource: Resource, namespace: str | None) -> None:
        """Let any version of the objects of a resource replace the known ones, in one namespace or in all."""
        self.forget_tombstones(resource, namespace, sys.maxsize)
        entries = self._entries.get(resource, {})
        entries.update(
            {key: each._replace(version=-1) for key, each in entries.items() if namespace in (None, key.namespace)}
        )

    def clear_tombstone(self, key: Key) -> None:
        """Remove the tombstone of an object before a live read, whose result is newer."""
        self._tombstones.pop(key, None)

    def listing(self, resource: Resource, namespace: str | None) -> "Listing":
        """Replaces the objects of one namespace, or of all, by a list that is read in pages."""
        return Listing(self, resource, namespace)

    def clear(self, resource: Resource, namespace: str | None) -> None:
        """Forget every object of a resource that cannot be listed, in one namespace or in all."""
        for key in self.keys(resource):
            if namespace in (None, key.namespace):
                self._forget(key)

    def _forget(self, key: Key) -> bool:
        known = self._discard(key)
        self._report(key, known, None)
        return known is not None

    def _report(self, key: Key, before: Entry | None, after: Entry | None) -> None:
        # Most pods name nothing, and nothing names a pod: no version is decoded.
        if any(each.names for each in (before, after) if each is not None) or self.naming(key.resource):
            self._enqueue(self._references.concerned(key, before, after, self.referrers))

    def _discard(self, key: Key) -> Entry | None:
        known = self._entries.get(key.resource, {}).pop(key, None)
        if known is None:
            return None
        self.revision += 1
        self._shown.pop(key, None)
        if not known.needed:
            self._allowances.release(key.namespace, len(known.json))
        for index_key in known.index_keys:
            members = self._index[index_key]
            members.discard(key)
            if not members:
                del self._index[index_key]
        return known


class Listing:
    """A list that replaces objects of a store. Events may change the store between two pages.

    A list is a consistent read, so it has at least each version that was known before its request. If it has not, the
    API server is outdated, or its data was restored from a backup. Only in the second case may it be added.
    """

    def __init__(self, store: Store, resource: Resource, namespace: str | None) -> None:
        self._store = store
        self._resource = resource
        self._namespace = namespace
        self._listed: set[Key] = set()
        self._newest = store.newest(resource, namespace)
        self.version = 0
        """The resourceVersion of the list."""

    def is_older(self, version: int) -> bool:
        """Whether a list of which no page was added is older than what was known before its request."""
        return not self.version and version < self._newest

    def add(self, items: Iterable[Object], version: int) -> None:
        """Store the objects of a page of the list at `version`."""
        if not self.version:
            if self.is_older(version):
                self._store.distrust(self._resource, self._namespace)
            self.version = version
            # The list reflects every deletion of its namespace up to its version, so it supersedes older tombstones.
            self._store.forget_tombstones(self._resource, self._namespace, version)
        for item in items:
            self._store.put(self._resource, item)
            if self._store.entry(key := key_of(self._resource, item)) is not None:
                self._listed.add(key)

    def end(self) -> dict[Key, Entry]:
        """Remove the objects that no page had, and return them."""
        known = (key for key in self._store.keys(self._resource) if self._namespace in (None, key.namespace))
        missing = [key for key in known if key not in self._listed]
        entries = {key: entry for key in missing if (entry := self._store.entry(key)) is not None}
        return {key: entry for key, entry in entries.items() if self._store.remove(key, self.version)}


def version_of(obj: Object) -> int:
    """A resourceVersion as a number. Within one resource, a greater number is newer (KEP-5504)."""
    return int(obj["metadata"].get("resourceVersion") or 0)


def _age(obj: Object) -> tuple[str, str]:
    """By which objects are ordered: the time of the creation, which has a resolution of a second, and the name."""
    return obj["metadata"].get("creationTimestamp") or "", obj["metadata"]["name"]
