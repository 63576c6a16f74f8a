"""Limits of what is kept of a namespace although nothing needs it: a flood in one must not fill the memory."""

import logging
from collections import Counter
from typing import Final, NamedTuple

from memcached_operator.kube.resource import Resource

log = logging.getLogger(__name__)

MAX_BYTES: Final = 4 * 2**20
"""Bytes of the objects of a namespace with the operator's label that belong to no custom resource. If one is created
again, it finds its orphaned workload and pods: a thousand pods with agents."""

MAX_FOREIGN_BYTES: Final = 2 * 2**20
"""Bytes of the objects of others, of one resource: several times as many as plans read, which report that they do not
read all."""

OVERHEAD: Final = 1024
"""Bytes that an object takes besides its JSON: its keys in the store and in the index."""


class Group(NamedTuple):
    """Objects that have a limit together: those of others of a resource, or with None those with our label."""

    namespace: str
    resource: Resource | None = None


class Allowances:
    """Counts by group what is kept."""

    def __init__(self) -> None:
        self._bytes: Counter[Group] = Counter()
        self._exceeded: set[Group] = set()

    def reserve(self, group: Group, size: int) -> bool:
        """Count an object that is to be kept. Returns False if that would exceed the limit."""
        limit = MAX_FOREIGN_BYTES if group.resource else MAX_BYTES
        if self._bytes[group] + size + OVERHEAD > limit:
            self._warn(group, limit)
            return False
        self._bytes[group] += size + OVERHEAD
        return True

    def release(self, group: Group, size: int) -> None:
        """Count that an object is not kept any more."""
        self._bytes[group] -= size + OVERHEAD
        if not self._bytes[group]:
            del self._bytes[group]
            self._exceeded.discard(group)

    def _warn(self, group: Group, limit: int) -> None:
        """Log the first object of a group that is ignored."""
        if group not in self._exceeded:
            self._exceeded.add(group)
            what = group.resource.plural if group.resource else "objects with this operator's label"
            log.warning(
                "namespace %r: %s that belong to no object of this operator exceed %d MiB; the others are ignored",
                group.namespace,
                what,
                limit >> 20,
            )
