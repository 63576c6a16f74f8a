"""What the operator has last seen of the cluster: one small copy per object, the newest resourceVersion wins."""

from collections.abc import Iterable, Iterator
from typing import Any

from memcached_operator.engine import labels
from memcached_operator.engine.resource import Key, Object, Resource, controller_of, key_of, mapping

Group = tuple[Any, ...]
"""Something objects have in common, by which they are looked up: their controller, or their instance labels."""

_WHO = ("manager", "operation", "subresource")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Store:
    """Objects by key. Holds nothing that a fresh LIST would not give back."""

    def __init__(self) -> None:
        self._objects: dict[Resource, dict[tuple[str, str], Object]] = {}
        self._members: dict[Group, set[Key]] = {}
        self._gone: dict[Key, int] = {}

    def get(self, key: Key) -> Object | None:
        """The newest known state of an object, or None."""
        return self._objects.get(key.resource, {}).get((key.namespace, key.name))

    def all(self, resource: Resource) -> Iterator[Object]:
        """Every known object of a resource."""
        return iter(self._objects.get(resource, {}).values())

    def owned_by(self, resource: Resource, uid: str) -> Iterator[Object]:
        """Every known object of a resource whose controller has this uid."""
        return self._group(("owner", resource, uid))

    def of_instance(self, resource: Resource, namespace: str, app_name: str, instance: str) -> Iterator[Object]:
        """Every known object of a resource that carries the labels of one instance."""
        return self._group(("instance", resource, namespace, app_name, instance))

    def put(self, resource: Resource, obj: Object) -> bool:
        """Note a state; False where it says nothing new (older, equal, or of an object that is gone since)."""
        key, version = key_of(resource, obj), version_of(obj)
        known = self.get(key)
        # A deletion has a version of its own. An object read at the very version of its "deletion" only lost the label
        # that it is watched by.
        if (known is not None and version_of(known) >= version) or self._gone.get(key, -1) > version:
            return False
        self._gone.pop(key, None)
        self._forget(key)
        self._objects.setdefault(resource, {})[key.namespace, key.name] = trim(obj)
        for group in _groups_of(key, obj):
            self._members.setdefault(group, set()).add(key)
        return True

    def remove(self, key: Key, version: int) -> bool:
        """Note that an object was gone at this version; False where a newer state is known."""
        known = self.get(key)
        if known is not None and version_of(known) > version:
            return False
        # Remembered, because a reply to our own write may arrive after the event of its deletion.
        self._gone[key] = max(version, self._gone.get(key, -1))
        return self._forget(key)

    def replace(self, resource: Resource, namespace: str | None, items: Iterable[Object], version: int) -> list[Key]:
        """Take a whole list as read at `version`, of one namespace or of all: what it lacks is gone, and returned."""
        listed: set[Key] = set()
        gone: list[Key] = []
        for item in items:
            listed.add(key_of(resource, item))
            self.put(resource, item)
        for obj in list(self.all(resource)):
            key = key_of(resource, obj)
            if namespace in (None, key.namespace) and key not in listed and self.remove(key, version):
                gone.append(key)
        self._gone = {key: at for key, at in self._gone.items() if key.resource != resource or at > version}
        return gone

    def _group(self, group: Group) -> Iterator[Object]:
        return (obj for key in self._members.get(group, ()) if (obj := self.get(key)) is not None)

    def _forget(self, key: Key) -> bool:
        known = self._objects.get(key.resource, {}).pop((key.namespace, key.name), None)
        if known is None:
            return False
        for group in _groups_of(key, known):
            members = self._members[group]
            members.discard(key)
            if not members:
                del self._members[group]
        return True


def _groups_of(key: Key, obj: Object) -> Iterator[Group]:
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
