"""An HTTP server on loopback with scripted responses."""

import ssl
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from memcached_operator.kube.config import Config


@dataclass
class Script:
    """Returns the responses in order and repeats the last one. Records requests, bodies and times."""

    responses: list[Callable[[], web.Response]]
    requests: list[web.BaseRequest] = field(default_factory=list[web.BaseRequest])
    bodies: list[bytes] = field(default_factory=list[bytes])
    times: list[float] = field(default_factory=list[float])

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Record a request and return the next response."""
        self.requests.append(request)
        self.times.append(time.monotonic())
        self.bodies.append(await request.read())
        return self.responses[min(len(self.requests), len(self.responses)) - 1]()


def response(status: int = 200, text: str = "{}", **headers: str) -> Callable[[], web.Response]:
    """A scripted response. Other keyword arguments are headers: `Retry_After=1`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda: web.Response(status=status, text=text, headers=named)


Handler = Callable[[web.BaseRequest], Coroutine[Any, Any, web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Config]:
    """Serve on a loopback port, by default a free one. Yields a Connection to it."""
    runner = web.ServerRunner(web.Server(handler, handler_cancellation=True), shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port, reuse_address=True, ssl_context=tls)
        await site.start()
        yield connection(f"http://127.0.0.1:{runner.addresses[0][1]}")
    finally:
        await runner.cleanup()


def connection(server: str) -> Config:
    """A Connection to a test server, without credentials."""
    return Config(server, "test", ssl.create_default_context(), headers={})
