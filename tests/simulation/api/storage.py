"""Versions of objects, their history, and the watches that follow it."""

import base64
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from memcached_operator.kube.resource import Key, Object, Resource
from simulation.api.errors import StatusError, expired
from simulation.api.selectors import Match, everything

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
FIRST_VERSION: Final = 100
EXPIRED_CONTINUE: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Change(NamedTuple):
    """A change. `old`: None for ADDED. `obj`: of DELETED, the last state with the version of the deletion."""

    version: int
    type: str
    key: Key
    obj: Object
    old: Object | None


@dataclass(eq=False)
class Subscription:
    """A watch. `since`: it reports only changes after this version."""

    resource: Resource
    namespace: str
    match: Match
    send: Callable[[bytes], None]
    bookmarks: bool
    storage: "Storage"
    open: bool = field(default=True)
    since: int = 0

    def close(self) -> None:
        """End the watch."""
        if self.open:
            self.open = False
            self.storage.watches.remove(self)

    def offer(self, change: Change) -> None:
        """Send a change, if it concerns an object that is or was selected."""
        key = change.key
        if (
            change.version <= self.since
            or key.resource != self.resource
            or (self.namespace and key.namespace != self.namespace)
        ):
            return
        now = change.type != DELETED and self.match(change.obj)
        before = change.old is not None and self.match(change.old)
        if now:
            self.send(_line(MODIFIED if before else ADDED, self.storage.encoded(change.obj)))
        elif before and change.old is not None:
            last = change.obj if change.type == DELETED else _at(change.old, change.version)
            self.send(_line(DELETED, msgspec.json.encode(last)))


class Storage:
    """All objects. Stored objects are never changed; every write replaces one."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.version = FIRST_VERSION
        self.watches: list[Subscription] = []
        self.listeners: list[Callable[[str, Object], None]] = []
        self._by_resource: dict[Resource, dict[Key, Object]] = {}
        self._history: list[Change] = []
        self._oldest = 0
        self._texts: dict[int, tuple[Object, bytes]] = {}
        self._unsent: deque[Change] = deque()

    def get(self, key: Key) -> Object | None:
        """A stored object, or None."""
        return self.objects.get(key)

    def of(self, resource: Resource) -> dict[Key, Object]:
        """The objects of a resource."""
        return self._by_resource.get(resource, {})

    def put(self, key: Key, obj: Object) -> Object:
        """Store a new version; return it."""
        self.version += 1
        old = self.objects.get(key)
        stored = _at(obj, self.version)
        self.objects[key] = stored
        self._by_resource.setdefault(key.resource, {})[key] = stored
        self._record(Change(self.version, ADDED if old is None else MODIFIED, key, stored, old))
        return stored

    def saved(self) -> Callable[[], None]:
        """Save all objects and the version, as a backup of etcd. The result restores them: later versions repeat."""
        version, objects = self.version, dict(self.objects)

        def restore() -> None:
            self.version, self.objects = version, dict(objects)
            self._by_resource.clear()
            for key, obj in objects.items():
                self._by_resource.setdefault(key.resource, {})[key] = obj
            self.compact()

        return restore

    def remove(self, key: Key, obj: Object | None = None) -> Object:
        """Remove an object; return its last state. `obj`: that state, if it is not the stored one."""
        self.version += 1
        old = self.objects.pop(key)
        del self._by_resource[key.resource][key]
        last = _at(obj or old, self.version)
        self._record(Change(self.version, DELETED, key, last, old))
        return last

    def _record(self, change: Change) -> None:
        if change.old is not None:
            self._texts.pop(id(change.old), None)
        self._history.append(change)
        self._unsent.append(change)
        if len(self._unsent) > 1:  # a listener has caused this change; the earlier one is sent to all others first
            return
        while self._unsent:
            first = self._unsent[0]
            for watch in tuple(self.watches):
                watch.offer(first)
            for listener in tuple(self.listeners):
                listener(first.type, first.obj)
            self._unsent.popleft()

    def encoded(self, obj: Object) -> bytes:
        """The JSON of a version; the same bytes for every request of it."""
        known = self._texts.get(id(obj))
        if known is not None and known[0] is obj:
            return known[1]
        text = msgspec.json.encode(obj)
        self._texts[id(obj)] = (obj, text)
        return text

    def watch(self, watch: Subscription, version: str) -> None:
        """Send the changes since a version, and then every later one. An expired version causes an ERROR event."""
        if version in ("", "0"):
            for _, obj in self.selected(watch.resource, watch.namespace, watch.match):
                watch.send(_line(ADDED, self.encoded(obj)))
        elif int(version) < self._oldest:
            error = expired(f"too old resource version: {version} ({self.version})").status()
            watch.send(_line("ERROR", msgspec.json.encode(error)))
            watch.open = False
            return
        else:
            watch.since = int(version)
            for change in self._since(int(version)):
                watch.offer(change)
        self.watches.append(watch)

    def _since(self, version: int) -> list[Change]:
        start = len(self._history)
        while start and self._history[start - 1].version > version:
            start -= 1
        return self._history[start:]

    def bookmark(self) -> None:
        """Send the current version to all watches that want it."""
        for watch in tuple(self.watches):
            if watch.bookmarks:
                meta = {"resourceVersion": str(self.version), "creationTimestamp": None}
                obj = {"kind": watch.resource.kind, "apiVersion": watch.resource.api_version, "metadata": meta}
                watch.send(_line("BOOKMARK", msgspec.json.encode(obj)))

    def compact(self) -> None:
        """Forget the history. Versions before the current one are expired; open watches go on."""
        self._history.clear()
        self._oldest = self.version

    def selected(
        self, resource: Resource, namespace: str, match: Match, version: int | None = None
    ) -> list[tuple[Key, Object]]:
        """The selected objects in the order of etcd: by namespace and name. `version`: an earlier one."""
        objects = self.of(resource)
        if version is not None and version < self.version:
            objects = self._snapshot(resource, version)
        found = [
            (key, obj) for key, obj in objects.items() if (not namespace or key.namespace == namespace) and match(obj)
        ]
        return sorted(found, key=lambda pair: pair[0][1:])

    def _snapshot(self, resource: Resource, version: int) -> dict[Key, Object]:
        found = dict(self.of(resource))
        for change in reversed(self._since(version)):
            if change.key.resource != resource:
                continue
            if change.old is None:
                found.pop(change.key, None)
            else:
                found[change.key] = change.old
        return found

    def page(
        self, resource: Resource, namespace: str, match: Match, limit: int, token: str
    ) -> tuple[list[Object], int, str, int]:
        """A page of a list: objects, version, the token of the next page, and the number of remaining objects."""
        version, start = _decoded_token(token) if token else (self.version, ("", ""))
        if version == -1:
            version = self.version
        elif version < self._oldest:
            raise self._expired_token(start)
        found: list[Object] = []
        left = [each for each in self.selected(resource, namespace, everything, version) if each[0][1:] > start]
        for number, (key, obj) in enumerate(left):
            if match(obj):
                found.append(obj)
            if limit and len(found) == limit and number + 1 < len(left):  # whether the others match or not
                return found, version, _token(version, key), len(left) - number - 1
        return found, version, "", 0

    def _expired_token(self, start: tuple[str, str]) -> StatusError:
        return expired(EXPIRED_CONTINUE, {"continue": _encoded_token(-1, start)})


def _at(obj: Object, version: int) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}


def _line(kind: str, text: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), text)


def _token(version: int, last: Key) -> str:
    return _encoded_token(version, (last.namespace, last.name))


def _encoded_token(version: int, start: tuple[str, str]) -> str:
    text = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": version, "start": "/".join(start)})
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _decoded_token(token: str) -> tuple[int, tuple[str, str]]:
    found = msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    namespace, _, name = found["start"].partition("/")
    return found["rv"], (namespace, name)
