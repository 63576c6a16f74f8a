"""The second connection to memcached: a watcher, whose lines feed a window."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from memcached_agent.addresses import Address
from memcached_agent.insight.lines import MAX_LINE
from memcached_agent.memcached.connection import ERRORS, MAX_QUOTED, MemcachedConnection
from memcached_agent.memcached.errors import MemcachedError
from memcached_agent.memcached.login import User, log_in_as_any

WATCH: Final = b"watch evictions mutations\r\n"
ACCEPTED: Final = b"OK\r"
REPLY_TIMEOUT: Final = 2.0
"""Seconds until memcached accepts the watcher."""
PAUSE: Final = 0.05
"""Seconds between two parts of the lines. memcached buffers 256 KiB, 2,500 lines, and the kernel as much again."""
LARGE: Final = 2**16
"""Bytes of a part after which there is no pause."""


class Stream:
    """A watcher over one connection. `sink`: gets complete lines; a ValueError of it closes the connection."""

    def __init__(self, address: Address, sink: Callable[[Sequence[bytes]], None]) -> None:
        self._sink = sink
        self._connection = MemcachedConnection(address, lambda _: None)
        self._rest = b""
        self._accepted = asyncio.Event()

    async def open(self, users: Iterable[User] | None) -> None:
        """Connect, log in unless `users` is None, and watch. Raises MemcachedError."""
        connection = self._connection
        await connection.open()
        if users is not None:
            await log_in_as_any(connection, users)
        connection.stream(WATCH, self._received)
        waiting = [asyncio.ensure_future(event.wait()) for event in (self._accepted, connection.closed)]
        _, pending = await asyncio.wait(waiting, timeout=REPLY_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        for each in pending:
            each.cancel()
        if not self._accepted.is_set():
            raise connection.fail("timeout", f"did not accept a watcher within {REPLY_TIMEOUT:g} s")

    async def closed(self, timeout: float) -> MemcachedError | None:  # noqa: ASYNC109 - returns in any case
        """Wait until the connection is closed, but not longer than `timeout` seconds; returns why it is, or None."""
        try:
            async with asyncio.timeout(timeout):
                await self._connection.closed.wait()
        except TimeoutError:
            return None
        return self._connection.failure

    def close(self) -> None:
        """Disconnect from memcached, which then writes no more lines for this agent."""
        self._connection.fail("closed", "was disconnected by the agent")

    def _received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            self._connection.fail("protocol", "sent a line that is too long")
            return
        if lines and not self._accepted.is_set():
            reply = lines.pop(0)
            if reply != ACCEPTED:
                self._reject(reply)
                return
            self._accepted.set()
        self._pass_on(lines)
        if len(data) < LARGE:
            self._connection.pause(PAUSE)

    def _pass_on(self, lines: Sequence[bytes]) -> None:
        try:
            self._sink(lines)
        except ValueError:  # its message may quote a key
            self._connection.fail("protocol", "sent an invalid line to the watcher")

    def _reject(self, reply: bytes) -> None:
        if not reply.startswith(ERRORS):
            self._connection.fail("protocol", "sent an invalid reply to `watch`")
            return
        quoted = repr(reply[:MAX_QUOTED].decode("ascii", "replace").rstrip())
        self._connection.fail("rejected", f"does not let the agent watch: {quoted}")
