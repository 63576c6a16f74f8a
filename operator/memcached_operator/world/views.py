"""What plans read of the objects of others: decoded once per change, and not in each reconcile."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from memcached_operator.kube.resource import Key, Object

N = TypeVar("N")

MAX_VIEWS: Final = 2**21
"""Bytes as JSON of the objects whose views are kept, of all namespaces. A view of small values takes up to 13 times as
much memory. Of a namespace that was not used for the longest time, the objects are decoded again."""


class Stored(Protocol):
    """A stored version of an object."""

    @property
    def json(self) -> bytes: ...

    def object(self) -> Object:
        """Decode a new copy of the object."""
        ...


@dataclass
class _Kept:
    """The views of one namespace."""

    versions: Mapping[Key, Stored]
    """The versions that the views show."""
    views: Mapping[Key, Any]
    bytes: int
    """The size of these versions as JSON."""
    changed: bool = False
    """An object was stored or removed since."""


class Views(Generic[N]):
    """The views of namespaces, by a key that names a namespace and a resource. `view`: makes that of an object."""

    def __init__(self, view: Callable[[Key, Object], Any]) -> None:
        self._view = view
        self._kept: OrderedDict[N, _Kept] = OrderedDict()
        self._bytes = 0

    def change(self, name: N) -> None:
        """Record that an object of a namespace was stored or removed."""
        if (kept := self._kept.get(name)) is not None:
            kept.changed = True

    def of(self, name: N, load: Callable[[], Mapping[Key, Stored]]) -> Mapping[Key, Any]:
        """The views of a namespace; never modified. `load`: returns the objects after a change."""
        kept = self._kept.get(name)
        if kept is None or kept.changed:
            kept = self._make(load(), kept)
            self._forget(name)
            if not kept.views:
                return kept.views  # most namespaces: they take no memory
            self._kept[name] = kept
            self._bytes += kept.bytes
            while self._bytes > MAX_VIEWS and len(self._kept) > 1:
                self._forget(next(iter(self._kept)))
        self._kept.move_to_end(name)
        return kept.views

    def _make(self, stored: Mapping[Key, Stored], before: _Kept | None) -> _Kept:
        views: dict[Key, Any] = {}
        for key, version in stored.items():
            is_known = before is not None and before.versions.get(key) is version
            views[key] = before.views[key] if before is not None and is_known else self._view(key, version.object())
        return _Kept(stored, views, sum(len(version.json) for version in stored.values()))

    def _forget(self, name: N) -> None:
        if (kept := self._kept.pop(name, None)) is not None:
            self._bytes -= kept.bytes
