"""A TLS reverse proxy on loopback, between one operator and the API server, that injects faults into requests."""

import asyncio
import ssl
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
from aiohttp import web

from faults.calls import Entry, call_of, metadata
from faults.faulty import NO_RESPONSE
from faults.interception import Interception, Stream, Writer
from memcached_operator.certificates.pki import KeyPair, issue
from memcached_operator.kube.config import Config

HOST = "localhost"
DROPPED_HEADERS = frozenset(
    {"host", "connection", "transfer-encoding", "content-length", "accept-encoding", "content-encoding", "keep-alive"}
)
"""Headers of a single connection, and the one that requests compressed responses."""

RESPONSE_DELAY = 0.05
"""Seconds until the operator has received a response on loopback."""

POLL_PERIOD = 0.2
"""Seconds between two looks at whether a connection is closed: aiohttp does not cancel the handler of a lost one."""


class Proxy(Interception):
    """One per operator."""

    def __init__(self, upstream: str, session: aiohttp.ClientSession, user: str) -> None:
        super().__init__()
        self._upstream = upstream
        self._session = session
        self._user = user

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Respond to one request."""
        body = await request.content.read()  # without the limit of request.read()
        call = call_of(request.method, request.path, request.query_string, request.content_type, body)
        entry, rule = self.receive(call, body)
        exchange = _Exchange(self, request, body, entry)
        responding = asyncio.ensure_future(rule.fault(exchange) if rule else exchange.forward())
        # A forwarded request reaches the API server even if the operator disconnects or is killed in the meantime.
        try:
            response = await (responding if call.verb == "watch" else asyncio.shield(responding))
        except aiohttp.ClientError:
            # The API server has been stopped, as at the end of a run.
            exchange.reset()
            response = NO_RESPONSE
        if not exchange.cut:
            entry.code = response.status
        if exchange.on_response:
            asyncio.get_running_loop().call_later(RESPONSE_DELAY, exchange.on_response)
        return response

    def send(self, request: web.BaseRequest, body: bytes) -> "aiohttp.client._RequestContextManager":  # pyright: ignore[reportPrivateUsage]
        """Send the same request to the API server, as the operator's user."""
        headers = {name: text for name, text in request.headers.items() if name.lower() not in DROPPED_HEADERS}
        headers.pop("Authorization", None)
        headers["Impersonate-User"] = self._user
        path = self.renamed_path(request.raw_path)
        return self._session.request(request.method, self._upstream + path, data=body or None, headers=headers)


class _Exchange:
    """A request in progress."""

    def __init__(self, proxy: Proxy, request: web.BaseRequest, body: bytes, entry: Entry) -> None:
        self.cut = False
        self.on_response: Callable[[], None] | None = None
        self._proxy = proxy
        self._request = request
        self._body = body
        self._entry = entry

    def kill(self) -> None:
        self._proxy.kill()

    def reset(self) -> None:
        self.cut = True
        if self._request.transport is not None:
            self._request.transport.abort()

    def after_response(self, work: Callable[[], None]) -> None:
        self.on_response = work

    async def wait_disconnected(self) -> None:
        while self._request.transport is not None:  # noqa: ASYNC110 - aiohttp has no event for it
            await asyncio.sleep(POLL_PERIOD)

    async def forward(self) -> web.StreamResponse:
        async with self._proxy.send(self._request, self._body) as reply:
            self._entry.committed = reply.status
            if self._entry.call.verb == "watch" and reply.status == 200:
                return await self._relay(reply)
            payload = await reply.read()
        self._entry.version = metadata(payload)[1]
        headers = {name: text for name, text in reply.headers.items() if name.lower() not in DROPPED_HEADERS}
        return web.Response(status=reply.status, body=payload, headers=headers)

    async def accept_watch(self) -> web.StreamResponse:
        self._entry.code = 200
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(self._request)
        return response

    async def _relay(self, reply: aiohttp.ClientResponse) -> web.StreamResponse:
        response = await self.accept_watch()
        transport = self._request.transport
        if transport is None:
            return response
        stream = Stream(self._entry.call, response, transport)
        self._proxy.streams.add(stream)
        tasks: list[asyncio.Task[object]] = [
            asyncio.create_task(self._relay_events(stream, reply)),
            asyncio.create_task(stream.ended.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._proxy.streams.discard(stream)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return response

    async def _relay_events(self, stream: Stream, reply: aiohttp.ClientResponse) -> None:
        with suppress(ConnectionError, aiohttp.ClientError):
            rest = b""
            while chunk := await reply.content.readany():
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    await self._proxy.wait_released(stream)
                    await self._send_event(stream.response, line + b"\n")

    async def _send_event(self, response: Writer, line: bytes) -> None:
        if self._proxy.pace is None:
            await response.write(line)
            return
        size, pause = self._proxy.pace
        for start in range(0, len(line), size):
            await response.write(line[start : start + size])
            await asyncio.sleep(pause)


def certificate() -> KeyPair:
    """A certificate for loopback; all proxies of a run share it."""
    return issue([HOST], timedelta(days=1), datetime.now(UTC))


def serving_context(pair: KeyPair) -> ssl.SSLContext:
    """TLS settings of a server with this certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory() as directory:
        certificate_file, key_file = Path(directory, "crt"), Path(directory, "key")
        certificate_file.write_bytes(pair.certificate)
        key_file.write_bytes(pair.key)
        context.load_cert_chain(certificate_file, key_file)
    return context


@asynccontextmanager
async def proxy(connection: Config, pair: KeyPair, user: str) -> AsyncGenerator[tuple[Proxy, str]]:
    """Start a proxy on a free loopback port; returns it and its URL. The API server sees requests of `user`."""
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=connection.tls),
                headers=connection.headers,
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
                skip_auto_headers=("Accept-Encoding",),
            )
        )
        started = Proxy(connection.server, session, user)
        runner = web.ServerRunner(web.Server(started, access_log=None, handler_cancellation=True), shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=serving_context(pair)).start()
        yield started, f"https://{HOST}:{runner.addresses[0][1]}"
