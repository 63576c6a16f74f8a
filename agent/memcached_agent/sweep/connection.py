"""Connections to a slot, with a limit for each wait. They block: an event loop would only take time and memory."""

import select
import socket
import time
from collections.abc import Callable
from contextlib import closing
from typing import Final

WAIT: Final = 5.0
"""Seconds until a slot accepts a connection, and until its next bytes arrive."""
RECEIVED: Final = 65536
"""Bytes that are received at once."""
MAX_REPLY: Final = 65536
"""Bytes of a reply that is no dump. The longest is that to `stats`, with 4 KB."""
MAX_QUOTED: Final = 80
"""Bytes of an unexpected reply that become part of a message."""
ERRORS: Final = (b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR")


class SlotError(Exception):
    """A slot cannot be swept now. The message continues a sentence that begins with the slot."""


class TimeIsUpError(Exception):
    """The time of the whole sweep is over."""


class Deadline:
    """When the whole sweep must be done. `clock`: seconds since any moment."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    def wait(self, longest: float = WAIT) -> float:
        """The seconds that may be waited now, at most `longest`. Raises TimeIsUpError if there are none."""
        left = self._end - self._clock()
        if left <= 0:
            raise TimeIsUpError
        return min(longest, left)


def connect(host: str, port: int, deadline: Deadline) -> "closing[socket.socket]":
    """A connection, which the end of the block closes. Raises SlotError and TimeIsUpError."""
    try:
        return closing(socket.create_connection((host, port), deadline.wait()))
    except TimeoutError:
        deadline.wait()
        raise SlotError(f"does not accept a connection within {WAIT:g} s") from None
    except ConnectionRefusedError:
        raise SlotError("refuses the connection: nothing listens on this port") from None
    except OSError as error:
        raise SlotError(f"cannot be reached: {error.strerror or error}") from None


def ask(connection: socket.socket, command: bytes, end: bytes, deadline: Deadline) -> bytes:
    """The reply to a command, which ends with `end`. Raises SlotError and TimeIsUpError."""
    send(connection, command, deadline)
    reply = b""
    while not reply.endswith(end):
        reply += receive(connection, deadline)
        if reply.startswith(ERRORS) or len(reply) > MAX_REPLY:
            raise unexpected(command, reply)
    return reply


def send(connection: socket.socket, data: bytes, deadline: Deadline) -> None:
    """Send a few bytes. Raises SlotError and TimeIsUpError."""
    connection.settimeout(deadline.wait())
    try:
        connection.sendall(data)
    except OSError as error:
        raise _broken(error, deadline) from None


def receive(connection: socket.socket, deadline: Deadline) -> bytes:
    """The next bytes, at least one. Raises SlotError and TimeIsUpError."""
    connection.settimeout(deadline.wait())
    try:
        data = connection.recv(RECEIVED)
    except OSError as error:
        raise _broken(error, deadline) from None
    if not data:
        raise SlotError("closed the connection")
    return data


def send_some(connection: socket.socket, data: bytearray, deadline: Deadline) -> None:
    """Send and remove as many of these bytes as the connection takes at once, maybe none.

    Raises SlotError and TimeIsUpError.
    """
    try:
        del data[: connection.send(memoryview(data)[:RECEIVED], socket.MSG_DONTWAIT)]
    except BlockingIOError:
        return
    except OSError as error:
        raise _broken(error, deadline) from None


def readable(readers: list[socket.socket], writer: socket.socket | None, deadline: Deadline) -> list[socket.socket]:
    """Wait until one of the readers has bytes, or the writer takes some; the readers that have some.

    Raises SlotError and TimeIsUpError.
    """
    poll = select.poll()
    for each in readers:
        poll.register(each, select.POLLIN | (select.POLLOUT if each is writer else 0))
    events = dict(poll.poll(1000 * deadline.wait()))
    if not events:
        raise _broken(TimeoutError(), deadline)
    return [each for each in readers if events.get(each.fileno(), 0) & ~select.POLLOUT]


def unexpected(command: bytes, reply: bytes) -> SlotError:
    """The error because of this reply."""
    asked, line = (each.partition(b"\r\n")[0][:MAX_QUOTED].decode("ascii", "replace") for each in (command, reply))
    return SlotError(f"replied {line!r} to `{asked}`")


def _broken(error: OSError, deadline: Deadline) -> SlotError:
    """The error of a connection; raises TimeIsUpError if only the deadline has ended the wait."""
    deadline.wait()
    if isinstance(error, TimeoutError):
        return SlotError(f"does not reply within {WAIT:g} s")
    return SlotError(f"closed the connection: {error.strerror or error}")
