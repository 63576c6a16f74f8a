"""A TLS reverse proxy on loopback, between one operator and the API server, that strikes requests with faults."""

import asyncio
import ssl
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
from aiohttp import web

from faults.calls import Call, Entry, Journal, call_of, metadata
from faults.faulty import DEAF
from faults.rules import Armed, Rule
from memcached_operator.certificates.pki import KeyPair, issue
from memcached_operator.kube.config import Config

HOST = "localhost"
DROPPED = frozenset(
    {"host", "connection", "transfer-encoding", "content-length", "accept-encoding", "content-encoding", "keep-alive"}
)
"""Headers that belong to one connection, and the one that asks for compressed answers."""

WRITING_ENDS = 0.05
"""Seconds after which the operator has an answer that was written to it on loopback."""


@dataclass(eq=False)
class Stream:
    """A watch that is open: what the API server says passes the gate of its resource, until it is interrupted."""

    call: Call
    response: web.StreamResponse
    transport: asyncio.Transport
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def interrupt(self, said: bytes = b"", *, cut: bool = False) -> None:
        """Say something, and close the watch or cut its connection."""
        if said:
            with suppress(ConnectionError):
                await self.response.write(said)
        if cut:
            self.transport.abort()
        self.ended.set()


class Proxy:
    """One per operator. `kill` is called by faults that end the operator."""

    def __init__(self, upstream: str, session: aiohttp.ClientSession, user: str) -> None:
        self.journal = Journal()
        self.streams: set[Stream] = set()
        self.kill: Callable[[], None] = lambda: None
        self.pace: tuple[int, float] | None = None
        self._upstream = upstream
        self._session = session
        self._user = user
        self._rules: list[Armed] = []
        self._gates: dict[str, asyncio.Event] = {}

    def arm(self, *rules: Rule) -> list[Armed]:
        """Put rules into effect; the first that matches a call strikes it."""
        armed = [Armed(rule) for rule in rules]
        self._rules += armed
        return armed

    def hold(self, *resources: str) -> None:
        """Keep back the events of some resources, in watches that are open or will be."""
        for resource in resources:
            self._gate(resource).clear()

    def release(self) -> None:
        """Let all events pass again."""
        for gate in self._gates.values():
            gate.set()

    def open_watches(self, resource: str = "*") -> list[Stream]:
        """The watches of a resource that are open."""
        return [stream for stream in self.streams if stream.call.matches(f"watch {resource}")]

    async def passed(self, stream: Stream) -> None:
        """Wait until events of a watch may pass."""
        await self._gate(stream.call.resource).wait()

    def _gate(self, resource: str) -> asyncio.Event:
        if resource not in self._gates:
            self._gates[resource] = asyncio.Event()
            self._gates[resource].set()
        return self._gates[resource]

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        body = await request.read()
        call = call_of(request.method, request.path, request.query_string, request.content_type, body)
        entry = self.journal.note(call, body)
        exchange = _Exchange(self, request, body, entry)
        rule = next((armed for armed in self._rules if armed.strikes(call)), None)
        entry.struck = rule is not None
        answering = asyncio.ensure_future(rule.rule.fault(exchange) if rule else exchange.forward())
        # What is on its way to the API server arrives there, also where the operator hangs up or dies meanwhile.
        try:
            response = await (answering if call.verb == "watch" else asyncio.shield(answering))
        except aiohttp.ClientError:
            # There is no API server any more, as at the end of a run.
            exchange.reset()
            response = DEAF
        if not exchange.cut:
            entry.code = response.status
        if exchange.afterwards:
            asyncio.get_running_loop().call_later(WRITING_ENDS, exchange.afterwards)
        return response

    def send(self, request: web.BaseRequest, body: bytes) -> "aiohttp.client._RequestContextManager":  # pyright: ignore[reportPrivateUsage]
        """The same request, at the API server, as the operator's user."""
        headers = {name: text for name, text in request.headers.items() if name.lower() not in DROPPED}
        headers.pop("Authorization", None)
        headers["Impersonate-User"] = self._user
        return self._session.request(
            request.method, self._upstream + request.raw_path, data=body or None, headers=headers
        )


class _Exchange:
    """A request on its way."""

    def __init__(self, proxy: Proxy, request: web.BaseRequest, body: bytes, entry: Entry) -> None:
        self.cut = False
        self.afterwards: Callable[[], None] | None = None
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

    def later(self, work: Callable[[], None]) -> None:
        self.afterwards = work

    async def forward(self) -> web.StreamResponse:
        async with self._proxy.send(self._request, self._body) as reply:
            self._entry.committed = reply.status
            if self._entry.call.verb == "watch" and reply.status == 200:
                return await self._relay(reply)
            payload = await reply.read()
        self._entry.version = metadata(payload)[1]
        headers = {name: text for name, text in reply.headers.items() if name.lower() not in DROPPED}
        return web.Response(status=reply.status, body=payload, headers=headers)

    async def listen(self) -> web.StreamResponse:
        self._entry.code = 200
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(self._request)
        return response

    async def _relay(self, reply: aiohttp.ClientResponse) -> web.StreamResponse:
        response = await self.listen()
        transport = self._request.transport
        if transport is None:
            return response
        stream = Stream(self._entry.call, response, transport)
        self._proxy.streams.add(stream)
        tasks: list[asyncio.Task[object]] = [
            asyncio.create_task(self._pass_on(stream, reply)),
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

    async def _pass_on(self, stream: Stream, reply: aiohttp.ClientResponse) -> None:
        with suppress(ConnectionError, aiohttp.ClientError):
            rest = b""
            while chunk := await reply.content.readany():
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    await self._proxy.passed(stream)
                    await self._say(stream.response, line + b"\n")

    async def _say(self, response: web.StreamResponse, line: bytes) -> None:
        if self._proxy.pace is None:
            await response.write(line)
            return
        size, pause = self._proxy.pace
        for start in range(0, len(line), size):
            await response.write(line[start : start + size])
            await asyncio.sleep(pause)


def certificate() -> KeyPair:
    """A certificate for loopback; one serves all proxies of a run."""
    return issue([HOST], timedelta(days=1), datetime.now(UTC))


def serving_context(pair: KeyPair) -> ssl.SSLContext:
    """Serve with this pair."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory() as directory:
        certificate_file, key_file = Path(directory, "crt"), Path(directory, "key")
        certificate_file.write_bytes(pair.certificate)
        key_file.write_bytes(pair.key)
        context.load_cert_chain(certificate_file, key_file)
    return context


@asynccontextmanager
async def proxy(connection: Config, pair: KeyPair, user: str) -> AsyncGenerator[tuple[Proxy, str]]:
    """Serve on a free port of loopback; the proxy and its address. To the API server it is `user` that asks."""
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
        here = Proxy(connection.server, session, user)
        runner = web.ServerRunner(web.Server(here, access_log=None, handler_cancellation=True), shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=serving_context(pair)).start()
        yield here, f"https://{HOST}:{runner.addresses[0][1]}"
