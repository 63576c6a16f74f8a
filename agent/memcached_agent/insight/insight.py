"""Watches memcached in windows, and keeps what the last ones showed."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from memcached_agent.addresses import Address
from memcached_agent.insight import families, schedule
from memcached_agent.insight.counters import chunks, counters, memory
from memcached_agent.insight.lines import ALL
from memcached_agent.insight.stream import Stream
from memcached_agent.insight.window import Result, Window
from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.memcached.errors import MemcachedError
from memcached_agent.memcached.login import User
from memcached_agent.metrics.exposition import Family
from memcached_agent.web.health import INTERNAL_ERROR

log = logging.getLogger(__name__)

CHECK: Final = 5.0
"""Seconds between two checks whether a window is over."""
RETRY: Final = 30.0
"""Seconds until the next attempt after memcached did not let the agent watch, or closed the connection."""
POLL: Final = 60.0
"""Seconds between two checks during a pause whether memcached has another memory."""
UNAVAILABLE: Final = Result("unavailable", 0.0)


class Insight:
    """The predictions of hit ratios.

    `client`: reads the counters. `users`: with which the watcher logs in; None if memcached requires no login.
    `clock`: seconds of a clock that is never set. `check`, `retry`, `poll`: as CHECK, RETRY and POLL.
    """

    def __init__(
        self,
        client: MemcachedClient,
        address: Address,
        users: Callable[[], Sequence[User]] | None,
        clock: Callable[[], float] = time.monotonic,
        check: float = CHECK,
        retry: float = RETRY,
        poll: float = POLL,
    ) -> None:
        self._client = client
        self._address = address
        self._users = users
        self._clock = clock
        self._check = check
        self._retry = retry
        self._poll = poll
        self._threshold = ALL
        self._problem = ""
        self._last: Result | None = None
        self._good: tuple[Result, float] | None = None

    async def run(self) -> None:
        """Watch in windows, until cancelled."""
        while True:
            await self._pause(await self._step())

    def metrics(self) -> Iterator[Family]:
        """The metrics of the last good window, its age, and the quality of the last window."""
        good, ended = self._good or (None, 0.0)
        yield from families.families(self._last, good, self._clock() - ended)

    async def _pause(self, seconds: float) -> None:
        """Wait for so many seconds, or until memcached has another memory than the one of the predictions."""
        while seconds > 0:
            await asyncio.sleep(min(seconds, self._poll))
            seconds -= self._poll
            with suppress(MemcachedError):  # the next window reports it
                if self._good and not self._keep(memory(await self._client.general())):
                    return

    def _keep(self, limit: int) -> bool:
        """Drop predictions that are about another memory. Returns whether there still are some."""
        if self._good and self._good[0].memory != limit:
            self._good = None
        return self._good is not None

    async def _step(self) -> float:
        """Watch for one window, if that is possible; returns the seconds until the next step."""
        if self._client.connected is None:
            self._last = UNAVAILABLE  # the client logs why
            return self._check
        try:
            return await self._watch()
        except MemcachedError as error:
            if str(error) != self._problem:  # one line for each new problem
                log.warning("no prediction of hit ratios: %s", error)
            self._problem = str(error)
        except Exception:  # the outermost edge: without its agent, the pod would not be ready
            if self._problem != INTERNAL_ERROR:
                log.exception("no prediction of hit ratios: internal error")
            self._problem = INTERNAL_ERROR
        self._last = UNAVAILABLE
        return self._retry

    async def _watch(self) -> float:
        """Watch for one window; returns the seconds until the next. Raises MemcachedError."""
        found = await self._client.statistics()
        window = Window(counters(found), chunks(found), self._threshold)
        stream = Stream(self._address, window.feed)
        began = self._clock()
        try:
            await stream.open(self._users and self._users())
            self._last = None if self._last is UNAVAILABLE else self._last
            await self._until_over(stream, window, began)
            seconds = self._clock() - began
            result = window.result(counters(await self._client.statistics()), seconds)
        finally:
            stream.close()
        self._threshold = min(ALL, 2 * window.threshold)  # the next window may need a larger sample
        self._end(result)
        return schedule.MIN_PAUSE if result.quality == "changed" else schedule.pause(window, seconds)

    async def _until_over(self, stream: Stream, window: Window, began: float) -> None:
        """Wait until a window is over. Raises MemcachedError if the connection is closed."""
        while not schedule.is_over(window, self._clock() - began):
            if error := await stream.closed(self._check):
                raise error

    def _end(self, result: Result) -> None:
        """Keep what a window showed."""
        self._last, self._problem = result, ""
        if result.quality == "good":
            self._good = result, self._clock()
        self._keep(result.memory)
        log.debug("a window of %.0f s ended: %s", result.seconds, result.quality)
