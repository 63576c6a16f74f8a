"""Live reads of single objects, for when the store may be stale."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from memcached_operator.kube.budgets import Budgets
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import PODS, Key, Object
from memcached_operator.world.store import Store, version_of

FIRST_RECHECK, MAX_RECHECK = 1.0, 300.0
"""Seconds until an object whose deletion is awaited is read for the first time, and maximum seconds between two reads.
The time doubles with each read: a user's finalizer can keep such an object for any time."""

RECHECKS_PER_SECOND, RECHECK_BURST = 1.0, 10.0
"""Such reads in one namespace: per second, and at once after a pause."""


class StaleError(Exception):
    """A live read shows that the snapshot is out of date. The store has the new state: reconcile again."""


async def get_live(client: ApiClient, store: Store, key: Key) -> Object | None:
    """Read an object from the API server and update the store. Returns None if it does not exist. Raises ApiError.

    An object beyond the limits of its namespace is not in the store, but exists.
    """
    store.clear_tombstone(key)
    live = await client.get(key)
    if live is None:
        known = store.get(key)
        if known is not None:
            store.remove(key, version_of(known))
        return None
    live.setdefault("apiVersion", key.resource.api_version)
    live.setdefault("kind", key.resource.kind)
    store.put(key.resource, live, from_live_read=True)
    known = store.get(key)
    return live if known is None else known


async def find_pod(client: ApiClient, namespace: str, name: str) -> Object | None:
    """Read a pod from the API server; None if it does not exist. The controller may list pods, but not get one.

    Raises ApiError.
    """
    pages = client.list(PODS, namespace, fields=f"metadata.name={name}", limit=1)
    found = [pod async for page in pages for pod in page.items]
    return found[0] if found else None


async def ensure_exists(client: ApiClient, store: Store, key: Key, seen: Object) -> None:
    """Check with the API server that `seen` still exists, is not being deleted, and has the newest spec.

    Raises StaleError or ApiError.
    """
    live = await get_live(client, store, key)
    if live is None or live["metadata"].get("deletionTimestamp") or _identity(live) != _identity(seen):
        raise StaleError


def exact_version(obj: Object | None) -> tuple[str, str] | None:
    """The uid and the resourceVersion of an object; None without one."""
    return None if obj is None else (obj["metadata"]["uid"], obj["metadata"]["resourceVersion"])


def _identity(obj: Object) -> tuple[str, int | None]:
    return obj["metadata"]["uid"], obj["metadata"].get("generation")


@dataclass
class _Wait:
    """The wait for one deletion."""

    due: float
    """The time of the next read, in seconds of the monotonic clock."""
    delay: float = FIRST_RECHECK
    """Seconds from the last read to the next one."""


class Rechecks:
    """Limits the reads of objects whose deletion is awaited. An event reports it; the reads are for a missed event."""

    def __init__(self) -> None:
        self._waits: dict[Key, _Wait] = {}
        self._budgets = Budgets(RECHECKS_PER_SECOND, RECHECK_BURST)
        self.clock: Callable[[], float] = time.monotonic

    def is_due(self, key: Key) -> bool:
        """Whether to read an object now. Counts the read, or postpones it if the namespace has no reads left."""
        now = self.clock()
        wait = self._waits.setdefault(key, _Wait(now + FIRST_RECHECK))
        if now < wait.due:
            return False
        wait.delay = min(MAX_RECHECK, 2 * wait.delay)
        wait.due = now + wait.delay
        return self._budgets.take(key.namespace, now)

    def is_waiting(self, key: Key) -> bool:
        """Whether the deletion of an object is awaited."""
        return key in self._waits

    def seconds(self, key: Key) -> float:
        """Seconds until the next read of an object, after `is_due`."""
        return self._waits[key].due - self.clock()

    def forget(self, key: Key) -> None:
        """Forget an object whose deletion is not awaited any more."""
        self._waits.pop(key, None)

    def keep(self, is_known: Callable[[Key], bool]) -> None:
        """Forget the objects that are not known any more."""
        self._waits = {key: wait for key, wait in self._waits.items() if is_known(key)}
