"""The small plain-HTTP servers beside the webhook: `/healthz` and `/readyz`, and `/metrics`."""

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from memcached_webhooks.metrics import Metrics


def probes(ready: Callable[[], bool]) -> web.Application:
    """`/healthz` answers 200 as long as the event loop turns, `/readyz` while `ready()`, else 503."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        return web.Response(text="ok") if ready() else web.Response(status=503, text="not ready")

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz)])
    return app


def exposition(metrics: Metrics) -> web.Application:
    """`/metrics` in Prometheus' text format."""

    async def show(_: web.Request) -> web.Response:
        body = generate_latest(metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/metrics", show)])
    return app
