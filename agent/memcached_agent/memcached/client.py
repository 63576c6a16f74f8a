"""The client of memcached: keeps one connection open, replaces it after an error, and reads statistics.

At its connection limit, memcached refuses new connections. So the connection is opened once, and kept. It does not
become idle, because memcached can close idle ones.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from memcached_agent.addresses import Address
from memcached_agent.memcached.connection import ERRORS, MAX_QUOTED, MemcachedConnection
from memcached_agent.memcached.errors import REASONS, MemcachedError, Reason
from memcached_agent.memcached.login import User, log_in_as_any
from memcached_agent.memcached.stats import END, Statistics, Stats, is_proxy, parse_stats, statistics

log = logging.getLogger(__name__)

MIN_DELAY: Final = 0.1
MAX_DELAY: Final = 5.0
"""Seconds between two attempts to connect: doubled after each, and chosen at random between a half and all of it."""
TOTAL_TIMEOUT: Final = 5.0
"""Seconds for all commands of one scrape. Prometheus waits 10 s by default."""
RECENT: Final = 5.0
"""Seconds after a reply in which `problem` sends no command."""
KEEP_ALIVE: Final = 20.0
"""Seconds between two checks whether the connection is idle. Then it gets a command: memcached closes a connection that
is idle for the time of `-o idle_timeout`, which is at least 60 s."""
COMMANDS: Final = ("stats", "stats settings", "stats items", "stats slabs")
BACKENDS: Final = "stats proxybe"
"""The command for the servers of a proxy that are marked as bad."""
ROUTES: Final = "stats proxy"
"""The command for the counters of a proxy, also those of its routes."""
LINE: Final = b""


class MemcachedClient:
    """A memcached server, over one connection at a time. `errors`: the number of failures by reason.

    `is_new`: set at each new connection, for one task that waits for it and clears it.
    `users`: with which to log in, in the order of the attempts; None if memcached requires no login.
    """

    def __init__(self, address: Address, users: Callable[[], Sequence[User]] | None = None) -> None:
        self.errors: Final[dict[Reason, int]] = dict.fromkeys(REASONS, 0)
        self.is_new: Final = asyncio.Event()
        self._address = address
        self._users = users
        self._number = 0
        self._connection: MemcachedConnection | None = None
        self._failure = MemcachedError("closed", f"memcached at {address} is not connected yet")
        self._last_reply = 0.0
        self._lock = asyncio.Lock()

    async def run(self) -> None:
        """Keep a connection open, until cancelled."""
        loop = asyncio.get_running_loop()
        delay = MIN_DELAY
        while True:
            began = loop.time()
            await self._connect_and_wait()
            if loop.time() - began > MAX_DELAY:
                delay = MIN_DELAY
            await asyncio.sleep(random.uniform(delay / 2, delay))  # noqa: S311 - not a secret
            delay = min(2 * delay, MAX_DELAY)

    async def statistics(self) -> Statistics:
        """All statistics of the server. Raises MemcachedError."""
        async with self._commands() as connection:
            replies = [await connection.command(command, END) for command in COMMANDS]
            try:
                found = statistics(*replies)
                if is_proxy(found.general):
                    found = found._replace(
                        backends=await _of_proxy(connection, BACKENDS), routes=await _of_proxy(connection, ROUTES)
                    )
            except ValueError as error:
                raise connection.fail("protocol", f"sent invalid statistics: {error}") from error
            return found

    async def general(self) -> Stats:
        """The reply to `stats` alone. Raises MemcachedError."""
        return await self._stats("stats")

    async def settings(self) -> Stats:
        """The reply to `stats settings` alone. Raises MemcachedError."""
        return await self._stats("stats settings")

    async def _stats(self, command: str) -> Stats:
        async with self._commands() as connection:
            try:
                return parse_stats(await connection.command(command, END))
            except ValueError as error:
                raise connection.fail("protocol", f"sent invalid statistics: {error}") from error

    @property
    def connected(self) -> int | None:
        """The number of the open connection, counted from 1. None while there is none."""
        return self._number if self._connection else None

    async def refresh_certificates(self) -> str:
        """Make memcached load its certificates again. Returns its error, at most MAX_QUOTED bytes; empty without one.

        Raises MemcachedError.
        """
        async with self._commands() as connection:
            reply = await connection.command("refresh_certs", LINE)
        return _unless_ok(reply)

    async def set_memory_limit(self, mebibytes: int) -> str:
        """Let the items of memcached use this much memory. Returns as `refresh_certificates`; an error is a reply.

        Raises MemcachedError.
        """
        return await self._set(f"cache_memlimit {mebibytes}")

    async def set_item_age(self, seconds: int) -> str:
        """Let items move to the disk of extstore after this time. Returns as `set_memory_limit`.

        Raises MemcachedError.
        """
        return await self._set(f"extstore item_age {seconds}")

    async def _set(self, command: str) -> str:
        async with self._commands() as connection:
            return _unless_ok(await connection.request(f"{command}\r\n".encode(), LINE, command, ERRORS))

    async def no_op(self) -> float | None:
        """Send `mn`, and return the seconds until its reply. None if memcached does not know it (before 1.6).

        Raises MemcachedError.
        """
        loop = asyncio.get_running_loop()
        async with self._commands() as connection:
            began = loop.time()
            reply = await connection.request(b"mn\r\n", LINE, "mn", ERRORS)
            seconds = loop.time() - began
            if not reply.startswith((b"MN\r\n", *ERRORS)):
                raise connection.fail("protocol", "sent an invalid reply to `mn`")
        return seconds if reply.startswith(b"MN") else None

    async def problem(self) -> str:
        """The reason why memcached does not reply, as one sentence.

        Empty if it replied within RECENT seconds, or replies now.
        """
        if self._connection and asyncio.get_running_loop().time() < self._last_reply + RECENT:
            return ""
        try:
            async with self._commands() as connection:
                await _version(connection)
        except MemcachedError as error:
            return str(error)
        return ""

    async def _connect_and_wait(self) -> None:
        """Connect. Returns when that failed, or when the connection is closed."""
        connection = MemcachedConnection(self._address, self._failed)
        try:
            await connection.open()
            if self._users is not None:
                await log_in_as_any(connection, self._users())
            await _version(connection)
        except MemcachedError:
            return  # `_failed` has recorded it
        self._connection, self._last_reply = connection, asyncio.get_running_loop().time()
        self._number += 1
        self.is_new.set()
        log.info("connected to memcached at %s", self._address)
        await self._keep_alive(connection)

    async def _keep_alive(self, connection: MemcachedConnection) -> None:
        """Send a command whenever there was none for a while. Returns when the connection is closed."""
        while not connection.closed.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(KEEP_ALIVE):  # not wait_for, which can swallow a cancellation
                    await connection.closed.wait()
                    return
            await self.problem()

    def _failed(self, failure: MemcachedError) -> None:
        """Record a failure. The log has one line for each new problem, not for each attempt."""
        level = logging.DEBUG if self._connection is None and str(failure) == str(self._failure) else logging.WARNING
        log.log(level, "%s", failure)
        self._connection, self._failure = None, failure
        self.errors[failure.reason] += 1

    @asynccontextmanager
    async def _commands(self) -> AsyncGenerator[MemcachedConnection]:
        """The connection, for one sequence of commands at a time. It is closed if they do not complete."""
        async with self._lock:
            connection = self._connection
            if connection is None:
                raise self._failure
            try:
                async with asyncio.timeout(TOTAL_TIMEOUT):
                    yield connection
            except TimeoutError:
                raise connection.fail("timeout", f"did not send its statistics within {TOTAL_TIMEOUT:g} s") from None
            except asyncio.CancelledError:
                connection.fail("closed", "was disconnected by the agent")
                raise
            self._last_reply = asyncio.get_running_loop().time()


async def _of_proxy(connection: MemcachedConnection, command: str) -> Stats | None:
    """The statistics of a proxy. None if it replies with an error, as an image without this command does.

    Raises MemcachedError, and ValueError for an invalid reply.
    """
    reply = await connection.request(f"{command}\r\n".encode(), END, command, ERRORS)
    return None if reply.startswith(ERRORS) else parse_stats(reply)


def _unless_ok(reply: bytes) -> str:
    return "" if reply == b"OK\r\n" else repr(reply[:MAX_QUOTED].decode("ascii", "replace").rstrip())


async def _version(connection: MemcachedConnection) -> None:
    """Send a command that memcached answers at once. Raises MemcachedError."""
    if not (await connection.command("version", LINE)).startswith(b"VERSION "):
        raise connection.fail("protocol", "sent an invalid reply to `version`")
