"""A server on loopback that answers from a script."""

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
    """Answers one after the other, the last one again and again; notes what was asked, and when."""

    answers: list[Callable[[], web.Response]]
    requests: list[web.BaseRequest] = field(default_factory=list[web.BaseRequest])
    bodies: list[bytes] = field(default_factory=list[bytes])
    times: list[float] = field(default_factory=list[float])

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        self.requests.append(request)
        self.times.append(time.monotonic())
        self.bodies.append(await request.read())
        return self.answers[min(len(self.requests), len(self.answers)) - 1]()


def answer(status: int = 200, text: str = "{}", **headers: str) -> Callable[[], web.Response]:
    """An answer of a script; `Retry_After=1` is a header."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda: web.Response(status=status, text=text, headers=named)


Handler = Callable[[web.BaseRequest], Coroutine[Any, Any, web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, port: int = 0) -> AsyncGenerator[Config]:
    """Serve on a port of loopback, by default a free one."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port, reuse_address=True)
        await site.start()
        yield connection(f"http://127.0.0.1:{runner.addresses[0][1]}")
    finally:
        await runner.cleanup()


def connection(server: str) -> Config:
    """A way to a server of a test."""
    return Config(server, "test", ssl.create_default_context(), headers={})
