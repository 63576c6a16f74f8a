import asyncio
import socket
from contextlib import AsyncExitStack

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Gauge

from memcached_process.addresses import Address
from memcached_process.servers import exposition, listen, probes


def asked(app: web.Application, path: str) -> tuple[int, str]:
    """Status and text of an answer."""

    async def ask() -> tuple[int, str]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        async with AsyncExitStack() as stack, aiohttp.ClientSession() as session:
            await listen(stack, app, Address("127.0.0.1", port))
            async with session.get(f"http://127.0.0.1:{port}{path}") as response:
                return response.status, await response.text()

    return asyncio.run(ask())


PROBES = {
    "alive and ready": (True, "/healthz", (200, "ok")),
    "ready": (True, "/readyz", (200, "ok")),
    "alive, not ready": (False, "/healthz", (200, "ok")),
    "not ready": (False, "/readyz", (503, "not ready")),
}


@pytest.mark.parametrize(("ready", "path", "answer"), PROBES.values(), ids=PROBES.keys())
def test_probe(ready: bool, path: str, answer: tuple[int, str]) -> None:
    assert asked(probes(lambda: ready), path) == answer


def test_nothing_else_is_served() -> None:
    assert asked(probes(lambda: True), "/")[0] == 404


def test_metrics_are_served() -> None:
    registry = CollectorRegistry()
    Gauge("shown", "A number.", registry=registry).set(7)
    status, text = asked(exposition(registry), "/metrics")
    assert status == 200
    assert "shown 7.0" in text


def test_no_address_means_not_to_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start() -> None:
        async with AsyncExitStack() as stack:
            await listen(stack, probes(lambda: True), None)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a server was made")

    monkeypatch.setattr(web, "AppRunner", refuse)
    asyncio.run(start())
