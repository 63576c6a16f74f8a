"""The connections of one port. aiohttp implements HTTP; this module limits their number, duration and memory."""

import asyncio
import fcntl
import logging
import math
import socket
import ssl
import struct
import sys
import termios
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from itertools import islice
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from memcached_process.addresses import Address
from memcached_tls.tls import PIECE, Tls

log = logging.getLogger(__name__)

HANDSHAKE_TIMEOUT: Final = 10.0  # the API server's own timeout is 10 s
REQUEST_TIMEOUT: Final = 10.0  # from the first byte of a request to its response; the API server's timeout is 5 s
IDLE_TIMEOUT: Final = 100.0  # without a request; longer than the idle timeout of Go clients (90 s)
WRITE_TIMEOUT: Final = 5.0  # while the client does not read a response
TLS_SHUTDOWN_TIMEOUT: Final = 5.0  # until the client closes a connection after the end of TLS
GRACE_PERIOD: Final = 5.0  # default time for active requests to complete when the process ends
SWEEP_PERIOD: Final = 1.0  # between two checks of these timeouts
ACCEPT_RETRY_DELAY: Final = 0.1  # after a failed accept, for example because of too many open files

BACKLOG: Final = 1024  # connections in the accept queue; if it is full, clients retry after 1 s
WRITE_BUFFER: Final = 2**12  # bytes of a response that wait for the socket; with more, the next request waits
KERNEL_BUFFER: Final = 2**15  # bytes of the kernel's buffer per direction; its default grows to several MiB

READ_AHEAD: Final = 2**13  # bytes of a body that aiohttp reads before the handler does, once or twice
# Bytes of a request head, and of a body before the handler starts. An API server's head has a few hundred bytes, a
# token a few KiB.
MAX_HEAD_SIZE: Final = 2**14 + 2 * READ_AHEAD

_HTTP: Final[dict[str, Any]] = {
    "max_headers": 64,
    "read_bufsize": READ_AHEAD,
    "auto_decompress": False,  # a compressed body could expand a thousandfold
    "access_log": None,
    "tcp_keepalive": False,  # idle connections are closed earlier
}

SERVER_HEADER: Final = {"Server": "memcached-operator"}
"""Header of each response. aiohttp's default contains the versions of aiohttp and Python."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
"""Handles all requests of a port."""


class Acceptor:
    """Accepts connections and passes their requests to a handler. `tls` is None for plain HTTP.

    At most `max_connections` are open. To accept a further one, a connection of the older half is aborted: the oldest
    in its handshake, otherwise the oldest idle one, otherwise the oldest. So a new connection always has time for its
    first request. `draining`: each connection is closed after its next response, so that clients connect to another
    pod. `grace`: seconds for active requests to complete on close.
    """

    def __init__(self, handler: Handler, max_connections: int, tls: ssl.SSLContext | None, grace: float) -> None:
        self.draining = False
        self.tls = tls
        self.connections: dict[Connection, None] = {}  # the oldest first
        # A handler is cancelled when its client disconnects, so that its memory is released.
        self.http = web.Server(self._handle, handler_cancellation=True)
        self._handler = handler
        self._max_connections = max_connections
        self._grace = grace
        self._all_closed = asyncio.Event()
        self._buffer = bytearray(PIECE)

    async def accept(self, listener: socket.socket) -> None:
        """Accept connections until cancelled. After an error, such as too many open files, it logs that and waits."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("cannot accept a connection: %s", error)
                await asyncio.sleep(ACCEPT_RETRY_DELAY)
                continue
            self._limit()
            with suppress(OSError):  # the client has disconnected
                await loop.connect_accepted_socket(self._protocol, accepted)

    async def sweep(self) -> None:
        """Abort connections that exceed a timeout, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_PERIOD)
            for connection in list(self.connections):
                connection.abort_if_expired(loop.time())

    async def close(self) -> None:
        """Close idle connections at once, the others after their response or after the grace period."""
        self.draining = True
        for connection in list(self.connections):
            connection.close_if_idle()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                while self.connections:
                    self._all_closed.clear()
                    await self._all_closed.wait()
        for connection in list(self.connections):
            connection.abort()

    def forget(self, connection: "Connection") -> None:
        """Remove a closed connection, so that it does not count for the limit, and `close` does not wait for it."""
        self.connections.pop(connection, None)
        if not self.connections:
            self._all_closed.set()

    def _protocol(self) -> asyncio.BaseProtocol:
        connection = Connection(self)
        return connection if self.tls is None else Tls(connection, self.tls, self._buffer, TLS_SHUTDOWN_TIMEOUT)

    def _limit(self) -> None:
        count = len(self.connections)
        if count >= self._max_connections:
            older = islice(self.connections, count - count // 2)
            min(older, key=lambda each: each.priority).abort()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = cast("Connection", request.protocol)
        connection.begin_request(request)
        try:
            response = await self._handler(request)
        finally:
            connection.end_request()
        response.headers.update(SERVER_HEADER)
        if self.draining or not request.content.is_eof():
            response.force_close()  # aiohttp reads the rest of a body for a while, so that the client gets the response
        return response


class Connection(web.RequestHandler):
    """One connection: aiohttp's protocol, with timeouts and a limit on the bytes read before a handler runs.

    `deadline`: the loop's time at which it is aborted, unless it makes progress.
    """

    def __init__(self, acceptor: Acceptor) -> None:
        self._acceptor = acceptor
        loop = asyncio.get_running_loop()
        super().__init__(acceptor.http, loop=loop, **_HTTP)
        self.deadline = loop.time() + (IDLE_TIMEOUT if acceptor.tls is None else HANDSHAKE_TIMEOUT)
        self._raw: asyncio.Transport | None = None  # of the socket itself, below TLS
        self._is_open = False
        self._is_busy = False
        self._request: web.BaseRequest | None = None
        self._head_bytes = 0  # bytes of an incomplete head, or of requests after the active one
        self._write_blocked_since = math.inf

    @property
    def priority(self) -> int:
        """0 during the handshake, 1 while idle, 2 from the first byte of a request to its response."""
        return self._is_open + self._is_busy

    def register(self, raw: asyncio.BaseTransport) -> None:
        """Register the connection when its socket is accepted; over TLS, the handshake follows."""
        self._raw = cast("asyncio.Transport", raw)
        self._acceptor.connections[self] = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to read requests; over TLS, when the handshake is complete."""
        if self._raw is None:
            self.register(transport)
        self._is_open = True
        self.deadline = self._loop.time() + IDLE_TIMEOUT
        cast("asyncio.WriteTransport", transport).set_write_buffer_limits(WRITE_BUFFER, 0)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Unregister the connection when it is closed."""
        self.unregister()
        super().connection_lost(exc)

    def unregister(self) -> None:
        """Remove the connection from the acceptor's open connections."""
        self._acceptor.forget(self)

    def eof_received(self) -> None:
        """Abort when the client closes its side: asyncio closes the connection, so no response can be sent."""
        self.abort()

    def data_received(self, data: bytes) -> None:
        """Parse bytes of a request. aiohttp itself calls this with no bytes, to parse its buffer."""
        if data and not self._within_bounds(len(data)):
            self.abort()
        else:
            super().data_received(data)

    def _within_bounds(self, size: int) -> bool:
        """Whether `size` more bytes may be read. A handler limits the body; everything else is limited here."""
        self._begin()
        if self._request is not None and not self._request.content.is_eof():
            return True
        before, self._head_bytes = self._head_bytes, self._head_bytes + size
        return before <= MAX_HEAD_SIZE

    def begin_request(self, request: web.BaseRequest) -> None:
        """Record that the head of a request is complete."""
        self._begin()
        self._request, self._head_bytes = request, 0

    def end_request(self) -> None:
        """Record that the response is ready to be written; the rest of a body may still arrive."""
        if self._request is not None and self._request.content.is_eof():
            self._request = None
        self._is_busy = False
        self._write_blocked_since = math.inf
        self.deadline = self._loop.time() + IDLE_TIMEOUT

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - aiohttp's message repeats bytes from the client
    ) -> web.StreamResponse:
        """The response to a request that is not valid HTTP, or to an internal error; only the latter is logged."""
        if isinstance(exc, HttpProcessingError | web.RequestPayloadError):
            status, text = 400, f"the request is not valid HTTP/1.1 ({type(exc).__name__})"
        else:
            text = "internal error while handling the request; see the log"
            if not isinstance(exc, ConnectionError):  # the client has disconnected
                log.error("internal error while handling a request", exc_info=exc)
        response = web.Response(status=status, text=text, headers=SERVER_HEADER)
        response.force_close()
        return response

    def abort_if_expired(self, now: float) -> None:
        """Abort it if a timeout is exceeded at `now`, in the loop's time."""
        unread = self._raw is not None and (self._raw.get_write_buffer_size() > 0 or _unacknowledged(self._raw) > 0)
        self._write_blocked_since = min(self._write_blocked_since, now) if unread else math.inf
        if now >= min(self.deadline, self._write_blocked_since + WRITE_TIMEOUT):
            self.abort()

    def close_if_idle(self) -> None:
        """Close it if no request is active."""
        if not self._is_open:
            self.abort()
        elif not self._is_busy and self.transport is not None and not self.transport.is_closing():
            self.transport.close()

    def abort(self) -> None:
        """Close it at once; unsent data is lost."""
        self.unregister()
        if self._raw is not None:
            self._raw.abort()

    def _begin(self) -> None:
        if not self._is_busy:
            self._is_busy = True
            self.deadline = self._loop.time() + REQUEST_TIMEOUT


def _unacknowledged(transport: asyncio.Transport) -> int:
    """Bytes in the kernel's send queue that the client has not acknowledged; 0 on systems other than Linux."""
    descriptor = transport.get_extra_info("socket").fileno()
    if sys.platform != "linux" or descriptor < 0:
        return 0
    (size,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4)))  # SIOCOUTQ of tcp(7)
    return size


async def serve(
    stack: AsyncExitStack,
    stop: asyncio.Event,
    handler: Handler,
    address: Address,
    max_connections: int,
    tls: ssl.SSLContext | None = None,
    grace: float = GRACE_PERIOD,
) -> Acceptor:
    """Serve requests until the stack unwinds, which takes up to `grace` seconds. Raises OSError if the port is in use.

    An error that ends the accept loop sets `stop`, and is raised when the stack unwinds.
    """
    acceptor = Acceptor(handler, max_connections, tls, grace)
    _run(stack, stop, acceptor.sweep())
    stack.push_async_callback(acceptor.close)
    listener = stack.enter_context(_listener(address))
    _run(stack, stop, acceptor.accept(listener))
    return acceptor


def _run(stack: AsyncExitStack, stop: asyncio.Event, work: Coroutine[object, object, None]) -> None:
    """Run a coroutine until the stack unwinds. Its error is logged, sets `stop`, and is raised at the end."""

    async def end() -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    def done(_: asyncio.Task[None]) -> None:
        if not task.cancelled():
            log.critical("a port is no longer served; the process exits", exc_info=task.exception())
            stop.set()

    task = asyncio.create_task(work)
    task.add_done_callback(done)
    stack.push_async_callback(end)


def _listener(address: Address) -> socket.socket:
    """A listening socket; on all addresses, IPv4 and IPv6, if `address` has no host."""
    dual = address.host is None and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual or ":" in (address.host or "") else socket.AF_INET
    where = (address.host or "", address.port)
    listener = socket.create_server(where, family=family, backlog=BACKLOG, dualstack_ipv6=dual)
    for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):  # accepted sockets inherit them
        listener.setsockopt(socket.SOL_SOCKET, buffer, KERNEL_BUFFER)
    listener.setblocking(False)
    return listener
