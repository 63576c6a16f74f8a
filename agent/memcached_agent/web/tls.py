"""The connections to a port for TLS."""

import asyncio
import ssl
from collections.abc import Callable

from memcached_agent.web.server import HttpConnection, Protocols, Server
from memcached_tls.tls import PIECE, Tls

Contexts = Callable[[], ssl.SSLContext | None]
"""The context for a new handshake. None: there is no certificate yet."""


class Unavailable(asyncio.Protocol):
    """Closes a connection that arrives before there is a certificate."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close the connection before the handshake, so that the client tries again later."""
        transport.close()


def protocols(server: Server, contexts: Contexts) -> Protocols:
    """The factory of the connections to a port for TLS."""
    buffer = bytearray(PIECE)

    def protocol() -> asyncio.BaseProtocol:
        context = contexts()
        return Unavailable() if context is None else Tls(HttpConnection(server), context, buffer)

    return protocol
