"""A port on loopback as its clients find it, and clients that behave well or badly."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
from aiohttp import web

from memcached_process import connections
from memcached_process.addresses import Address
from memcached_process.connections import Acceptor, Handler
from support.ports import free_port
from unit.webhooks.pairs import pair, write

HELLO = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
BEGUN = HELLO[:-2]
"""A request under way: its end is held back."""
END = b"\r\n"
OK = b"200 OK"
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def post(*headers: str, body: bytes = b"", path: str = "/", version: str = "1.1") -> bytes:
    """A request."""
    lines = [f"POST {path} HTTP/{version}", "Host: a", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def sized(body: bytes, *headers: str, path: str = "/", version: str = "1.1") -> bytes:
    """A request with the length of its body."""
    return post(f"Content-Length: {len(body)}", *headers, body=body, path=path, version=version)


def server_context(directory: Path) -> ssl.SSLContext:
    """TLS of a server, with a certificate of its own."""
    write(directory, *pair("one"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    return context


def client_context() -> ssl.SSLContext:
    """TLS of a client that trusts anybody."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Port:
    """A port that is served, over TLS or plain."""

    def __init__(self, acceptor: Acceptor, number: int) -> None:
        self.acceptor = acceptor
        self.number = number
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self, data: bytes = b"", *, tls: bool | None = None, limit: int = 2**16) -> Line:
        """A new connection, and what is sent first on it. `tls`: by default as the port has it."""
        context = client_context() if (self.acceptor.tls is not None if tls is None else tls) else None
        plain = socket.socket()
        plain.setblocking(False)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limit)
        await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", self.number))
        reader, writer = await asyncio.open_connection(
            sock=plain, ssl=context, server_hostname="a" if context else None, limit=limit
        )
        self._writers.append(writer)
        writer.write(data)
        return reader, writer

    async def answers(self, data: bytes) -> bytes:
        """Everything that is answered to some bytes, until the server closes or cuts the connection."""
        return await rest(await self.open(data))

    def cut(self) -> None:
        """End every connection that is still open."""
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def serving(
    handler: Handler, most: int = 512, tls: ssl.SSLContext | None = None, grace: float = connections.GRACE_PERIOD
) -> AsyncGenerator[Port]:
    """A port; all its connections are gone in the end."""
    async with AsyncExitStack() as stack:
        number, stop = free_port(), asyncio.Event()
        acceptor = await connections.serve(stack, stop, handler, Address("127.0.0.1", number), most, tls, grace)
        port = Port(acceptor, number)
        try:
            yield port
        finally:
            port.cut()
    assert not acceptor.connections
    await until(lambda: not acceptor.http.connections)


def run_scenario(
    scenario: Callable[[Port], Awaitable[None]],
    handler: Handler,
    most: int = 512,
    tls: Path | None = None,
    grace: float = connections.GRACE_PERIOD,
) -> None:
    """Serve during a scenario. `tls`: a directory for the certificate; None for plain HTTP."""

    async def serve() -> None:
        context = server_context(tls) if tls else None
        async with serving(handler, most, context, grace) as port:
            await scenario(port)

    asyncio.run(asyncio.wait_for(serve(), 60))


async def hello(_: web.BaseRequest) -> web.Response:
    """A handler that does not read bodies."""
    return web.Response(text="hello!")


async def rest(line: Line) -> bytes:
    """What still comes, until the server closes or cuts the connection; TimeoutError where it does not."""
    found = b""
    try:
        async with asyncio.timeout(30):
            while chunk := await line[0].read(2**16):
                found += chunk
    except ConnectionError:
        pass
    return found


async def status(line: Line, data: bytes = HELLO) -> bytes:
    """The status line of the answer to a request on a connection, which stays open."""
    line[1].write(data)
    async with asyncio.timeout(30):
        head = await line[0].readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        await line[0].readexactly(length)
    return head.partition(b"\r\n")[0].partition(b" ")[2]


def stop_reading(line: Line) -> None:
    """Have a client read nothing more, not even from its socket."""
    transport = cast("Any", line[1].transport)  # typeshed has the limit for reading in no public class
    transport.pause_reading()
    if line[1].get_extra_info("ssl_object"):
        transport.set_read_buffer_limits(0)  # TLS itself would read 256 KiB ahead


async def half_open(stack: ExitStack, port: int) -> None:
    """Begin a request to a plain port and never finish it; a later one has its answer, so the port has accepted it."""
    begun = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
    begun.sendall(BEGUN)
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/"):
        pass


async def until(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in sockets
            await asyncio.sleep(0.005)


async def ended(line: Line) -> bool:
    """Whether a connection ends without an answer."""
    return await rest(line) == b""


def busy(port: Port) -> int:
    """How many connections have a request under way."""
    return sum(each.priority == 2 for each in port.acceptor.connections)
