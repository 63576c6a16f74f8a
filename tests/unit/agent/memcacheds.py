"""A memcached whose replies a test sets, and clients of it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from memcached_agent.addresses import Address
from memcached_agent.memcached.client import MemcachedClient
from support.ports import free_port

from .samples import replies

HANG: Final = b""
"""A reply that does not arrive."""
CLOSE: Final = None
"""Instead of a reply, the connection is closed."""
ACCEPTED: Final = 5
"""Steps of the event loop until a connection that it has accepted is among the writers, and one more."""
LIMIT: Final = b"ERROR Too many open connections\r\n"


@dataclass
class FakeMemcached:
    """A server on loopback. A test changes `replies` while it runs."""

    port: int = field(default_factory=free_port)
    replies: dict[str, bytes | None] = field(
        default_factory=lambda: {**replies(), "version": b"VERSION 1.6.45\r\n", "mn": b"MN\r\n"}
    )
    answer: Callable[[str], bytes | None] = lambda _: None
    """Replies to a line, before `replies` does; None: it does not."""
    refuses: bytes = b""
    """Sent to each new connection, which is closed afterwards."""
    delay: float = 0.0
    """Seconds before each reply."""
    connections: int = 0
    commands: list[str] = field(default_factory=list[str])
    writers: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Listen during the block."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        try:
            yield
        finally:
            server.close()
            for _ in range(ACCEPTED):
                await asyncio.sleep(0)
            for writer in self.writers:
                writer.transport.abort()
            await asyncio.sleep(0)

    def close_all(self) -> None:
        """Close all connections."""
        for writer in self.writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        if self.refuses:
            writer.write(self.refuses)
            writer.close()
            return
        with suppress(ConnectionError):
            await self._reply(reader, writer)

    async def _reply(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            command = line.decode().strip()
            self.commands.append(command)
            await asyncio.sleep(self.delay)
            answer = self.answer(command)
            reply = self.replies[command] if answer is None else answer
            if reply is None:
                writer.close()
                return
            writer.write(reply)


Scenario = Callable[[FakeMemcached, MemcachedClient], Awaitable[None]]


def with_client(scenario: Scenario, memcached: FakeMemcached | None = None) -> None:
    """Run a scenario with a memcached and a client that keeps connecting to it."""
    server = memcached or FakeMemcached()

    async def run() -> None:
        client = MemcachedClient(Address("127.0.0.1", server.port))
        async with server.running():
            task = asyncio.create_task(client.run())
            try:
                await asyncio.wait_for(scenario(server, client), 60)
            finally:
                task.cancel()
                await asyncio.wait([task])

    asyncio.run(run())


async def replies_again(client: MemcachedClient) -> None:
    """Wait until memcached replies; at most 30 s."""
    async with asyncio.timeout(30):
        while await client.problem():  # noqa: ASYNC110 - changed by sockets
            await asyncio.sleep(0.005)
