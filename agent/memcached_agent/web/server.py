"""The HTTP server. It limits the number of connections, their duration and their memory."""

import asyncio
import logging
import os
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from enum import IntEnum
from http import HTTPStatus
from itertools import islice
from typing import Final, cast

from memcached_agent.addresses import Address
from memcached_agent.web.messages import END_OF_HEAD, MAX_HEAD, HttpRequest, HttpResponse, encode, parse_head, text

log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 32
"""Open connections of a port. Each port has its own limit: many clients of one do not affect those of the other."""
BACKLOG: Final = 8
"""Connections that wait to be accepted; if there are more, clients retry after 1 s. asyncio accepts as many before it
reads from any: with a quarter of MAX_CONNECTIONS, a burst never displaces one whose request is not read yet."""
KERNEL_BUFFER: Final = 2**16
"""Bytes of the kernel's buffers of a connection, per direction; its default grows to several MiB."""


class ConnectionState(IntEnum):
    """The activity of a connection. In this order, connections are closed to accept another one."""

    HANDSHAKE = 0  # TLS is not established
    IDLE = 1
    CLOSING = 2  # all is sent; what the client still sends is ignored
    READING = 3  # a part of a request has arrived
    WRITING = 4  # the client reads a response
    HANDLING = 5  # the response is prepared


TIMEOUTS: Final = {
    ConnectionState.HANDSHAKE: 5.0,
    ConnectionState.IDLE: 120.0,  # longer than the usual scrape intervals, up to 60 s
    ConnectionState.CLOSING: 2.0,
    ConnectionState.READING: 5.0,
    ConnectionState.WRITING: 5.0,
    ConnectionState.HANDLING: 9.0,  # Prometheus waits 10 s by default
}
"""Seconds after which a connection in this state is aborted."""

Handler = Callable[[], Awaitable[HttpResponse]]
"""Prepares the response for a path. Cancelled when the client disconnects."""


Protocols = Callable[[], asyncio.BaseProtocol]


class Server:
    """Serves GET and HEAD requests for the paths in `routes`, over at most MAX_CONNECTIONS connections."""

    def __init__(self, routes: Mapping[str, Handler]) -> None:
        self.connections: Final[dict[HttpConnection, None]] = {}  # the oldest first
        self._routes = routes

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """The response to a request."""
        handler = self._routes.get(request.path)
        if handler is None:
            return text(HTTPStatus.NOT_FOUND, f"not found; the paths are {', '.join(self._routes)}")
        if request.method not in ("GET", "HEAD"):
            return text(HTTPStatus.METHOD_NOT_ALLOWED, "the methods are GET and HEAD")
        return await handler()

    def opened(self, connection: "HttpConnection") -> None:
        """Register a connection. If there are too many, abort one of the older half, so that new ones have time."""
        self.connections[connection] = None
        count = len(self.connections)
        if count > MAX_CONNECTIONS:
            min(islice(self.connections, count - count // 2), key=lambda each: each.state).abort()

    def closed(self, connection: "HttpConnection") -> None:
        """Remove a closed connection from those that count for the limit."""
        self.connections.pop(connection, None)

    def abort(self) -> None:
        """Close all connections at once, when the agent stops."""
        for connection in list(self.connections):
            connection.abort()


class HttpConnection(asyncio.Protocol):
    """One connection: reads a request, writes the response, and so on.

    Over TLS, two transports belong to it: of the socket, which limits apply to, and of the data in it.
    """

    def __init__(self, server: Server) -> None:
        self.state = ConnectionState.HANDSHAKE
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._keep_alive = True
        self._client_closed = False
        self._raw: asyncio.Transport | None = None
        self._transport: asyncio.Transport | None = None

    def register(self, raw: asyncio.BaseTransport) -> None:
        """Register the connection when its socket is accepted; over TLS, the handshake follows."""
        self._raw = cast("asyncio.Transport", raw)
        self._raw.set_write_buffer_limits(0)
        self._enter(ConnectionState.HANDSHAKE)
        self._server.opened(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request; over TLS, when the handshake is complete."""
        if self._raw is None:
            self.register(transport)
        self._transport = cast("asyncio.Transport", transport)
        self._enter(ConnectionState.IDLE)

    def connection_lost(self, exc: BaseException | None) -> None:  # noqa: ARG002
        """Cancel the handler and the timer: the client reads no response any more."""
        self.unregister()

    def unregister(self) -> None:
        """Release everything, also if the handshake of TLS has not ended."""
        self._server.closed(self)
        self._raw = self._transport = None
        if self._timer:
            self._timer.cancel()
        if self._task:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Bytes of a request, or of the next one: those wait until the response is sent."""
        if self.state is ConnectionState.CLOSING:
            return
        self._received += data
        if self.state in (ConnectionState.IDLE, ConnectionState.READING):
            self._next()
        self._limit_reading()

    def eof_received(self) -> bool:
        """Close the connection when the client has sent all it will send, but finish the response before.

        Over TLS, asyncio closes the connection in any case.
        """
        self._keep_alive, self._client_closed = False, True
        return self._transport is self._raw and self.state in (ConnectionState.HANDLING, ConnectionState.WRITING)

    def resume_writing(self) -> None:
        """All of the response is sent: continue with the next request, or close the connection."""
        if self.state is ConnectionState.WRITING:
            self._sent()

    def abort(self) -> None:
        """Close the connection at once, and release the memory of unsent data, also in the kernel."""
        self._server.closed(self)
        if self._raw:
            plain = self._raw.get_extra_info("socket")
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._raw.abort()

    def _enter(self, state: ConnectionState) -> None:
        self.state = state
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop.call_later(TIMEOUTS[state], self.abort)

    def _next(self) -> None:
        """Begin with the next request, if all of it has arrived."""
        while self._received.startswith(b"\r\n"):  # RFC 9112, section 2.2
            del self._received[:2]
        length = self._received.find(END_OF_HEAD)
        if length > MAX_HEAD or (length < 0 and len(self._received) > MAX_HEAD):
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"the request has more than {MAX_HEAD} bytes")
        elif length >= 0:
            head = bytes(self._received[:length])
            del self._received[: length + len(END_OF_HEAD)]
            self._begin(head)
        elif self._received and self.state is not ConnectionState.READING:
            self._enter(ConnectionState.READING)

    def _begin(self, head: bytes) -> None:
        try:
            request = parse_head(head)
        except ValueError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
            return
        self._keep_alive = request.keep_alive
        self._enter(ConnectionState.HANDLING)
        self._task = self._loop.create_task(self._handle(request))

    async def _handle(self, request: HttpRequest) -> None:
        try:
            response = await self._server.respond(request)
        except Exception:  # the outermost edge of a request
            log.exception("internal error while handling a request")
            response = text(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; see the log of the agent")
        self._send(response, with_body=request.method != "HEAD")

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self._keep_alive = False
        self._send(text(status, sentence), with_body=True)

    def _send(self, response: HttpResponse, *, with_body: bool) -> None:
        if self._raw is None or self._transport is None:
            return
        self._enter(ConnectionState.WRITING)
        if not self._raw.is_closing():
            self._transport.write(encode(response, with_body=with_body, keep_alive=self._keep_alive))
        if not self._raw.get_write_buffer_size():
            self._sent()

    def _sent(self) -> None:
        if self._raw is None or self._transport is None:
            return
        if self._keep_alive:
            self._enter(ConnectionState.IDLE)
            self._next()
            self._limit_reading()
            return
        if self._client_closed:
            self._transport.close()
            return
        # To close a socket with unread data would discard the response: read until the client closes.
        self._received.clear()
        self._enter(ConnectionState.CLOSING)
        self._limit_reading()
        if self._transport is self._raw:
            self._raw.write_eof()
        else:
            self._transport.close()  # only TLS, because the client does not end the connection yet

    def _limit_reading(self) -> None:
        """Read more only while less than a head is waiting: a client could send requests and read no responses."""
        if self._raw is None or self._raw.is_closing():
            return
        if len(self._received) > MAX_HEAD:
            self._raw.pause_reading()
        else:
            self._raw.resume_reading()


class ListenError(Exception):
    """An address cannot be used. The text is one clause that names the address and the reason."""


@asynccontextmanager
async def listen(server: Server, address: Address, protocol: Protocols | None = None) -> AsyncGenerator[None]:
    """Serve on an address during the block. Raises ListenError, for example if the port is in use.

    `protocol`: for each new connection; None: HTTP without TLS.
    """
    loop = asyncio.get_running_loop()
    create = protocol or (lambda: HttpConnection(server))
    listener = await loop.create_server(create, sock=_listener(address), backlog=BACKLOG)
    try:
        yield
    finally:
        listener.close()
        server.abort()


def _listener(address: Address) -> socket.socket:
    """A listening socket; without a host, on all addresses of IPv4 and, where it is enabled, of IPv6."""
    dual = not address.host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual or ":" in address.host else socket.AF_INET
    try:
        listener = socket.create_server(address, family=family, backlog=BACKLOG, dualstack_ipv6=dual)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise ListenError(f"cannot listen on {address}: {reason}") from error
    for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):  # accepted sockets inherit them
        listener.setsockopt(socket.SOL_SOCKET, buffer, KERNEL_BUFFER)
    return listener
