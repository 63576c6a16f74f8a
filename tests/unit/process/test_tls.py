"""The contract of every port for TLS: invalid, slow and incomplete TLS keeps no connection, and logs nothing."""

import asyncio
import socket
import ssl
import time
from contextlib import suppress
from functools import partial

import pytest

from support.streams import HELLO, read_to_end, status, until, unverified

from .ports import Ports, advance
from .serving import OK, Port

GARBAGE = b"\x16\x03\x01\x00\x05hello"
CLOSING = HELLO.replace(b"Host: a", b"Host: a\r\nConnection: close")


async def large() -> bytes:
    """A response larger than the socket buffers."""
    return b" " * 3_000_000


async def gone(port: Port) -> None:
    """Wait until all connections are closed, while time passes."""
    for _ in range(20):
        await advance(1)
        await asyncio.sleep(0.01)
    assert not port.server.connections


def non_reading_client(port: int) -> socket.socket:
    """A client that sends a request and a TLS close, and reads nothing, neither from TLS nor from its socket."""
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(("127.0.0.1", port))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = unverified().wrap_bio(incoming, outgoing)
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


INVALID = {"short": GARBAGE, "records": b"\x16" * 1000, "long": b"\x16" + b"\xff" * 2**20, "no TLS": HELLO}


@pytest.mark.parametrize("data", INVALID.values(), ids=INVALID.keys())
def test_invalid_tls_closes_the_connection_and_is_not_logged(
    secure: Ports, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(port: Port) -> None:
        assert b"HTTP" not in await read_to_end(await port.open(data, tls=False))
        await until(lambda: not port.server.connections)
        assert await status(await port.open()) == OK

    secure.run(scenario)
    assert not caplog.records


def test_handshake_may_arrive_byte_by_byte_and_garbage_after_it_closes_the_connection(secure: Ports) -> None:
    async def scenario(port: Port) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = unverified().wrap_bio(incoming, outgoing, server_hostname="localhost")
        reader, writer = client = await port.open(tls=False)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                for byte in outgoing.read():
                    writer.write(bytes([byte]))
                    await writer.drain()
                incoming.write(await reader.read(2**16))
        tls.write(HELLO)
        for byte in outgoing.read():
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        while True:
            incoming.write(await reader.read(2**16))
            with suppress(ssl.SSLWantReadError):  # before the response, there may be tickets of the session
                assert tls.read(2**16).startswith(b"HTTP/1.1 200 OK")
                break
        writer.write(b"\x17\x03\x03\x00\x05wrong")
        await read_to_end(client)
        await until(lambda: not port.server.connections)

    secure.run(scenario)


def test_last_response_is_complete_and_followed_by_the_end_of_tls(secure: Ports) -> None:
    """Without it, a client cannot know that nothing is missing."""

    def receive(number: int) -> bytes:
        plain = socket.create_connection(("127.0.0.1", number))
        with unverified().wrap_socket(plain, suppress_ragged_eofs=False) as client:
            client.sendall(CLOSING)
            return b"".join(iter(partial(client.recv, 2**16), b""))

    async def scenario(port: Port) -> None:
        assert (await asyncio.to_thread(receive, port.number)).endswith(await large())

    secure.run(scenario, large)


def test_client_that_closes_tls_and_reads_nothing_is_disconnected(secure: Ports) -> None:
    async def scenario(port: Port) -> None:
        plain = await asyncio.to_thread(non_reading_client, port.number)
        await gone(port)
        plain.close()

    secure.run(scenario, large)


def test_client_that_does_not_acknowledge_the_close_is_disconnected(secure: Ports) -> None:
    def silent(port: int) -> ssl.SSLSocket:
        client = unverified().wrap_socket(socket.create_connection(("127.0.0.1", port), 5))
        client.sendall(CLOSING)
        return client

    async def scenario(port: Port) -> None:
        client = await asyncio.to_thread(silent, port.number)
        await gone(port)
        client.close()

    secure.run(scenario)


def test_connection_that_does_not_close_is_replaced_by_a_new_one(secure: Ports) -> None:
    async def scenario(port: Port) -> None:
        clients = [await asyncio.to_thread(non_reading_client, port.number) for _ in range(2)]
        for _ in range(6):
            await port.open()
            assert len(port.server.connections) <= 2
        for client in clients:
            client.close()

    secure.run(scenario, large, limit=2)
