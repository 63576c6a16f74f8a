"""The contract of every port: the time that it waits for a client."""

import asyncio

import pytest

from support.streams import HELLO, PARTIAL, Streams, read_to_end, status, stop_reading, until

from .ports import Answer, Ports, advance, endless
from .serving import OK, Port

GET = HELLO
SLACK = 3
"""Seconds after a timeout: two checks of the timeouts."""
ACKNOWLEDGED = 0.1
"""Seconds until the kernel has acknowledged a response: meanwhile, it counts as unread."""


async def seconds_until_closed(port: Port, client: Streams, more: bytes = b"") -> int:
    """The time until the only connection is closed, although its client sends `more` every second."""
    await until(lambda: port.server.connections)
    for seconds in range(200):
        if not port.server.connections:
            return seconds
        client[1].write(more)
        await advance(1)
    raise AssertionError("the connection is still open")


SILENT = {
    "nothing": (b"", b"", "idle"),
    "one byte": (GET[:1], b"", "request"),
    "empty lines": (b"\r\n", b"\r\n", "blank"),
    "a part of a head": (PARTIAL, b"", "request"),
    "a slow head": (PARTIAL + b"A: ", b"a", "request"),
    "a part of a second head": (GET + PARTIAL, b"", "second"),
    "a slow second head": (GET + PARTIAL + b"A: ", b"a", "request"),
    "no second request": (GET, b"", "idle"),
}


@pytest.mark.parametrize(("start", "more", "timeout"), SILENT.values(), ids=SILENT.keys())
def test_connection_is_closed_after(ports: Ports, start: bytes, more: bytes, timeout: str) -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(start)
        for _ in range(start.count(GET)):
            assert await status(client, b"") == OK
        await asyncio.sleep(ACKNOWLEDGED)
        seconds = await seconds_until_closed(port, client, more)
        assert ports.timeouts[timeout] - 1 <= seconds <= ports.timeouts[timeout] + SLACK
        assert await read_to_end(client) == b""

    ports.run(scenario)


HANDSHAKE = b"\x16\x03\x01\x02\x00"


@pytest.mark.parametrize(("start", "more"), [(b"", b""), (b"\x16", b""), (HANDSHAKE, b""), (HANDSHAKE, b"\x00")])
def test_handshake_times_out(secure: Ports, start: bytes, more: bytes) -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(start, tls=False)
        seconds = await seconds_until_closed(port, client, more)
        assert secure.timeouts["handshake"] - 1 <= seconds <= secure.timeouts["handshake"] + SLACK
        assert await read_to_end(client) == b""
        assert await status(await port.open()) == OK

    secure.run(scenario)


def test_connection_is_closed_after_its_last_use(ports: Ports) -> None:
    async def scenario(port: Port) -> None:
        unused, used = await port.open(), await port.open()
        for client in (unused, used):
            assert await status(client) == OK
        await asyncio.sleep(ACKNOWLEDGED)
        await advance(ports.timeouts["idle"] - 10)
        assert await status(used) == OK
        await asyncio.sleep(ACKNOWLEDGED)
        await advance(5)
        assert len(port.server.connections) == 2
        await advance(10)
        await advance(1)
        assert len(port.server.connections) == 1
        assert await status(used) == OK
        assert await read_to_end(unused) == b""

    ports.run(scenario)


async def large() -> bytes:
    """A response larger than the socket buffers."""
    return b" " * 2**22


async def medium() -> bytes:
    """A response that fits into the send buffer of a socket."""
    return b" " * 50_000


@pytest.mark.parametrize(("answer", "timeout"), [(large, "unread"), (medium, "sent")], ids=["large", "medium"])
def test_unread_response_closes_the_connection(ports: Ports, answer: Answer, timeout: str) -> None:
    handled = asyncio.Event()

    async def handle() -> bytes:
        handled.set()
        return await answer()

    async def scenario(port: Port) -> None:
        client = await port.open(limit=2**12)
        stop_reading(client)
        client[1].write(GET)
        await handled.wait()
        await asyncio.sleep(0.05)
        seconds = await seconds_until_closed(port, client)
        assert ports.timeouts[timeout] - 1 <= seconds <= ports.timeouts[timeout] + SLACK
        # All of it is still unsent or in the kernel, and is discarded.
        assert await status(await port.open()) == OK

    ports.run(scenario, handle)


def test_request_that_is_not_answered_is_aborted(ports: Ports) -> None:
    started: list[str] = []

    async def scenario(port: Port) -> None:
        client = await port.open(GET)
        await until(lambda: started)
        seconds = await seconds_until_closed(port, client)
        assert ports.timeouts["answer"] - 1 <= seconds <= ports.timeouts["answer"] + SLACK
        assert await read_to_end(client) == b""
        await until(lambda: not started)

    ports.run(scenario, endless(started))
