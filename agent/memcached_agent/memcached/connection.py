"""One connection to memcached: sends a command, reads its reply, and limits the time and the size."""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from memcached_agent.addresses import Address
from memcached_agent.memcached.errors import MemcachedError, Reason

CONNECT_TIMEOUT: Final = 2.0
"""Seconds until memcached accepts a connection."""
REPLY_TIMEOUT: Final = 2.0
"""Seconds from a command to the end of its reply."""
MAX_REPLY: Final = 2**18
"""Bytes of a reply. The longest, `stats items` with 63 slab classes, has 75 KB if all its numbers are large."""
MAX_QUOTED: Final = 80
"""Bytes of an unexpected reply that become part of a message."""

ERRORS: Final = (b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR")
LIMIT_REACHED: Final = b"ERROR Too many open connections"


class MemcachedConnection(asyncio.Protocol):
    """A connection. It is closed at the first error: a late reply must not be taken for that of another command.

    `failure`: why it is closed; None before. `closed` is set at the same time, and `on_failure` is called once.
    """

    def __init__(self, address: Address, on_failure: Callable[[MemcachedError], None]) -> None:
        self.failure: MemcachedError | None = None
        self.closed = asyncio.Event()
        self._address = address
        self._on_failure = on_failure
        self._received = bytearray()
        self._end = b""
        self._refusal: bytes | tuple[bytes, ...] = ()
        self._reply: asyncio.Future[bytes] | None = None
        self._transport: asyncio.Transport | None = None
        self._sink: Callable[[bytes], None] | None = None

    async def open(self) -> None:
        """Connect. Raises MemcachedError."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await loop.create_connection(lambda: self, self._address.host, self._address.port)
        except TimeoutError:
            raise self.fail("timeout", f"did not accept a connection within {CONNECT_TIMEOUT:g} s") from None
        except ConnectionRefusedError:
            raise self.fail("refused", "refuses the connection: nothing listens on this port") from None
        except OSError as error:
            raise self.fail("unreachable", f"cannot be reached: {error.strerror or error}") from None

    async def command(self, text: str, end: bytes) -> bytes:
        """Send a command, and return its reply, whose last line is `end`. Raises MemcachedError.

        Commands must not overlap. An empty `end` means any single line.
        """
        return await self.request(text.encode() + b"\r\n", end, text)

    async def request(self, data: bytes, end: bytes, name: str, refusal: bytes | tuple[bytes, ...] = ()) -> bytes:
        """Send the bytes of a command, and return its reply, as `command` does.

        `name`: the command in messages. `refusal`: how errors begin that are a reply of one line, and not a failure.
        """
        if self._received:
            self._fail_unexpected()
        if self.failure or self._transport is None:
            raise self.failure or self.fail("closed", "is not connected")
        self._end, self._refusal, self._reply = end, refusal, asyncio.get_running_loop().create_future()
        self._transport.write(data)
        try:
            async with asyncio.timeout(REPLY_TIMEOUT):
                return await self._reply
        except TimeoutError:
            raise self.fail("timeout", f"did not reply to `{name}` within {REPLY_TIMEOUT:g} s") from None
        finally:
            self._reply = None

    def stream(self, data: bytes, sink: Callable[[bytes], None]) -> None:
        """Send the bytes of a command whose reply does not end: `sink` gets its parts. Raises MemcachedError.

        No command can follow.
        """
        if self.failure or self._transport is None:
            raise self.failure or self.fail("closed", "is not connected")
        self._sink = sink
        self._transport.write(data)

    def pause(self, seconds: float) -> None:
        """Receive nothing for a while: many small parts cost more than a few large ones."""
        transport = self._transport
        if transport is not None and transport.is_reading():
            transport.pause_reading()
            asyncio.get_running_loop().call_later(seconds, _resume, transport)

    def fail(self, reason: Reason, text: str) -> MemcachedError:
        """Close the connection; returns why it is closed, which may be an earlier reason.

        `text` continues a sentence that begins with the address.
        """
        if self.failure is None:
            self.failure = MemcachedError(reason, f"memcached at {self._address} {text}")
            self._received.clear()
            if self._transport is not None:
                self._transport.abort()
            if self._reply is not None and not self._reply.done():
                self._reply.set_exception(self.failure)
            self.closed.set()
            self._on_failure(self.failure)
        return self.failure

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the transport, for commands."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Collect a reply until it ends. Bytes that arrive before a command make that command fail."""
        if self.failure:
            return
        if self._sink:
            self._sink(data)
            return
        self._received += data
        if len(self._received) > MAX_REPLY:
            self.fail("protocol", f"sent more than {MAX_REPLY} bytes as one reply")
        elif self._is_error() and self._received.endswith(b"\r\n"):
            self._fail_unexpected()
        elif self._reply is not None and not self._reply.done() and self._is_complete():
            self._reply.set_result(bytes(self._received))
            self._received.clear()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Record that memcached closed the connection, unless it failed before."""
        if self._received.startswith(ERRORS):
            self._fail_unexpected()
        self.fail("closed", "closed the connection")

    def _is_error(self) -> bool:
        return self._received.startswith(ERRORS) and not self._received.startswith(self._refusal)

    def _is_complete(self) -> bool:
        end = b"" if self._received.startswith(self._refusal) else self._end
        return (b"\r\n" + self._received).endswith(b"\r\n" + end)

    def _fail_unexpected(self) -> None:
        """Fail because of bytes that are not the reply to a command."""
        quoted = repr(bytes(self._received[:MAX_QUOTED]).decode("ascii", "replace").rstrip())
        if self._received.startswith(LIMIT_REACHED):
            self.fail("limit", "has reached its connection limit and refuses new connections")
        elif self._received.startswith(ERRORS):
            self.fail("rejected", f"replied with the error {quoted}")
        else:
            self.fail("protocol", f"sent unexpected bytes: {quoted}")


def _resume(transport: asyncio.Transport) -> None:
    if not transport.is_closing():
        transport.resume_reading()
