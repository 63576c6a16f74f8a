"""A connection to memcached at a port of 127.0.0.1. It logs in only if memcached requires it."""

import socket
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from kubectl_memcached.model.statistics.replies import (
    EXTSTORE,
    LIMIT_REACHED,
    UNAUTHENTICATED,
    Stats,
    parse_stats,
    with_items,
)

TIMEOUT: Final = 10.0
"""Seconds to connect, and from a command to the next part of its reply."""
MAX_REPLY: Final = 2**20
"""Bytes of a reply. The longest, `stats items` with 63 slab classes, has 75 KB."""
POLL: Final = 0.2
"""Seconds between two checks whether a caller of `logged` has stopped."""
_ERRORS: Final = (b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR")
_LAST: Final = (b"END\r\n", b"RESET\r\n", b"OK\r\n")

Users = Callable[[], Sequence[tuple[bytes, bytes]]]
"""Returns users and passwords. It is called only if memcached requires a login."""


class MemcachedError(Exception):
    """memcached did not reply as expected: part of a sentence, such as `did not reply within 10 s`."""


class RejectedError(MemcachedError):
    """memcached rejects the login with each of the users."""


class Connection:
    """A connection. Commands must not overlap. Use it as a context manager. Its methods raise MemcachedError."""

    def __init__(self, port: int) -> None:
        try:
            self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT)
        except OSError as error:
            raise MemcachedError(f"cannot be reached: {error.strerror or error}") from None
        self._received = b""
        self.version = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. An error of the network is ignored."""
        with suppress(OSError):
            self._socket.close()

    def log_in(self, users: Users) -> None:
        """Learn the version of memcached, after a login if it requires one.

        Only a memcached that rejects a command requires a login. Any other would store the password as an item.
        """
        reply = self.line("version")
        if reply == UNAUTHENTICATED:
            self._authenticate(users())
            reply = self.line("version")
        if not reply.startswith("VERSION "):
            raise MemcachedError(f"replied {reply[:80]!r} to `version`")
        self.version = reply.removeprefix("VERSION ")

    def line(self, command: str) -> str:
        """Send a command, and return its reply of one line, without the line end."""
        self._send(f"{command}\r\n".encode())
        return self._until(b"\r\n").decode("utf-8", "replace").removesuffix("\r\n")

    def lines(self, command: str) -> str:
        """Send a command, and return its reply: lines up to `END`, or one line with an error."""
        self._send(f"{command}\r\n".encode())
        reply: list[bytes] = []
        while not reply or (reply[-1] not in _LAST and not reply[0].startswith(_ERRORS)):
            reply.append(self._until(b"\r\n"))
        return b"".join(reply).decode("utf-8", "replace")

    def statistics(self) -> Stats:
        """The reply to `stats`. With extstore, it includes the memory of the items."""
        stats = parse_stats(self.lines("stats"))
        return with_items(stats, parse_stats(self.lines("stats items"))) if EXTSTORE in stats else stats

    def logged(self, seconds: float, stopped: threading.Event) -> Generator[bytes]:
        """Whole lines of the log after a reply of `OK` to `watch`, for so many seconds or until the event is set.

        memcached sends nothing else on this connection any more.
        """
        deadline = time.monotonic() + seconds
        while not stopped.is_set() and (left := deadline - time.monotonic()) > 0:
            lines, end, self._received = self._received.rpartition(b"\n")
            if end:
                yield lines + end
            self._receive(min(left, POLL))

    def _receive(self, seconds: float) -> None:
        """Receive bytes, if there are any within so many seconds."""
        self._socket.settimeout(seconds)
        try:
            data = self._socket.recv(2**18)
        except TimeoutError:
            return
        except OSError as error:
            raise MemcachedError(f"closed the connection: {error.strerror or error}") from None
        self._received += data
        if not data or len(self._received) > MAX_REPLY:
            raise MemcachedError("closed the connection" if not data else f"sent a line of more than {MAX_REPLY} bytes")

    def _authenticate(self, users: Sequence[tuple[bytes, bytes]]) -> None:
        for user, password in users:
            value = b"%b %b" % (user, password)
            self._send(b"set auth 0 0 %d\r\n%b\r\n" % (len(value), value))
            if self._until(b"\r\n") == b"STORED\r\n":
                return
        raise RejectedError("rejects the login with the users in the Secret")

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise MemcachedError(f"closed the connection: {error.strerror or error}") from None

    def _until(self, end: bytes) -> bytes:
        """The received bytes up to and including `end`."""
        while end not in self._received:
            try:
                data = self._socket.recv(2**16)
            except TimeoutError:
                raise MemcachedError(f"did not reply within {TIMEOUT:g} s") from None
            except OSError as error:
                raise MemcachedError(f"closed the connection: {error.strerror or error}") from None
            self._received += data
            if self._received.startswith(LIMIT_REACHED.encode()):
                raise MemcachedError("has reached its connection limit, spec.cache.maxConnections")
            if not data or len(self._received) > MAX_REPLY:
                raise MemcachedError("closed the connection" if not data else f"sent more than {MAX_REPLY} bytes")
        reply, separator, self._received = self._received.partition(end)
        return reply + separator
