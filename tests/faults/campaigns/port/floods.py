"""Thousands of connections, and answers that nobody reads."""

import asyncio
import json
import resource
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

from faults.campaigns.port.scene import SLACK, Scene, head
from faults.proxy import HOST
from faults.stage import PATIENCE, FailedError
from faults.webhook import VALIDATE, Webhook, review
from memcached_api.appservice import APPSERVICE
from memcached_webhooks.admission import path_of

CROWD = 5000
"""Connections, all of which their clients leave open."""
AT_ONCE = 100
"""Of these, begun at the same time."""
LASTS = 15.0
"""Seconds for which reviews go on beside them: longer than any time-out of a request."""
UNREAD = 5.0
"""Seconds after which a connection is cut of which the answer is not read."""
PAUSE = 0.2
"""Seconds between two requests of a client that reads no answers."""


async def crowd(scene: Scene, of: Callable[[Webhook], int], begin: bytes) -> None:
    """A crowd at one of the ports: each sends the beginning of something, and leaves it at that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(2 * CROWD, hard)), hard))
    lines: list[socket.socket] = []
    try:
        await scene.while_well(_gather(of(scene.webhook), begin, lines))
        await scene.while_well(asyncio.sleep(LASTS))
    finally:
        for line in lines:
            line.close()


async def _gather(port: int, begin: bytes, lines: list[socket.socket]) -> None:
    loop = asyncio.get_running_loop()

    async def one() -> None:
        line = socket.socket()
        lines.append(line)
        line.setblocking(False)
        with suppress(OSError):
            await loop.sock_connect(line, ("127.0.0.1", port))
            await loop.sock_sendall(line, begin)

    for _ in range(CROWD // AT_ONCE):
        await asyncio.gather(*(one() for _ in range(AT_ONCE)))


def _long_answer() -> bytes:
    """A review of which the answer is about as long as one can be."""
    envs = [{"name": f"={number}", "valueFrom": {"fieldRef": {"fieldPath": "=" * 500}}} for number in range(128)]
    return json.dumps(review(APPSERVICE, {"metadata": {"name": "x"}, "spec": {"image": "=", "envs": envs}})).encode()


async def unread(scene: Scene, count: int) -> None:
    """So many clients ask again and again for long answers and read none, until their connections are cut."""
    body = _long_answer()
    request = f"{head(path_of(VALIDATE, APPSERVICE))}Content-Length: {len(body)}\r\n\r\n".encode() + body

    async def ask() -> None:
        try:
            async with asyncio.timeout((UNREAD + SLACK) * PATIENCE), non_reading_client(scene) as writer:
                while True:
                    writer.write(request)
                    await writer.drain()
                    await asyncio.sleep(PAUSE)
        except TimeoutError:
            raise FailedError("a client that reads no answer is still there") from None
        except OSError:
            return  # cut

    async def all_ask() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(ask())

    await scene.while_well(all_ask())


@asynccontextmanager
async def non_reading_client(scene: Scene) -> AsyncGenerator[asyncio.StreamWriter]:
    """A connection of which nothing is read, not even by the kernel, but for a few bytes."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.setblocking(False)
    await asyncio.get_running_loop().sock_connect(line, ("127.0.0.1", scene.webhook.port))
    _, writer = await asyncio.open_connection(sock=line, ssl=scene.tls, server_hostname=HOST)
    try:
        transport = cast("Any", writer.transport)  # typeshed has the limit for reading in no public class
        transport.pause_reading()
        transport.set_read_buffer_limits(0)  # TLS itself would read 256 KiB ahead
        yield writer
    finally:
        writer.transport.abort()
