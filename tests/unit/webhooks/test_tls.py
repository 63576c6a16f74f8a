"""Connections over TLS that end badly: none of them keeps a turn, a place or memory."""

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from memcached_webhooks import connections, protocol
from memcached_webhooks.protocol import Answer, Request, Server, told

from .serving import served

SMALL = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1"
LARGE = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
BODY = b" " * 100_000
LONG = 60.0
"""Seconds: longer than a test may take."""


def client(port: int) -> ssl.SSLSocket:
    """Connected by TLS, in blocking calls: asyncio's own client would end what a test wants to leave open."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), 5))


def sent(port: int, data: bytes) -> ssl.SSLSocket:
    """A client that has sent something, and then is silent."""
    line = client(port)
    line.sendall(data)
    return line


def answered(port: int, data: bytes) -> bytes:
    """The status line of the answer to some bytes."""
    with sent(port, data) as line:
        return line.recv(1000).partition(b"\r\n")[0]


def deaf(port: int) -> socket.socket:
    """Asks, says that it will say no more, and reads nothing: not by TLS, and not from its socket."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(("127.0.0.1", port))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    line = context.wrap_bio(incoming, outgoing)
    while True:
        try:
            line.do_handshake()
            break
        except ssl.SSLWantReadError:
            plain.sendall(outgoing.read())
            incoming.write(plain.recv(4000))
    line.write(SMALL)
    plain.sendall(outgoing.read())
    time.sleep(0.3)
    try:
        line.unwrap()
    except ssl.SSLError:
        plain.sendall(outgoing.read())
    return plain


Story = Callable[[Server, int], Awaitable[None]]


def play(directory: Path, story: Story, respond: Callable[[Request], Answer] = lambda _: told(200, "ok")) -> None:
    """Serve while a story goes on."""

    async def serve() -> None:
        async with served(directory, respond) as (server, port):
            await story(server, port)
        assert not server.connections

    asyncio.run(asyncio.wait_for(serve(), 30))


async def until(look: Callable[[], object]) -> None:
    """Wait until something is so."""
    while not look():  # noqa: ASYNC110 - what is waited for happens in sockets
        await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """One turn for large bodies, and no long waits."""
    monkeypatch.setattr(protocol, "LARGE_BODIES", 1)
    monkeypatch.setattr(protocol, "READ_SECONDS", 1.0)
    monkeypatch.setattr(protocol, "CLOSE_SECONDS", 0.5)


def test_who_leaves_while_waiting_for_a_turn_takes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(server: Server, port: int) -> None:
        holder = await asyncio.to_thread(sent, port, LARGE)
        await until(lambda: server.large)
        goner = await asyncio.to_thread(sent, port, LARGE)
        await until(lambda: server.waiting)
        goner.close()
        await until(lambda: not server.connections)
        assert not server.large
        monkeypatch.setattr(protocol, "READ_SECONDS", LONG)
        assert b" 200 " in await asyncio.to_thread(answered, port, LARGE + BODY)
        holder.close()

    play(tmp_path, story)


def test_what_was_refused_gives_its_turn_away_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "CLOSE_SECONDS", LONG)

    async def story(server: Server, port: int) -> None:
        silent = await asyncio.to_thread(sent, port, LARGE)
        await until(lambda: server.large)
        monkeypatch.setattr(protocol, "READ_SECONDS", LONG)
        following = asyncio.create_task(asyncio.to_thread(answered, port, LARGE + BODY))
        await until(lambda: server.waiting)
        assert b" 200 " in await following
        silent.close()
        await until(lambda: not server.connections)

    play(tmp_path, story)


def test_who_says_goodbye_and_reads_nothing_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "IDLE_SECONDS", 1.0)

    async def story(server: Server, port: int) -> None:
        plain = await asyncio.to_thread(deaf, port)
        assert server.connections
        await until(lambda: not server.connections)
        plain.close()

    play(tmp_path, story, lambda _: told(200, " " * 3_000_000))


def test_for_one_more_there_is_always_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 3)
    monkeypatch.setattr(protocol, "CLOSE_SECONDS", LONG)

    async def story(server: Server, port: int) -> None:
        lines: list[socket.socket] = [await asyncio.to_thread(deaf, port)]
        for _ in range(6):
            lines.append(await asyncio.to_thread(client, port))
            await asyncio.sleep(0.05)
            assert len(server.connections) <= 3
        for line in lines:
            line.close()

    play(tmp_path, story, lambda _: told(200, " " * 3_000_000))


def test_nothing_is_judged_that_cannot_be_answered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    asked: list[Request] = []

    def respond(request: Request) -> Answer:
        asked.append(request)
        return told(200, "ok")

    async def story(server: Server, port: int) -> None:
        server.draining = True
        assert b" 200 " in await asyncio.to_thread(answered, port, SMALL * 4)
        await until(lambda: not server.connections)

    play(tmp_path, story, respond)
    assert len(asked) == 1
    assert "Traceback" not in caplog.text


def test_a_defect_of_ours_ends_one_connection_and_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def respond(request: Request) -> Answer:
        if request.path == "/boom":
            raise ZeroDivisionError
        return told(200, "ok")

    async def story(_: Server, port: int) -> None:
        with suppress(ConnectionError):
            assert await asyncio.to_thread(answered, port, SMALL.replace(b"/ ", b"/boom ", 1)) == b""
        assert b" 200 " in await asyncio.to_thread(answered, port, SMALL)

    play(tmp_path, story, respond)
    assert "ZeroDivisionError" in caplog.text
