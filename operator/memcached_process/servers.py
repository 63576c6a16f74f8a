"""The plain HTTP servers that run beside a process' work: `/healthz` and `/readyz`, and `/metrics`."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from memcached_process.addresses import Address
from memcached_process.connections import Handler, serve

MOST: Final = 64
"""Connections to each of these servers: kubelets and Prometheus have one or two."""
GRACE_SECONDS: Final = 0.1
"""For requests under way when the process ends: a page is made at once, so only an unfinished request takes longer."""

Page = Callable[[], web.Response]


def probes(ready: Callable[[], bool]) -> Handler:
    """`/healthz` answers 200 as long as the event loop turns, `/readyz` while `ready()`, else 503."""

    def healthz() -> web.Response:
        return web.Response(text="ok")

    def readyz() -> web.Response:
        return web.Response(text="ok") if ready() else web.Response(status=503, text="not ready")

    return _pages({"/healthz": healthz, "/readyz": readyz})


def exposition(registry: CollectorRegistry) -> Handler:
    """`/metrics` in Prometheus' text format."""

    def metrics() -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return _pages({"/metrics": metrics})


def _pages(pages: Mapping[str, Page]) -> Handler:
    async def respond(request: web.BaseRequest) -> web.Response:
        page = pages.get(request.raw_path.partition("?")[0])
        if page is None:
            return web.Response(status=404, text=f"there is nothing on this path; known paths: {', '.join(pages)}")
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="want a GET", headers={"Allow": "GET, HEAD"})
        return page()

    return respond


async def listen(stack: AsyncExitStack, stop: asyncio.Event, handler: Handler, address: Address | None) -> None:
    """Serve until the stack unwinds; nothing for an address of None. Raises OSError if it is taken.

    A defect that ends the server sets `stop`.
    """
    if address is not None:
        await serve(stack, stop, handler, address, MOST, grace=GRACE_SECONDS)
