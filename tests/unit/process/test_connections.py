"""Connections of a port: responses, limits and shutdown."""

import asyncio
import logging
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

from .serving import END, OK, Port, active_requests, closed_without_response, hello, post, run_scenario, sized

STATUS = re.compile(rb"HTTP/1\.[01] (\d+ [A-Za-z ]+)\r")


# Responses.


def test_connection_serves_consecutive_requests(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        client = await port.open()
        for _ in range(3):
            assert await status(client) == OK
        client[1].write(HELLO * 3)
        for _ in range(3):
            assert await status(client, b"") == OK

    run_scenario(scenario, hello, tls=tls)


LAST = {
    "Connection: close": post("Connection: close", "Content-Length: 0"),
    "HTTP/1.0": post("Content-Length: 0", version="1.0"),
    "a body that is not read": post("Content-Length: 9"),
    "CONNECT": b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
    "an upgrade to h2c": post("Connection: Upgrade", "Upgrade: h2c", "Content-Length: 0"),
    "an upgrade to WebSocket": post("Connection: Upgrade", "Upgrade: websocket", "Content-Length: 0"),
}


@pytest.mark.parametrize("data", LAST.values(), ids=LAST.keys())
def test_last_request_is_answered_and_closes_the_connection(
    data: bytes, tls: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 1.0)
    monkeypatch.setattr(connections, "IDLE_TIMEOUT", 1.0)

    async def scenario(port: Port) -> None:
        assert STATUS.findall(await port.exchange(data)) == [OK]

    run_scenario(scenario, hello, tls=tls)


SECRET = "x1y2z3"
INVALID_HTTP = {
    "not HTTP": f"{SECRET}\r\n\r\n".encode(),
    "a length that is too large": post(f"Content-Length: {10**30}", SECRET),
    "a long header": post(f"A: {SECRET * 2000}"),
    "a bad name": post(f"A{SECRET}\x00: b"),
    "a bad value": post(f"A: \x01{SECRET * 1000}"),
    "many headers": post(*[f"A: {SECRET}"] * 65),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + SECRET.encode(),
}


@pytest.mark.parametrize("data", INVALID_HTTP.values(), ids=INVALID_HTTP.keys())
def test_invalid_http_is_neither_echoed_nor_logged(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(port: Port) -> None:
        found = await port.exchange(data)
        assert STATUS.findall(found) == [b"400 Bad Request"]
        assert len(found) < 400
        assert SECRET.encode() not in found

    with caplog.at_level(logging.INFO):
        run_scenario(scenario, hello)
    assert not caplog.records


ENDLESS = {
    "short headers": (post()[:-2], b"A: b\r\n"),
    "long headers": (post()[:-2], b"A: %s\r\n" % (b"b" * 4000)),
    "an endless value": (post()[:-2] + b"A: ", b"b"),
    "an endless name": (post()[:-2], b"b"),
    "an endless path": (b"GET /", b"a"),
    "empty lines": (b"", b"\r\n"),
}


@pytest.mark.parametrize(("start", "more"), ENDLESS.values(), ids=ENDLESS.keys())
def test_endless_head_aborts_the_connection(start: bytes, more: bytes, tls: Path | None) -> None:
    """Long before the timeout: after some 10 KiB."""

    async def scenario(port: Port) -> None:
        client = await port.open(start)
        found, sent = asyncio.create_task(read_to_end(client)), 0
        piece = more * (1000 // len(more) + 1)
        while not found.done():
            client[1].write(piece)
            sent += len(piece)
            await asyncio.sleep(0.002)
        assert b" 200 " not in await found
        assert sent < 2**18

    run_scenario(scenario, hello, tls=tls)


def test_long_head_within_its_limits_is_read(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        client = await port.open()
        for _ in range(3):
            assert await status(client, HELLO[:-2] + b"A: %s\r\n" % (b"b" * 8000) + b"C: d\r\n" * 60 + b"\r\n") == OK

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


def test_unexpected_error_closes_one_connection_and_is_logged(
    tls: Path | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(request: web.BaseRequest) -> web.Response:
        if request.path == "/boom":
            raise ZeroDivisionError
        return await hello(request)

    async def scenario(port: Port) -> None:
        assert b" 500 " in await port.exchange(sized(b"", path="/boom"))
        assert await status(await port.open()) == OK

    run_scenario(scenario, broken, tls=tls)
    assert [record.exc_info and record.exc_info[0] for record in caplog.records] == [ZeroDivisionError]


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


def test_handler_is_cancelled_with_its_connection(tls: Path | None, caplog: pytest.LogCaptureFixture) -> None:
    started: list[str] = []

    async def waits(_: web.BaseRequest) -> web.Response:
        started.append("request")
        try:
            await asyncio.sleep(3600)
        finally:
            started.clear()
        return web.Response()

    async def scenario(port: Port) -> None:
        _, writer = await port.open(HELLO)
        await until(lambda: started)
        writer.transport.abort()
        await until(lambda: not started)

    run_scenario(scenario, waits, tls=tls)
    assert not caplog.records


# Limits.


def test_oldest_idle_connection_is_closed_before_active_ones(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        active = await port.open(PARTIAL)
        await until(lambda: active_requests(port) == 1)
        idle, other = await port.open(), await port.open()
        await until(lambda: len(port.acceptor.connections) == 3)
        new = await port.open()
        assert await closed_without_response(idle)
        assert await status(new) == OK
        assert await status(other) == OK
        assert await status(active, END) == OK

    run_scenario(scenario, hello, 3, tls)


def test_oldest_connection_is_closed_if_all_are_active(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        clients = [await port.open(PARTIAL) for _ in range(3)]
        await until(lambda: active_requests(port) == 3)
        new = await port.open()
        assert await closed_without_response(clients[0])
        assert await status(new) == OK
        assert await status(clients[1], END) == OK

    run_scenario(scenario, hello, 3, tls)


def test_connections_in_their_handshake_are_closed_first(tmp_path: Path) -> None:
    async def scenario(port: Port) -> None:
        established = await port.open()
        assert await status(established) == OK
        silent = [await port.open(tls=False) for _ in range(6)]
        for client in silent[:4]:
            assert await closed_without_response(client)
        assert await status(await port.open()) == OK
        assert await closed_without_response(silent[4])
        assert await status(established) == OK

    run_scenario(scenario, hello, 3, tmp_path)


def test_new_connection_is_not_closed_first(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        for _ in range(8):
            await port.open(PARTIAL)
        await until(lambda: active_requests(port) == 8)
        new = await port.open()
        for _ in range(3):
            await port.open(PARTIAL)
            assert len(port.acceptor.connections) <= 8
        assert await status(new) == OK

    run_scenario(scenario, hello, 8, tls)


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


def test_no_response_reports_a_software_version() -> None:
    async def scenario(port: Port) -> None:
        for data in (HELLO, b"not HTTP\r\n\r\n"):
            (header,) = re.findall(
                rb"Server: (.*)\r", await port.exchange(data.replace(b"\r\n\r", b"\r\nConnection: close\r\n\r"))
            )
            assert header == b"memcached-operator"

    run_scenario(scenario, hello)


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


# Shutdown.


def test_draining_closes_a_connection_after_its_response(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(PARTIAL)
        await until(lambda: active_requests(port) == 1)
        port.acceptor.draining = True
        client[1].write(END)
        found = await read_to_end(client)
        assert b"\r\nConnection: close\r\n" in found
        assert found.endswith(b"hello!")

    run_scenario(scenario, hello, tls=tls)


def test_close_closes_idle_connections_and_waits_for_active_requests(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        idle, active, slow = await port.open(), await port.open(PARTIAL), await port.open(PARTIAL)
        await until(lambda: active_requests(port) == 2)
        closing = asyncio.create_task(port.acceptor.close())
        assert await closed_without_response(idle)
        active[1].write(END)
        assert (await read_to_end(active)).endswith(b"hello!")
        assert not closing.done()
        assert await closed_without_response(slow)
        await closing

    run_scenario(scenario, hello, tls=tls, grace=1.0)
