"""The sweep of one slot."""

import socket
import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from memcached_agent.sweep.connection import (
    Deadline,
    SlotError,
    ask,
    connect,
    readable,
    receive,
    send,
    send_some,
    unexpected,
)
from memcached_agent.sweep.dump import COMMAND, MARKER, BusyError, Dump, ReplyError, deletions

MAX_PASSES: Final = 20
"""Dumps of one attempt. The second one finds nothing unless a client writes items, or MAX_PENDING was reached."""
MAX_PENDING: Final = 20000
"""Commands that memcached has not answered yet, each of at most 260 bytes. The dump must not wait for them (see
`_wait_for_crawler`): it is given up, and begins again afterwards."""
PAUSES: Final = (0.0, 0.01, 0.05, 0.2)
"""Seconds before each look whether the crawler runs: it ends a little later than a dump."""
BUSY: Final = "is busy with another dump or crawl of its items"
RUNNING: Final = b"STAT lru_crawler_running 1\r\n"
DELETED: Final = b"HD\r\n"
MISSING: Final = b"NF\r\n"


class Change(NamedTuple):
    """A change of the number of slots. `number`: the same for all sweeps of the change, and for no other change."""

    old: int
    new: int
    number: int


class Slot:
    """A slot of the new ring, and how far its sweep is.

    `problem`: why the last attempt failed, as the end of a sentence; empty if the slot has listed keys since then.
    `keys`: how many it listed in all attempts.
    """

    def __init__(self, number: int, host: str, port: int) -> None:
        self.number: Final = number
        self.done = False
        self.skipped = False
        self.removed = 0
        self.keys = 0
        self.problem = ""
        self._host, self._port = host, port

    def __str__(self) -> str:
        return f"slot {self.number} ({self._host}:{self._port})"

    def sweep(self, change: Change, deadline: Deadline) -> None:
        """Delete the items of other slots until a dump has no more, and leave the marker; unless the marker is there.

        With the marker, a sweep of the same change has ended before, and proxies may have moved items here since then.
        Raises SlotError and TimeIsUpError.
        """
        marker = b"%d" % change.number
        with connect(self._host, self._port, deadline) as connection:
            self.skipped = _marker(connection, deadline) == marker
            if not self.skipped:
                self._empty(connection, change.old, deadline)
                _mark(connection, marker, deadline)
        self.done = True

    def _empty(self, connection: socket.socket, slots: int, deadline: Deadline) -> None:
        for _ in range(MAX_PASSES):
            _wait_for_crawler(connection, deadline)
            with connect(self._host, self._port, deadline) as dumping:
                if self._delete(connection, dumping, slots, deadline):
                    return
        raise SlotError(f"has items of other slots after {MAX_PASSES} dumps: a client writes to it without a proxy")

    def _delete(self, connection: socket.socket, dumping: socket.socket, slots: int, deadline: Deadline) -> bool:
        """Delete the items of other slots in one dump; returns whether it was complete, and none of them existed.

        Such items have expired, or another sweep has deleted them, or they are parts of one key, which looks like two.
        """
        dump, pending, before = Dump(), Pending(), self.removed
        send(dumping, COMMAND, deadline)
        reads = True
        while reads or pending.unanswered:
            readers = [connection, dumping] if reads else [connection]
            ready = readable(readers, connection if pending.unsent else None, deadline)
            if dumping in ready:
                keys = _keys(dump, receive(dumping, deadline))
                self.keys, self.problem = self.keys + len(keys), ""
                pending.add(deletions(keys, self.number, slots))
            if connection in ready:
                self.removed += pending.answered(receive(connection, deadline))
            if pending.unsent:
                send_some(connection, pending.unsent, deadline)
            reads = reads and not dump.complete
            if reads and pending.unanswered > MAX_PENDING:
                dumping.close()
                reads = False
        return dump.complete and self.removed == before


class Pending:
    """Commands that delete items, until memcached has answered them.

    `unsent`: those that are not sent yet. `unanswered`: the number of those without a reply.
    """

    def __init__(self) -> None:
        self.unsent = bytearray()
        self.unanswered: int = 0
        self._rest: bytes = b""

    def add(self, commands: Iterable[bytes]) -> None:
        """Append commands."""
        found = list(commands)
        self.unanswered += len(found)
        self.unsent += b"".join(found)

    def answered(self, data: bytes) -> int:
        """Count the replies in the next bytes, and return how many items were deleted. Raises SlotError."""
        data = self._rest + data
        whole = len(data) // len(DELETED) * len(DELETED)
        self._rest, data = data[whole:], data[:whole]
        deleted, missing = data.count(DELETED), data.count(MISSING)
        self.unanswered -= deleted + missing
        if len(DELETED) * (deleted + missing) != whole or self.unanswered < 0:
            raise unexpected(b"md", data.replace(DELETED, b"").replace(MISSING, b"") + self._rest)
        return deleted


def _wait_for_crawler(connection: socket.socket, deadline: Deadline) -> None:
    """Wait a moment until no dump or crawl runs. Raises SlotError if one runs.

    If the command of a dump comes while another dump waits for its reader, the worker thread that has it waits, too,
    with all of its clients: lru_crawler_start of memcached 1.6.45 locks what the crawler keeps locked.
    """
    for pause in PAUSES:
        time.sleep(pause)
        if RUNNING not in ask(connection, b"stats\r\n", b"END\r\n", deadline):
            return
    raise SlotError(BUSY)


def _keys(dump: Dump, data: bytes) -> list[bytes]:
    try:
        return dump.feed(data)
    except BusyError:
        raise SlotError(BUSY) from None
    except ReplyError as error:
        problem = unexpected(COMMAND, error.args[0])
        raise SlotError(f"{problem}: use memcached 1.6.40 or later, with its LRU crawler and dumps") from None


def _marker(connection: socket.socket, deadline: Deadline) -> bytes:
    """The value of the marker; empty without one."""
    reply = ask(connection, b"mg %b v\r\nmn\r\n" % MARKER, b"MN\r\n", deadline)
    first, _, rest = reply.partition(b"\r\n")
    return rest.partition(b"\r\n")[0] if first.startswith(b"VA ") else b""


def _mark(connection: socket.socket, marker: bytes, deadline: Deadline) -> None:
    command = b"ms %b %d\r\n%b\r\n" % (MARKER, len(marker), marker)
    reply = ask(connection, command, b"\r\n", deadline)
    if reply != DELETED:
        raise unexpected(command, reply)
