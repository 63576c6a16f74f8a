import asyncio
import socket
from contextlib import AsyncExitStack

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Gauge

from memcached_process import servers
from memcached_process.addresses import Address
from memcached_process.connections import Handler
from memcached_process.servers import listen, metrics_handler, probe_handler
from support.ports import free_port
from support.streams import HELLO, read_to_end, status


def fetch(handler: Handler, path: str, method: str = "GET") -> tuple[int, str]:
    """Status and text of a response."""

    async def get() -> tuple[int, str]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        async with AsyncExitStack() as stack, aiohttp.ClientSession() as session:
            await listen(stack, asyncio.Event(), handler, Address("127.0.0.1", port))
            async with session.request(method, f"http://127.0.0.1:{port}{path}") as response:
                return response.status, await response.text()

    return asyncio.run(get())


PROBES = {
    "alive and ready": (True, "/healthz", (200, "ok")),
    "ready": (True, "/readyz", (200, "ok")),
    "alive, not ready": (False, "/healthz", (200, "ok")),
    "not ready": (False, "/readyz", (503, "not ready")),
}


@pytest.mark.parametrize(("ready", "path", "expected"), PROBES.values(), ids=PROBES.keys())
def test_probe(ready: bool, path: str, expected: tuple[int, str]) -> None:
    assert fetch(probe_handler(lambda: ready), path) == expected


@pytest.mark.parametrize("path", ["/", "/healthz/", "/metrics", "//healthz"])
def test_nothing_else_is_served(path: str) -> None:
    assert fetch(probe_handler(lambda: True), path)[0] == 404


def test_query_is_ignored() -> None:
    assert fetch(probe_handler(lambda: True), "/healthz?verbose") == (200, "ok")


METHODS = {"HEAD": (200, ""), "POST": (405, "use GET"), "DELETE": (405, "use GET")}


@pytest.mark.parametrize(("method", "expected"), METHODS.items())
def test_only_get_and_head_are_allowed(method: str, expected: tuple[int, str]) -> None:
    assert fetch(probe_handler(lambda: True), "/healthz", method) == expected


def test_at_most_64_connections_are_open() -> None:
    async def flood() -> None:
        address = Address("127.0.0.1", free_port())
        async with AsyncExitStack() as stack:
            await listen(stack, asyncio.Event(), probe_handler(lambda: True), address)
            clients = [await asyncio.open_connection(address.host, address.port) for _ in range(65)]
            for client in clients:
                stack.callback(client[1].transport.abort)
            assert await read_to_end(clients[0]) == b""
            assert await status(clients[1], HELLO.replace(b"/hello", b"/healthz")) == b"200 OK"
            assert await status(clients[64], HELLO.replace(b"/hello", b"/healthz")) == b"200 OK"

    asyncio.run(flood())


def test_metrics_are_served() -> None:
    registry = CollectorRegistry()
    Gauge("example", "A number.", registry=registry).set(7)
    status, text = fetch(metrics_handler(registry), "/metrics")
    assert status == 200
    assert "example 7.0" in text


def test_no_server_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start() -> None:
        async with AsyncExitStack() as stack:
            await listen(stack, asyncio.Event(), probe_handler(lambda: True), None)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("unexpected server")

    monkeypatch.setattr(servers, "serve", fail)
    asyncio.run(start())
