"""What the operator has last seen of the cluster: one small copy per object, the newest resourceVersion wins.

A copy is kept as JSON: a quarter of the memory of a tree of dicts, and nothing for the garbage collector to walk
through. Who asks for an object gets one of their own.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from memcached_operator.kube import labels
from memcached_operator.kube.resource import Key, Object, Resource, controller_of, key_of, mapping

Group = tuple[Any, ...]
"""Something objects have in common, by which they are looked up: their controller, or their instance labels."""

_WHO = ("manager", "operation", "subresource")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Copy(NamedTuple):
    """A state of an object, and what it has in common with others."""

    version: int
    groups: tuple[Group, ...]
    json: bytes

    def object(self) -> Object:
        """The object, decoded anew."""
        return msgspec.json.decode(self.json)


class Store:
    """Objects by key. Holds nothing that a fresh LIST would not give back."""

    def __init__(self) -> None:
        self._copies: dict[Resource, dict[Key, Copy]] = {}
        self._members: dict[Group, set[Key]] = {}
        self._gone: dict[Key, int] = {}

    def get(self, key: Key) -> Object | None:
        """The newest known state of an object, or None."""
        copy = self.copy(key)
        return copy.object() if copy is not None else None

    def copy(self, key: Key) -> Copy | None:
        """The same, not yet decoded."""
        return self._copies.get(key.resource, {}).get(key)

    def keys(self, resource: Resource) -> list[Key]:
        """The key of every known object of a resource."""
        return list(self._copies.get(resource, ()))

    def all(self, resource: Resource) -> Iterator[Object]:
        """Every known object of a resource."""
        return map(Copy.object, self._copies.get(resource, {}).values())

    def owned_by(self, resource: Resource, uid: str) -> Iterator[Object]:
        """Every known object of a resource whose controller has this uid."""
        return self._group(("owner", resource, uid))

    def of_instance(self, resource: Resource, namespace: str, app_name: str, instance: str) -> Iterator[Object]:
        """Every known object of a resource that carries the labels of one instance."""
        return self._group(("instance", resource, namespace, app_name, instance))

    def put(self, resource: Resource, obj: Object) -> bool:
        """Note a state; False where it says nothing new (older, equal, or of an object that is gone since)."""
        key, version = key_of(resource, obj), version_of(obj)
        known = self.copy(key)
        # A deletion has a version of its own. An object read at the very version of its "deletion" only lost the label
        # that it is watched by.
        if (known is not None and known.version >= version) or self._gone.get(key, -1) > version:
            return False
        self._gone.pop(key, None)
        self._forget(key)
        copy = Copy(version, groups_of(key, obj), msgspec.json.encode(trim(obj)))
        self._copies.setdefault(resource, {})[key] = copy
        for group in copy.groups:
            self._members.setdefault(group, set()).add(key)
        return True

    def remove(self, key: Key, version: int) -> bool:
        """Note that an object was gone at this version; False where a newer state is known."""
        known = self.copy(key)
        if known is not None and known.version > version:
            return False
        # Remembered, because a reply to our own write may arrive after the event of its deletion.
        self._gone[key] = max(version, self._gone.get(key, -1))
        return self._forget(key)

    def doubt(self, key: Key) -> None:
        """Forget that an object was gone: it is about to be read, and what is read is later than that."""
        self._gone.pop(key, None)

    def replace(self, resource: Resource, namespace: str | None, items: Iterable[Object], version: int) -> list[Key]:
        """Take a whole list as read at `version`, of one namespace or of all: what it lacks is gone, and returned."""
        listed: set[Key] = set()
        # The list knows all that was deleted by then: what it has is there, even if an earlier one lacked it.
        self._gone = {key: at for key, at in self._gone.items() if key.resource != resource or at > version}
        for item in items:
            listed.add(key_of(resource, item))
            self.put(resource, item)
        missing = [key for key in self.keys(resource) if namespace in (None, key.namespace) and key not in listed]
        return [key for key in missing if self.remove(key, version)]

    def _group(self, group: Group) -> Iterator[Object]:
        return (obj for key in self._members.get(group, ()) if (obj := self.get(key)) is not None)

    def _forget(self, key: Key) -> bool:
        known = self._copies.get(key.resource, {}).pop(key, None)
        if known is None:
            return False
        for group in known.groups:
            members = self._members[group]
            members.discard(key)
            if not members:
                del self._members[group]
        return True


def groups_of(key: Key, obj: Object) -> tuple[Group, ...]:
    """By what an object is looked up: its controller, and the instance that its labels name."""
    return tuple(_groups(key, obj))


def _groups(key: Key, obj: Object) -> Iterator[Group]:
    controller = controller_of(obj)
    if controller is not None:
        yield ("owner", key.resource, controller["uid"])
    own = mapping(obj, "metadata", "labels")
    if labels.INSTANCE in own:
        yield ("instance", key.resource, key.namespace, own.get(labels.NAME), own[labels.INSTANCE])


def version_of(obj: Object) -> int:
    """A resourceVersion as a number: within one resource a greater one is a later one (KEP-5504)."""
    return int(obj["metadata"].get("resourceVersion") or 0)


def trim(obj: Object) -> Object:
    """A copy without what no decision needs: the bulk of managedFields, and kubectl's copy of the whole object."""
    meta: Object = dict(obj["metadata"])
    fields: list[dict[str, Any]] = meta.get("managedFields") or []
    # Every entry stays, in its place: its index is how one of them is addressed in a patch.
    meta["managedFields"] = [{name: entry[name] for name in _WHO if name in entry} for entry in fields]
    annotations = meta.get("annotations")
    if annotations and _LAST_APPLIED in annotations:
        meta["annotations"] = {name: text for name, text in annotations.items() if name != _LAST_APPLIED}
    return {**obj, "metadata": meta}
