"""Gives the memcached of a pod the memory that the pod asks for."""

import logging
from collections.abc import Callable, Iterator
from typing import Final

from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.memcached.stats import Stats, number
from memcached_agent.memory import target
from memcached_agent.metrics import memory
from memcached_agent.metrics.exposition import Family
from memcached_agent.pod.files import ProblemLog

log = logging.getLogger(__name__)

MEBIBYTE: Final = 2**20
LOG_PERIOD: Final = 60.0
"""Seconds between two lines about the same change. A client can set the memory as often as it wants."""


class Limit:
    """The limit of the items of memcached, and the target of its pod.

    `target`: MiB; None without a valid annotation, and then memcached keeps what it has. The pod is ready whatever the
    limit is: clients notice nothing but evictions. `clock`: seconds of a clock that is never set.
    """

    def __init__(self, client: MemcachedClient, clock: Callable[[], float]) -> None:
        self.target: int | None = None
        self._client = client
        self._clock = clock
        self._logged: dict[str, tuple[int, float]] = {}
        self._limit: int | None = None
        self._changes: dict[str, int] = {"raised": 0, "lowered": 0}
        self._invalid: Final = ProblemLog()
        self._refused: Final = ProblemLog()

    def configure(self, value: str | None) -> None:
        """Take over the value of the annotation; None: there is none."""
        self.target, sentence = None, ""
        try:
            self.target = None if value is None else target.parse_target(value)
        except ValueError as error:
            sentence = str(error)
        self._invalid.report(sentence)

    def observe(self, stats: Stats) -> None:
        """Note the limit of the memcached that is connected now."""
        limit = number(stats.get("limit_maxbytes"))
        self._limit = None if limit is None else int(limit)

    async def enforce(self) -> None:
        """Set the memory of memcached to the target, and verify it, unless it has it. Raises MemcachedError.

        memcached starts with the memory of an earlier target, and any client can change it.
        """
        before, mebibytes, problem = self._limit, self.target, ""
        if mebibytes is not None and before is not None and before != mebibytes * MEBIBYTE:
            problem = await self._set(mebibytes)
            if not problem:
                self._count("lowered" if before > mebibytes * MEBIBYTE else "raised", before, mebibytes)
        self._refused.report(problem)

    async def problem(self) -> str:
        """The reason why the target is not in effect, as one sentence.

        Empty if it is, or if memcached does not reply.
        """
        return self._invalid.sentence or self._refused.sentence

    def metrics(self, *, connected: bool) -> Iterator[Family]:
        """The metrics of the target. `connected`: whether the limit is that of the memcached that is connected now."""
        bytes_wanted = None if self.target is None else self.target * MEBIBYTE
        return memory.families(bytes_wanted, self._limit if connected else None, self._changes)

    async def _set(self, mebibytes: int) -> str:
        """The reason why memcached does not have the memory afterwards, as one sentence; empty if it has."""
        problem = f"the memory of memcached cannot be set to {mebibytes} MiB"
        if reply := await self._client.set_memory_limit(mebibytes):
            return f"{problem}: it replied {reply}"
        self.observe(await self._client.general())
        if self._limit != mebibytes * MEBIBYTE:
            return f"{problem}: it reports {(self._limit or 0) // MEBIBYTE} MiB"
        return ""

    def _count(self, direction: str, before: int, mebibytes: int) -> None:
        self._changes[direction] += 1
        before_target, until = self._logged.get(direction, (None, 0.0))
        if before_target == mebibytes and self._clock() < until:
            return
        self._logged[direction] = mebibytes, self._clock() + LOG_PERIOD
        level = logging.INFO if direction == "raised" else logging.WARNING
        reason = "" if direction == "raised" else ", the target of its pod; a client can set more"
        log.log(
            level, "%s the memory of memcached from %d to %d MiB%s", direction, before // MEBIBYTE, mebibytes, reason
        )
