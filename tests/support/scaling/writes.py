"""The writes of the checker: each changes one key, and records what is known of it afterwards."""

import random
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from support.scaling.connection import Connection, ErrorReplyError, UnknownReplyError
from support.scaling.versions import Key, Reading, State

LIFETIMES: Final = (3, 5)
"""Seconds until items of the kind `expiring` expire."""
MAX_PADDING: Final = 200
"""Bytes."""


class Write(NamedTuple):
    """A write that is about to be sent. `old`: the state before it. `ttl`: 0 for never."""

    key: Key
    old: State
    value: bytes
    ttl: int
    at: float

    @property
    def expires(self) -> float:
        """When an item expires that gets this `ttl`."""
        return self.at + self.ttl if self.ttl else 0


class Unexpected(Exception):  # noqa: N818 - a finding, not an error
    """A reply that contradicts what is known of a key."""


Operation = Callable[[Connection, Write], "tuple[bool, State]"]
"""Sends a write; whether it was acknowledged, and the state if so."""


def _lines(command: str, write: Write, extra: bytes = b"") -> tuple[bytes, bytes]:
    """A store of the text protocol."""
    line = b"%b %b 0 %d %d%b" % (command.encode(), write.key.name, write.ttl, len(write.value), extra)
    return line, write.value


def _meta_lines(write: Write, flags: bytes) -> tuple[bytes, bytes]:
    """A store of the meta protocol."""
    key = write.key
    return b"ms %b %d T%d%b%b" % (key.name, len(write.value), write.ttl, flags, key.flag), write.value


def _placed(write: Write) -> State:
    """The state after a set or an add."""
    return write.key.state.acknowledged(expires=write.expires, placed=write.at)


def _in_place(write: Write, *, keeps_ttl: bool = False) -> State:
    """The state after a change of an existing item. After an error, the time of an unchanged TTL is not known."""
    expires = write.old.expires if keeps_ttl else write.expires
    state = write.key.state.acknowledged(expires=expires, placed=write.old.placed)
    return state._replace(sure=write.old.sure or not keeps_ttl)


def store(connection: Connection, write: Write) -> tuple[bool, State]:
    """set, or ms."""
    lines = _meta_lines(write, b"") if write.key.kind == "base64" or write.old.number % 2 else _lines("set", write)
    if not connection.write(*lines):
        raise UnknownReplyError("a set was refused")
    return True, _placed(write)


def add(connection: Connection, write: Write) -> tuple[bool, State]:
    """add, or ms with ME."""
    lines = _meta_lines(write, b" ME") if write.key.kind == "base64" or write.old.number % 2 else _lines("add", write)
    return connection.write(*lines), _placed(write)


def replace(connection: Connection, write: Write) -> tuple[bool, State]:
    """replace, or ms with MR."""
    lines = _meta_lines(write, b" MR") if write.key.kind == "base64" else _lines("replace", write)
    return connection.write(*lines), _in_place(write)


def append(connection: Connection, write: Write) -> tuple[bool, State]:
    """append, or ms with MA."""
    write = write._replace(value=b"|%d:" % write.key.state.number)
    lines = _meta_lines(write, b" MA") if write.key.kind == "base64" else _lines("append", write)
    return connection.write(*lines), _in_place(write, keeps_ttl=True)


def prepend(connection: Connection, write: Write) -> tuple[bool, State]:
    """prepend, or ms with MP."""
    write = write._replace(value=b"%d:|" % write.key.state.number)
    lines = _meta_lines(write, b" MP") if write.key.kind == "base64" else _lines("prepend", write)
    return connection.write(*lines), _in_place(write, keeps_ttl=True)


def swap(connection: Connection, write: Write) -> tuple[bool, State]:
    """gets and cas, or mg and ms with C."""
    key = write.key
    if key.kind == "base64" or write.old.number % 2:
        _, flags = connection.meta(key.name, b"c v" + key.flag)
        token = next((flag[1:] for flag in flags if flag.startswith(b"c")), None)
        lines = _meta_lines(write, b" C%b" % (token or b"1"))
    else:
        found = connection.values(b"gets", [key.name]).get(key.name)
        token = found and found[1]
        lines = _lines("cas", write, b" %b" % (token or b"1"))
    return connection.write(*lines) if token else False, _in_place(write)


def touch(connection: Connection, write: Write) -> tuple[bool, State]:
    """touch, or mg with T: the value stays."""
    key = write.key
    if key.kind == "base64":
        value, _ = connection.meta(key.name, b"T%d v" % write.ttl + key.flag)
        touched = value is not None
    else:
        touched = connection.write(b"touch %b %d" % (key.name, write.ttl))
    return touched, write.old._replace(expires=write.expires if write.old.sure else write.old.expires)


def remove(connection: Connection, write: Write) -> tuple[bool, State]:
    """delete, or md: acknowledged with or without an item."""
    key = write.key
    connection.write(b"md %b%b" % (key.name, key.flag) if key.kind == "base64" else b"delete %b" % key.name)
    return True, key.state.removed()


def count(connection: Connection, write: Write) -> tuple[bool, State]:
    """incr, or ma: the counter is the number of the write."""
    key = write.key
    found = connection.counted(b"ma %b v" % key.name if write.old.number % 2 else b"incr %b 1" % key.name)
    if found is None:
        return False, write.old
    if write.old.sure and found != write.old.number + 1:
        raise Unexpected(f"{key.name!r} counted to {found}, not {write.old.number + 1}")
    return True, _in_place(write)._replace(floor=found, number=found)


VALUES: Final = (store, store, store, add, replace, append, prepend, swap, touch, remove)
COUNTERS: Final = (count, count, count, store, remove)
NEEDS_ITEM: Final = (replace, append, prepend, swap, touch, count)
"""Writes that need an item."""


def write(
    connection: Connection,
    key: Key,
    draw: random.Random,
    lost_before: Callable[[], float],
    only: Operation | None = None,
) -> None:
    """Send a random write, or the given one, and record its result.

    Raises OSError, ErrorReplyError and UnknownReplyError for one that failed, and Unexpected.
    """
    operation = only or draw.choice(COUNTERS if key.kind == "counter" else VALUES)
    old = key.state
    key.state = old.sent()
    number = key.state.number
    padding = b"" if key.kind == "counter" else b":" + b"x" * draw.randrange(MAX_PADDING)
    ttl = draw.choice(LIFETIMES) if key.kind == "expiring" else 0
    made = Write(key, old, b"%d%b" % (number, padding), ttl, time.monotonic())
    try:
        acknowledged, state = operation(connection, made)
    except (OSError, ErrorReplyError, UnknownReplyError):
        key.failed.add(number)
        raise
    # The number of a refused write is used again: nothing has it.
    key.state = state if acknowledged else old
    _compare(operation, made, acknowledged, lost_before())


def _compare(operation: Operation, made: Write, acknowledged: bool, lost_before: float) -> None:
    """Raise Unexpected if a write was acknowledged or refused against what is known of the key."""
    old, now = made.old, time.monotonic()
    exists, absent = old.exists(now) and old.placed >= lost_before, old.is_absent()
    wrong = (absent, exists) if operation in NEEDS_ITEM else (exists, absent) if operation is add else (False, False)
    if wrong[not acknowledged]:
        word = "acknowledged" if acknowledged else "refused"
        raise Unexpected(f"{made.key.name!r}: a write was {word} in {old}")


def seen(connection: Connection, key: Key, lost_before: Callable[[], float]) -> Reading:
    """Read a key, and return the reading."""
    before = key.state
    if key.kind == "base64" or before.number % 2:
        value, _ = connection.meta(key.name, b"v" + key.flag)
    else:
        found = connection.values(b"get", [key.name]).get(key.name)
        value = found and found[0]
    return key.classify(before, value, lost_before())
