"""TLS of the connections of a port, between their sockets and HTTP."""

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from typing import Any, cast

from memcached_agent.web.server import PIECE, ConnectionState, HttpConnection, Protocols, Server

Contexts = Callable[[], ssl.SSLContext | None]
"""The context for a new handshake. None: there is no certificate yet."""


class Unavailable(asyncio.Protocol):
    """Closes a connection that arrives before there is a certificate."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it."""
        transport.close()


class Tls(SSLProtocol):
    """TLS of one connection: asyncio's, with small buffers, and with the limits and timeouts of the connection.

    OpenSSL's buffers never shrink, so what it has encrypted waits in the buffer of the socket's transport.
    """

    max_size = PIECE  # bytes read at once; asyncio's default is 256 KiB

    def __init__(self, connection: HttpConnection, context: ssl.SSLContext) -> None:
        self._connection = connection
        waiter = cast("asyncio.Future[Any]", None)  # unused
        super().__init__(asyncio.get_running_loop(), connection, context, waiter, server_side=True)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection; the handshake begins."""
        self._connection.register(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Release everything, also during the handshake."""
        super().connection_lost(exc)
        self._connection.connection_lost(exc)

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes of the client. After the last response, they are ignored: asyncio would close the socket."""
        if self._connection.state is not ConnectionState.CLOSING:
            super().buffer_updated(nbytes)

    def _on_handshake_complete(self, handshake_exc: BaseException | None) -> None:
        """Send the client why the handshake has failed; asyncio only closes the socket."""
        cast("Any", self)._process_outgoing()  # which typeshed lacks
        super()._on_handshake_complete(handshake_exc)

    def pause_writing(self) -> None:
        """Do nothing: asyncio would leave the rest of a response in OpenSSL's buffer."""

    def resume_writing(self) -> None:
        """All is sent."""
        self._connection.resume_writing()


def protocols(server: Server, contexts: Contexts) -> Protocols:
    """The factory of the connections to a port for TLS."""

    def protocol() -> asyncio.BaseProtocol:
        context = contexts()
        return Unavailable() if context is None else Tls(HttpConnection(server), context)

    return protocol
