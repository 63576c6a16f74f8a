"""Limits of what is kept of a namespace although nothing needs it: a flood in one must not fill the memory."""

import logging
from collections import Counter
from contextlib import suppress
from typing import Final

from memcached_operator import metrics
from memcached_operator.kube.resource import Key, Resource

log = logging.getLogger(__name__)

MAX_BYTES: Final = 8 * 2**20
MAX_OBJECTS: Final = 2000
"""Bytes and number of the objects of a namespace that are stored although nothing needs them."""

MAX_COUNTED: Final = 10_000
"""Ignored objects of a namespace that are counted: each one is remembered, so that it counts once."""

OVERHEAD: Final = 1024
"""Bytes that an object takes besides its JSON: its keys in the cache and in the index."""


class Allowances:
    """Counts by namespace what is stored, and what was ignored."""

    def __init__(self) -> None:
        self._bytes: Counter[str] = Counter()
        self._objects: Counter[str] = Counter()
        # The hashes of the names, because these have up to 253 characters.
        self._ignored: dict[str, dict[Resource, set[int]]] = {}
        self._warned: set[str] = set()  # the namespaces that the log names, once per list

    def reserve(self, key: Key, size: int) -> bool:
        """Count an object that is to be stored. Returns False if that would exceed a limit."""
        namespace = key.namespace
        if self._objects[namespace] >= MAX_OBJECTS or self._bytes[namespace] + size + OVERHEAD > MAX_BYTES:
            self._ignore(key)
            return False
        self._objects[namespace] += 1
        self._bytes[namespace] += size + OVERHEAD
        self.forget(key)
        return True

    def release(self, namespace: str, size: int) -> None:
        """Count that an object is not stored any more."""
        self._objects[namespace] -= 1
        self._bytes[namespace] -= size + OVERHEAD
        if not self._objects[namespace]:
            del self._objects[namespace], self._bytes[namespace]

    def forget(self, key: Key) -> None:
        """Count an object as not ignored: it was deleted, or it is stored now."""
        names = self._ignored.get(key.namespace, {}).get(key.resource)
        if names is not None and hash(key.name) in names:
            names.discard(hash(key.name))
            self._report(key.namespace)

    def forget_ignored(self, resource: Resource, namespace: str | None) -> None:
        """Count those of a resource again, from a list of one namespace or of all."""
        for name in [namespace] if namespace else list(self._ignored):
            self._ignored.get(name, {}).pop(resource, None)
            self._report(name)
            if name not in self._ignored:
                self._warned.discard(name)

    def ignored(self, namespace: str) -> int:
        """The number of objects of a namespace that were not stored, at most MAX_COUNTED."""
        return sum(map(len, self._ignored.get(namespace, {}).values()))

    def _ignore(self, key: Key) -> None:
        if key.namespace not in self._warned:
            self._warned.add(key.namespace)
            log.warning(
                "namespace %r contains more than %d objects, or %d MiB, with this operator's label that belong to no "
                "object of this operator; additional objects are ignored",
                key.namespace,
                MAX_OBJECTS,
                MAX_BYTES >> 20,
            )
        names = self._ignored.setdefault(key.namespace, {}).setdefault(key.resource, set())
        if self.ignored(key.namespace) < MAX_COUNTED:
            names.add(hash(key.name))
            self._report(key.namespace)

    def _report(self, namespace: str) -> None:
        if number := self.ignored(namespace):
            metrics.IGNORED_OBJECTS.labels(namespace).set(number)
        else:
            self._ignored.pop(namespace, None)
            with suppress(KeyError):
                metrics.IGNORED_OBJECTS.remove(namespace)
