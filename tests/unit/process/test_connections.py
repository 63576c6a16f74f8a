"""Connections of a port: how many there are, what is answered on them, and how they end."""

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

from .serving import (
    BEGUN,
    END,
    HELLO,
    OK,
    Port,
    busy,
    ended,
    hello,
    post,
    rest,
    run_scenario,
    sized,
    status,
    until,
)

STATUS = re.compile(rb"HTTP/1\.[01] (\d+ [A-Za-z ]+)\r")


# What is answered.


def test_requests_follow_each_other_on_a_connection(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        line = await port.open()
        for _ in range(3):
            assert await status(line) == OK
        line[1].write(HELLO * 3)
        for _ in range(3):
            assert await status(line, b"") == OK

    run_scenario(scenario, hello, tls=tls)


def test_a_request_may_come_byte_by_byte(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        line = await port.open()
        for byte in HELLO[:-1]:
            line[1].write(bytes([byte]))
            await asyncio.sleep(0.001)
        assert await status(line, HELLO[-1:]) == OK

    run_scenario(scenario, hello, tls=tls)


LAST = {
    "the client says so": post("Connection: close", "Content-Length: 0"),
    "an older client": post("Content-Length: 0", version="1.0"),
    "a body that nobody reads": post("Content-Length: 9"),
    "a proxy": b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
    "another protocol": post("Connection: Upgrade", "Upgrade: h2c", "Content-Length: 0"),
    "WebSocket": post("Connection: Upgrade", "Upgrade: websocket", "Content-Length: 0"),
}


@pytest.mark.parametrize("data", LAST.values(), ids=LAST.keys())
def test_a_last_request_is_answered_and_ends_the_connection(
    data: bytes, tls: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_TIMEOUT", 1.0)
    monkeypatch.setattr(connections, "IDLE_TIMEOUT", 1.0)

    async def scenario(port: Port) -> None:
        assert STATUS.findall(await port.answers(data)) == [OK]

    run_scenario(scenario, hello, tls=tls)


SECRET = "x1y2z3"
NO_HTTP = {
    "no HTTP": f"{SECRET}\r\n\r\n".encode(),
    "an unknown method": f"{SECRET} / HTTP/1.1\r\n\r\n".encode(),
    "no host": f"GET /{SECRET} HTTP/1.1\r\n\r\n".encode(),
    "two lengths": post("Content-Length: 1", "Content-Length: 2", SECRET),
    "a length and chunks": post("Content-Length: 1", "Transfer-Encoding: chunked", SECRET),
    "a negative length": post("Content-Length: -1", SECRET),
    "no length at all": post(f"Content-Length: {10**30}", SECRET),
    "no number": post(f"Content-Length: {SECRET}"),
    "a bad name": post(f"A{SECRET}\x00: b"),
    "a bad value": post(f"A: \x01{SECRET * 1000}"),
    "a long line": post(path=f"/{SECRET * 2000}"),
    "a long header": post(f"A: {SECRET * 2000}"),
    "a long name": post(f"{SECRET * 2000}: a"),
    "many headers": post(*[f"A: {SECRET}"] * 65),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + SECRET.encode(),
}


@pytest.mark.parametrize("data", NO_HTTP.values(), ids=NO_HTTP.keys())
def test_bytes_that_are_no_http_are_neither_repeated_nor_logged(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(port: Port) -> None:
        found = await port.answers(data)
        assert STATUS.findall(found) == [b"400 Bad Request"]
        assert len(found) < 400
        assert SECRET.encode() not in found

    with caplog.at_level(logging.INFO):
        run_scenario(scenario, hello)
    assert not caplog.records


ENDLESS = {
    "short headers": (post()[:-2], b"A: b\r\n"),
    "long headers": (post()[:-2], b"A: %s\r\n" % (b"b" * 4000)),
    "one value": (post()[:-2] + b"A: ", b"b"),
    "one name": (post()[:-2], b"b"),
    "a path": (b"GET /", b"a"),
    "empty lines": (b"", b"\r\n"),
}


@pytest.mark.parametrize(("begin", "more"), ENDLESS.values(), ids=ENDLESS.keys())
def test_a_head_without_an_end_is_cut(begin: bytes, more: bytes, tls: Path | None) -> None:
    """Long before its time, and after some ten kilobytes, as they come."""

    async def scenario(port: Port) -> None:
        line = await port.open(begin)
        found, sent = asyncio.create_task(rest(line)), 0
        piece = more * (1000 // len(more) + 1)
        while not found.done():
            line[1].write(piece)
            sent += len(piece)
            await asyncio.sleep(0.002)
        assert b" 200 " not in await found
        assert sent < 2**18

    run_scenario(scenario, hello, tls=tls)


def test_a_long_head_within_its_bounds_is_read(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        line = await port.open()
        for _ in range(3):
            assert await status(line, HELLO[:-2] + b"A: %s\r\n" % (b"b" * 8000) + b"C: d\r\n" * 60 + b"\r\n") == OK

    run_scenario(scenario, hello, tls=tls)


def test_an_early_answer_ends_the_connection(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        reader, _ = await port.open(post("Content-Length: 9"))
        assert b"\r\nConnection: close\r\n" in await reader.readuntil(b"\r\n\r\n")

    run_scenario(scenario, hello, tls=tls)


def test_a_client_may_send_the_rest_of_its_body_after_an_early_answer(tls: Path | None) -> None:
    """The connection is closed in order: a reset could reach the client before the answer."""

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


def test_a_defect_ends_one_connection_and_is_logged(tls: Path | None, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: web.BaseRequest) -> web.Response:
        if request.path == "/boom":
            raise ZeroDivisionError
        return await hello(request)

    async def scenario(port: Port) -> None:
        assert b" 500 " in await port.answers(sized(b"", path="/boom"))
        assert await status(await port.open()) == OK

    run_scenario(scenario, broken, tls=tls)
    assert [record.exc_info and record.exc_info[0] for record in caplog.records] == [ZeroDivisionError]


FAULTS_OF_CLIENTS: dict[str, tuple[type[Exception], list[bytes]]] = {
    "an invalid body": (web.RequestPayloadError, [b"400"]),
    "a client that left": (ConnectionError, []),
}


@pytest.mark.parametrize(("error", "codes"), FAULTS_OF_CLIENTS.values(), ids=FAULTS_OF_CLIENTS.keys())
def test_what_a_client_does_wrong_while_it_is_read_is_not_logged(
    error: type[Exception], codes: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    async def reads(_: web.BaseRequest) -> web.Response:
        raise error(SECRET)

    async def scenario(port: Port) -> None:
        found = await port.answers(HELLO)
        assert [code[:3] for code in STATUS.findall(found) if code[:1] != b"5"] == codes
        assert SECRET.encode() not in found

    run_scenario(scenario, reads)
    assert not caplog.records


def test_a_handler_ends_with_its_connection(tls: Path | None, caplog: pytest.LogCaptureFixture) -> None:
    waiting: list[str] = []

    async def waits(_: web.BaseRequest) -> web.Response:
        waiting.append("here")
        try:
            await asyncio.sleep(3600)
        finally:
            waiting.clear()
        return web.Response()

    async def scenario(port: Port) -> None:
        _, writer = await port.open(HELLO)
        await until(lambda: waiting)
        writer.transport.abort()
        await until(lambda: not waiting)

    run_scenario(scenario, waits, tls=tls)
    assert not caplog.records


# How many there may be.


def test_the_oldest_idle_connection_goes_and_one_at_work_stays(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        working = await port.open(BEGUN)
        await until(lambda: busy(port) == 1)
        idle, other = await port.open(), await port.open()
        await until(lambda: len(port.acceptor.connections) == 3)
        newcomer = await port.open()
        assert await ended(idle)
        assert await status(newcomer) == OK
        assert await status(other) == OK
        assert await status(working, END) == OK

    run_scenario(scenario, hello, 3, tls)


def test_where_all_are_at_work_the_oldest_goes(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        lines = [await port.open(BEGUN) for _ in range(3)]
        await until(lambda: busy(port) == 3)
        newcomer = await port.open()
        assert await ended(lines[0])
        assert await status(newcomer) == OK
        assert await status(lines[1], END) == OK

    run_scenario(scenario, hello, 3, tls)


def test_silent_sockets_go_before_those_who_speak_tls(tmp_path: Path) -> None:
    async def scenario(port: Port) -> None:
        guest = await port.open()
        assert await status(guest) == OK
        silent = [await port.open(tls=False) for _ in range(6)]
        for line in silent[:4]:
            assert await ended(line)
        assert await status(await port.open()) == OK
        assert await ended(silent[4])
        assert await status(guest) == OK

    run_scenario(scenario, hello, 3, tmp_path)


def test_there_is_always_room_for_one_more(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        for _ in range(50):
            await port.open(BEGUN if len(port.acceptor.connections) % 2 else b"")
            assert len(port.acceptor.connections) <= 3
        assert await status(await port.open()) == OK

    run_scenario(scenario, hello, 3, tls)


def test_a_new_connection_is_not_the_first_to_go(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        for _ in range(8):
            await port.open(BEGUN)
        await until(lambda: busy(port) == 8)
        newcomer = await port.open()
        for _ in range(3):
            await port.open(BEGUN)
        assert await status(newcomer) == OK

    run_scenario(scenario, hello, 8, tls)


@pytest.mark.parametrize("task", ["accept", "sweep"])
def test_a_defect_that_ends_a_port_is_logged_and_ends_the_process(
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


def test_no_answer_has_a_version_of_software() -> None:
    async def scenario(port: Port) -> None:
        for data in (HELLO, b"no HTTP\r\n\r\n"):
            (line,) = re.findall(
                rb"Server: (.*)\r", await port.answers(data.replace(b"\r\n\r", b"\r\nConnection: close\r\n\r"))
            )
            assert line == b"memcached-operator"

    run_scenario(scenario, hello)


def test_a_failed_accept_is_logged_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
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


# How all of it ends.


def test_while_draining_a_connection_ends_with_its_answer(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        line = await port.open(BEGUN)
        await until(lambda: busy(port) == 1)
        port.acceptor.draining = True
        line[1].write(END)
        found = await rest(line)
        assert b"\r\nConnection: close\r\n" in found
        assert found.endswith(b"hello!")

    run_scenario(scenario, hello, tls=tls)


def test_in_the_end_idle_connections_are_closed_and_requests_under_way_answered(tls: Path | None) -> None:
    async def scenario(port: Port) -> None:
        idle, working, slow = await port.open(), await port.open(BEGUN), await port.open(BEGUN)
        await until(lambda: busy(port) == 2)
        ending = asyncio.create_task(port.acceptor.close())
        assert await ended(idle)
        working[1].write(END)
        assert (await rest(working)).endswith(b"hello!")
        assert not ending.done()
        assert await ended(slow)
        await ending

    run_scenario(scenario, hello, tls=tls, grace=1.0)
