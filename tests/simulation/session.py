"""What the client of the operator uses of an aiohttp session, without a network: each request is one exchange."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, cast
from unittest import mock
from urllib.parse import urlsplit

import aiohttp

from memcached_operator.kube.client import ApiClient, Leadership
from memcached_operator.kube.config import Config
from simulation.api.server import Request

LATENCY: Final = 0.002
"""Seconds in which a request or a response arrives."""


class Connection:
    """One request and its response, as both sides see it.

    `opened`: the status and the headers of the response. `left`: the client does not wait for it any more.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.opened: asyncio.Future[tuple[int, Mapping[str, str]]] = asyncio.get_running_loop().create_future()
        self.left = asyncio.Event()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._cut = False

    def open(self, status: int, headers: Mapping[str, str]) -> None:
        """Respond with a status; the body follows."""
        if not self.opened.done():
            self.opened.set_result((status, headers))

    def write(self, data: bytes) -> None:
        """Send a part of the body."""
        self._chunks.put_nowait(data)

    def close(self) -> None:
        """End the body."""
        self._chunks.put_nowait(None)

    def abort(self) -> None:
        """Close the connection, whatever is missing of the response."""
        self._cut = True
        if not self.opened.done():
            self.opened.set_exception(aiohttp.ServerDisconnectedError())
            self.opened.exception()  # without a warning if no client waits for it
        self.close()

    async def chunks(self, idle: float | None) -> AsyncGenerator[bytes]:
        """The body as it arrives. `idle`: maximum seconds without data. Raises ClientError."""
        chunk: bytes | None = b""
        while chunk is not None:
            try:
                async with asyncio.timeout(idle):
                    chunk = await self._chunks.get()
            except TimeoutError:
                raise aiohttp.SocketTimeoutError from None
            if chunk is not None:
                await asyncio.sleep(LATENCY)
                chunk, arrived = self._arrived(chunk)
                yield arrived
        if self._cut:
            raise aiohttp.ClientPayloadError("the connection was closed")

    def _arrived(self, chunk: bytes) -> tuple[bytes | None, bytes]:
        """The last chunk, or None after the end of the body, and the data that arrives with the first one.

        This is all that has been sent by now: data of one moment do not arrive one after the other.
        """
        last: bytes | None = chunk
        parts = [chunk]
        while not self._chunks.empty():
            last = self._chunks.get_nowait()
            if last is None:
                break
            parts.append(last)
        return last, b"".join(parts)


async def _opened(connection: Connection, idle: float | None) -> tuple[int, Mapping[str, str]]:
    """The status and the headers of a response. Raises SocketTimeoutError after `idle` seconds without them."""
    try:
        async with asyncio.timeout(idle):
            return await asyncio.shield(connection.opened)
    except TimeoutError:
        raise aiohttp.SocketTimeoutError from None


Respond = Callable[[Connection], Coroutine[Any, Any, None]]
"""The other side: opens, writes and closes a connection, whether the client waits for it or not."""


class _Content:
    def __init__(self, connection: Connection, idle: float | None) -> None:
        self._connection, self._idle = connection, idle

    def iter_any(self) -> AsyncGenerator[bytes]:
        return self._connection.chunks(self._idle)

    async def read(self, limit: int) -> bytes:
        parts = [part async for part in self.iter_any()]
        return b"".join(parts)[:limit]


class Response:
    """A response whose body has not been read."""

    def __init__(self, status: int, headers: Mapping[str, str], content: _Content) -> None:
        self.status, self.headers, self.content = status, headers, content


class Session:
    """The requests of one process, until it dies: then nothing that it sends arrives."""

    def __init__(self, respond: Respond, user: str = "") -> None:
        self._respond, self._user = respond, user
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: set[Connection] = set()
        self._dead = False

    def die(self) -> None:
        """Close all connections. The API server executes what it has received."""
        self._dead = True
        for connection in self._open:
            connection.left.set()

    def get(self, url: str, **options: Any) -> Any:
        """As `request`."""
        return self.request("GET", url, **options)

    @asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        *,
        data: bytes | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the interface of aiohttp
        trace_request_ctx: Callable[[], None] | None = None,
    ) -> AsyncGenerator[Response]:
        """One request. Raises ClientError, as aiohttp does."""
        await asyncio.sleep(LATENCY)
        if trace_request_ctx is not None:
            trace_request_ctx()
        if self._dead:
            raise aiohttp.ClientConnectionError("the process is dead")
        path = urlsplit(url).path
        content_type = (headers or {}).get("Content-Type", "")
        query = dict(params or {})
        connection = Connection(Request(method, path, query, content_type, data or b"", self._user))
        self._open.add(connection)
        task = asyncio.create_task(self._respond(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            async with asyncio.timeout(timeout.total):
                status, answered = await _opened(connection, timeout.sock_read)
                await asyncio.sleep(LATENCY)
                yield Response(status, answered, _Content(connection, timeout.sock_read))
        finally:
            connection.left.set()
            self._open.discard(connection)

    def client(self, leadership: Leadership | None = None) -> ApiClient:
        """A client that sends its requests here. `leadership`: as of ApiClient."""
        return ApiClient(cast("Config", mock.Mock(server="")), cast("aiohttp.ClientSession", self), leadership)
