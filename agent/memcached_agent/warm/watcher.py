"""Polls memcached, and decides by the gate of the pod when it is ready."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Final

from memcached_agent.memcached.client import Client
from memcached_agent.memcached.errors import MemcachedError
from memcached_agent.metrics import warm
from memcached_agent.metrics.exposition import Family
from memcached_agent.options import WarmUp
from memcached_agent.shared import Shared
from memcached_agent.warm import decision, record, window
from memcached_agent.warm.files import Annotations, Store
from memcached_agent.warm.record import Record, Seen
from memcached_agent.warm.window import Samples, Window

log = logging.getLogger(__name__)

POLL: Final = 5.0
"""Seconds between two samples."""


class Watcher:
    """Whether the memcached process of this pod is warm. A latch: once warm, warm until the process is replaced.

    Without a gate, memcached is warm at once: a gate that is added later applies to the next process. `clock`: seconds
    of a clock that is never set; `poll`: seconds between two samples.
    """

    def __init__(
        self, client: Client, options: WarmUp, clock: Callable[[], float] = time.monotonic, poll: float = POLL
    ) -> None:
        self._client = client
        self._clock = clock
        self._poll = poll
        self._annotations = Annotations(options.annotations)
        self._store = Store(options.directory, clock)
        self._record = self._store.load()
        self._samples: Samples = ()
        self._time = 0
        self._connection: int | None = None
        self._step = Shared(self.step)

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            await self._step()
            await asyncio.sleep(self._poll)

    async def step(self) -> None:
        """Read the gate, take a sample, and decide."""
        self._annotations.read()
        connection = self._client.connected
        try:
            process = record.seen(await self._client.general())
        except MemcachedError:  # the client has logged it
            return
        self._connection, self._time = connection, process.time
        self._record = self._observed(process)
        self._store.save(self._record)

    async def obstacle(self) -> str:
        """Why the pod is not ready, as one sentence. Empty if it is."""
        gate = self._annotations.gate
        if gate is None:
            return ""
        if problem := await self._client.problem():
            return problem
        if self._current() is None:
            await self._step()  # after a new connection, memcached may be another process
        current = self._current()
        if current is None:
            return "not warm yet: the connection to memcached is new"
        if current.warm:
            return ""
        return decision.sentence(gate, self._window(), self._time - current.began, current.before)

    async def problem(self) -> str:
        """What is wrong with the files, as one sentence; empty if nothing is. It does not make the pod wait."""
        return self._annotations.problem.sentence or self._store.problem.sentence

    def metrics(self) -> Iterator[Family]:
        """The metrics of the gate."""
        current, gate, known = self._current(), self._annotations.gate, self._record
        is_warm = gate is None or (current is not None and current.warm)
        ratio = self._window().ratio if current else None
        target = decision.target(gate, known and known.before) if gate else None
        return warm.families(warm.Warmth(is_warm, ratio, target, known and known.took))

    def _current(self) -> Record | None:
        """The record of the process that is connected now; None before its first sample."""
        return self._record if self._connection and self._connection == self._client.connected else None

    def _window(self) -> Window:
        return window.window(self._samples)

    def _observed(self, process: Seen) -> Record:
        """The record after a sample."""
        if self._record is None or not record.is_same(self._record, process):
            self._samples = ()
        self._samples = window.add(self._samples, window.Sample(self._clock(), process.hits, process.misses))
        found = self._decided(record.follow(self._record, process))
        return record.with_ratio(found, self._window())

    def _decided(self, found: Record) -> Record:
        """The record, which is warm from now on if the process is."""
        gate, minute, elapsed = self._annotations.gate, self._window(), self._time - found.began
        if found.warm or gate is None:
            return found._replace(warm=True)
        reason = decision.decide(gate, minute, elapsed, found.before)
        if reason is None:
            return found
        level = logging.WARNING if reason == "timeout" else logging.INFO
        log.log(level, "warm after %d s (%s): %d hits of %d gets", elapsed, reason, minute.hits, minute.gets)
        return found._replace(warm=True, took=max(0, min(elapsed, gate.timeout)))
