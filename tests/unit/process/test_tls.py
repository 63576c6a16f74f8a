"""TLS connections that do not close properly: none of them keeps its slot or its memory."""

import asyncio
import socket
import ssl
import time
from pathlib import Path

import pytest
from aiohttp import web

from memcached_process import connections
from support.streams import HELLO, read_to_end, status, until

from .serving import Port, client_context, hello, run_scenario

LONG = 60.0
"""Seconds: longer than a test may take."""


async def large(_: web.BaseRequest) -> web.Response:
    """A response larger than the socket buffers."""
    return web.Response(body=b" " * 3_000_000)


def non_reading_client(port: int) -> socket.socket:
    """A client that sends a request and a TLS close, and reads nothing, neither from TLS nor from its socket."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(("127.0.0.1", port))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = client_context().wrap_bio(incoming, outgoing)
    while True:
        try:
            session.do_handshake()
            break
        except ssl.SSLWantReadError:
            plain.sendall(outgoing.read())
            incoming.write(plain.recv(4000))
    session.write(HELLO)
    plain.sendall(outgoing.read())
    time.sleep(0.3)
    try:
        session.unwrap()
    except ssl.SSLError:
        plain.sendall(outgoing.read())
    return plain


@pytest.mark.parametrize("start", [b"", b"\x16\x03\x01\x02\x00", b"\x16"])
def test_slow_handshake_times_out(start: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HANDSHAKE_TIMEOUT", 0.3)

    async def scenario(port: Port) -> None:
        client = await port.open(start, tls=False)
        assert await read_to_end(client) == b""
        assert not port.acceptor.connections
        assert await status(await port.open()) == b"200 OK"

    run_scenario(scenario, hello, tls=tmp_path)


def test_invalid_tls_closes_the_connection_and_is_not_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(port: Port) -> None:
        assert b" 200 " not in await read_to_end(await port.open(HELLO, tls=False))
        assert not port.acceptor.connections

    run_scenario(scenario, hello, tls=tmp_path)
    assert not caplog.records


def test_client_that_closes_tls_and_reads_nothing_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WRITE_TIMEOUT", 0.5)

    async def scenario(port: Port) -> None:
        plain = await asyncio.to_thread(non_reading_client, port.number)
        await until(lambda: not port.acceptor.connections)
        plain.close()

    run_scenario(scenario, large, tls=tmp_path)


def test_client_that_does_not_acknowledge_the_close_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "TLS_SHUTDOWN_TIMEOUT", 0.3)

    def silent(port: int) -> ssl.SSLSocket:
        client = client_context().wrap_socket(socket.create_connection(("127.0.0.1", port), 5))
        client.sendall(HELLO.replace(b"Host: a", b"Host: a\r\nConnection: close"))
        return client

    async def scenario(port: Port) -> None:
        client = await asyncio.to_thread(silent, port.number)
        await until(lambda: not port.acceptor.connections)
        client.close()

    run_scenario(scenario, hello, tls=tmp_path)


def test_connection_that_does_not_close_is_replaced_by_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "WRITE_TIMEOUT", LONG)
    monkeypatch.setattr(connections, "TLS_SHUTDOWN_TIMEOUT", LONG)

    async def scenario(port: Port) -> None:
        clients = [await asyncio.to_thread(non_reading_client, port.number) for _ in range(2)]
        for _ in range(6):
            await port.open()
            assert len(port.acceptor.connections) <= 2
        for client in clients:
            client.close()

    run_scenario(scenario, large, 2, tmp_path)
