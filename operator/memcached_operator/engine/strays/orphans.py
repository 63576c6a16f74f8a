"""Finds the children of an earlier object of the same name that lost their owner, and that are not desired."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.engine.writes.ownership import may_be_adopted
from memcached_operator.kube.labels import selector_labels
from memcached_operator.kube.resource import NETWORK_POLICIES, POD_DISRUPTION_BUDGETS, SERVICES, Key, Object
from memcached_operator.world.snapshot import Snapshot
from memcached_operator.world.store import Store

MAX_BESIDE: Final = 8
"""Objects without an owner that are named besides a workload. Slots have a Service each."""

POLICIES: Final = (NETWORK_POLICIES, POD_DISRUPTION_BUDGETS)
"""The resources of children that affect pods without being used by clients."""


class Orphans:
    """The objects that were children of an earlier object of this name, and have no owner any more."""

    def __init__(self, store: Store, kind: ReconciledKind, snapshot: Snapshot, kept: AbstractSet[Key]) -> None:
        self._store, self._kind, self._kept = store, kind, kept
        self._meta = snapshot.cr["metadata"]
        self._labels = selector_labels(kind.app_name, self._meta["name"])

    def get(self, key: Key) -> Object | None:
        """The orphan of a key that is not desired; None if it is no orphan."""
        live = None if key in self._kept else self._store.get(key)
        return live if live is not None and may_be_adopted(live, self._labels) else None

    def beside(self) -> tuple[Key, ...]:
        """The first orphans that are neither workloads nor policies, the Services last."""
        return tuple(islice((key for key in self._names() if self.get(key) is not None), MAX_BESIDE))

    def _names(self) -> Iterator[Key]:
        """The keys that children of the object can have."""
        resources = set(self._kind.owns) - {*POLICIES, *(each.resource for each in self._kind.workloads)}
        namespace, name = self._meta["namespace"], self._meta["name"]
        for resource in sorted(resources, key=lambda each: (each == SERVICES, each.kind)):
            known = self._store.keys_of_instance(resource, namespace, self._kind.app_name, name)
            for key in sorted(known, key=lambda key: key.name):
                if any(owner == name for owner, _ in self._kind.owners(resource, key.name)):
                    yield key
