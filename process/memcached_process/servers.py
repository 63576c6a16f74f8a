"""HTTP servers that run beside a process' work: `/healthz` and `/readyz`, and `/metrics`."""

import logging
from collections.abc import Callable
from contextlib import AsyncExitStack

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from memcached_process.addresses import Address

GRACE_SECONDS = 5.0
"""For requests under way at the very end."""

KEEP_ALIVE_SECONDS = 100.0
"""After which a connection without a whole request is closed: longer than Go's clients keep one (90)."""


def probes(ready: Callable[[], bool]) -> web.Application:
    """`/healthz` answers 200 as long as the event loop turns, `/readyz` while `ready()`, else 503."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        return web.Response(text="ok") if ready() else web.Response(status=503, text="not ready")

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz)])
    return app


def exposition(registry: CollectorRegistry) -> web.Application:
    """`/metrics` in Prometheus' text format."""

    async def show(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/metrics", show)])
    return app


async def listen(stack: AsyncExitStack, app: web.Application, address: Address | None) -> None:
    """Serve an application until the stack unwinds; nothing for an address of None. Raises OSError if it is taken."""
    if address is None:
        return
    runner = web.AppRunner(
        app,
        access_log=None,
        handle_signals=False,
        shutdown_timeout=GRACE_SECONDS,
        keepalive_timeout=KEEP_ALIVE_SECONDS,
        auto_decompress=False,  # nobody sends us anything compressed, but for what would grow a thousand times
    )
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, address.host, address.port, reuse_address=True).start()


def _is_no_garbage(record: logging.LogRecord) -> bool:
    """What is no HTTP is answered with 400; whoever sends it could fill our log with tracebacks."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


logging.getLogger("aiohttp.server").addFilter(_is_no_garbage)
