"""Raises the memory of memcached to the target of its pod."""

import logging
from collections.abc import Callable, Iterator
from typing import Final

from memcached_agent.memcached.client import Client
from memcached_agent.memcached.stats import Stats
from memcached_agent.memory import decision, target
from memcached_agent.memory.decision import MEBIBYTE, Step
from memcached_agent.metrics import memory
from memcached_agent.metrics.exposition import Family
from memcached_agent.pod.files import Problem

log = logging.getLogger(__name__)


class Growth:
    """The target of a pod, and the limit of its memcached. `clock`: seconds of a clock that is never set.

    `target`: MiB; None without a valid annotation, and then memcached keeps what it has.
    """

    def __init__(self, client: Client, clock: Callable[[], float]) -> None:
        self.target: int | None = None
        self._client = client
        self._clock = clock
        self._since = clock()
        self._limit: int | None = None
        self._invalid: Final = Problem()
        self._refused: Final = Problem()

    def configure(self, value: str | None) -> None:
        """Take over the value of the annotation; None: there is none."""
        found, sentence = None, ""
        try:
            found = None if value is None else target.parse(value)
        except ValueError as error:
            sentence = str(error)
        self._invalid.report(sentence)
        if found != self.target:
            self.target, self._since = found, self._clock()

    def observe(self, stats: Stats) -> None:
        """Note the limit of the memcached that is connected now."""
        self._limit = decision.limit_of(stats)

    async def grow(self) -> None:
        """Raise the memory of memcached, and verify it, if it has less than the target. Raises MemcachedError."""
        before, wanted, problem = self._limit, self.target, ""
        if wanted is not None and before is not None and decision.is_short(before, wanted):
            problem = await self._raise(wanted)
            if not problem:
                log.info("raised the memory of memcached from %d to %d MiB", before // MEBIBYTE, wanted)
        self._refused.report(problem)

    async def _raise(self, wanted: int) -> str:
        """Why memcached does not have the memory afterwards, as one sentence; empty if it has."""
        problem = f"the memory of memcached cannot be raised to {wanted} MiB"
        if reply := await self._client.set_memory_limit(wanted):
            return f"{problem}: it replied {reply}"
        self.observe(await self._client.general())
        if self._limit is None or decision.is_short(self._limit, wanted):
            return f"{problem}: it reports {(self._limit or 0) // MEBIBYTE} MiB"
        return ""

    def step(self, recorded: int | None, *, connected: bool) -> Step:
        """What is left to do. `connected`: whether the limit is that of the memcached that is connected now."""
        if self.target is None:
            return "done"
        return decision.decide(self.target, recorded, self._limit if connected else None, self._waited())

    def obstacle(self, step: Step, problem: str) -> str:
        """Why the pod is not ready, as one sentence. Empty if growth does not prevent it.

        `problem`: why memcached does not reply.
        """
        if step == "unknown" and problem:
            return problem
        return "" if self.target is None else decision.sentence(step, self.target, self._limit, self._waited())

    async def problem(self) -> str:
        """Why the target is not in effect, as one sentence; empty if it is or if memcached does not reply."""
        return self._invalid.sentence or self._refused.sentence

    def metrics(self, *, connected: bool) -> Iterator[Family]:
        """The metrics of the target. `connected`: as above."""
        bytes_wanted = None if self.target is None else self.target * MEBIBYTE
        return memory.families(bytes_wanted, self._limit if connected else None)

    def _waited(self) -> float:
        return self._clock() - self._since
