"""The HTTP server: responses, and limits against slow or many clients."""

import asyncio
import logging
import re
import socket
import struct
import tracemalloc
from http import HTTPStatus

import pytest

from memcached_agent.addresses import Address
from memcached_agent.web import server
from memcached_agent.web.messages import MAX_HEAD, PLAIN, HttpResponse
from memcached_agent.web.server import MAX_CONNECTIONS, TIMEOUTS, ConnectionState, ListenError, Server, listen
from support.ports import free_port
from support.streams import PARTIAL, Streams, read_to_end, status, stop_reading, until

from .clients import END, GET, OK, Port, hello, request, response_while_sending, resume_reading, run_scenario

STATUS = re.compile(rb"HTTP/1\.1 (\d+)")


@pytest.fixture
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Timeouts for tests. HANDLING stays long."""
    for state in (ConnectionState.IDLE, ConnectionState.CLOSING, ConnectionState.READING, ConnectionState.WRITING):
        monkeypatch.setitem(server.TIMEOUTS, state, 0.3)


async def large() -> HttpResponse:
    """A handler of a response that fits in no buffer."""
    return HttpResponse(HTTPStatus.OK, PLAIN, b"x" * 2**23)


async def endless() -> HttpResponse:
    """A handler that does not return."""
    await asyncio.Event().wait()
    raise AssertionError


# Responses.


def test_clients_that_disconnect_during_a_response_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(port: Port) -> None:
        for _ in range(20):
            _, writer = await port.open()
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.write(GET)
            await writer.drain()
            writer.transport.abort()
        await until(lambda: not port.server.connections)

    run_scenario(scenario, large)
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_connection_serves_consecutive_requests() -> None:
    async def scenario(port: Port) -> None:
        client = await port.open()
        for _ in range(3):
            assert await status(client) == OK
        client[1].write(GET * 3)
        for _ in range(3):
            assert await status(client, b"") == OK
        assert len(port.server.connections) == 1

    run_scenario(scenario)


def test_request_may_arrive_byte_by_byte() -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(b"\r\n")
        for byte in GET[:-1]:
            client[1].write(bytes([byte]))
            await asyncio.sleep(0.001)
        assert await status(client, GET[-1:]) == OK

    run_scenario(scenario)


LAST = {
    "Connection: close": (request("GET", "/hello", "Connection: close"), b"200"),
    "HTTP/1.0": (request(version="1.0"), b"200"),
    "a body": (request("GET", "/hello", "Content-Length: 5", body=b"x"), b"200"),
    "a long body": (request("POST", "/hello", "Content-Length: 100000", body=b"x" * 100000), b"405"),
    "a chunked body": (request("PUT", "/hello", "Transfer-Encoding: chunked"), b"405"),
    "an invalid request": (b"GET\r\n\r\n", b"400"),
    "an invalid request before a valid one": (b"GET\r\n\r\n" + GET, b"400"),
    "TLS": (b"\x16\x03\x01\r\n\r\n", b"400"),
    "a large head": (GET[:-2] + b"A: " + b"x" * MAX_HEAD + b"\r\n\r\n", b"431"),
    "a large incomplete head": (GET[:-2] + b"A: " + b"x" * MAX_HEAD, b"431"),
    "a huge head": (GET[:-2] + b"A: " + b"x" * 2**20, b"431"),
}


@pytest.mark.parametrize(("data", "expected"), LAST.values(), ids=LAST.keys())
def test_last_request_is_answered_and_closes_the_connection(data: bytes, expected: bytes) -> None:
    async def scenario(port: Port) -> None:
        found = await port.exchange(data)
        assert STATUS.findall(found) == [expected]
        assert b"\r\nConnection: close\r\n" in found

    run_scenario(scenario)


OTHERS = {
    "POST": (request("POST"), b"405 Method Not Allowed"),
    "OPTIONS": (request("OPTIONS"), b"405 Method Not Allowed"),
    "an unknown path": (request(path="/"), b"404 Not Found"),
    "POST to an unknown path": (request("POST", "/x"), b"404 Not Found"),
    "a long head": (GET[:-2] + b"A: " + b"x" * (MAX_HEAD - 100) + b"\r\n\r\n", OK),
}


@pytest.mark.parametrize(("data", "expected"), OTHERS.values(), ids=OTHERS.keys())
def test_connection_stays_open_after(data: bytes, expected: bytes) -> None:
    async def scenario(port: Port) -> None:
        client = await port.open()
        assert await status(client, data) == expected
        assert await status(client) == OK

    run_scenario(scenario)


def test_client_that_is_still_sending_gets_the_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(server.TIMEOUTS, ConnectionState.CLOSING, 60)

    async def scenario(port: Port) -> None:
        assert STATUS.findall(await response_while_sending(await port.open())) == [b"405"]

    run_scenario(scenario)


def test_head_has_no_body() -> None:
    async def scenario(port: Port) -> None:
        found = await port.exchange(request("HEAD", "/hello", "Connection: close"))
        assert found.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"\r\nContent-Length: 6\r\n" in found
        assert found.endswith(b"\r\n\r\n")

    run_scenario(scenario)


def test_client_that_closes_its_side_gets_the_response() -> None:
    async def slow() -> HttpResponse:
        await asyncio.sleep(0.2)
        return await hello()

    async def scenario(port: Port) -> None:
        client = await port.open(GET)
        client[1].write_eof()
        assert (await read_to_end(client)).endswith(b"hello\n")
        async with asyncio.timeout(TIMEOUTS[ConnectionState.CLOSING] / 2):
            await until(lambda: not port.server.connections)
        idle = await port.open(PARTIAL)
        idle[1].write_eof()
        assert await read_to_end(idle) == b""

    run_scenario(scenario, slow)


def test_closed_connection_is_forgotten() -> None:
    async def scenario(port: Port) -> None:
        client = await port.open()
        assert await status(client) == OK
        assert len(port.server.connections) == 1
        client[1].close()
        await until(lambda: not port.server.connections)

    run_scenario(scenario)


@pytest.mark.parametrize("size", range(30_000, 400_000, 30_000))
def test_slow_client_can_send_another_request(size: int) -> None:
    async def sized() -> HttpResponse:
        return HttpResponse(HTTPStatus.OK, PLAIN, b"x" * size)

    async def scenario(port: Port) -> None:
        client = await port.open(limit=4096)
        for _ in range(2):
            stop_reading(client)
            client[1].write(GET)
            await asyncio.sleep(0.05)
            resume_reading(client)
            assert await status(client, b"") == OK
            (connection,) = port.server.connections
            async with asyncio.timeout(TIMEOUTS[ConnectionState.WRITING] / 2):
                await until(lambda connection=connection: connection.state is ConnectionState.IDLE)

    run_scenario(scenario, sized)


def test_internal_error_is_500_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> HttpResponse:
        raise ZeroDivisionError

    async def scenario(port: Port) -> None:
        client = await port.open()
        assert await status(client) == b"500 Internal Server Error"
        assert await status(client) == b"500 Internal Server Error"

    run_scenario(scenario, broken)
    assert [each.exc_info is not None for each in caplog.records] == [True, True]


# Slow clients.


@pytest.mark.usefixtures("short_times")
@pytest.mark.parametrize("data", [b"", PARTIAL, GET[:1], b"\r\n", GET + PARTIAL], ids=repr)
def test_connection_is_closed_without_progress(data: bytes) -> None:
    async def scenario(port: Port) -> None:
        found = await port.exchange(data)
        assert STATUS.findall(found) == [b"200"] * data.count(END + END)

    run_scenario(scenario)


@pytest.mark.usefixtures("short_times")
def test_trickled_request_does_not_extend_its_time() -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(b"GET /hello HTTP/1.1\r\nX: ")
        for _ in range(100):
            client[1].write(b"x")
            await asyncio.sleep(0.02)
            if not port.server.connections:
                break
        else:
            raise AssertionError("the connection is still open after 2 s")
        assert await read_to_end(client) == b""

    run_scenario(scenario)


@pytest.mark.usefixtures("short_times")
def test_client_that_does_not_read_is_aborted() -> None:
    handled = asyncio.Event()

    async def handler() -> HttpResponse:
        handled.set()
        return await large()

    async def scenario(port: Port) -> None:
        client = await port.open(limit=4096)
        stop_reading(client)
        client[1].write(GET)
        await handled.wait()
        await until(lambda: not port.server.connections)
        resume_reading(client)
        assert len(await read_to_end(client)) < len((await large()).body)

    run_scenario(scenario, handler)


def test_client_that_does_not_read_small_responses_cannot_fill_memory() -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(limit=4096)
        stop_reading(client)
        tracemalloc.start()
        try:
            for _ in range(100):
                client[1].write(GET * 1000)
                await asyncio.sleep(0.002)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        (connection,) = port.server.connections
        assert len(connection._received) < 2**18 + MAX_HEAD  # pyright: ignore[reportPrivateUsage]
        assert peak < 2**23, "the test's own client buffers 3 MB"

    run_scenario(scenario)


@pytest.mark.usefixtures("short_times")
def test_client_that_sends_without_end_is_aborted() -> None:
    async def scenario(port: Port) -> None:
        client = await port.open(b"GET\r\n\r\n")
        async with asyncio.timeout(30):
            while port.server.connections:
                client[1].write(b"x" * 1000)
                await asyncio.sleep(0.01)

    run_scenario(scenario)


def test_handler_without_end_is_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(server.TIMEOUTS, ConnectionState.HANDLING, 0.3)

    async def scenario(port: Port) -> None:
        assert await port.exchange(GET) == b""
        assert len(asyncio.all_tasks()) == 2  # the scenario's own

    run_scenario(scenario, endless)


def test_handler_is_cancelled_when_its_client_disconnects() -> None:
    async def scenario(port: Port) -> None:
        before = len(asyncio.all_tasks())
        client = await port.open(GET)
        await until(lambda: len(asyncio.all_tasks()) > before)
        client[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client[1].transport.abort()
        await until(lambda: len(asyncio.all_tasks()) == before)

    run_scenario(scenario, endless)


# Many clients.


async def opened(port: Port, data: bytes, count: int) -> list[Streams]:
    """Open connections and wait until all are accepted."""
    found: list[Streams] = []
    before = len(port.server.connections)
    for _ in range(count):
        found.append(await port.open(data))
        await until(lambda: len(port.server.connections) == min(before + len(found), MAX_CONNECTIONS))
    return found


@pytest.mark.parametrize("data", [b"", PARTIAL], ids=["idle", "half requests"])
def test_oldest_connection_is_closed_for_a_new_one(data: bytes) -> None:
    async def scenario(port: Port) -> None:
        clients = await opened(port, data, MAX_CONNECTIONS)
        await asyncio.sleep(0.1)
        assert await status(await port.open()) == OK
        assert await read_to_end(clients[0]) == b""
        assert len(port.server.connections) == MAX_CONNECTIONS
        assert await status(clients[1], END if data else GET) == OK

    run_scenario(scenario)


def test_idle_connections_are_closed_before_half_requests() -> None:
    async def scenario(port: Port) -> None:
        half = (await opened(port, PARTIAL, 1))[0]
        idle = await opened(port, b"", MAX_CONNECTIONS - 1)
        await asyncio.sleep(0.1)
        for number in range(5):
            assert await status(await port.open()) == OK
            assert await read_to_end(idle[number]) == b""
        assert await status(half, END) == OK

    run_scenario(scenario)


def test_new_client_is_served_among_many_half_requests() -> None:
    async def scenario(port: Port) -> None:
        for _ in range(4):
            await opened(port, PARTIAL, MAX_CONNECTIONS // 2)
            client = await port.open()
            await asyncio.sleep(0.05)
            assert await status(client) == OK
        assert len(port.server.connections) == MAX_CONNECTIONS

    run_scenario(scenario)


def test_number_of_connections_is_bounded_while_many_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BACKLOG", 50)  # with a shorter queue, each client retries after 1 s

    async def scenario(port: Port) -> None:
        most = 0
        for _ in range(10):
            await asyncio.gather(*(port.open(PARTIAL) for _ in range(50)))
            most = max(most, len(port.server.connections))
        assert most == MAX_CONNECTIONS
        assert await status(await port.open()) == OK

    run_scenario(scenario)


# Addresses.


@pytest.mark.parametrize("client", ["127.0.0.1", "::1"])
def test_address_without_a_host_serves_both_families(client: str) -> None:
    async def run() -> None:
        number = free_port()
        async with listen(Server({"/hello": hello}), Address("", number)):
            streams = await asyncio.open_connection(client, number)
            assert await status(streams) == OK
            streams[1].transport.abort()

    if client == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    asyncio.run(run())


@pytest.mark.parametrize(("address", "client"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("", "127.0.0.1")])
def test_address_without_ipv6(address: str, client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        number = free_port()
        if client == "127.0.0.1":
            monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
        async with listen(Server({"/hello": hello}), Address(address, number)):
            streams = await asyncio.open_connection(client, number)
            assert await status(streams) == OK
            streams[1].transport.abort()

    asyncio.run(run())


def test_port_in_use_is_an_error() -> None:
    async def run() -> None:
        number = free_port()
        async with listen(Server({}), Address("", number)):
            with pytest.raises(ListenError, match=f"^cannot listen on :{number}: Address already in use$"):
                await listen(Server({}), Address("", number)).__aenter__()

    asyncio.run(run())


def test_clients_cannot_write_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "memcached_agent")

    async def scenario(port: Port) -> None:
        for data, _ in (*LAST.values(), *OTHERS.values()):
            client = await port.open(data)
            client[1].write_eof()
            await read_to_end(client)

    run_scenario(scenario)
    assert [each for each in caplog.records if each.name.startswith("memcached_agent")] == []
