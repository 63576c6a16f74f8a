"""The connections of one port: aiohttp speaks HTTP on them; their number, time and memory are bounded here."""

import asyncio
import fcntl
import logging
import math
import socket
import ssl
import struct
import sys
import termios
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from itertools import islice
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from memcached_process.addresses import Address

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS: Final = 10.0  # the API server itself gives up after 10
REQUEST_SECONDS: Final = 10.0  # from the first byte of a request to its answer; the API server gives up after 5
IDLE_SECONDS: Final = 100.0  # without a request: longer than Go's clients keep a connection (90)
UNREAD_SECONDS: Final = 5.0  # with an answer that the client's system does not accept
CLOSE_SECONDS: Final = 5.0  # for the client to agree to the end of TLS; asyncio's default is 30
GRACE_SECONDS: Final = 5.0  # for requests under way when the process ends, by default
SWEEP_SECONDS: Final = 1.0  # between two checks of these times
PAUSE_SECONDS: Final = 0.1  # after an accept that failed, as it does while there are too many open files

BACKLOG: Final = 1024  # connections that wait for being accepted; of one too many, the client tries again after 1 s
TLS_BUFFER: Final = 2**14  # bytes that TLS reads at once, the largest record; asyncio's default is 256 KiB
TLS_UNREAD: Final = 2**14  # bytes that TLS keeps while reading is paused; asyncio's default is 256 KiB
UNSENT: Final = 2**12  # bytes of an answer that TLS buffers; with more, the next request waits
KERNEL_BUFFER: Final = 2**16  # bytes that the kernel keeps in each direction; its default grows to some MiB

READ_AHEAD: Final = 2**13  # bytes of a body that aiohttp reads before the handler does, once or twice
# Bytes of a head, and of a body until the handler begins. An API server's head has a few hundred, a token some KiB.
MAX_HEAD: Final = 2**14 + 2 * READ_AHEAD

_HTTP: Final[dict[str, Any]] = {
    "max_headers": 64,
    "read_bufsize": READ_AHEAD,
    "auto_decompress": False,  # a compressed body could become a thousand times as large
    "access_log": None,
    "tcp_keepalive": False,  # no connection is idle for that long
}

SERVER: Final = {"Server": "memcached-operator"}
"""Header of each answer; aiohttp's own has its version and Python's."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
"""Answers a request, whatever its path."""


class Acceptor:
    """Accepts connections and has a handler answer their requests; `tls` is None for plain HTTP.

    There are at most `most`. A new one replaces one of the older half: the oldest in its handshake, else the oldest
    idle one, else the oldest. So a new connection has time for its first request, whatever the others do.
    `draining`: each connection ends with its next answer, so that clients open their next one elsewhere.
    `grace`: seconds for requests under way at the end.
    """

    def __init__(self, handler: Handler, most: int, tls: ssl.SSLContext | None, grace: float) -> None:
        self.draining = False
        self.tls = tls
        self.connections: dict[Connection, None] = {}  # the oldest first
        # A handler is cancelled when its client leaves, so that the memory it holds is released.
        self.http = web.Server(self._answer, handler_cancellation=True)
        self._handler = handler
        self._most = most
        self._grace = grace
        self._unused = asyncio.Event()

    async def accept(self, listener: socket.socket) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("a connection could not be accepted: %s", error)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            self._limit()
            with suppress(OSError):  # the client has left already
                await loop.connect_accepted_socket(self._protocol, accepted)

    async def sweep(self) -> None:
        """Abort connections that exceed a timeout, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for each in list(self.connections):
                each.abort_if_late(loop.time())

    async def close(self) -> None:
        """Close idle connections; the others with their answer, or after the grace period."""
        self.draining = True
        for each in list(self.connections):
            each.close_if_idle()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                while self.connections:
                    self._unused.clear()
                    await self._unused.wait()
        for each in list(self.connections):
            each.abort()

    def forget(self, connection: "Connection") -> None:
        """A connection is closed."""
        self.connections.pop(connection, None)
        if not self.connections:
            self._unused.set()

    def _protocol(self) -> asyncio.BaseProtocol:
        connection = Connection(self)
        return connection if self.tls is None else _Tls(connection, self.tls)

    def _limit(self) -> None:
        count = len(self.connections)
        if count >= self._most:
            older = islice(self.connections, count - count // 2)
            min(older, key=lambda each: each.importance).abort()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = cast("Connection", request.protocol)
        connection.begin_request(request)
        try:
            response = await self._handler(request)
        finally:
            connection.end_request()
        response.headers.update(SERVER)
        if self.draining or not request.content.is_eof():
            response.force_close()  # aiohttp still reads the rest of a body for a while: the client may see the answer
        return response


class Connection(web.RequestHandler):
    """One connection: aiohttp's protocol for it, with timeouts and a bound on what is read before a handler runs.

    `due`: the loop's time at which it is aborted, unless it makes progress.
    """

    def __init__(self, acceptor: Acceptor) -> None:
        self._acceptor = acceptor
        loop = asyncio.get_running_loop()
        super().__init__(acceptor.http, loop=loop, **_HTTP)
        self.due = loop.time() + (IDLE_SECONDS if acceptor.tls is None else HANDSHAKE_SECONDS)
        self._raw: asyncio.Transport | None = None  # of the socket itself, below TLS
        self._is_open = False
        self._is_busy = False
        self._request: web.BaseRequest | None = None
        self._head = 0  # bytes of a head that is not whole, or of requests behind the one under way
        self._unread_since = math.inf

    @property
    def importance(self) -> int:
        """0 during the handshake, 1 while idle, 2 from the first byte of a request to its answer."""
        return self._is_open + self._is_busy

    def accepted(self, raw: asyncio.BaseTransport) -> None:
        """The socket is accepted; over TLS, the handshake follows."""
        self._raw = cast("asyncio.Transport", raw)
        self._acceptor.connections[self] = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Over TLS, the handshake is complete."""
        if self._raw is None:
            self.accepted(transport)
        self._is_open = True
        self.due = self._loop.time() + IDLE_SECONDS
        limited = cast("Any", transport)  # typeshed has the limit for reading in no public class
        limited.set_write_buffer_limits(UNSENT, 0)
        if self._acceptor.tls is not None:
            limited.set_read_buffer_limits(TLS_UNREAD)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection is closed."""
        self.end()
        super().connection_lost(exc)

    def end(self) -> None:
        """The socket is closed."""
        self._acceptor.forget(self)

    def eof_received(self) -> None:
        """The client has closed its side; asyncio closes ours, so that no answer arrives any more."""
        self.abort()

    def data_received(self, data: bytes) -> None:
        """Parse bytes of a request. aiohttp itself calls this with none, to parse what it has."""
        if data and not self._within_bounds(len(data)):
            self.abort()
        else:
            super().data_received(data)

    def _within_bounds(self, size: int) -> bool:
        """Whether so many more bytes may be read: a body is bounded by its handler, everything else here."""
        self._begin()
        if self._request is not None and not self._request.content.is_eof():
            return True
        before, self._head = self._head, self._head + size
        return before <= MAX_HEAD

    def begin_request(self, request: web.BaseRequest) -> None:
        """The head of a request is complete."""
        self._begin()
        self._request, self._head = request, 0

    def end_request(self) -> None:
        """The answer is ready to be written; the rest of a body may still arrive."""
        if self._request is not None and self._request.content.is_eof():
            self._request = None
        self._is_busy = False
        self._unread_since = math.inf
        self.due = self._loop.time() + IDLE_SECONDS

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - aiohttp's own text repeats what the client sent
    ) -> web.StreamResponse:
        """The answer to a request that is not valid HTTP, or to an error of ours; only the latter is logged."""
        if isinstance(exc, HttpProcessingError | web.RequestPayloadError):
            status, text = 400, f"the request is not valid HTTP/1.1 ({type(exc).__name__})"
        else:
            text = "internal error while handling the request; see the log"
            if not isinstance(exc, ConnectionError):  # the client has left
                log.error("internal error while handling a request", exc_info=exc)
        response = web.Response(status=status, text=text, headers=SERVER)
        response.force_close()
        return response

    def abort_if_late(self, now: float) -> None:
        """Abort it if a timeout is exceeded at `now`, in the loop's time."""
        unread = self._raw is not None and (self._raw.get_write_buffer_size() > 0 or _unacknowledged(self._raw) > 0)
        self._unread_since = min(self._unread_since, now) if unread else math.inf
        if now >= min(self.due, self._unread_since + UNREAD_SECONDS):
            self.abort()

    def close_if_idle(self) -> None:
        """Close it if no request is under way."""
        if not self._is_open:
            self.abort()
        elif not self._is_busy and self.transport is not None and not self.transport.is_closing():
            self.transport.close()

    def abort(self) -> None:
        """Close it at once; what is not sent yet is lost."""
        self.end()
        if self._raw is not None:
            self._raw.abort()

    def _begin(self) -> None:
        if not self._is_busy:
            self._is_busy = True
            self.due = self._loop.time() + REQUEST_SECONDS


def _unacknowledged(transport: asyncio.Transport) -> int:
    """Bytes that the kernel holds because the client's kernel has not accepted them; 0 on other systems than Linux."""
    descriptor = transport.get_extra_info("socket").fileno()
    if sys.platform != "linux" or descriptor < 0:
        return 0
    (size,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4)))  # SIOCOUTQ of tcp(7)
    return size


class _Tls(SSLProtocol):
    """TLS of one connection, between its socket and HTTP.

    It is created here and not by asyncio for its small buffer and for the transport of the socket: aborting that one
    always works, aborting a TLS transport does nothing after its second `close()`.
    """

    max_size = TLS_BUFFER

    def __init__(self, connection: Connection, context: ssl.SSLContext) -> None:
        self._connection = connection
        super().__init__(
            asyncio.get_running_loop(),
            connection,
            context,
            cast("asyncio.Future[Any]", None),  # unused
            server_side=True,
            ssl_shutdown_timeout=CLOSE_SECONDS,
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake begins."""
        self._connection.accepted(transport)
        cast("asyncio.Transport", transport).set_write_buffer_limits(0)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The socket is closed, perhaps during the handshake."""
        self._connection.end()
        super().connection_lost(exc)


async def serve(
    stack: AsyncExitStack,
    stop: asyncio.Event,
    handler: Handler,
    address: Address,
    most: int,
    tls: ssl.SSLContext | None = None,
    grace: float = GRACE_SECONDS,
) -> Acceptor:
    """Answer requests until the stack unwinds, in up to `grace` seconds. Raises OSError if the address is taken.

    A defect that ends the accepting of connections sets `stop`, and is raised when the stack unwinds.
    """
    acceptor = Acceptor(handler, most, tls, grace)
    _run(stack, stop, acceptor.sweep())
    stack.push_async_callback(acceptor.close)
    listener = stack.enter_context(_listener(address))
    _run(stack, stop, acceptor.accept(listener))
    return acceptor


def _run(stack: AsyncExitStack, stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine until the stack unwinds. Its error is logged, sets `stop`, and is raised at the end."""

    async def end() -> None:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    def done(_: asyncio.Task[None]) -> None:
        if not task.cancelled():
            log.critical("a port is no longer served; the process ends", exc_info=task.exception())
            stop.set()

    task = asyncio.create_task(work)
    task.add_done_callback(done)
    stack.push_async_callback(end)


def _listener(address: Address) -> socket.socket:
    """On every address, IPv4 and IPv6, where none is named."""
    dual = address.host is None and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual or ":" in (address.host or "") else socket.AF_INET
    where = (address.host or "", address.port)
    listener = socket.create_server(where, family=family, backlog=BACKLOG, dualstack_ipv6=dual)
    for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):  # accepted sockets inherit them
        listener.setsockopt(socket.SOL_SOCKET, buffer, KERNEL_BUFFER)
    listener.setblocking(False)
    return listener
