"""Connections of a port: timeouts."""

import asyncio
import re
import sys
from pathlib import Path

import pytest
from aiohttp import web

from memcached_process import connections
from support.streams import HELLO, read_to_end, status, stop_reading, until

from .serving import OK, Port, closed_without_response, hello, post, run_scenario


def expire(port: Port, seconds: float) -> None:
    """Check the timeouts as if these seconds had passed."""
    now = asyncio.get_running_loop().time()
    for each in list(port.acceptor.connections):
        each.abort_if_expired(now + seconds)


INCOMPLETE = {
    "a head": HELLO[:-9],
    "a second head": HELLO + HELLO[:-9],
    "a body": post("Content-Length: 9999", body=b"1"),
    "a chunked body": post("Transfer-Encoding: chunked", body=b"9999\r\na"),
}


@pytest.mark.parametrize("data", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_request_times_out(data: bytes, tls: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 0.3)

    async def reads(request: web.BaseRequest) -> web.Response:
        await request.content.read()
        return web.Response(text="hello!")

    async def scenario(port: Port) -> None:
        client = await port.open(data)
        found = asyncio.create_task(read_to_end(client))
        for _ in range(1000):
            if found.done():
                break
            await asyncio.sleep(0.02)
            client[1].write(b"a")
        assert len(re.findall(rb"HTTP/1\.1 200 OK\r", await found)) == data.count(HELLO)

    run_scenario(scenario, reads, tls=tls)


def test_connection_is_closed_after_its_last_use(tls: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SWEEP_PERIOD", 60.0)

    async def scenario(port: Port) -> None:
        clients = await port.open(), await port.open()
        for client in clients:
            assert await status(client) == OK
        for each in port.acceptor.connections:
            each.deadline -= connections.IDLE_TIMEOUT - 1
        assert await status(clients[1]) == OK
        expire(port, 2)
        assert await closed_without_response(clients[0])
        assert await status(clients[1]) == OK
        silent = await port.open()
        await until(lambda: len(port.acceptor.connections) == 2)
        expire(port, connections.IDLE_TIMEOUT + 1)
        assert await closed_without_response(clients[1])
        assert await closed_without_response(silent)

    run_scenario(scenario, hello, tls=tls)


LARGE = b" " * 2**22


async def large(_: web.BaseRequest) -> web.Response:
    """A response larger than the socket buffers."""
    return web.Response(body=LARGE)


def test_unread_response_closes_the_connection(tls: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WRITE_TIMEOUT", 0.3)

    async def scenario(port: Port) -> None:
        client = await port.open(HELLO, limit=2**12)
        stop_reading(client)
        await until(lambda: port.acceptor.connections)
        await until(lambda: not port.acceptor.connections)
        monkeypatch.setattr(connections, "WRITE_TIMEOUT", 60.0)
        assert await status(await port.open()) == OK

    run_scenario(scenario, large, tls=tls)


async def medium(_: web.BaseRequest) -> web.Response:
    """A response that fits into the send buffer of a socket."""
    return web.Response(body=b" " * 50_000)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the bytes in the send buffer")
def test_unread_response_in_the_send_buffer_closes_the_connection(
    tls: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WRITE_TIMEOUT", 0.3)

    async def scenario(port: Port) -> None:
        client = await port.open(limit=2**12)
        stop_reading(client)
        client[1].write(HELLO)
        await until(lambda: port.acceptor.connections)
        await until(lambda: not port.acceptor.connections)

    run_scenario(scenario, medium, tls=tls)


def test_consecutive_responses_that_are_read_do_not_close_the_connection(
    tls: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if each check finds unacknowledged bytes of the newest response."""

    def one_byte(_: asyncio.Transport) -> int:
        return 1

    monkeypatch.setattr(connections, "SWEEP_PERIOD", 60.0)
    monkeypatch.setattr(connections, "_unacknowledged", one_byte)

    async def scenario(port: Port) -> None:
        client = await port.open()
        for seconds in (0.0, connections.WRITE_TIMEOUT + 1):
            assert await status(client) == OK
            expire(port, seconds)
        assert await status(client) == OK
        expire(port, 0)
        expire(port, connections.WRITE_TIMEOUT + 1)
        assert await closed_without_response(client)

    run_scenario(scenario, medium, tls=tls)


def test_large_response_that_is_read_arrives_complete(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(limit=2**12)
        assert await status(client) == OK
        assert await status(client) == OK

    run_scenario(scenario, large, tls=tls)


def test_pipelined_requests_are_not_read_ahead(tls: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    received = 0
    receive = connections.Connection.data_received

    def count(connection: connections.Connection, data: bytes) -> None:
        nonlocal received
        received += len(data)
        receive(connection, data)

    async def waits(_: web.BaseRequest) -> web.Response:
        await asyncio.sleep(3600)
        return web.Response()

    async def scenario(port: Port) -> None:
        client = await port.open(HELLO * 2**15)
        await until(lambda: port.acceptor.connections)
        await until(lambda: not port.acceptor.connections)
        client[1].transport.abort()

    monkeypatch.setattr(connections.Connection, "data_received", count)
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 0.5)
    run_scenario(scenario, waits, tls=tls)
    assert received < 2**17


def test_pipelined_requests_of_a_closed_client_are_not_handled(tls: Path | None) -> None:
    handled, release = 0, asyncio.Event()

    async def waits(_: web.BaseRequest) -> web.Response:
        nonlocal handled
        handled += 1
        await release.wait()
        return web.Response()

    async def scenario(port: Port) -> None:
        await port.open(HELLO * 3)
        await until(lambda: handled)
        (connection,) = port.acceptor.connections
        connection.eof_received()
        release.set()
        await until(lambda: not port.acceptor.connections)

    run_scenario(scenario, waits, tls=tls)
    assert handled == 1
