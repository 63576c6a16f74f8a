"""A served loopback port, with clients that behave well or badly."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from memcached_process import connections
from memcached_process.addresses import Address
from memcached_process.connections import Handler
from support.ports import free_port
from support.streams import PARTIAL, Streams, read_to_end, until, unverified
from unit.webhooks.pairs import pair, write

END = b"\r\n"
OK = b"200 OK"


def post(*headers: str, body: bytes = b"", path: str = "/", version: str = "1.1") -> bytes:
    """A request."""
    lines = [f"POST {path} HTTP/{version}", "Host: a", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def sized(body: bytes, *headers: str, path: str = "/", version: str = "1.1") -> bytes:
    """A request with a Content-Length."""
    return post(f"Content-Length: {len(body)}", *headers, body=body, path=path, version=version)


def server_context(directory: Path) -> ssl.SSLContext:
    """The TLS context of a server, with a self-signed certificate."""
    write(directory, *pair("one"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    return context


class Port:
    """A port of loopback with its server, over TLS if `secure`, otherwise plain."""

    def __init__(self, server: Any, number: int, *, secure: bool) -> None:
        self.server = server
        self.number = number
        self._secure = secure
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self, data: bytes = b"", *, tls: bool | ssl.SSLContext | None = None, limit: int = 2**16) -> Streams:
        """Open a connection and send data. `tls`: by default as the port. `limit`: bytes of the receive buffers."""
        tls = self._secure if tls is None else tls
        context = tls if isinstance(tls, ssl.SSLContext) else unverified() if tls else None
        plain = socket.socket()
        plain.setblocking(False)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limit)
        await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", self.number))
        reader, writer = await asyncio.open_connection(
            sock=plain, ssl=context, server_hostname="localhost" if context else None, limit=limit
        )
        self._writers.append(writer)
        writer.write(data)
        return reader, writer

    async def exchange(self, data: bytes) -> bytes:
        """Everything that the server sends in response to this data, until it closes or aborts the connection."""
        return await read_to_end(await self.open(data))

    def abort(self) -> None:
        """Abort all open connections of clients."""
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def serving(
    handler: Handler,
    max_connections: int = 512,
    tls: ssl.SSLContext | None = None,
    grace: float = connections.GRACE_PERIOD,
) -> AsyncGenerator[Port]:
    """Serve on a free port. Asserts that all its connections are closed at the end."""
    async with AsyncExitStack() as stack:
        number, stop = free_port(), asyncio.Event()
        acceptor = await connections.serve(
            stack, stop, handler, Address("127.0.0.1", number), max_connections, tls, grace
        )
        port = Port(acceptor, number, secure=tls is not None)
        try:
            yield port
        finally:
            port.abort()
    assert not acceptor.connections
    await until(lambda: not acceptor.http.connections)


def run_scenario(
    scenario: Callable[[Port], Awaitable[None]],
    handler: Handler,
    max_connections: int = 512,
    tls: Path | None = None,
    grace: float = connections.GRACE_PERIOD,
) -> None:
    """Run a scenario with a served port. `tls`: a directory for the certificate; None for plain HTTP."""

    async def serve() -> None:
        context = server_context(tls) if tls else None
        async with serving(handler, max_connections, context, grace) as port:
            await scenario(port)

    asyncio.run(asyncio.wait_for(serve(), 60))


async def hello(_: web.BaseRequest) -> web.Response:
    """A handler that does not read bodies."""
    return web.Response(text="hello!")


async def half_open(stack: ExitStack, port: int) -> None:
    """Start a request to a plain port and never finish it. Wait for a later request, so that the first is accepted."""
    partial = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
    partial.sendall(PARTIAL)
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/"):
        pass


async def closed_without_response(client: Streams) -> bool:
    """True if the server closes the connection without a response."""
    return await read_to_end(client) == b""


def active_requests(port: Port) -> int:
    """The number of connections with an active request."""
    return sum(each.priority == 2 for each in port.server.connections)
