"""The webhook's port: connections are bounded in number, and so is the memory they take, whoever opens them."""

import asyncio
import logging
import socket
import ssl
from asyncio import sslproto
from contextlib import AsyncExitStack, suppress
from typing import Any, Final, cast

from memcached_process.addresses import Address
from memcached_webhooks.protocol import Server

log = logging.getLogger(__name__)

MOST: Final = (
    512  # an API server opens one per review under way, 600 at most by its own limits, for all webhooks together
)
HANDSHAKE_SECONDS: Final = 10.0  # the API server itself gives up after 10
BUFFER: Final = 2**15  # bytes that a connection reads at once, from its first moment on; by default 256 KiB
PAUSED: Final = 2**14  # bytes of it that are kept while nobody may read on; by default 256 KiB
PAUSE_SECONDS: Final = 0.1  # after an accept that failed, as it does while there are too many open files


class Connections:
    """Accepts connections, never more than `most`: for one more, one of them is cut.

    That is the oldest whose handshake is not done; else the oldest on which nothing goes on; else the oldest of all.
    Clients that find a connection closed before they use it open another.
    """

    def __init__(self, server: Server, tls: ssl.SSLContext, most: int) -> None:
        self._server = server
        self._tls = tls
        self._most = most
        self._coming: dict[socket.socket, asyncio.Task[None]] = {}

    async def accept(self, listener: socket.socket) -> None:
        """Let connections in for ever."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("a connection could not be accepted: %s", error)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            self._make_room()
            self._coming[connection] = loop.create_task(self._shake_hands(connection))
            await asyncio.sleep(0)  # what was cut goes before the next one comes

    def close(self) -> None:
        """Give up every handshake."""
        for task in self._coming.values():
            task.cancel()

    def _make_room(self) -> None:
        established = self._server.connections
        if len(self._coming) + len(established) < self._most:
            return
        if self._coming:
            self._coming.pop(next(iter(self._coming))).cancel()
            return
        oldest = next((each for each in established if not each.busy), next(iter(established)))
        oldest.abort()

    async def _shake_hands(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            with suppress(OSError):  # it hung up, was too slow, or speaks no TLS
                transport, _ = await loop.connect_accepted_socket(
                    self._server, connection, ssl=self._tls, ssl_handshake_timeout=HANDSHAKE_SECONDS
                )
                cast("Any", transport).set_read_buffer_limits(PAUSED)  # typeshed has it of no public class
        finally:
            self._coming.pop(connection, None)


async def listen(stack: AsyncExitStack, server: Server, address: Address, tls: ssl.SSLContext) -> None:
    """Serve over TLS until the stack unwinds. Raises OSError if the address is taken."""
    sslproto.SSLProtocol.max_size = BUFFER  # pyright: ignore[reportAttributeAccessIssue]
    stack.push_async_callback(server.close)
    listener = stack.enter_context(_listener(address))
    listener.setblocking(False)
    here = Connections(server, tls, MOST)
    stack.callback(here.close)
    accepting = asyncio.create_task(here.accept(listener))
    stack.push_async_callback(_ended, accepting)


def _listener(address: Address) -> socket.socket:
    """On every address, IPv4 and IPv6, where none is named."""
    if address.host is None and socket.has_dualstack_ipv6():
        return socket.create_server(("", address.port), family=socket.AF_INET6, dualstack_ipv6=True)
    family = socket.AF_INET6 if ":" in (address.host or "") else socket.AF_INET
    return socket.create_server((address.host or "", address.port), family=family)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
