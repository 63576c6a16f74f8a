"""Reads why objects are late: from Events, on demand and at a limited rate. Events are never watched."""

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from memcached_operator import metrics
from memcached_operator.engine.events.controller_retries import Retries
from memcached_operator.engine.runtime.fair_queue import Limits
from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.findings.creation import obstacle
from memcached_operator.findings.event_reads import MAX_PODS, Late, late
from memcached_operator.findings.volumes.mounts import READ_PERIOD
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import EVENTS, Key, Object, nested_map
from memcached_operator.kube.times import last_seen
from memcached_operator.world.live import find_pod
from memcached_operator.world.snapshot import NO_MESSAGES, Message, Snapshot
from memcached_operator.world.store import Store

log = logging.getLogger(__name__)

NAME: Final = "causes"
"""The name of the queue, and of its tasks."""

READERS: Final = 2
"""Maximum concurrent reads for which a status waits, one of each namespace, and of the other ones: a slow one delays no
status of the others. They run beside the reconciles, which a slow response must not delay."""

PAUSE: Final = 15.0
"""Minimum seconds between two reads for one custom resource, whose pods may be replaced often."""

RATE, BURST = 10.0, 20.0
"""Custom resources about which Events are read, per second, and at once after a pause. Without it, an outage of the
controllers of workloads would cause hundreds of lists per second in a cluster with thousands of caches."""

KEEP_PERIOD: Final = READ_PERIOD
"""Seconds for which the messages about a pod are kept that is not late any more. Before Kubernetes 1.32, a container
alternates between a status with the error of its image and one without it."""

MAX_EVENTS: Final = 500
"""Maximum Events that are read about one object, or about all ReplicaSets of a namespace. Kubernetes counts repetitions
in one Event, and merges more than 10 similar ones (client-go tools/record/events_cache.go)."""

MAX_BYTES: Final = 2**22
"""Bytes of the same. Those of Kubernetes have about 1 KiB; anyone may write others."""

MAX_KEPT, MAX_TEXT = 12, 2048
"""Maximum Events that are kept about one object, and characters of each: more than Kubernetes writes before it merges
them."""

SKEW: Final = timedelta(minutes=2)
"""The most by which the clock of a node is ahead. An Event of a later time is forged, and would never be replaced."""


@dataclass
class _Entry:
    """The reads about one object that is late. Times are in seconds of the event loop's clock."""

    row: Late
    since: float
    """The time since which it is late."""
    late_at: float = float("-inf")
    """The last time at which it was late."""
    due: float = float("inf")
    """The time of the next read."""
    read_at: float | None = None
    """The time of the last read."""
    messages: tuple[Message, ...] | None = None
    """The result of the last read; None before the first one."""
    taken: tuple[Object, ...] = ()

    def schedule(self, row: Late, now: float) -> None:
        """Set the time of the next read."""
        self.row, self.late_at = row, now
        if self.read_at is None and row.urgent:
            self.due = min(self.due, now + row.after)
            return
        # Without a problem, there is no read at the first reconcile after a restart, or when a pod has started.
        last = self.since if self.read_at is None else self.read_at
        self.due = last + self._period(row, last - self.since)
        if self.due > now and not row.urgent:
            self.due = float("inf")

    def _period(self, row: Late, waited: float) -> float:
        """Minimum seconds until the next read, from the seconds for which the object was late at the last one.

        The controller of a new workload tries often, and its first attempts may fail for another cause: until the cause
        is known, the period is as long as the object has been late, at least PAUSE.
        """
        is_unknown = row.workload is not None and not (self.messages or self.taken)
        period = min(row.period, max(PAUSE, waited)) if is_unknown else row.period
        return max(period, min(waited / 10, row.max_period))


@dataclass
class _State:
    """The objects of a custom resource that are late, by uid."""

    entries: dict[str, _Entry] = field(default_factory=dict[str, _Entry])
    paused_until: float = float("-inf")
    """The time before which nothing is read, because of the last read."""
    not_before: float = float("-inf")
    """The time before which nothing is read, because of an error. No status waits for a read meanwhile."""
    is_reading: bool = False

    def update(self, rows: Iterable[Late], pods: AbstractSet[str], now: float) -> None:
        """Keep what is known of the objects that are late, or were late a short time ago, and forget the others.

        `pods`: the uids of all pods.
        """
        before, self.entries = self.entries, {}
        for row in rows:
            entry = before.get(row.uid)
            if entry is None or not row.images <= entry.row.images or row.source.fields != entry.row.source.fields:
                entry = _Entry(row, now)
            # The images of all its containers that are late by turns.
            entry.schedule(replace(row, images=entry.row.images), now)
            self.entries[row.uid] = entry
        others = [each for uid, each in before.items() if uid in pods and uid not in self.entries and each.messages]
        for entry in sorted(others, key=lambda each: each.late_at)[-MAX_PODS:]:
            if now - entry.late_at < KEEP_PERIOD:
                entry.due = float("inf")
                self.entries[entry.row.uid] = entry

    def next_read(self) -> float:
        """The time of the next read."""
        due = min((each.due for each in self.entries.values()), default=float("inf"))
        return max(due, self.paused_until, self.not_before)

    def due(self, now: float) -> list[_Entry]:
        """The objects that are read now."""
        return self._due(now) if max(self.paused_until, self.not_before) <= now else []

    def delays_status(self, now: float) -> bool:
        """True if a status waits for a read that is under way, or that a pause delays by at most PAUSE seconds."""
        return self.not_before <= now and any(each.messages is None and each.row.reported for each in self._due(now))

    def fail(self, until: float) -> None:
        """Read nothing until a time, and let no status wait for what was not read."""
        self.not_before = max(self.not_before, until)
        for entry in self.entries.values():
            entry.messages = entry.messages or ()

    def _due(self, now: float) -> list[_Entry]:
        return [each for each in self.entries.values() if each.due <= now]

    def messages(self) -> dict[str, tuple[Message, ...]]:
        """What is known from Events, by uid."""
        return {uid: each.messages for uid, each in self.entries.items() if each.messages}

    def taken(self) -> tuple[Object, ...]:
        """The pods of others with the names of slots."""
        return tuple(pod for each in self.entries.values() for pod in each.taken)


class Causes:
    """What is known of the objects that are late, as of the last read.

    `on_change` is called with the key of a custom resource of which something else is known than before, or whose
    status waits for what is known.
    """

    def __init__(self, client: ApiClient, store: Store, on_change: Callable[[Key], None]) -> None:
        self._client = client
        self._on_change = on_change
        self._retries = Retries(client, store)
        self._queue: Queue[Key] = Queue(NAME, lambda key: key.namespace, limits=Limits(1))
        self._awaited: Queue[Key] = Queue(f"awaited {NAME}", lambda key: key.namespace, limits=Limits(1))
        self._states: dict[Key, _State] = {}
        self._forbidden: set[str] = set()
        self._paced_until = float("-inf")

    async def run(self) -> None:
        """Read Events when they are needed, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for queue in (self._queue, self._awaited):
                group.create_task(queue.run_timers(), name=f"{NAME} timers")
                for number in range(READERS):
                    group.create_task(self._run_reader(queue), name=f"{NAME} reader {number}")

    def add_to(self, snapshot: Snapshot, key: Key, now: datetime) -> Snapshot:
        """The snapshot of a custom resource with what is known. Schedules a read if more is needed."""
        state = self._states.get(key)
        rows = late(snapshot, NO_MESSAGES if state is None else state.messages(), now)
        if state is None:
            if not rows:
                return snapshot
            state = self._states[key] = _State()
        state.update(rows, {pod.metadata.uid for pod in snapshot.pods}, _now())
        self._schedule(key, state)
        return replace(snapshot, messages=state.messages(), taken=state.taken())

    def delays_status(self, key: Key) -> bool:
        """True if the status of a custom resource must not be written before the first read, under way or delayed.

        It reports such a cause, which is not known, for example after the start of the process.
        """
        state = self._states.get(key)
        return state is not None and state.delays_status(_now())

    def forget(self, key: Key) -> None:
        """Remove the state of a custom resource."""
        self._states.pop(key, None)
        self._queue.forget(key)
        self._awaited.forget(key)

    def _schedule(self, key: Key, state: _State) -> None:
        """Schedule the next read. Without a problem there is none: the first reconcile after the period reads."""
        if (at := state.next_read()) < float("inf"):
            queue = self._awaited if state.delays_status(_now()) else self._queue
            queue.add_after(key, at - _now())

    async def _run_reader(self, queue: Queue[Key]) -> None:
        while True:
            key = await queue.get()
            try:
                if queue is self._queue:
                    await self._pace(key)
                await self._read_all(key)
                queue.forget(key)
            except Exception:
                # A broad except at the outermost level: a defect that affects one object must not stop the process.
                metrics.RECONCILE_PANICS.labels(NAME).inc()
                delay = queue.retry(key, PAUSE)
                if (state := self._states.get(key)) is not None:
                    state.fail(_now() + delay)
                log.exception("%s: unexpected error in %s, please report it; retrying in %.1f s", key, NAME, delay)
                self._on_change(key)  # whose status may wait for it
            finally:
                queue.done(key)

    async def _pace(self, key: Key) -> None:
        """Wait until RATE allows another read, if one is due."""
        state, now = self._states.get(key), _now()
        if state is None or not state.due(now):
            return
        self._paced_until = max(self._paced_until, now - BURST / RATE) + 1 / RATE
        await asyncio.sleep(max(0.0, self._paced_until - now))

    async def _read_all(self, key: Key) -> None:
        """Read what is due of a custom resource."""
        state = self._states.get(key)
        if state is None or state.is_reading:
            return
        state.is_reading = True
        try:
            await self._read_due(key, state)
        finally:
            state.is_reading = False

    async def _read_due(self, key: Key, state: _State) -> None:
        due = state.due(_now())
        has_changed = False
        for entry in due:
            if state.not_before <= _now():  # no error before
                has_changed |= await self._read(key, state, entry)
            elif entry.messages is None:
                entry.messages, has_changed = (), True
        if due:
            state.paused_until = _now() + PAUSE
        if self._states.get(key) is state:
            self._schedule(key, state)
            if has_changed:
                self._on_change(key)

    async def _read(self, key: Key, state: _State, entry: _Entry) -> bool:
        """Read about one object, or keep what is known. Returns whether its custom resource must be reconciled."""
        is_first, before, started = entry.messages is None, (entry.messages or (), entry.taken), _now()
        try:
            await self._retry(key, entry, started)
            messages = await self._messages(key.namespace, entry.row)
            entry.messages, entry.taken = messages, await self._taken(key.namespace, entry.row)
        except ApiError as error:
            state.not_before = _now() + (error.retry_after or PAUSE)
            self._log(key, error)
        else:
            self._forbidden.discard(key.namespace)
        finally:
            entry.messages = entry.messages or ()
            # Also after a defect, so that the next read is of the other objects.
            entry.read_at = started
            if entry.due < float("inf"):
                entry.schedule(entry.row, _now())  # which a reconcile can have changed meanwhile
        # A reconcile during the first read may have left the status to the next one.
        return (is_first and entry.row.reported) or (entry.messages, entry.taken) != before

    async def _retry(self, owner: Key, entry: _Entry, now: float) -> None:
        """Make the controller of a workload try again, if its pods have been missing for some time."""
        if entry.row.workload and now - entry.since >= entry.row.retry_after:
            await self._retries.retry(owner, entry.row.workload, entry.row.uid, now)

    async def _messages(self, namespace: str, row: Late) -> tuple[Message, ...]:
        """The newest message of each subject, the oldest first. Raises ApiError."""
        newest: dict[Hashable, Message] = {}
        read, now, fields = 0, datetime.now(UTC), row.source.fields.format(row.uid)
        async for page in self._client.list(EVENTS, namespace, fields=fields, limit=MAX_EVENTS):
            for subject, message in _relevant(page.items, row, now):
                newest[subject] = max(message, newest.get(subject, message))
            newest = dict(sorted(newest.items(), key=lambda item: item[1])[-MAX_KEPT:])
            read += page.bytes
            if read > MAX_BYTES:
                log.warning(
                    "Events in namespace %r: only %d MiB of those about one object are read", namespace, read >> 20
                )
                break
        return tuple(newest.values())

    async def _taken(self, namespace: str, row: Late) -> tuple[Object, ...]:
        """The pods of other owners with the names of slots, which are not watched. Raises ApiError."""
        pods = [await find_pod(self._client, namespace, slot) for slot in row.slots]
        obstacles = (obstacle(pod, row.uid) for pod in pods if pod is not None)
        return tuple(each for each in obstacles if each is not None)

    def _log(self, key: Key, error: ApiError) -> None:
        """Log an error; a missing permission only once per namespace."""
        if error.code != 403:
            log.warning("%s: cannot list the Events of its pods: %s", key, error)
        elif key.namespace not in self._forbidden:
            self._forbidden.add(key.namespace)
            log.warning("cannot list Events in namespace %r, so the causes are not reported: %s", key.namespace, error)


def _relevant(events: Iterable[Object], row: Late, now: datetime) -> Iterator[tuple[Hashable, Message]]:
    """The messages that are needed, and what each is about."""
    for event in events:
        seen, text = last_seen(event), (event.get("message") or "")[:MAX_TEXT]
        if seen is None or seen > now + SKEW or (now - seen).total_seconds() > row.source.max_age:
            continue
        name = nested_map(event, "involvedObject").get("name", "")
        if (subject := row.source.subject(text, name, row)) is not None:
            yield subject, Message(seen, text)


def _now() -> float:
    return asyncio.get_running_loop().time()
