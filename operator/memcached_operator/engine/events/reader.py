"""Reads Events on demand and at a limited rate. Events are never watched."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from memcached_operator import metrics
from memcached_operator.engine.runtime.fair_queue import Limits
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import EVENTS, Key, Object, nested_list
from memcached_operator.world.snapshot import Snapshot

log = logging.getLogger(__name__)

READERS = 2
"""Maximum concurrent reads, one of each namespace: a slow one delays no status of the others. They run beside the
reconciles, which a slow response must not delay."""

MAX_BYTES = 2**22
"""Bytes of Events that are read about one object. Those of a kubelet have about 1 KiB; anyone may write others."""


class Demand(Protocol):
    """What is to be read.

    `after`: seconds until then. `period`: minimum seconds between two reads. `urgent`: it is read without a further
    reconcile, and also soon after a start of the process.
    """

    @property
    def after(self) -> float: ...
    @property
    def period(self) -> float: ...
    @property
    def urgent(self) -> bool: ...


D = TypeVar("D", bound=Demand)


@dataclass
class _State(Generic[D]):
    """The reads for one object. Times are in seconds of the event loop's clock."""

    since: float
    """The time of the first demand."""
    read_at: float = float("-inf")
    """The time of the last read."""
    not_before: float = float("-inf")
    """The time before which the API server wants no read, from its Retry-After."""
    due: float = 0.0
    """The time of the next read."""
    demand: D | None = None
    """What is to be read; None if nothing is."""
    known: tuple[Object, ...] | None = None
    """The result of the last read; None before the first one."""
    delays_status: bool = False
    """The status of the object is written after the first read."""


@dataclass(frozen=True)
class Occasion:
    """What is known when it is decided whether a read is needed."""

    now: datetime
    known: tuple[Object, ...]
    """The result of the last read."""
    waited: float
    """Seconds since the first demand."""
    reported: bool
    """The status reports a problem, of which nothing was read since the start of the process."""


class EventReader(ABC, Generic[D]):
    """What is known of each object from Events, as of the last read.

    `on_change` is called with the key of an object of which something else is known than before.
    """

    name: str
    """The name of the queue, and of its tasks."""
    consequence: str
    """What follows if Events cannot be listed, for the log."""
    reasons: frozenset[str]
    """The reasons in the status of an object of which these Events give the cause."""

    def __init__(self, client: ApiClient, on_change: Callable[[Key], None]) -> None:
        self._client = client
        self._on_change = on_change
        self._queue: Queue[Key] = Queue(self.name, lambda key: key.namespace, limits=Limits(1))
        self._states: dict[Key, _State[D]] = {}
        self._forbidden: set[str] = set()

    @abstractmethod
    def _demand(self, snapshot: Snapshot, occasion: Occasion) -> D | None:
        """What is to be read for an object now, or None."""

    @abstractmethod
    async def _read(self, key: Key, demand: D) -> tuple[Object, ...]:
        """Read what is demanded. Raises ApiError."""

    def _period(self, key: Key, demand: D) -> float:  # noqa: ARG002 - for others
        """Minimum seconds between two reads for an object."""
        return demand.period

    def _starts_again(self, before: D | None, demand: D | None) -> bool:  # noqa: ARG002 - for others
        """Whether what is known is of no use for a demand, which then is like the first one of an object."""
        return False

    async def run(self) -> None:
        """Read Events when they are needed, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.run_timers(), name=f"{self.name} timers")
            for number in range(READERS):
                group.create_task(self._run_reader(), name=f"{self.name} reader {number}")

    def of(self, key: Key, snapshot: Snapshot, now: datetime) -> tuple[Object, ...]:
        """What is known. Schedules a read if more is needed."""
        state = self._states.get(key)
        known = state.known if state is not None else None
        reported = known is None and self._is_reported(snapshot.cr)
        demand = self._demand(snapshot, Occasion(now, known or (), self._waited(key), reported))
        if state is not None and self._starts_again(state.demand, demand):
            self.forget(key)
            state, known, reported = None, None, self._is_reported(snapshot.cr)
        if state is None:
            if demand is None:
                return ()
            state = self._states[key] = _State[D](_now())
        state.delays_status = reported and demand is not None and demand.after == 0
        self._schedule(key, state, demand, demand.after if demand is not None else 0.0)
        return known or ()

    def delays_status(self, key: Key) -> bool:
        """True if the status of an object must not be written before the first read, which is under way.

        It reports such a problem, and nothing was read since the start of the process.
        """
        state = self._states.get(key)
        return state is not None and state.delays_status

    def forget(self, key: Key) -> None:
        """Remove the state of an object."""
        self._states.pop(key, None)
        self._queue.forget(key)

    def _is_reported(self, cr: Object) -> bool:
        """Whether the status of an object has one of the reader's reasons."""
        return not self.reasons.isdisjoint(each.get("reason") for each in nested_list(cr, "status", "conditions"))

    def _waited(self, key: Key) -> float:
        """Seconds since the first demand for an object."""
        state = self._states.get(key)
        return 0.0 if state is None else _now() - state.since

    def _schedule(self, key: Key, state: _State[D], demand: D | None, after: float = 0.0) -> None:
        """Schedule the next read in `after` seconds, or when the limit of the rate allows it.

        Without a problem, there is no timer: the first reconcile after the period reads, at the latest the next resync.
        """
        state.demand = demand
        if demand is None:
            return
        now = _now()
        # Without a problem, there is no read at the first reconcile after a restart, or when a pod has started.
        last = state.read_at if demand.urgent else max(state.read_at, state.since)
        state.due = max(now + after, last + self._period(key, demand), state.not_before)
        if state.due > now and not demand.urgent:
            state.demand = None
            return
        self._queue.add_after(key, state.due - now)

    async def _run_reader(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._read_if_due(key)
                self._queue.forget(key)
            except Exception:
                # A broad except at the outermost level: a defect that affects one object must not stop the process.
                metrics.RECONCILE_PANICS.labels(self.name).inc()
                delay = self._queue.retry(key)
                log.exception("%s: unexpected error in %s, please report it; retrying in %.1f s", key, self.name, delay)
                self._release_status(key)
            finally:
                self._queue.done(key)

    def _release_status(self, key: Key) -> None:
        """Let the status of an object be written although the first read has failed."""
        state = self._states.get(key)
        if state is not None and state.known is None:
            state.known = ()
            self._on_change(key)

    async def _read_if_due(self, key: Key) -> None:
        state = self._states.get(key)
        if state is None or state.demand is None:
            return
        if (left := state.due - _now()) > 0:
            # It was scheduled for other pods before.
            self._queue.add_after(key, left)
            return
        before = state.known
        state.read_at = _now()
        state.known = await self._read_or_keep(key, state, state.demand)
        self._schedule(key, state, state.demand)  # which a reconcile can have changed meanwhile
        if state.known != before and self._states.get(key) is state:
            self._on_change(key)

    async def _read_or_keep(self, key: Key, state: _State[D], demand: D) -> tuple[Object, ...]:
        """What is read, or what is known if that fails."""
        try:
            found = await self._read(key, demand)
        except ApiError as error:
            state.not_before = _now() + (error.retry_after or 0.0)
            self._log(key, error)
            return state.known or ()
        self._forbidden.discard(key.namespace)
        return found

    async def _events(
        self, namespace: str, fields: str, limit: int, relevant: Callable[[Iterable[Object]], Iterator[Object]]
    ) -> list[Object]:
        """The relevant ones of at most `limit` Events and MAX_BYTES."""
        events: list[Object] = []
        read = 0
        async for page in self._client.list(EVENTS, namespace, fields=fields, limit=limit):
            events += relevant(page.items)
            read += page.bytes
            if read > MAX_BYTES:
                log.warning(
                    "Events in namespace %r: only %d MiB of those about one object are read", namespace, read >> 20
                )
                break
        return events

    def _log(self, key: Key, error: ApiError) -> None:
        """Log an error; a missing permission only once per namespace."""
        if error.code != 403:
            log.warning("%s: cannot list the Events of its pods: %s", key, error)
        elif key.namespace not in self._forbidden:
            self._forbidden.add(key.namespace)
            log.warning("cannot list Events in namespace %r, so %s: %s", key.namespace, self.consequence, error)


def _now() -> float:
    return asyncio.get_running_loop().time()
