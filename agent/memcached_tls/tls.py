"""TLS of one connection, between its socket and its protocol, with the public parts of ssl and asyncio.

asyncio's own TLS reads up to 256 KiB at once, and keeps what it has encrypted in OpenSSL's buffers, which never shrink.
"""

import asyncio
import ssl
from contextlib import suppress
from typing import Any, Final, Protocol, cast

PIECE: Final = 2**14
"""Bytes that are read, encrypted or decrypted at once: the largest record of TLS (RFC 8446, section 5.1)."""


class TlsProtocol(Protocol):
    """What a connection is to TLS: an asyncio.Protocol that also knows of the time before its handshake."""

    def register(self, raw: asyncio.BaseTransport) -> None:
        """Its socket was accepted, and its handshake begins."""
        ...

    def unregister(self) -> None:
        """Its socket was closed before the end of the handshake. Otherwise, connection_lost is called."""
        ...

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake is complete."""
        ...

    def connection_lost(self, exc: BaseException | None) -> None:
        """Its socket was closed."""
        ...

    def data_received(self, data: bytes) -> None:
        """Decrypted bytes of the client."""
        ...

    def eof_received(self) -> Any:
        """The client sends no more. The connection is closed afterwards."""
        ...

    def pause_writing(self) -> None:
        """The socket takes no more data for now: stop to call `write` of the transport."""
        ...

    def resume_writing(self) -> None:
        """The socket takes data again, or all of it was sent."""
        ...


class Tls(asyncio.BufferedProtocol):
    """The server's side of TLS. `buffer`: PIECE bytes, which all connections of an event loop can share.

    After `close`, what the client sends is ignored until it closes the connection, or for `shutdown_timeout` seconds;
    None: the owner limits this time.
    """

    def __init__(
        self, protocol: TlsProtocol, context: ssl.SSLContext, buffer: bytearray, shutdown_timeout: float | None = None
    ) -> None:
        self._protocol = protocol
        self._buffer = memoryview(buffer)
        self._shutdown_timeout = shutdown_timeout
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._raw: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_open = False  # the handshake is complete
        self._is_closing = False
        self._is_paused = False

    # The socket's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection. The handshake begins with the first bytes of the client."""
        self._raw = cast("asyncio.Transport", transport)
        self._protocol.register(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Report to the protocol that the socket was closed, before or after the end of the handshake."""
        self._raw, self._is_closing = None, True
        if self._timer is not None:
            self._timer.cancel()
        if self._is_open:
            self._protocol.connection_lost(exc)
        else:
            self._protocol.unregister()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """The shared buffer: asyncio reads into it and calls `buffer_updated` at once."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Continue the handshake with these bytes, or decrypt them and deliver them to the protocol."""
        if self._is_closing:
            return
        self._incoming.write(self._buffer[:nbytes])
        if self._is_open or self._shake_hands():
            self._read()

    def eof_received(self) -> bool:
        """Close the connection: no response can be read."""
        if self._is_open and not self._is_closing:
            self._protocol.eof_received()
        return False

    def pause_writing(self) -> None:
        """The socket takes no more for now."""
        if self._is_open:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """The socket has taken enough."""
        if self._is_open:
            self._protocol.resume_writing()

    def _shake_hands(self) -> bool:
        """Continue the handshake; returns whether it is complete. The client gets the reason of a failure."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        except ssl.SSLError:
            self._end()
            return False
        self._flush()
        self._is_open = True
        self._protocol.connection_made(Transport(self))
        return True

    def _read(self) -> None:
        """Decrypt and deliver until nothing is left, or the protocol wants no more."""
        while not (self._is_paused or self._is_closing):
            try:
                data = self._tls.read(PIECE)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                data = b""
            except ssl.SSLError:
                self._end()
                return
            if not data:
                self._protocol.eof_received()
                self._say_goodbye()
                self._end()
                return
            self._protocol.data_received(data)
        self._flush()  # for example a key update

    def _flush(self) -> None:
        """Write the encrypted bytes to the socket. The transport of the socket buffers what it cannot send yet."""
        if self._raw is not None and self._outgoing.pending and not self._raw.is_closing():
            self._raw.write(self._outgoing.read())

    def _say_goodbye(self) -> None:
        """Send that no more follows."""
        with suppress(ssl.SSLError):  # the client has not said so yet, or the session is broken
            self._tls.unwrap()
        self._flush()

    def _end(self) -> None:
        """Close the socket when all is sent."""
        self._is_closing = True
        self._flush()
        if self._raw is not None:
            self._raw.close()

    # The protocol's side.

    @property
    def raw(self) -> asyncio.Transport | None:
        """The transport of the socket; None after its end."""
        return self._raw

    @property
    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self._is_closing or self._raw is None or self._raw.is_closing()

    @property
    def session(self) -> ssl.SSLObject:
        """The session of this connection."""
        return self._tls

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt data in records of PIECE bytes, and write each to the socket at once, so that no buffer grows."""
        view = memoryview(data).cast("B")
        for start in range(0, len(view), PIECE):
            if self.is_closing:
                return
            try:
                self._tls.write(view[start : start + PIECE])
            except ssl.SSLError:
                self._end()
                return
            self._flush()

    def close(self) -> None:
        """Send that no more follows, and ignore what the client still sends: unread data would discard the rest."""
        if self.is_closing:
            return
        self._say_goodbye()
        self._is_closing = True
        if self._raw is None:
            return
        self._raw.resume_reading()  # for the end of the connection
        with suppress(OSError):  # the client has already closed it
            self._raw.write_eof()
        if self._shutdown_timeout is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._shutdown_timeout, self._raw.abort)

    def pause(self) -> None:
        """Stop reading from the socket and delivering data, until `resume`."""
        self._is_paused = True
        if self._raw is not None:
            self._raw.pause_reading()

    def resume(self) -> None:
        """Deliver again, first what has arrived before."""
        if self._is_paused and not self.is_closing and self._raw is not None:
            self._is_paused = False
            self._raw.resume_reading()
            asyncio.get_running_loop().call_soon(self._read)


class Transport(asyncio.Transport):
    """What the protocol of a connection writes to."""

    def __init__(self, tls: Tls) -> None:
        super().__init__()
        self._tls = tls

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """That of the socket, and `ssl_object` and `sslcontext`."""
        session = self._tls.session
        if name in ("ssl_object", "sslcontext"):
            return session if name == "ssl_object" else session.context
        return default if self._tls.raw is None else self._tls.raw.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send data, without waiting for the client."""
        self._tls.write(data)

    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self._tls.is_closing

    def close(self) -> None:
        """End TLS, and the connection as soon as the client does."""
        self._tls.close()

    def abort(self) -> None:
        """Close the socket at once."""
        if self._tls.raw is not None:
            self._tls.raw.abort()

    def pause_reading(self) -> None:
        """Deliver no more data to the protocol, until `resume_reading`."""
        self._tls.pause()

    def resume_reading(self) -> None:
        """Deliver data again, first what has arrived in the meantime."""
        self._tls.resume()

    def can_write_eof(self) -> bool:
        """Never: TLS ends both directions."""
        return False

    def get_write_buffer_size(self) -> int:
        """The bytes that the socket has not taken yet."""
        return 0 if self._tls.raw is None else self._tls.raw.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the limits of the socket's transport, because no data waits in this one."""
        if self._tls.raw is not None:
            self._tls.raw.set_write_buffer_limits(high, low)
