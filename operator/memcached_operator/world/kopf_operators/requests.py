"""The requests of a kopf operator. Any failure ends the operator, and the reflector starts it again."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

import aiohttp
from yarl import URL

from memcached_operator import metrics
from memcached_operator.kube.client import ApiError, api_error, connection_error
from memcached_operator.kube.credentials import ConfigError
from memcached_operator.world import reflector
from memcached_operator.world.kopf_operators.echoes import NewEvents
from memcached_operator.world.reflector import Reflector

START_TIMEOUT = 4.0
"""Seconds without a request after which kopf must have started its watch. kopf does not watch a resource that the API
server's discovery does not list, as for a moment after the installation of a CRD: it reads discovery only once."""


class WatchRequests:
    """Middleware of kopf's session: paces its watches and reports the first failed request.

    The first watch starts where the reflector's own list ended, so that no event is missed in between, and the next
    ones after the last event, which kopf may not have got because it was an echo.

    kopf itself would retry some errors and end with a traceback on others. A failed request therefore does not return;
    `on_failure` must stop the operator.
    """

    def __init__(self, source: Reflector, on_failure: Callable[[], None]) -> None:
        self.error: ApiError | None = None
        self._reflector = source
        self._events: NewEvents | None = None
        self._on_failure = on_failure
        self._watch_started: float | None = None
        self._tasks: set[asyncio.Task[object]] = set()
        self._timer = self._start_timer()

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        self._tasks.add(cast("asyncio.Task[Any]", asyncio.current_task()))
        self._timer.cancel()
        try:
            return await self._send(request, handler)
        except ApiError as error:
            self.fail(error)
        except (aiohttp.ClientError, ConfigError, OSError) as error:
            metrics.REQUESTS.labels("<error>", request.method).inc()
            self.fail(connection_error(error))
        return await asyncio.Future()

    def fail(self, error: ApiError) -> None:
        """Stop the operator because of this error, unless another error was first."""
        self.error = self.error or error
        self._on_failure()

    async def close(self) -> None:
        """Cancel the tasks that kopf has not ended, such as requests for discovery."""
        self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _send(self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        is_watch = "watch" in request.url.query
        if is_watch:
            request.url = self._next_watch(request.url)
        response = await handler(request)
        metrics.REQUESTS.labels(str(response.status), request.method).inc()
        if response.status >= 400:
            raise api_error(response.status, response.headers, await response.read())
        if is_watch:
            version = request.url.query.get("resourceVersion", "")
            source = self._reflector
            self._events = NewEvents(response.content, source.resource, source.is_known, version)
            response.content = cast("aiohttp.StreamReader", self._events)
        elif self._watch_started is None:
            self._timer.cancel()
            self._timer = self._start_timer()
        return response

    def _next_watch(self, url: URL) -> URL:
        """The URL of the next watch. Raises ApiError if the last one did not last."""
        started, self._watch_started = self._watch_started, time.monotonic()
        # kopf asks for the initial state if it has got no event, or if the resourceVersion has expired.
        version = self._reflector.version if self._events is None else self._events.version
        if started is not None and self._watch_started - started < reflector.MIN_WATCH_DURATION:
            raise ApiError(0, "closed early", "the API server closed the watch immediately")
        if not version:
            raise ApiError(410, "Expired", "the resourceVersion of the watch has expired")
        url = url.without_query_params("sendInitialEvents", "resourceVersionMatch")
        return url.update_query(resourceVersion=version)

    def _start_timer(self) -> asyncio.TimerHandle:
        error = ApiError(0, "NotStarted", "kopf has not started the watch: API discovery does not list the resource")
        return asyncio.get_running_loop().call_later(START_TIMEOUT, self.fail, error)
