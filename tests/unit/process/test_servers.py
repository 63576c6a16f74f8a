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

from .serving import HELLO, rest, status


def asked(handler: Handler, path: str, method: str = "GET") -> tuple[int, str]:
    """Status and text of an answer."""

    async def ask() -> tuple[int, str]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        async with AsyncExitStack() as stack, aiohttp.ClientSession() as session:
            await listen(stack, asyncio.Event(), handler, Address("127.0.0.1", port))
            async with session.request(method, f"http://127.0.0.1:{port}{path}") as response:
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
    assert asked(probe_handler(lambda: ready), path) == answer


@pytest.mark.parametrize("path", ["/", "/healthz/", "/metrics", "//healthz"])
def test_nothing_else_is_served(path: str) -> None:
    assert asked(probe_handler(lambda: True), path)[0] == 404


def test_a_query_is_no_other_path() -> None:
    assert asked(probe_handler(lambda: True), "/healthz?verbose") == (200, "ok")


METHODS = {"HEAD": (200, ""), "POST": (405, "use GET"), "DELETE": (405, "use GET")}


@pytest.mark.parametrize(("method", "answer"), METHODS.items())
def test_only_what_reads_is_answered(method: str, answer: tuple[int, str]) -> None:
    assert asked(probe_handler(lambda: True), "/healthz", method) == answer


def test_there_are_at_most_64_connections() -> None:
    async def flood() -> None:
        where = Address("127.0.0.1", free_port())
        async with AsyncExitStack() as stack:
            await listen(stack, asyncio.Event(), probe_handler(lambda: True), where)
            lines = [await asyncio.open_connection(where.host, where.port) for _ in range(65)]
            for line in lines:
                stack.callback(line[1].transport.abort)
            assert await rest(lines[0]) == b""
            assert await status(lines[1], HELLO.replace(b"/hello", b"/healthz")) == b"200 OK"
            assert await status(lines[64], HELLO.replace(b"/hello", b"/healthz")) == b"200 OK"

    asyncio.run(flood())


def test_metrics_are_served() -> None:
    registry = CollectorRegistry()
    Gauge("shown", "A number.", registry=registry).set(7)
    status, text = asked(metrics_handler(registry), "/metrics")
    assert status == 200
    assert "shown 7.0" in text


def test_no_address_means_not_to_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start() -> None:
        async with AsyncExitStack() as stack:
            await listen(stack, asyncio.Event(), probe_handler(lambda: True), None)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a server was made")

    monkeypatch.setattr(servers, "serve", refuse)
    asyncio.run(start())
