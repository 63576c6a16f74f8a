"""The HTTP server of the agent, beyond the contract of every port (tests/unit/process)."""

import asyncio
import socket
from contextlib import ExitStack, suppress

import pytest

from memcached_agent.web.messages import HttpResponse
from memcached_agent.web.server import MAX_CONNECTIONS, TIMEOUTS, ConnectionState
from support.streams import HELLO, PARTIAL, read_to_end, status, until
from unit.process.serving import OK, Port

from .clients import hello, run_scenario


def request(method: str = "GET", path: str = "/hello", *headers: str) -> bytes:
    """A request."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: a", *headers, "", ""]).encode()


OTHERS = {
    "POST": (request("POST"), b"405 Method Not Allowed"),
    "OPTIONS": (request("OPTIONS"), b"405 Method Not Allowed"),
    "an unknown path": (request(path="/"), b"404 Not Found"),
    "POST to an unknown path": (request("POST", "/x"), b"404 Not Found"),
}


@pytest.mark.parametrize(("data", "expected"), OTHERS.values(), ids=OTHERS.keys())
def test_connection_stays_open_after(data: bytes, expected: bytes) -> None:
    async def scenario(port: Port) -> None:
        client = await port.open()
        assert await status(client, data) == expected
        assert await status(client) == OK

    run_scenario(scenario)


def test_head_has_no_body() -> None:
    async def scenario(port: Port) -> None:
        found = await port.exchange(request("HEAD", "/hello", "Connection: close"))
        assert found.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"\r\nContent-Length: 6\r\n" in found
        assert found.endswith(b"\r\n\r\n")

    run_scenario(scenario)


def test_burst_does_not_displace_a_request_that_is_not_read_yet() -> None:
    """All of it arrives while the agent is busy."""

    def answer(client: socket.socket) -> bytes:
        client.settimeout(30)
        with suppress(ConnectionError):
            return client.recv(4096)
        return b""

    async def scenario(port: Port) -> None:
        with ExitStack() as stack:
            first = stack.enter_context(socket.create_connection(("127.0.0.1", port.number)))
            first.sendall(HELLO)
            for _ in range(2 * MAX_CONNECTIONS):
                other = stack.enter_context(socket.socket())
                other.setblocking(False)
                other.connect_ex(("127.0.0.1", port.number))
            assert (await asyncio.to_thread(answer, first)).startswith(b"HTTP/1.1 200 ")

    run_scenario(scenario)


def test_client_that_closes_its_side_gets_the_response() -> None:
    async def slow() -> HttpResponse:
        await asyncio.sleep(0.2)
        return await hello()

    async def scenario(port: Port) -> None:
        client = await port.open(HELLO)
        client[1].write_eof()
        assert (await read_to_end(client)).endswith(b"hello\n")
        async with asyncio.timeout(TIMEOUTS[ConnectionState.CLOSING] / 2):
            await until(lambda: not port.server.connections)
        idle = await port.open(PARTIAL)
        idle[1].write_eof()
        assert await read_to_end(idle) == b""

    run_scenario(scenario, slow)
