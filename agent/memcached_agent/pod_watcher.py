"""Polls the annotations of the pod and its memcached: passes what it sees to the parts that act upon it."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from memcached_agent.extstore import age
from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.memcached.errors import MemcachedError
from memcached_agent.memcached.stats import Stats
from memcached_agent.memory import target
from memcached_agent.memory.limit import Limit
from memcached_agent.metrics import restarts
from memcached_agent.metrics.exposition import Family
from memcached_agent.options import Pod
from memcached_agent.pod import record
from memcached_agent.pod.arguments import NAME as ARGUMENTS
from memcached_agent.pod.arguments import Arguments
from memcached_agent.pod.files import Annotations, ProblemLog, Store
from memcached_agent.pod.record import ProcessRecord, Seen
from memcached_agent.shared import SingleFlight
from memcached_agent.warm import gate
from memcached_agent.warm.warmth import Warmth
from memcached_agent.web.health import INTERNAL_ERROR, Check

log = logging.getLogger(__name__)

POLL: Final = 5.0
"""Seconds between two samples. A new connection is followed by a sample at once."""
NAMES: Final = (gate.NAME, target.NAME, age.NAME)


class PodWatcher:
    """The memcached of this pod: whether it is warm, its memory and its arguments, and how it was restarted.

    `clock`: seconds of a clock that is never set; `poll`: seconds between two samples. `checks`: those of /healthz.
    None of their problems makes the pod wait by itself.
    """

    def __init__(
        self, client: MemcachedClient, options: Pod, clock: Callable[[], float] = time.monotonic, poll: float = POLL
    ) -> None:
        self._client = client
        self._poll = poll
        self._annotations = Annotations(options.annotations, NAMES)
        self._store = Store(options.directory, clock)
        self._record = self._store.load()
        self._warmth = Warmth(clock)
        self._limit = Limit(client, clock)
        self._age = age.ItemAge(client)
        self._arguments = Arguments(options.restart, clock) if options.restart else None
        self._connection: int | None = None
        self._step = SingleFlight(self.step)
        self._internal: Final = ProblemLog()
        self._read()
        self.checks: Final[Mapping[str, Check]] = {
            "watcher": self._internal.check,
            "annotations": self._annotations.problem.check,
            "state": self._store.problem.check,
            gate.NAME: self._warmth.problem.check,
            target.NAME: self._limit.problem,
            age.NAME: self._age.problem,
            **({ARGUMENTS: self._arguments.problem.check} if self._arguments else {}),
        }

    async def run(self) -> None:
        """Take a sample periodically, and at once after a new connection to memcached, until cancelled."""
        while True:
            self._client.is_new.clear()
            await self._step()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll):
                    await self._client.is_new.wait()

    async def step(self) -> None:
        """Read the annotations, take a sample, and do what follows from both."""
        try:
            await self._sample()
        except Exception:  # the outermost edge: without its agent, the pod would not be ready
            if not self._internal.sentence:
                log.exception("internal error")
            self._internal.sentence = INTERNAL_ERROR
        else:
            self._internal.sentence = ""

    async def _sample(self) -> None:
        self._read()
        if self._arguments:
            self._arguments.step()
        connection = self._client.connected
        try:
            self._observe(connection, await self._client.general())
            await self._limit.enforce()
            await self._age.enforce()
        except MemcachedError:  # the client has logged it
            return
        finally:
            if self._record is not None:
                self._store.save(self._record)

    async def obstacle(self) -> str:
        """The reason why the pod is not ready, as one sentence. Empty if it is."""
        obstacles = (await self._cold(), self._arguments.obstacle() if self._arguments else "")
        return "; ".join(text for text in obstacles if text)

    def metrics(self) -> Iterator[Family]:
        """The metrics of the gate, of memory, of the arguments and of restarts."""
        current, known = self._current(), self._record
        yield from self._warmth.metrics(known, current)
        yield from self._limit.metrics(connected=current is not None)
        if self._arguments:
            yield from self._arguments.metrics()
        yield from restarts.families(known.kept if known else 0, known.lost if known else 0)

    def _read(self) -> None:
        """Read the annotations of the pod, and pass on their values."""
        values = self._annotations.read()
        self._warmth.configure(values.get(gate.NAME))
        self._limit.configure(values.get(target.NAME))
        self._age.configure(values.get(age.NAME))

    async def _cold(self) -> str:
        """The reason why the gate does not let the pod be ready; empty if it does."""
        if self._warmth.gate is None:
            return ""
        problem = await self._client.problem()
        if not problem and self._current() is None:
            await self._step()  # after a new connection, memcached may be another process
        return self._warmth.obstacle(problem, self._current())

    def _observe(self, connection: int | None, stats: Stats) -> None:
        """Note a sample of the memcached of this connection."""
        process = record.seen(stats)
        self._log_restart(process)
        self._connection = connection
        self._record = self._warmth.observed(self._record, process)
        self._limit.observe(stats)

    def _log_restart(self, process: Seen) -> None:
        items = record.restart(self._record, process)
        if items == "kept":
            log.info("memcached was restarted and kept its items")
        elif items == "lost":
            level = logging.WARNING if self._arguments else logging.INFO
            log.log(level, "memcached was restarted and lost its items")

    def _current(self) -> ProcessRecord | None:
        """The record of the process that is connected now; None before its first sample."""
        return self._record if self._connection and self._connection == self._client.connected else None
