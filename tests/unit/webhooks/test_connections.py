"""Connections are bounded in number: for one more, one on which nothing goes on is cut."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from memcached_webhooks import connections
from memcached_webhooks.protocol import told

from .serving import served

HELLO = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
BEGUN = HELLO[:-2]
"""A request at work: its end is held back."""
END = b"\r\n"


class Place:
    """A server with room for three."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._writers: list[asyncio.StreamWriter] = []

    async def come(self, *, tls: bool = True) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context if tls else None)
        self._writers.append(writer)
        return reader, writer

    async def leave(self) -> None:
        """Cut every connection."""
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0.05)


def play(directory: Path, story: Callable[[Place], Awaitable[None]]) -> None:
    """Serve while a story goes on."""

    async def serve() -> None:
        async with served(directory, lambda _: told(200, "hello")) as (_, port):
            place = Place(port)
            try:
                await story(place)
            finally:
                await place.leave()

    asyncio.run(asyncio.wait_for(serve(), 20))


async def greeted(line: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> bool:
    """Whether a request is answered."""
    reader, writer = line
    writer.write(HELLO)
    return b" 200 " in await reader.readline()


async def cut(line: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> bool:
    """Whether a connection ends."""
    try:
        return await asyncio.wait_for(line[0].read(), 5) == b""
    except ConnectionError:
        return True


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for three."""
    monkeypatch.setattr(connections, "MOST", 3)


def test_silent_sockets_go_before_those_who_speak(tmp_path: Path):
    async def story(place: Place) -> None:
        guest = await place.come()
        assert await greeted(guest)
        silent = [await place.come(tls=False) for _ in range(6)]
        for line in silent[:4]:
            assert await cut(line)
        assert await greeted(await place.come())
        assert await cut(silent[4])
        guest[1].write(HELLO)
        assert b"hello" in await guest[0].readuntil(b"hello")

    play(tmp_path, story)


def test_the_oldest_idle_connection_goes_and_one_at_work_stays(tmp_path: Path):
    async def story(place: Place) -> None:
        working = await place.come()
        working[1].write(BEGUN)
        idle, other = await place.come(), await place.come()
        await asyncio.sleep(0.1)
        newcomer = await place.come()
        assert await cut(idle)
        assert await greeted(newcomer)
        assert await greeted(other)
        working[1].write(END)
        assert b" 200 " in await working[0].readline()

    play(tmp_path, story)


def test_where_all_are_at_work_the_oldest_goes(tmp_path: Path):
    async def story(place: Place) -> None:
        lines = [await place.come() for _ in range(3)]
        for _, writer in lines:
            writer.write(BEGUN)
        await asyncio.sleep(0.1)
        newcomer = await place.come()
        assert await cut(lines[0])
        assert await greeted(newcomer)
        lines[1][1].write(END)
        assert b" 200 " in await lines[1][0].readline()

    play(tmp_path, story)


def test_a_slow_handshake_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connections, "HANDSHAKE_SECONDS", 0.2)

    async def story(place: Place) -> None:
        line = await place.come(tls=False)
        line[1].write(b"\x16\x03\x01")
        assert await cut(line)
        assert await greeted(await place.come())

    play(tmp_path, story)


def test_an_accept_that_fails_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def story(place: Place) -> None:
        loop = asyncio.get_running_loop()
        accept, failures = loop.sock_accept, [OSError("too many open files")]

        async def failing(listener: socket.socket) -> tuple[socket.socket, object]:
            if failures:
                raise failures.pop()
            return await accept(listener)

        monkeypatch.setattr(loop, "sock_accept", failing)
        assert await greeted(await place.come())
        assert await greeted(await place.come())

    play(tmp_path, story)
    assert "could not be accepted: too many open files" in caplog.text
