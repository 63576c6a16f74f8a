"""How long memcached takes to answer: the agent times a command of its own, and counts the times in a histogram."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.memcached.errors import MemcachedError
from memcached_agent.metrics.exposition import Family, Metric
from memcached_agent.metrics.histogram import Histogram

DURATION: Final = Metric(
    "memcached_agent_request_duration_seconds",
    "histogram",
    "Seconds until memcached answered a command without effect (mn) of the agent.",
)
BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
"""Upper limits in seconds. On loopback, an idle memcached answers within 0.25 ms; the timeout is 2 s."""
PERIOD: Final = 5.0
"""Seconds between two commands."""


class Latency:
    """Times `mn`, which, unlike a get, changes neither the hit ratio nor the warm gate.

    Only answers are counted; failures are in `memcached_agent_connection_errors_total`.
    """

    def __init__(self, client: MemcachedClient, period: float = PERIOD) -> None:
        self._client = client
        self._period = period
        self._seconds = Histogram(DURATION, BUCKETS)

    async def run(self) -> None:
        """Send the command periodically, until cancelled."""
        while True:
            await asyncio.sleep(self._period)
            with suppress(MemcachedError):  # the client has logged it
                seconds = await self._client.no_op()
                if seconds is not None:
                    self._seconds.observe(seconds)

    def metrics(self) -> Iterator[Family]:
        """The histogram. It waits for nothing: all tasks run in one thread."""
        yield self._seconds.family()
