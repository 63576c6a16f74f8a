"""Limits of what is kept of a namespace although nothing needs it: a flood in one must not fill the memory."""

import logging
from collections import Counter
from typing import Final

log = logging.getLogger(__name__)

MAX_BYTES: Final = 4 * 2**20
"""Bytes of the objects of a namespace with the operator's label that belong to no custom resource. If one is created
again, it finds its orphaned workload and pods: a thousand pods with agents."""

OVERHEAD: Final = 1024
"""Bytes that an object takes besides its JSON: its keys in the store and in the index."""


class Allowances:
    """Counts by namespace what is kept."""

    def __init__(self) -> None:
        self._bytes: Counter[str] = Counter()
        self._exceeded: set[str] = set()

    def reserve(self, namespace: str, size: int) -> bool:
        """Count an object that is to be kept. Returns False if that would exceed the limit."""
        if self._bytes[namespace] + size + OVERHEAD > MAX_BYTES:
            self._warn(namespace)
            return False
        self._bytes[namespace] += size + OVERHEAD
        return True

    def release(self, namespace: str, size: int) -> None:
        """Count that an object is not kept any more."""
        self._bytes[namespace] -= size + OVERHEAD
        if not self._bytes[namespace]:
            del self._bytes[namespace]
            self._exceeded.discard(namespace)

    def _warn(self, namespace: str) -> None:
        """Log the first object of a namespace that is ignored."""
        if namespace not in self._exceeded:
            self._exceeded.add(namespace)
            log.warning(
                "namespace %r: objects with this operator's label that belong to no object of this operator exceed "
                "%d MiB; the others are ignored",
                namespace,
                MAX_BYTES >> 20,
            )
