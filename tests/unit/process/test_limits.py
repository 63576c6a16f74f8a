"""The contract of every port: the number of its connections, and the memory of each."""

import asyncio
import tracemalloc
from typing import Any

import pytest

from memcached_agent.web import server as agent
from memcached_tls.tls import PIECE, Tls
from support.streams import HELLO, PARTIAL, Streams, read_to_end, status, stop_reading, until

from .ports import Ports, advance
from .serving import END, OK, Port, closed_without_response


async def opened(port: Port, data: bytes, count: int, *, tls: bool | None = None) -> list[Streams]:
    """Open connections and wait until all are accepted, so that the first is the oldest."""
    found: list[Streams] = []
    before = len(port.server.connections)
    for _ in range(count):
        found.append(await port.open(data, tls=tls))
        await until(lambda: len(port.server.connections) == before + len(found))
    return found


def test_oldest_idle_connection_is_closed_before_active_ones(ports: Ports) -> None:
    async def scenario(port: Port) -> None:
        (active,) = await opened(port, PARTIAL, 1)
        await until(lambda: ports.count(port, "active") == 1)
        idle, other = await opened(port, b"", 2)
        await until(lambda: ports.count(port, "idle") == 2)
        new = await port.open()
        assert await closed_without_response(idle)
        assert len(port.server.connections) == 3
        assert await status(new) == OK
        assert await status(other) == OK
        assert await status(active, END) == OK

    ports.run(scenario, limit=3)


def test_oldest_connection_is_closed_if_all_are_active(ports: Ports) -> None:
    async def scenario(port: Port) -> None:
        clients = await opened(port, PARTIAL, 3)
        await until(lambda: ports.count(port, "active") == 3)
        new = await port.open()
        assert await closed_without_response(clients[0])
        assert await status(new) == OK
        assert await status(clients[1], END) == OK

    ports.run(scenario, limit=3)


def test_connections_in_their_handshake_are_closed_first(secure: Ports) -> None:
    async def scenario(port: Port) -> None:
        established = await port.open()
        assert await status(established) == OK
        silent = await opened(port, b"", 2, tls=False)
        silent += [await port.open(b"\x16\x03\x01", tls=False) for _ in range(4)]
        for client in silent[:4]:
            assert await closed_without_response(client)
        assert secure.count(port, "handshake") == 2
        assert await status(await port.open()) == OK
        assert await closed_without_response(silent[4])
        assert await status(established) == OK

    secure.run(scenario, limit=3)


def test_new_connection_is_not_closed_first(ports: Ports) -> None:
    async def scenario(port: Port) -> None:
        await opened(port, PARTIAL, 8)
        await until(lambda: ports.count(port, "active") == 8)
        new = await port.open()
        for _ in range(3):
            await port.open(PARTIAL)
            assert len(port.server.connections) <= 8
        assert await status(new) == OK

    ports.run(scenario, limit=8)


def test_number_of_connections_is_bounded_while_many_arrive(ports: Ports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "BACKLOG", 50)  # with a shorter queue, each client retries after 1 s

    async def scenario(port: Port) -> None:
        start = b"\x16\x03\x01" if ports.secure else PARTIAL
        for _ in range(6):
            await asyncio.gather(*(port.open(start, tls=False) for _ in range(50)))
            assert len(port.server.connections) <= 32
        await until(lambda: len(port.server.connections) == 32)
        assert await status(await port.open()) == OK

    ports.run(scenario)


# Memory.


def received(ports: Ports, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of what the connections of a server receive from now on."""
    found: list[int] = []
    receive = ports.connection.data_received

    def record(connection: Any, data: bytes) -> None:
        found.append(len(data))
        receive(connection, data)

    monkeypatch.setattr(ports.connection, "data_received", record)
    return found


def test_pipelined_requests_are_not_read_ahead(ports: Ports, monkeypatch: pytest.MonkeyPatch) -> None:
    handled, lengths = asyncio.Event(), received(ports, monkeypatch)

    async def waits() -> bytes:
        handled.set()
        return await asyncio.Future()

    async def scenario(port: Port) -> None:
        client = await port.open(HELLO * 2**15)
        await handled.wait()
        await asyncio.sleep(0.2)
        client[1].transport.abort()
        while port.server.connections:
            await advance(1)

    ports.run(scenario, waits)
    assert sum(lengths) < ports.read_ahead


def test_client_that_reads_no_responses_cannot_fill_memory(ports: Ports, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = received(ports, monkeypatch)

    async def scenario(port: Port) -> None:
        client = await port.open(limit=4096)
        stop_reading(client)
        tracemalloc.start()
        try:
            for _ in range(100):
                client[1].write(HELLO * 1000)
                await asyncio.sleep(0.002)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(port.server.connections) == 1
        assert peak < 2**23, "the test's own client buffers 3 MB"

    ports.run(scenario)
    assert sum(lengths) < 2**19


def test_buffers_of_openssl_stay_small(secure: Ports, monkeypatch: pytest.MonkeyPatch) -> None:
    """They never shrink, so that an idle connection would keep the memory of its largest response."""
    read: list[int] = []
    written: list[int] = []

    class Recorded(Tls):
        def buffer_updated(self, nbytes: int) -> None:
            read.append(nbytes)
            super().buffer_updated(nbytes)

        def _flush(self) -> None:
            written.append(self._outgoing.pending)
            super()._flush()

    async def large() -> bytes:
        return b"x" * 2**22

    async def scenario(port: Port) -> None:
        client = await port.open()
        assert await status(client) == OK
        client[1].write(b"POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000)
        await read_to_end(client)

    monkeypatch.setattr(secure.factory, "Tls", Recorded)
    secure.run(scenario, large)
    assert 2**12 < max(read) <= PIECE
    assert PIECE < max(written) < 2 * PIECE
