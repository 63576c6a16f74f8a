"""The contract of every port: responses, whatever a client sends, and at which pace."""

import asyncio
import logging
import re
import socket
import struct

import pytest

from support.streams import HELLO, Streams, read_to_end, resume_reading, status, stop_reading, until

from .ports import NAMES, Ports, advance, endless, hello, passing
from .serving import OK, Port

STATUS = re.compile(rb"HTTP/1\.[01] (\d+) [A-Za-z ]+\r")
SECRET = "x1y2z3"
CLOSE = b"\r\nConnection: close\r\n"


def get(*headers: str, method: str = "GET", version: str = "1.1", body: bytes = b"") -> bytes:
    """A request."""
    return "\r\n".join([f"{method} /hello HTTP/{version}", "Host: a", *headers, "", ""]).encode() + body


def test_connection_serves_consecutive_requests(ports: Ports) -> None:
    async def scenario(port: Port) -> None:
        client = await port.open()
        for _ in range(3):
            assert await status(client) == OK
        client[1].write(HELLO * 3)
        for _ in range(3):
            assert await status(client, b"") == OK
        assert ports.count(port, "idle") == 1
        client[1].close()
        await until(lambda: not port.server.connections)

    ports.run(scenario)


def test_request_may_arrive_byte_by_byte(ports: Ports) -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(b"\r\n")
        for byte in HELLO[:-1]:
            client[1].write(bytes([byte]))
            await asyncio.sleep(0)
        assert await status(client, HELLO[-1:]) == OK

    ports.run(scenario)


def test_long_head_within_its_limits_is_read(ports: Ports) -> None:
    async def scenario(port: Port) -> None:
        client = await port.open()
        line, rest = "b" * 7000, ports.max_head - 7500
        for _ in range(3):
            head = get(f"A: {line}", *[f"C: {'d' * (rest // 60)}"] * 60)
            assert ports.max_head - 1000 < len(head) <= ports.max_head
            assert await status(client, head) == OK

    ports.run(scenario)


LAST: dict[str, tuple[bytes, bytes, bytes | None]] = {
    "Connection: close": (get("Connection: close"), b"200", b"200"),
    "HTTP/1.0": (get(version="1.0"), b"200", b"200"),
    "a body that is not sent": (get("Content-Length: 9"), b"200", b"200"),
    "a part of a body": (get("Content-Length: 9", body=b"x"), b"200", b"200"),
    "a long body": (get("Content-Length: 100000", method="POST", body=b"x" * 100_000), b"200", b"405"),
    "a chunked body": (get("Transfer-Encoding: chunked", method="PUT"), b"200", b"405"),
    "not HTTP": (f"{SECRET}\r\n\r\n".encode(), b"400", b"400"),
    "an invalid request before a valid one": (b"GET\r\n\r\n" + HELLO, b"400", b"400"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + SECRET.encode() + b"\r\n\r\n", b"400", b"400"),
    "a bad name": (get(f"A{SECRET}\x00: b"), b"400", b"400"),
    "a long header": (get(f"A: {SECRET * 2000}"), b"400", b"431"),
    "a long header without its end": (get()[:-2] + b"A: %s" % (b"x" * 20_000), b"400", b"431"),
    # The agent reads no other headers than Connection and the length of a body.
    "a bad value": (get(f"A: \x01{SECRET * 1000}"), b"400", None),
    "many headers": (get(*[f"A: {SECRET}"] * 65), b"400", None),
    "a length that is too large": (get(f"Content-Length: {10**30}", SECRET), b"400", None),
}
LAST_OF_SERVERS = [
    pytest.param(name, data, code, id=f"{name}-{label}")
    for label, (data, *codes) in LAST.items()
    for name in NAMES
    if (code := codes[name.startswith("agent")]) is not None
]


@pytest.mark.parametrize(("ports", "data", "code"), LAST_OF_SERVERS, indirect=["ports"])
def test_last_request_is_answered_and_closes_the_connection(
    ports: Ports, data: bytes, code: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The response repeats nothing that the client has sent, and no version; the log has no line of it."""

    async def scenario(port: Port) -> None:
        found = await passing(port.exchange(data))
        assert STATUS.findall(found) == [code]
        assert CLOSE in found or found.startswith(b"HTTP/1.0")
        assert len(found) < 400
        assert SECRET.encode() not in found
        assert re.findall(rb"Server: (.*)\r", found) == ports.server

    caplog.set_level(logging.INFO)
    ports.run(scenario)
    assert not [each for each in caplog.records if each.name.startswith("memcached")]


ENDLESS = {
    "short headers": (get()[:-2], b"A: b\r\n"),
    "long headers": (get()[:-2], b"A: %s\r\n" % (b"b" * 4000)),
    "an endless value": (get()[:-2] + b"A: ", b"b"),
    "an endless name": (get()[:-2], b"b"),
    "an endless path": (b"GET /", b"a"),
    "an endless body of an invalid request": (b"GET\r\n\r\n", b"x"),
}


@pytest.mark.parametrize(("start", "more"), ENDLESS.values(), ids=ENDLESS.keys())
def test_endless_request_is_aborted(ports: Ports, start: bytes, more: bytes) -> None:
    """Long before its timeout: after some 10 KiB, unless the client is still to read the response."""

    async def scenario(port: Port) -> None:
        client = await port.open(start)
        found, sent = asyncio.create_task(read_to_end(client)), 0
        piece = more * (1000 // len(more) + 1)
        await until(lambda: port.server.connections)
        while port.server.connections:
            client[1].write(piece)
            sent += len(piece)
            await advance(len(piece) / 100_000)
            assert sent < 2**18
        assert b" 200 " not in await found

    ports.run(scenario)


def test_client_that_is_still_sending_gets_the_response(ports: Ports) -> None:
    """A reset could reach it before the response."""

    async def scenario(port: Port) -> None:
        client = await port.open()
        stop_reading(client)
        client[1].write(get("Content-Length: 1000000", method="POST"))
        for _ in range(10):  # asyncio closes a connection that is reset only after some of them
            await asyncio.sleep(0.03)
            client[1].write(b"x" * 1000)
        resume_reading(client)
        assert len(STATUS.findall(await passing(read_to_end(client)))) == 1

    ports.run(scenario)


def test_client_that_reads_slowly_can_send_another_request(ports: Ports) -> None:
    size = [0]

    async def sized() -> bytes:
        return b"x" * size[0]

    async def scenario(port: Port) -> None:
        client = await port.open(limit=4096)
        for size[0] in (*range(30_000, 400_000, 60_000), 2**22):
            for _ in range(2):
                stop_reading(client)
                client[1].write(HELLO)
                await asyncio.sleep(0.03)
                resume_reading(client)
                assert await status(client, b"") == OK
                await until(lambda: ports.count(port, "idle") == 1)

    ports.run(scenario, sized)


# Errors and clients that disconnect.


def test_internal_error_is_500_and_logged(ports: Ports, caplog: pytest.LogCaptureFixture) -> None:
    errors: list[Exception] = [ZeroDivisionError(SECRET), ZeroDivisionError(SECRET)]

    async def broken() -> bytes:
        if errors:
            raise errors.pop()
        return await hello()

    async def scenario(port: Port) -> None:
        other = await port.open()
        for _ in range(2):
            client = await port.open()
            assert await status(client) == b"500 Internal Server Error"
        assert await status(other) == OK

    ports.run(scenario, broken)
    assert [each.exc_info and each.exc_info[0] for each in caplog.records] == [ZeroDivisionError] * 2


def test_answer_is_cancelled_when_its_client_disconnects(ports: Ports, caplog: pytest.LogCaptureFixture) -> None:
    started: list[str] = []

    async def scenario(port: Port) -> None:
        for close in (_reset, _end_tls) if ports.secure else (_reset,):
            client = await port.open(HELLO)
            await until(lambda: started)
            close(client)
            await until(lambda: not started and not port.server.connections)

    ports.run(scenario, endless(started))
    assert not caplog.records


def _end_tls(client: Streams) -> None:
    """Close a connection, after the end of TLS."""
    client[1].close()


def _reset(client: Streams) -> None:
    """Reset a connection."""
    client[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client[1].transport.abort()


def test_clients_that_disconnect_during_a_response_do_not_fill_the_log(
    ports: Ports, caplog: pytest.LogCaptureFixture
) -> None:
    async def large() -> bytes:
        return b"x" * 2**22

    async def scenario(port: Port) -> None:
        for _ in range(10):
            client = await port.open(HELLO)
            await asyncio.sleep(0.002)
            _reset(client)
        await until(lambda: not port.server.connections)

    ports.run(scenario, large)
    assert not caplog.records
