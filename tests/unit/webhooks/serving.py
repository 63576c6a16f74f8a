"""The webhook's port as connections find it: with TLS, without reviews."""

import socket
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from memcached_process.addresses import Address
from memcached_webhooks import connections
from memcached_webhooks.protocol import Answer, Request, Server

from .pairs import pair, write


@asynccontextmanager
async def served(directory: Path, respond: Callable[[Request], Answer]) -> AsyncGenerator[tuple[Server, int]]:
    """A server and its port."""
    write(directory, *pair("one"))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Server(respond)
    async with AsyncExitStack() as stack:
        await connections.listen(stack, server, Address("127.0.0.1", port), tls)
        yield server, port
