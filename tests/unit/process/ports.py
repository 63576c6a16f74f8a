"""The servers of the programs, plain and over TLS, as the contract of a port sees them.

Each serves /hello on loopback. Time is virtual: it passes faster with `advance`.
"""

import asyncio
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import pytest
from aiohttp import web

from memcached_agent.addresses import Address as AgentAddress
from memcached_agent.web import server as agent
from memcached_agent.web import tls as agent_tls
from memcached_agent.web.messages import PLAIN as TEXT
from memcached_agent.web.messages import HttpResponse
from memcached_process import connections as process
from memcached_process.addresses import Address
from support.pki import CA
from support.ports import free_port

from .serving import Port

T = TypeVar("T")
Answer = Callable[[], Awaitable[bytes]]
"""Prepares the body of a response."""
Scenario = Callable[[Port], Awaitable[None]]
PAIR: Final = CA().issue()


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time also passes when `ahead` grows, in seconds."""

    ahead = 0.0

    def time(self) -> float:
        """The time of the loop."""
        return super().time() + self.ahead


async def advance(seconds: float) -> None:
    """Let this time pass at once, and let what is due then happen."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Clock)
    loop.ahead += seconds
    for _ in range(20):
        await asyncio.sleep(0)


async def passing(work: Awaitable[T]) -> T:
    """Wait for a result while time passes."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.sleep(0.001)
        await advance(0.2)
    return await task


async def hello() -> bytes:
    """A small body."""
    return b"hello!"


def endless(started: list[str]) -> Answer:
    """A body that is never complete. `started`: not empty while it is awaited."""

    async def answer() -> bytes:
        started.append("request")
        try:
            return await asyncio.Future()
        finally:
            started.clear()

    return answer


class Ports(ABC):
    """A server. `secure`: over TLS, with a certificate in `directory`."""

    timeouts: ClassVar[Mapping[str, float]]
    """Seconds by what a connection waits for: a handshake, the rest of a request, the rest of a second one that came
    with the first, a request after empty lines ("blank"), the next request, the answer, or a client that reads nothing
    of a response, which fits in the kernel's buffers ("sent") or does not ("unread")."""
    max_head: ClassVar[int]
    """Bytes of the head of a request that are always read."""
    read_ahead: ClassVar[int]
    """Bytes that wait at most until a request is answered."""
    server: ClassVar[list[bytes]]
    """The values of the header Server in its responses."""
    connection: ClassVar[type[Any]]
    factory: ClassVar[Any]
    """The module that makes the TLS of a connection."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, *, secure: bool) -> None:
        self.secure = secure
        self.monkeypatch = monkeypatch
        self._directory = directory

    @abstractmethod
    def serving(
        self, answer: Answer, number: int, limit: int = 32, host: str = "127.0.0.1"
    ) -> AbstractAsyncContextManager[Any]:
        """Serve /hello at a port for at most `limit` connections. Yields the object with `connections`.

        `host`: empty for all addresses.
        """

    @abstractmethod
    def activity(self, connection: Any) -> str:
        """What a connection does: "handshake", "idle" or "active"."""

    def count(self, port: Port, activity: str) -> int:
        """The number of connections that do this."""
        return [self.activity(each) for each in port.server.connections].count(activity)

    def context(self) -> ssl.SSLContext:
        """The TLS context of the server."""
        (self._directory / "tls.crt").write_bytes(PAIR.cert)
        (self._directory / "tls.key").write_bytes(PAIR.key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._directory / "tls.crt", self._directory / "tls.key")
        return context

    def run(self, scenario: Scenario, answer: Answer = hello, limit: int = 32) -> None:
        """Run a scenario. At the end, all connections are closed."""

        async def serve() -> None:
            number = free_port()
            async with self.serving(answer, number, limit) as server:
                port = Port(server, number, secure=self.secure)
                try:
                    await scenario(port)
                finally:
                    port.abort()
            async with asyncio.timeout(30):
                while server.connections:  # noqa: ASYNC110 - changed by sockets
                    await asyncio.sleep(0.005)

        with asyncio.Runner(loop_factory=Clock) as runner:
            runner.run(serve())


class ProcessPorts(Ports):
    """The ports of the controller and of admission."""

    timeouts: ClassVar[Mapping[str, float]] = {
        "handshake": 10,
        "request": 10,
        "second": 100,
        "blank": 10,
        "idle": 100,
        "answer": 10,
        "unread": 5,
        "sent": 5,
    }
    max_head = 16_000
    read_ahead = 2**17
    server: ClassVar[list[bytes]] = [b"memcached-operator"]
    connection = process.Connection
    factory = process

    @asynccontextmanager
    async def serving(
        self, answer: Answer, number: int, limit: int = 32, host: str = "127.0.0.1"
    ) -> AsyncGenerator[process.Acceptor]:
        async def handle(_: web.BaseRequest) -> web.Response:
            return web.Response(body=await answer())

        context = self.context() if self.secure else None
        async with AsyncExitStack() as stack:
            address = Address(host or None, number)
            yield await process.serve(stack, asyncio.Event(), handle, address, limit, context)

    def activity(self, connection: process.Connection) -> str:
        return ("handshake", "idle", "active")[connection.priority]


class AgentPorts(Ports):
    """The ports of the agent."""

    timeouts: ClassVar[Mapping[str, float]] = {
        "handshake": 5,
        "request": 5,
        "second": 5,
        "blank": 120,
        "idle": 120,
        "answer": 9,
        "unread": 5,
        "sent": 120,
    }
    max_head = 8_000
    read_ahead = 2**18 + 2**13
    server: ClassVar[list[bytes]] = []
    connection = agent.HttpConnection
    factory = agent_tls

    @asynccontextmanager
    async def serving(
        self, answer: Answer, number: int, limit: int = 32, host: str = "127.0.0.1"
    ) -> AsyncGenerator[agent.Server]:
        async def handle() -> HttpResponse:
            return HttpResponse(HTTPStatus.OK, TEXT, await answer())

        if limit != agent.MAX_CONNECTIONS:
            self.monkeypatch.setattr(agent, "MAX_CONNECTIONS", limit)
        server, context = agent.Server({"/hello": handle}), self.context() if self.secure else None
        protocols = agent_tls.protocols(server, lambda: context) if context else None
        async with agent.listen(server, AgentAddress(host, number), protocols):
            yield server

    def activity(self, connection: agent.HttpConnection) -> str:
        known = {agent.ConnectionState.HANDSHAKE: "handshake", agent.ConnectionState.IDLE: "idle"}
        return known.get(connection.state, "active")


SERVERS: Final[dict[str, type[Ports]]] = {"process": ProcessPorts, "agent": AgentPorts}
NAMES: Final = [f"{name}, {how}" for name in SERVERS for how in ("plain", "TLS")]
PLAIN: Final = [name for name in NAMES if name.endswith("plain")]
SECURE: Final = [name for name in NAMES if name.endswith("TLS")]
