"""HTTP clients of the agent that behave well or badly."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final, cast

from memcached_agent.addresses import Address
from memcached_agent.web.messages import HttpResponse, text
from memcached_agent.web.server import Handler, Server, listen
from memcached_agent.web.tls import Contexts, protocols
from support.ports import free_port
from support.streams import HELLO, Streams, read_to_end, stop_reading, until

GET: Final = HELLO
END: Final = b"\r\n"
OK: Final = b"200 OK"


def request(method: str = "GET", path: str = "/hello", *headers: str, version: str = "1.1", body: bytes = b"") -> bytes:
    """A request."""
    return "\r\n".join([f"{method} {path} HTTP/{version}", "Host: a", *headers, "", ""]).encode() + body


class Port:
    """A served port on loopback."""

    def __init__(self, server: Server, number: int) -> None:
        self.server = server
        self.number = number
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self, data: bytes = b"", limit: int = 2**16, tls: ssl.SSLContext | None = None) -> Streams:
        """Open a connection and send data. `limit`: bytes of the client's receive buffers; `tls`: None for HTTP."""
        plain = socket.socket()
        plain.setblocking(False)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limit)
        await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", self.number))
        reader, writer = await asyncio.open_connection(
            sock=plain, limit=limit, ssl=tls, server_hostname="localhost" if tls else None
        )
        self._writers.append(writer)
        writer.write(data)
        return reader, writer

    async def exchange(self, data: bytes) -> bytes:
        """Everything that the server sends in response to this data, until it closes the connection."""
        return await read_to_end(await self.open(data))

    def abort(self) -> None:
        """Abort all clients."""
        for writer in self._writers:
            writer.transport.abort()


async def hello() -> HttpResponse:
    """A handler."""
    return text(HTTPStatus.OK, "hello")


@asynccontextmanager
async def serving(routes: Mapping[str, Handler], contexts: Contexts | None = None) -> AsyncGenerator[Port]:
    """Serve these paths on a free port, with `contexts` by TLS. Asserts that all connections are closed at the end."""
    server, number = Server(routes), free_port()
    async with listen(server, Address("127.0.0.1", number), protocols(server, contexts) if contexts else None):
        port = Port(server, number)
        try:
            yield port
        finally:
            port.abort()
    await until(lambda: not server.connections)


def run_scenario(scenario: Callable[[Port], Awaitable[None]], handler: Handler = hello) -> None:
    """Run a scenario with a server of /hello."""

    async def serve() -> None:
        async with serving({"/hello": handler}) as port:
            await scenario(port)

    asyncio.run(asyncio.wait_for(serve(), 60))


def resume_reading(client: Streams) -> None:
    """Let a client read again."""
    transport = cast("Any", client[1].transport)
    if client[1].get_extra_info("ssl_object"):
        transport.set_read_buffer_limits(2**16)
    transport.resume_reading()


async def response_while_sending(client: Streams) -> bytes:
    """Everything that the server sends to a client that reads only after it has sent a part of a long body."""
    stop_reading(client)
    client[1].write(request("POST", "/hello", "Content-Length: 100000"))
    for _ in range(10):  # asyncio closes a connection that is reset only after some of them
        await asyncio.sleep(0.05)
        client[1].write(b"x" * 1000)
    resume_reading(client)
    return await read_to_end(client)
