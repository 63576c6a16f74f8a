"""The work queue: keys are deduplicated, each is processed by one worker at a time, and failures back off."""

import asyncio
import heapq
import random
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeVar

from memcached_operator import metrics
from memcached_operator.engine.runtime.fair_queue import Limits, ReadyKeys

K = TypeVar("K")

BASE_DELAY = 0.5
"""Seconds before the first retry of a key."""
MAX_DELAY = 300.0
"""Default maximum of the backoff, in seconds."""
JITTER = 0.25
"""Fraction by which a delay varies randomly, so that simultaneous failures are not retried simultaneously."""

MIN_PAUSE = 0.01
"""Seconds. A key that was busy for less than this time causes no pause."""

MAX_OLD_TIMERS = 1000
"""Timers that are kept although their keys were enqueued before they were due, each of about 100 bytes."""


def backoff(failures: int, random_fraction: float, max_delay: float = MAX_DELAY) -> float:
    """Seconds to wait after consecutive failures: exponential, at most `max_delay`.

    `random_fraction` (0 … 1) selects the jitter.
    """
    delay = min(max_delay / (1 + JITTER), BASE_DELAY * 2 ** min(failures - 1, 20))
    return delay * (1 - JITTER + 2 * JITTER * random_fraction)


def _one_flow(_: Hashable) -> Hashable:
    return None


class Queue(Generic[K]):
    """A deduplicating queue with delays and backoff, like client-go's workqueue. `flow` maps a key to its flow.

    Without `flow`, keys are served first in, first out. `limits`: of the keys that are processed at the same time.
    """

    def __init__(
        self,
        name: str,
        flow: Callable[[K], Hashable] = _one_flow,
        max_delay: float = MAX_DELAY,
        limits: Limits[K] | None = None,
    ) -> None:
        self._max_delay = max_delay
        self._flow = flow
        self._ready = ReadyKeys(flow, limits or Limits())
        self._paused_until: dict[Hashable, float] = {}
        self._dirty: set[K] = set()
        self._processing: set[K] = set()
        self._due: dict[K, float] = {}
        self._timers: list[tuple[float, int, K]] = []
        self._count = 0
        self._failures: dict[K, int] = {}
        self._backoff_until: dict[K, float] = {}
        self._wake = asyncio.Event()
        self._idle: list[asyncio.Future[None]] = []
        self._depth = metrics.QUEUE_DEPTH.labels(name)
        self._adds = metrics.QUEUE_ADDS.labels(name)
        self._retries = metrics.QUEUE_RETRIES.labels(name)

    def __len__(self) -> int:
        """The number of keys waiting for a worker."""
        return len(self._ready)

    def add(self, key: K) -> None:
        """Enqueue a key. If the key is being processed, it is enqueued again when that is done."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        self._due.pop(key, None)
        self._adds.inc()
        if key not in self._processing:
            self._push(key)

    def add_after(self, key: K, delay: float) -> None:
        """Enqueue a key in `delay` seconds, unless it is scheduled earlier."""
        if key in self._dirty:
            return
        due = asyncio.get_running_loop().time() + delay
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._count += 1
            heapq.heappush(self._timers, (due, self._count, key))
            self._drop_old_timers()
            self._wake.set()

    def _drop_old_timers(self) -> None:
        """Drop the timers that count no more, if they are most of them: those of keys that were enqueued earlier."""
        if len(self._timers) > 2 * len(self._due) + MAX_OLD_TIMERS:
            self._timers = [timer for timer in self._timers if self._due.get(timer[2]) == timer[0]]
            heapq.heapify(self._timers)

    def retry(self, key: K, min_delay: float = 0) -> float:
        """Enqueue a failed key after its backoff, or after `min_delay` seconds if that is longer. Returns the delay.

        A failure before the end of the current backoff is not counted: a burst of events must not increase the delay
        after which the controller notices that the cause is fixed.
        """
        now = asyncio.get_running_loop().time()
        delay = self._backoff_until.get(key, now) - now
        if delay <= 0:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            delay = backoff(failures, random.random(), self._max_delay)  # noqa: S311 - jitter, not a secret
        delay = max(min_delay, delay)
        self._backoff_until[key] = now + delay
        self._retries.inc()
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Reset the backoff of a key, after a success."""
        self._failures.pop(key, None)
        self._backoff_until.pop(key, None)

    def failures(self, key: K) -> int:
        """The number of consecutive failures of a key."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """Wait for a key. The caller must call `done` afterwards."""
        while (key := self._ready.take()) is None:
            idle = asyncio.get_running_loop().create_future()
            self._idle.append(idle)
            try:
                await idle
            finally:
                if idle in self._idle:
                    self._idle.remove(idle)
        self._depth.set(len(self._ready))
        self._dirty.discard(key)
        self._processing.add(key)
        self._wake_worker()
        return key

    def done(self, key: K, busy: float = 0.0) -> None:
        """Mark a key as processed.

        `busy`: seconds of the processor for which it has kept the event loop from other work. Its flow pauses as long,
        so that no flow takes more than half of the time, and the others have the rest without interruptions.
        """
        self._processing.discard(key)
        if busy >= MIN_PAUSE:
            self._pause(self._flow(key), busy)
        self._ready.done(key)
        if key in self._dirty:
            self._push(key)
        else:
            self._wake_worker()

    def _pause(self, flow: Hashable, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = self._paused_until[flow] = max(loop.time(), self._paused_until.get(flow, 0.0)) + seconds
        self._ready.pause(flow)
        loop.call_at(until, self._resume, flow, until)

    def _resume(self, flow: Hashable, until: float) -> None:
        if self._paused_until.get(flow) == until:
            del self._paused_until[flow]
            self._ready.resume(flow)
            self._wake_worker()

    async def run_timers(self) -> None:
        """Enqueue delayed keys when they are due, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            while self._timers and self._timers[0][0] <= loop.time():
                due, _, key = heapq.heappop(self._timers)
                if self._due.get(key) == due:
                    self.add(key)
            pause = self._timers[0][0] - loop.time() if self._timers else None
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    def _push(self, key: K) -> None:
        self._ready.append(key)
        self._depth.set(len(self._ready))
        self._wake_worker()

    def _wake_worker(self) -> None:
        """Let a worker look for a key. Each that finds one wakes the next: a large key can make way for several."""
        while self._idle and len(self._ready):
            idle = self._idle.pop()
            if not idle.done():
                idle.set_result(None)
                break
