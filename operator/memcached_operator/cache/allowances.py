"""Limits of what is kept of a namespace although nothing needs it: a flood in one must not fill the memory."""

import logging
from collections import Counter
from contextlib import suppress
from typing import Final

from memcached_operator import metrics
from memcached_operator.kube.resource import Resource

log = logging.getLogger(__name__)

MAX_BYTES: Final = 8 * 2**20
MAX_OBJECTS: Final = 2000
"""Bytes and number of the objects of a namespace that are stored although nothing needs them."""

OVERHEAD: Final = 1024
"""Bytes that an object takes besides its JSON: its keys in the cache and in the index."""


class Allowances:
    """Counts by namespace what is stored, and what was refused."""

    def __init__(self) -> None:
        self._bytes: Counter[str] = Counter()
        self._objects: Counter[str] = Counter()
        self._refused: dict[str, Counter[Resource]] = {}

    def take(self, resource: Resource, namespace: str, size: int) -> bool:
        """Count an object that is to be stored. Returns False if there is no room for it."""
        if self._objects[namespace] >= MAX_OBJECTS or self._bytes[namespace] + size + OVERHEAD > MAX_BYTES:
            self._refuse(resource, namespace)
            return False
        self._objects[namespace] += 1
        self._bytes[namespace] += size + OVERHEAD
        return True

    def give_back(self, namespace: str, size: int) -> None:
        """Count that an object is not stored any more."""
        self._objects[namespace] -= 1
        self._bytes[namespace] -= size + OVERHEAD
        if not self._objects[namespace]:
            del self._objects[namespace], self._bytes[namespace]

    def forget_refused(self, resource: Resource, namespace: str | None) -> None:
        """Count those of a resource again, from a list of one namespace or of all."""
        for name in [namespace] if namespace else list(self._refused):
            counts = self._refused.get(name, Counter())
            counts.pop(resource, None)
            if not counts:
                self._refused.pop(name, None)
            self._report(name)

    def refused(self, namespace: str) -> int:
        """The number of objects of a namespace that were not stored. Those that changed since a list count again."""
        return self._refused.get(namespace, Counter()).total()

    def _refuse(self, resource: Resource, namespace: str) -> None:
        if namespace not in self._refused:
            log.warning(
                "namespace %r contains more than %d objects, or %d MiB, with this operator's label that belong to no "
                "object of this operator; additional objects are ignored",
                namespace,
                MAX_OBJECTS,
                MAX_BYTES >> 20,
            )
        self._refused.setdefault(namespace, Counter())[resource] += 1
        self._report(namespace)

    def _report(self, namespace: str) -> None:
        if number := self.refused(namespace):
            metrics.IGNORED_OBJECTS.labels(namespace).set(number)
        else:
            with suppress(KeyError):
                metrics.IGNORED_OBJECTS.remove(namespace)
