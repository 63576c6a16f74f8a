"""TLS of the connections of one port, in front of HTTP. All of it works on memory: no step waits for the network.

Without TLS, the same port serves only the probes, so that they do not depend on the certificate.
"""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, cast

from memcached_agent.web.server import Connection, Server, State

Contexts = Callable[[], ssl.SSLContext | None]
"""The context for a new handshake. None: there is no certificate yet."""

RECORD: Final = 2**14
"""Bytes that are encrypted or decrypted at once, the largest record of TLS. OpenSSL's buffers never shrink."""
HANDSHAKE: Final = b"\x16"
"""The first byte that a client sends if it uses TLS: the type of its record."""


class Transport(asyncio.Transport):
    """The transport of a connection: encrypts what the server writes, once the handshake has begun.

    Everything else is that of the socket, which `raw` is: limits, buffers and timeouts are the same as without TLS.
    """

    def __init__(self, raw: asyncio.Transport) -> None:
        super().__init__()
        self.raw: Final = raw
        self.incoming: Final = ssl.MemoryBIO()
        self.tls: ssl.SSLObject | None = None
        self._outgoing = ssl.MemoryBIO()

    def begin(self, context: ssl.SSLContext) -> ssl.SSLObject:
        """Begin a handshake."""
        self.tls = context.wrap_bio(self.incoming, self._outgoing, server_side=True)
        return self.tls

    def flush(self) -> None:
        """Send what TLS has written."""
        if self._outgoing.pending and not self.raw.is_closing():
            self.raw.write(self._outgoing.read())

    def write(self, data: Any) -> None:
        """Send data."""
        if self.tls is None:
            self.raw.write(data)
            return
        view = memoryview(data)
        try:
            for start in range(0, len(view), RECORD):
                self.tls.write(view[start : start + RECORD])
                self.flush()
        except ssl.SSLError:  # TLS has failed before
            self.raw.abort()

    def write_eof(self) -> None:
        """Send that there is no more data."""
        self._end()
        self.raw.write_eof()

    def close(self) -> None:
        """Close the connection when all is sent."""
        self._end()
        self.raw.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self.raw.abort()

    def is_closing(self) -> bool:
        """Whether the connection is closed, or is about to be."""
        return self.raw.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Information about the socket."""
        return self.raw.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        """Bytes that are not sent yet."""
        return self.raw.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Limit the bytes that are not sent yet."""
        self.raw.set_write_buffer_limits(high, low)

    def pause_reading(self) -> None:
        """Stop reading."""
        self.raw.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self.raw.resume_reading()

    def _end(self) -> None:
        if self.tls is not None:
            with suppress(ssl.SSLError):  # it would wait for the client to end too
                self.tls.unwrap()
            self.flush()


class Layer(asyncio.Protocol):
    """Receives the bytes of one socket, and passes what they contain to a connection."""

    def __init__(self, server: Server, contexts: Contexts) -> None:
        self._connection = Connection(server, handshake=True)
        self._contexts = contexts
        self._transport: Transport | None = None
        self._receive: Callable[[Transport, bytes], None] = self._first

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection, which then waits for the handshake."""
        self._transport = Transport(cast("asyncio.Transport", transport))
        self._connection.connection_made(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything."""
        self._connection.connection_lost(exc)
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Bytes of the client. After the last response, they are ignored."""
        if self._transport is not None and self._connection.state is not State.CLOSING:
            self._receive(self._transport, data)

    def eof_received(self) -> bool:
        """The client has sent all it will send."""
        return self._connection.eof_received()

    def resume_writing(self) -> None:
        """All is sent."""
        self._connection.resume_writing()

    def _first(self, transport: Transport, data: bytes) -> None:
        """The first bytes decide whether the client uses TLS."""
        if not data.startswith(HANDSHAKE):
            self._receive = self._plain
            self._connection.established(encrypted=False)
        elif context := self._contexts():
            transport.begin(context)
            self._receive = self._encrypted
        else:
            self._connection.abort()
            return
        self._receive(transport, data)

    def _plain(self, _: Transport, data: bytes) -> None:
        self._connection.data_received(data)

    def _encrypted(self, transport: Transport, data: bytes) -> None:
        view = memoryview(data)
        try:
            for start in range(0, len(view), RECORD):
                transport.incoming.write(view[start : start + RECORD])
                self._decrypt(transport)
        except ssl.SSLError:  # what the client sent is not valid TLS
            transport.flush()
            transport.raw.close()

    def _decrypt(self, transport: Transport) -> None:
        """Pass on what can be decrypted. Raises SSLError."""
        tls = transport.tls
        with suppress(ssl.SSLWantReadError):
            if tls and self._connection.state is State.HANDSHAKE:
                tls.do_handshake()
                self._connection.established(encrypted=True)
            while tls and not transport.is_closing():
                if not (found := tls.read(RECORD)):
                    self._ended(transport)
                    break
                self._connection.data_received(found)
        transport.flush()

    def _ended(self, transport: Transport) -> None:
        """The client has ended TLS."""
        if not self._connection.eof_received():
            transport.close()
