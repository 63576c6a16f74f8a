"""Thousands of connections, and clients that do not read responses."""

import asyncio
import json
import resource
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

from faults.campaigns.port.setup import SLACK, Setup, head
from faults.proxy import HOST
from faults.sandbox import TIMEOUT_FACTOR, FailedError
from faults.webhook import VALIDATE, review
from memcached_api.appservice.types import APPSERVICE
from memcached_webhooks.admission import path_of

CONNECTIONS = 5000
"""Connections that the clients leave open."""
PARALLEL = 100
"""Connections that are opened in parallel."""
MIN_SHARE = 0.9
"""Minimum share of the connections that must be established, even if the process then closes them."""
DURATION = 15.0
"""Seconds for which reviews continue meanwhile: longer than any timeout of a request."""
UNREAD = 5.0
"""Seconds after which a connection with an unread response is closed."""
PAUSE = 0.2
"""Seconds between two requests of a client that does not read."""


async def no_handshakes(setup: Setup) -> None:
    """Many connections whose clients send nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(2 * CONNECTIONS, hard)), hard))
    connections: list[socket.socket] = []
    try:
        await setup.while_serving(_open(setup.webhook.port, connections))
        await setup.while_serving(asyncio.sleep(DURATION))
    finally:
        for connection in connections:
            connection.close()


async def _open(port: int, connections: list[socket.socket]) -> None:
    loop = asyncio.get_running_loop()
    opened = 0

    async def one() -> None:
        nonlocal opened
        connection = socket.socket()
        connections.append(connection)
        connection.setblocking(False)
        with suppress(OSError):
            await loop.sock_connect(connection, ("127.0.0.1", port))
            opened += 1

    for _ in range(CONNECTIONS // PARALLEL):
        await asyncio.gather(*(one() for _ in range(PARALLEL)))
    if opened < CONNECTIONS * MIN_SHARE:
        raise FailedError(f"only {opened} of {CONNECTIONS} connections were opened")


def _long_response_review() -> bytes:
    """A review whose response has almost the maximum length."""
    envs = [{"name": f"={number}", "valueFrom": {"fieldRef": {"fieldPath": "=" * 500}}} for number in range(128)]
    return json.dumps(review(APPSERVICE, {"metadata": {"name": "x"}, "spec": {"image": "=", "envs": envs}})).encode()


async def unread_responses(setup: Setup, count: int) -> None:
    """`count` clients request long responses repeatedly without reading them, until their connections are closed."""
    body = _long_response_review()
    request = f"{head(path_of(VALIDATE, APPSERVICE))}Content-Length: {len(body)}\r\n\r\n".encode() + body

    async def send() -> None:
        try:
            async with asyncio.timeout((UNREAD + SLACK) * TIMEOUT_FACTOR), _non_reading_client(setup) as writer:
                while True:
                    writer.write(request)
                    await writer.drain()
                    await asyncio.sleep(PAUSE)
        except TimeoutError:
            raise FailedError("a client that does not read is still connected") from None
        except OSError:
            return  # closed

    async def send_all() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(send())

    await setup.while_serving(send_all())


@asynccontextmanager
async def _non_reading_client(setup: Setup) -> AsyncGenerator[asyncio.StreamWriter]:
    """A connection from which nothing is read, not even by the kernel, except for a few bytes."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", setup.webhook.port))
    _, writer = await asyncio.open_connection(sock=connection, ssl=setup.tls, server_hostname=HOST)
    try:
        transport = cast("Any", writer.transport)  # typeshed has this method in no public class
        transport.pause_reading()
        transport.set_read_buffer_limits(0)  # by default, TLS reads 256 KiB ahead
        yield writer
    finally:
        writer.transport.abort()
