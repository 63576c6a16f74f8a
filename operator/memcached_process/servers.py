"""The plain HTTP servers of a process: `/healthz` and `/readyz`, and `/metrics`."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from memcached_process.addresses import Address
from memcached_process.connections import Handler, serve

MAX_CONNECTIONS: Final = 64
"""Maximum connections to each of these servers. The kubelet and Prometheus open one or two."""
GRACE_PERIOD: Final = 0.1
"""Seconds for active requests when the process ends. Responses take less; only an incomplete request takes longer."""

PageHandler = Callable[[], web.Response]


def probe_handler(ready: Callable[[], bool]) -> Handler:
    """`/healthz` responds 200 while the event loop runs; `/readyz` responds 200 while `ready()` is true, else 503."""

    def healthz() -> web.Response:
        return web.Response(text="ok")

    def readyz() -> web.Response:
        return web.Response(text="ok") if ready() else web.Response(status=503, text="not ready")

    return _mux({"/healthz": healthz, "/readyz": readyz})


def metrics_handler(registry: CollectorRegistry) -> Handler:
    """`/metrics` in the Prometheus text format."""

    def metrics() -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return _mux({"/metrics": metrics})


def _mux(pages: Mapping[str, PageHandler]) -> Handler:
    async def respond(request: web.BaseRequest) -> web.Response:
        page = pages.get(request.raw_path.partition("?")[0])
        if page is None:
            return web.Response(status=404, text=f"path not found; available paths: {', '.join(pages)}")
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="use GET", headers={"Allow": "GET, HEAD"})
        return page()

    return respond


async def listen(stack: AsyncExitStack, stop: asyncio.Event, handler: Handler, address: Address | None) -> None:
    """Serve until the stack unwinds; does nothing if the address is None. Raises OSError if the port is in use.

    An error that ends the server sets `stop`.
    """
    if address is not None:
        await serve(stack, stop, handler, address, MAX_CONNECTIONS, grace=GRACE_PERIOD)
