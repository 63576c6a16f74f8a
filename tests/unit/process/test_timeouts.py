"""Connections of a port: how long each of their parts may take."""

import asyncio
import re
import sys
from pathlib import Path

import pytest
from aiohttp import web

from memcached_process import connections

from .serving import (
    HELLO,
    OK,
    Port,
    ended,
    hello,
    post,
    rest,
    run_scenario,
    status,
    stop_reading,
    until,
)

LATE = {
    "a head": HELLO[:-9],
    "a second head": HELLO + HELLO[:-9],
    "a body": post("Content-Length: 9999", body=b"1"),
    "a body in chunks": post("Transfer-Encoding: chunked", body=b"9999\r\na"),
}


@pytest.mark.parametrize("data", LATE.values(), ids=LATE.keys())
def test_a_request_has_a_time(data: bytes, tls: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 0.3)

    async def reads(request: web.BaseRequest) -> web.Response:
        await request.content.read()
        return web.Response(text="hello!")

    async def scenario(port: Port) -> None:
        line = await port.open(data)
        found = asyncio.create_task(rest(line))
        for _ in range(1000):
            if found.done():
                break
            await asyncio.sleep(0.02)
            line[1].write(b"a")
        assert len(re.findall(rb"HTTP/1\.1 200 OK\r", await found)) == data.count(HELLO)

    run_scenario(scenario, reads, tls=tls)


def test_an_idle_connection_ends(tls: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_TIMEOUT", 0.3)

    async def scenario(port: Port) -> None:
        silent, line = await port.open(), await port.open()
        assert await status(line) == OK
        assert await ended(line)
        assert await ended(silent)

    run_scenario(scenario, hello, tls=tls)


def test_a_connection_in_use_stays(tls: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 2.0)
    monkeypatch.setattr(connections, "IDLE_TIMEOUT", 2.0)

    async def scenario(port: Port) -> None:
        line = await port.open()
        for _ in range(30):
            await asyncio.sleep(0.1)
            assert await status(line) == OK

    run_scenario(scenario, hello, tls=tls)


LARGE = b" " * 2**22


async def large(_: web.BaseRequest) -> web.Response:
    """An answer that no buffer of a socket holds."""
    return web.Response(body=LARGE)


def test_an_answer_that_is_not_read_ends_the_connection(tls: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WRITE_TIMEOUT", 0.3)

    async def scenario(port: Port) -> None:
        line = await port.open(HELLO, limit=2**12)
        stop_reading(line)
        await until(lambda: port.acceptor.connections)
        await until(lambda: not port.acceptor.connections)
        monkeypatch.setattr(connections, "WRITE_TIMEOUT", 60.0)
        assert await status(await port.open()) == OK

    run_scenario(scenario, large, tls=tls)


async def medium(_: web.BaseRequest) -> web.Response:
    """An answer that fits into the send buffer of a socket."""
    return web.Response(body=b" " * 50_000)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the bytes in the send buffer")
def test_an_unread_answer_within_the_send_buffer_ends_the_connection(
    tls: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WRITE_TIMEOUT", 0.3)

    async def scenario(port: Port) -> None:
        line = await port.open(limit=2**12)
        stop_reading(line)
        line[1].write(HELLO)
        await until(lambda: port.acceptor.connections)
        await until(lambda: not port.acceptor.connections)

    run_scenario(scenario, medium, tls=tls)


def test_answers_that_are_read_one_after_the_other_do_not_end_the_connection(
    tls: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where every check finds some bytes of the newest one unacknowledged."""
    monkeypatch.setattr(connections, "WRITE_TIMEOUT", 0.3)

    def some(_: asyncio.Transport) -> int:
        return 1

    monkeypatch.setattr(connections, "_unacknowledged", some)

    async def scenario(port: Port) -> None:
        line = await port.open()
        for _ in range(50):
            assert await status(line) == OK
            await asyncio.sleep(0.02)

    run_scenario(scenario, medium, tls=tls)


def test_an_answer_that_is_read_arrives_whole(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        line = await port.open(limit=2**12)
        assert await status(line) == OK
        assert await status(line) == OK

    run_scenario(scenario, large, tls=tls)


def test_a_client_that_does_not_wait_for_its_answer_is_cut(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        line = await port.open(limit=2**12)
        stop_reading(line)
        await until(lambda: port.acceptor.connections)
        while port.acceptor.connections:
            line[1].write(HELLO)
            await asyncio.sleep(0.005)

    run_scenario(scenario, large, tls=tls)


def test_requests_that_do_not_wait_for_an_answer_are_not_read(
    tls: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        line = await port.open(HELLO * 2**15)
        await until(lambda: port.acceptor.connections)
        await until(lambda: not port.acceptor.connections)
        line[1].transport.abort()

    monkeypatch.setattr(connections.Connection, "data_received", count)
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 0.5)
    run_scenario(scenario, waits, tls=tls)
    assert received < 2**17


def test_a_client_that_has_closed_gets_no_more_answers(tls: Path | None) -> None:
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
