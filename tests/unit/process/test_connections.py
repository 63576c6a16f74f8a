"""The ports of the controller and of admission, beyond the contract of every port: bodies, errors and shutdown."""

import asyncio
import re
import socket
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp import web

from memcached_process import connections
from memcached_process.addresses import Address
from support.ports import free_port
from support.streams import HELLO, PARTIAL, read_to_end, status, until

from .serving import END, OK, Port, active_requests, closed_without_response, hello, post, run_scenario

STATUS = re.compile(rb"HTTP/1\.[01] (\d+ [A-Za-z ]+)\r")


UNSUPPORTED = {
    "CONNECT": b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
    "an upgrade to h2c": post("Connection: Upgrade", "Upgrade: h2c", "Content-Length: 0"),
    "an upgrade to WebSocket": post("Connection: Upgrade", "Upgrade: websocket", "Content-Length: 0"),
}


@pytest.mark.parametrize("data", UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
def test_unsupported_request_is_answered_and_closes_the_connection(
    data: bytes, tls: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 1.0)
    monkeypatch.setattr(connections, "IDLE_TIMEOUT", 1.0)

    async def scenario(port: Port) -> None:
        assert STATUS.findall(await port.exchange(data)) == [OK]

    run_scenario(scenario, hello, tls=tls)


def test_endless_empty_lines_abort_the_connection(tls: Path | None) -> None:
    """Long before the timeout. aiohttp reads them without a limit."""

    async def scenario(port: Port) -> None:
        client = await port.open()
        found, sent = asyncio.create_task(read_to_end(client)), 0
        while not found.done():
            client[1].write(b"\r\n" * 500)
            sent += 1000
            await asyncio.sleep(0.002)
        assert await found == b""
        assert sent < 2**18

    run_scenario(scenario, hello, tls=tls)


def test_client_may_send_the_remaining_body_after_an_early_response(tls: Path | None) -> None:
    """The connection is closed gracefully: a reset could reach the client before the response."""

    async def scenario(port: Port) -> None:
        reader, writer = await port.open(post("Content-Length: 1000000"))
        assert (await reader.readuntil(b"hello!")).startswith(b"HTTP/1.1 200 ")
        for _ in range(100):
            writer.write(b" " * 10_000)
            await writer.drain()
            await asyncio.sleep(0.001)
        async with asyncio.timeout(30):
            assert await reader.read() == b""

    run_scenario(scenario, hello, tls=tls)


SECRET = "x1y2z3"
CLIENT_ERRORS: dict[str, tuple[type[Exception], list[bytes]]] = {
    "an invalid body": (web.RequestPayloadError, [b"400"]),
    "a disconnected client": (ConnectionError, []),
}


@pytest.mark.parametrize(("error", "codes"), CLIENT_ERRORS.values(), ids=CLIENT_ERRORS.keys())
def test_client_error_while_reading_is_not_logged(
    error: type[Exception], codes: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    async def reads(_: web.BaseRequest) -> web.Response:
        raise error(SECRET)

    async def scenario(port: Port) -> None:
        found = await port.exchange(HELLO)
        assert [code[:3] for code in STATUS.findall(found) if code[:1] != b"5"] == codes
        assert SECRET.encode() not in found

    run_scenario(scenario, reads)
    assert not caplog.records


@pytest.mark.parametrize("task", ["accept", "sweep"])
def test_unexpected_error_of_a_port_is_logged_and_ends_the_process(
    task: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(connections.Acceptor, task, broken)

    stop = asyncio.Event()

    async def run() -> None:
        async with AsyncExitStack() as stack:
            await connections.serve(stack, stop, hello, Address("127.0.0.1", free_port()), 3)
            await asyncio.wait_for(stop.wait(), 30)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(run())
    assert stop.is_set()
    assert [record.exc_info and record.exc_info[0] for record in caplog.records] == [ZeroDivisionError]


def test_failed_accept_is_logged_and_retried(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(port: Port) -> None:
        loop = asyncio.get_running_loop()
        accept, failures = loop.sock_accept, [OSError("too many open files")]

        async def failing(listener: socket.socket) -> tuple[socket.socket, object]:
            if failures:
                raise failures.pop()
            return await accept(listener)

        monkeypatch.setattr(loop, "sock_accept", failing)
        assert await status(await port.open()) == OK
        assert await status(await port.open()) == OK

    run_scenario(scenario, hello)
    assert "cannot accept a connection: too many open files" in caplog.text


# Timeouts.


def expire(port: Port, seconds: float) -> None:
    """Check the timeouts as if these seconds had passed."""
    now = asyncio.get_running_loop().time()
    for each in list(port.server.connections):
        each.abort_if_expired(now + seconds)


INCOMPLETE_BODIES = {
    "sized": post("Content-Length: 9999", body=b"1"),
    "chunked": post("Transfer-Encoding: chunked", body=b"9999\r\na"),
}


@pytest.mark.parametrize("data", INCOMPLETE_BODIES.values(), ids=INCOMPLETE_BODIES.keys())
def test_body_times_out(data: bytes, tls: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
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
        assert await found == b""

    run_scenario(scenario, reads, tls=tls)


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

    run_scenario(scenario, hello, tls=tls)


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
        (connection,) = port.server.connections
        connection.eof_received()
        release.set()
        await until(lambda: not port.server.connections)

    run_scenario(scenario, waits, tls=tls)
    assert handled == 1


# Shutdown.


def test_draining_closes_a_connection_after_its_response(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(PARTIAL)
        await until(lambda: active_requests(port) == 1)
        port.server.draining = True
        client[1].write(END)
        found = await read_to_end(client)
        assert b"\r\nConnection: close\r\n" in found
        assert found.endswith(b"hello!")

    run_scenario(scenario, hello, tls=tls)


def test_close_closes_idle_connections_and_waits_for_active_requests(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        idle, active, slow = await port.open(), await port.open(PARTIAL), await port.open(PARTIAL)
        await until(lambda: active_requests(port) == 2)
        closing = asyncio.create_task(port.server.close())
        assert await closed_without_response(idle)
        active[1].write(END)
        assert (await read_to_end(active)).endswith(b"hello!")
        assert not closing.done()
        assert await closed_without_response(slow)
        await closing

    run_scenario(scenario, hello, tls=tls, grace=1.0)
