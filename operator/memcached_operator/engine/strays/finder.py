"""Finds strays in the store, and remembers since when those exist that can be of a transition."""

import time
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from memcached_api import conditions as c
from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.engine.strays.orphans import POLICIES, Orphans
from memcached_operator.engine.strays.pods import stray_pods
from memcached_operator.engine.writes.intent import replicas_of
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.resource import SERVICES, Key, Object, Resource, nested_list
from memcached_operator.world.snapshot import Snapshot, Strays
from memcached_operator.world.store import Store

GRACE: Final = 60.0
"""Seconds for which pods may belong to no workload of the object: until the garbage collector has deleted those of a
deleted workload, or until a new workload has adopted them."""


class StrayFinder:
    """Finds strays, and remembers since when those exist that can be of a transition."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._since: dict[Key, float] = {}
        self._known: set[Key] = set()
        self.clock: Callable[[], float] = time.monotonic

    def find(
        self,
        kind: ReconciledKind,
        key: Key,
        snapshot: Snapshot,
        desired: AbstractSet[Key] | None,
        problems: Iterable[Problem],
    ) -> tuple[Strays, float | None]:
        """The strays to report, and seconds until there can be others without an event; or None.

        `desired`: the keys of the children; None if they are not known. `problems`: those of the plan and of applying
        it, so the other causes of a conflict.
        """
        found = strays(self._store, kind, snapshot, desired)
        is_first = key not in self._known
        self._known.add(key)
        if not found.is_transitional:
            self._since.pop(key, None)
            return found, None
        now = self.clock()
        # After a restart of this process, what is reported already must not be left out for a moment.
        is_reported = is_first and _reports_conflict(snapshot.cr) and not _has_conflict(found, problems)
        left = self._since.setdefault(key, now - GRACE if is_reported else now) + GRACE - now
        if left <= 0:
            return found, None
        return replace(found, owners=(), pods=()), left

    def forget(self, key: Key) -> None:
        """Forget an object that does not exist any more."""
        self._since.pop(key, None)
        self._known.discard(key)


def strays(store: Store, kind: ReconciledKind, snapshot: Snapshot, desired: AbstractSet[Key] | None) -> Strays:
    """What a store has of the strays of an object. `desired`: as for `StrayFinder.find`."""
    meta = snapshot.cr["metadata"]

    def keys(resources: Iterable[Resource]) -> list[Key]:
        return [Key(resource, meta["namespace"], meta["name"]) for resource in resources if resource in kind.owns]

    own = keys(each.resource for each in kind.workloads)
    if desired is not None and desired.isdisjoint(own):
        # The plan waits. The next one can want the other children, too.
        desired = None
    kept = {*snapshot.children, *((*own, *keys(POLICIES)) if desired is None else desired)}
    orphans = Orphans(store, kind, snapshot, kept)
    policies = tuple(key for key in keys(POLICIES) if orphans.get(key) is not None)
    if snapshot.child(SERVICES) is None:
        return Strays(policies=policies)
    workloads = tuple(key for key in own if (live := orphans.get(key)) is not None and _has_pods(live))
    owners, pods = stray_pods(store, kind, snapshot, kept.union(workloads))
    return Strays(workloads, orphans.beside() if workloads else (), policies, owners, pods)


def _reports_conflict(cr: Object) -> bool:
    """Whether the last status reports a conflict."""
    return c.CONFLICT in [condition.get("reason") for condition in nested_list(cr, "status", "conditions")]


def _has_conflict(found: Strays, problems: Iterable[Problem]) -> bool:
    """Whether the conflict that a status reports can have another cause than pods."""
    return bool(found.workloads) or any(problem.reason == c.CONFLICT for problem in problems)


def _has_pods(live: Object) -> bool:
    """Whether a workload keeps pods: an orphan that is being deleted loses them."""
    return replicas_of(live) != 0 and not live["metadata"].get("deletionTimestamp")
