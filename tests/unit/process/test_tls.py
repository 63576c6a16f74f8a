"""Connections over TLS that end badly: none of them keeps its place or its memory."""

import asyncio
import socket
import ssl
import time
from pathlib import Path

import pytest
from aiohttp import web

from memcached_process import connections

from .serving import HELLO, Port, client_context, hello, rest, run_scenario, status, until

LONG = 60.0
"""Seconds: longer than a test may take."""


@pytest.fixture(autouse=True)
def sweeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are checked often."""
    monkeypatch.setattr(connections, "SWEEP_PERIOD", 0.02)


async def large(_: web.BaseRequest) -> web.Response:
    """An answer that no buffer of a socket holds."""
    return web.Response(body=b" " * 3_000_000)


def non_reading_client(port: int) -> socket.socket:
    """A client that asks, says that it will send no more, and reads nothing: not by TLS, and not from its socket."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(("127.0.0.1", port))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    line = client_context().wrap_bio(incoming, outgoing)
    while True:
        try:
            line.do_handshake()
            break
        except ssl.SSLWantReadError:
            plain.sendall(outgoing.read())
            incoming.write(plain.recv(4000))
    line.write(HELLO)
    plain.sendall(outgoing.read())
    time.sleep(0.3)
    try:
        line.unwrap()
    except ssl.SSLError:
        plain.sendall(outgoing.read())
    return plain


@pytest.mark.parametrize("begin", [b"", b"\x16\x03\x01\x02\x00", b"\x16"])
def test_a_slow_handshake_ends(begin: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HANDSHAKE_TIMEOUT", 0.3)

    async def scenario(port: Port) -> None:
        line = await port.open(begin, tls=False)
        assert await rest(line) == b""
        assert not port.acceptor.connections
        assert await status(await port.open()) == b"200 OK"

    run_scenario(scenario, hello, tls=tmp_path)


def test_bytes_that_are_no_tls_end_the_connection_and_are_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(port: Port) -> None:
        assert b" 200 " not in await rest(await port.open(HELLO, tls=False))
        assert not port.acceptor.connections

    run_scenario(scenario, hello, tls=tmp_path)
    assert not caplog.records


def test_a_client_that_says_goodbye_and_reads_nothing_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WRITE_TIMEOUT", 0.5)

    async def scenario(port: Port) -> None:
        plain = await asyncio.to_thread(non_reading_client, port.number)
        await until(lambda: not port.acceptor.connections)
        plain.close()

    run_scenario(scenario, large, tls=tmp_path)


def test_a_client_that_does_not_agree_to_the_end_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "TLS_SHUTDOWN_TIMEOUT", 0.3)

    def silent(port: int) -> ssl.SSLSocket:
        line = client_context().wrap_socket(socket.create_connection(("127.0.0.1", port), 5))
        line.sendall(HELLO.replace(b"Host: a", b"Host: a\r\nConnection: close"))
        return line

    async def scenario(port: Port) -> None:
        line = await asyncio.to_thread(silent, port.number)
        await until(lambda: not port.acceptor.connections)
        line.close()

    run_scenario(scenario, hello, tls=tmp_path)


def test_one_that_ends_badly_gives_its_place_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WRITE_TIMEOUT", LONG)
    monkeypatch.setattr(connections, "TLS_SHUTDOWN_TIMEOUT", LONG)

    async def scenario(port: Port) -> None:
        lines = [await asyncio.to_thread(non_reading_client, port.number) for _ in range(2)]
        for _ in range(6):
            await port.open()
            assert len(port.acceptor.connections) <= 2
        for line in lines:
            line.close()

    run_scenario(scenario, large, 2, tmp_path)
