"""Reads the Events about failed mounts of pods, on demand and at a limited rate. Events are never watched."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from memcached_api import conditions as c
from memcached_operator.kind import Snapshot
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import EVENTS, Key, Object, nested_list
from memcached_operator.runtime.queue import Queue
from memcached_operator.workloads import mounts

log = logging.getLogger(__name__)

READERS = 2
"""Maximum concurrent reads. They run beside the reconciles, which a slow response must not delay."""

MAX_BYTES = 2**22
"""Bytes of Events that are read of one pod. Those of a kubelet have about 1 KiB; anyone may write others."""


@dataclass
class _State:
    """The reads of Events for one object.

    `events`: None before the first read. `held`: its status waits for that. Times in seconds of the event loop's clock:
    `known_since`; `read_at`, of the last read; `not_before`, from the API server's Retry-After; `due`, of the next
    read.
    """

    known_since: float
    read_at: float = float("-inf")
    not_before: float = float("-inf")
    due: float = 0.0
    demand: mounts.Demand | None = None
    events: tuple[Object, ...] | None = None
    held: bool = False


class MountEvents:
    """The Events about failed mounts of the pods of each object, as of their last read.

    `on_change` is called with the key of an object whose Events have changed.
    """

    def __init__(self, client: ApiClient, on_change: Callable[[Key], None]) -> None:
        self._client = client
        self._on_change = on_change
        self._queue: Queue[Key] = Queue("mount-events", lambda key: key.namespace)
        self._states: dict[Key, _State] = {}
        self._forbidden: set[str] = set()

    async def run(self) -> None:
        """Read Events when they are needed, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run_timers(), name="mount event timers")
            for number in range(READERS):
                group.create_task(self._run_reader(), name=f"mount event reader {number}")

    def of(self, key: Key, snapshot: Snapshot, now: datetime) -> tuple[Object, ...]:
        """The known Events. Schedules a read if newer ones are needed."""
        state = self._states.get(key)
        known = state.events if state is not None else None
        reported = known is None and _is_reported(snapshot.cr)
        demand = mounts.demand(snapshot.pods, known or (), now, reported=reported)
        if state is None:
            if demand is None:
                return ()
            state = self._states[key] = _State(_now())
        state.held = reported and demand is not None and demand.after == 0
        self._schedule(key, state, demand, demand.after if demand is not None else 0.0)
        return known or ()

    def holds_status(self, key: Key) -> bool:
        """True if a status reports a missing Secret, and the Events were not read since the start of the process."""
        state = self._states.get(key)
        return state is not None and state.held

    def forget(self, key: Key) -> None:
        """Remove the state of a deleted object."""
        self._states.pop(key, None)

    def _schedule(self, key: Key, state: _State, demand: mounts.Demand | None, after: float = 0.0) -> None:
        """Schedule the next read in `after` seconds, or when the limit of the rate allows it.

        Without a problem, there is no timer: the first reconcile after the period reads, at the latest the next resync.
        """
        state.demand = demand
        if demand is None:
            return
        now = _now()
        # Without a problem, there is no read at the first reconcile after a restart, or when a pod has started.
        last = state.read_at if demand.urgent else max(state.read_at, state.known_since)
        state.due = max(now + after, last + demand.period, state.not_before)
        if state.due > now and not demand.urgent:
            state.demand = None
            return
        self._queue.add_after(key, state.due - now)

    async def _run_reader(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._read_if_due(key)
            finally:
                self._queue.done(key)

    async def _read_if_due(self, key: Key) -> None:
        state = self._states.get(key)
        if state is None or state.demand is None:
            return
        if (left := state.due - _now()) > 0:
            # It was scheduled for other pods before.
            self._queue.add_after(key, left)
            return
        uids, before = state.demand.uids, state.events
        state.read_at = _now()
        state.events = await self._read(key, state, uids)
        self._schedule(key, state, state.demand)  # which a reconcile can have changed meanwhile
        if state.events != before and self._states.get(key) is state:
            self._on_change(key)

    async def _read(self, key: Key, state: _State, uids: tuple[str, ...]) -> tuple[Object, ...]:
        """The Events of these pods, or those that are known if they cannot be read."""
        events: list[Object] = []
        try:
            for uid in uids:
                fields = mounts.FIELDS.format(uid)
                events += await self._events(key.namespace, fields)
        except ApiError as error:
            state.not_before = _now() + (error.retry_after or 0.0)
            self._log(key, error)
            return state.events or ()
        self._forbidden.discard(key.namespace)
        return tuple(events)

    async def _events(self, namespace: str, fields: str) -> list[Object]:
        """The relevant ones of at most MAX_EVENTS Events and MAX_BYTES."""
        events: list[Object] = []
        read = 0
        async for page in self._client.list(EVENTS, namespace, fields=fields, limit=mounts.MAX_EVENTS):
            events += mounts.relevant(page.items)
            read += page.bytes
            if read > MAX_BYTES:
                log.warning(
                    "Events in namespace %r: only %d MiB of those about one pod are read", namespace, read >> 20
                )
                break
        return events

    def _log(self, key: Key, error: ApiError) -> None:
        """Log an error; a missing permission only once per namespace."""
        if error.code != 403:
            log.warning("%s: cannot list the Events of its pods: %s", key, error)
        elif key.namespace not in self._forbidden:
            self._forbidden.add(key.namespace)
            log.warning(
                "cannot list Events in namespace %r, so missing Secrets are not reported: %s", key.namespace, error
            )


def _now() -> float:
    return asyncio.get_running_loop().time()


def _is_reported(cr: Object) -> bool:
    conditions = nested_list(cr, "status", "conditions")
    return c.SECRET_UNAVAILABLE in [condition.get("reason") for condition in conditions]
