"""The small HTTP servers of a process: `/healthz` and `/readyz`, and `/metrics`."""

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from memcached_operator.engine import metrics


def parse_address(text: str) -> tuple[str | None, int] | None:
    """`:8081` or `127.0.0.1:8081` as host (None: every address) and port; None for `0`, which means: do not listen.

    Raises ValueError with a sentence for anything else.
    """
    if text == "0":
        return None
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{text!r} is no address to listen on: give HOST:PORT, :PORT, or 0 for none")
    return host.strip("[]") or None, int(port)


async def serve(app: web.Application, address: str) -> web.AppRunner | None:
    """Serve an application in the background; None where the address says not to."""
    bind = parse_address(address)
    if bind is None:
        return None
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    await web.TCPSite(runner, *bind, reuse_address=True).start()
    return runner


def probes(ready: Callable[[], bool]) -> web.Application:
    """`/healthz` answers as long as the event loop turns; `/readyz` answers 200 while `ready()`."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        return web.Response(text="ok") if ready() else web.Response(text="not ready", status=503)

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz)])
    return app


def exposition() -> web.Application:
    """`/metrics` in Prometheus' text format."""

    async def show(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(metrics.REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/metrics", show)])
    return app
