"""Middleware under kopf's lists and watches: no answer of the API server may end the process or make it spin.

kopf 1.45 stops its process on a LIST or WATCH that is refused, on 404 and on 410 (docs/decisions/kopf.md), and opens
a new watch without a pause where one was closed at once. Here each is tried again, ever more slowly.
"""

import asyncio
import logging
import random
import time

import aiohttp

from memcached_operator.engine import metrics
from memcached_operator.engine.client import describe

log = logging.getLogger(__name__)

FIRST_PAUSE, LAST_PAUSE = 1.0, 30.0
"""Seconds before a failed list or watch is tried again: doubling from the first to the last."""

SHORT = 5.0
"""Seconds. A list or watch that follows the one before it sooner than this counts as a failure of that one."""


class WatchGuard:
    """One per session."""

    def __init__(self) -> None:
        self._pauses: dict[str, float] = {}
        self._started: dict[str, float] = {}

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        name = f"{'watch' if 'watch' in request.url.query else 'list'} {request.url.path}"
        if time.monotonic() - self._started.get(name, float("-inf")) < SHORT:
            await self._pause(name, "closed early", 0.0)
        else:
            self._pauses.pop(name, None)
        while True:
            self._started[name] = time.monotonic()
            try:
                response = await handler(request)
            except (aiohttp.ClientConnectionError, TimeoutError, OSError) as error:
                log.warning("%s: %s", name, describe(error))
                await self._pause(name, type(error).__name__, 0.0)
                continue
            if response.status < 400:
                return response
            if response.status == 410:
                # The version is too old: begin anew. What was deleted meanwhile is found by the next re-list.
                request.url = request.url.without_query_params("resourceVersion")
            retry_after = response.headers.get("Retry-After", "")
            response.release()
            await self._pause(name, str(response.status), float(retry_after) if retry_after.isdecimal() else 0.0)

    async def _pause(self, name: str, reason: str, at_least: float) -> None:
        pause = max(at_least, self._pauses.get(name, FIRST_PAUSE))
        self._pauses[name] = min(LAST_PAUSE, pause * 2)
        metrics.WATCH_RETRIES.labels(name.rsplit("/", 1)[-1], reason).inc()
        log.warning("%s: %s; trying again in %.0f s", name, reason, pause)
        await asyncio.sleep(pause * (0.9 + random.random() / 5))  # noqa: S311 - jitter, not a secret
