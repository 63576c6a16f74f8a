"""The response of /metrics."""

import asyncio
from collections.abc import Callable, Iterable
from http import HTTPStatus

from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.memcached.errors import MemcachedError
from memcached_agent.metrics import agent, connections, families, memory, proxy
from memcached_agent.metrics.exposition import CONTENT_TYPE, Family, render
from memcached_agent.version import version
from memcached_agent.web.messages import HttpResponse


class Exporter:
    """Reads the statistics of memcached, and returns all metrics. `others`: those of other parts."""

    def __init__(self, client: MemcachedClient, *others: Callable[[], Iterable[Family]]) -> None:
        self._client = client
        self._others = others
        self._version = version()
        self._started = asyncio.get_running_loop().time()

    async def metrics(self) -> HttpResponse:
        """The metrics of memcached, or only `memcached_up` 0, and those of the agent."""
        try:
            statistics = await self._client.statistics()
            parts = (families.families, memory.of_items, connections.families, proxy.families)
            samples = [family for part in parts for family in part(statistics)]
        except MemcachedError:  # the client has logged it
            samples = [Family(families.UP, [((), 0)])]
        uptime = asyncio.get_running_loop().time() - self._started
        samples += agent.families(self._version, uptime, self._client.errors)
        for metrics in self._others:
            samples += metrics()
        return HttpResponse(HTTPStatus.OK, CONTENT_TYPE, render(samples))
