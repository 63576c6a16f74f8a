"""The keys of a server: the reply to `lru_crawler mgdump hash`, and how commands name these keys.

`hash` walks the hash table. With `all`, the crawler walks lists in which items move meanwhile, and can miss some.
`metadump` does not say which keys are in base64.
"""

import re
from binascii import b2a_base64
from collections.abc import Iterable, Iterator
from typing import Final

from memcached_agent.sweep.hash import home

COMMAND: Final = b"lru_crawler mgdump hash\r\n"
MARKER: Final = b"memcached-operator.example.com/swept"
"""The key of the item that says for which change a slot is swept."""
NEWLINE: Final = b"\r\n"
START: Final = b"OK\r\n"
"""The first line of a dump; memcached 1.6.38 does not send it."""
END: Final = b"EN\r\n"
BUSY: Final = (b"BUSY", b"ERROR locked")
"""The replies while another crawl or dump runs, and while the hash table grows; the latter follows START."""
PREFIX: Final = b"mg "
MAX_LINE: Final = 512
"""Bytes of a line: a key has at most 250."""
MAX_ENCODED: Final = 186
"""Bytes of the longest key that has a text in base64: memcached limits the text to 250 bytes."""

_unusual: Final = re.compile(rb"[\x00-\x20\x7f]").search
_in_base64: Final = re.compile(rb"(?! )(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)? b").fullmatch
_separating: Final = re.compile(rb"[\x00\n\r ]").search
_SEPARATOR: Final = NEWLINE + PREFIX


class BusyError(Exception):
    """The server cannot list its keys at the moment."""


class ReplyError(Exception):
    """The reply is no list of keys. The only argument is its first line."""


class Dump:
    """Splits a reply into keys. `complete`: whether its end has arrived.

    A key can contain a line end: see `arguments`. So a key ends where the next one begins.
    """

    def __init__(self) -> None:
        self.complete = False
        self._begun = False
        self._rest: bytes = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The complete keys in the next bytes, as they are dumped. Raises BusyError and ReplyError."""
        self._rest += data
        if not self._begun and not self._begins():
            return []
        *keys, last = self._rest.split(_SEPARATOR)
        if last.endswith(NEWLINE + END):
            self.complete = True
            last = last[: -len(NEWLINE + END)]
            return [*keys, last][1:]
        if len(last) > MAX_LINE:
            raise ReplyError(last[:MAX_LINE])
        self._rest = _SEPARATOR + last if keys else last
        return keys[1:]

    def _begins(self) -> bool:
        """Whether the first line is complete, and starts a list."""
        text = self._rest.removeprefix(START)
        if text.startswith((PREFIX, END)):
            self._begun, self._rest = True, NEWLINE + text
            return True
        line, separator, _ = text.partition(NEWLINE)
        if line.startswith(BUSY) and separator:
            raise BusyError
        if separator or len(line) > MAX_LINE:
            raise ReplyError(line[:MAX_LINE])
        return False


def deletions(keys: Iterable[bytes], slot: int, slots: int) -> Iterator[bytes]:
    """The commands that delete the keys whose home in a ring of `slots` is not this slot. The marker stays."""
    for key in keys:
        found = (key, b"") if _unusual(key) is None else arguments(key)
        if found and home(found[0], slots) != slot and key != MARKER:
            yield b"md %b%b\r\n" % found


def arguments(key: bytes) -> tuple[bytes, bytes] | None:
    """The text of a dumped key in commands, which is also what proxies hash, and the flag of base64, or nothing.

    None if no command can name it. memcached marks keys that arrived in base64, and dumps them so. An append or a
    prepend removes the mark: afterwards, the bytes of the key are dumped. Bytes from 0x21, other than 0x7f, are taken
    for a text: clients send UTF-8 in text commands, but neither spaces nor control characters.
    """
    if _in_base64(key):
        return key[:-2], b" b"
    if _unusual(key) is None:
        return key, b""
    if len(key) <= MAX_ENCODED:
        return b2a_base64(key, newline=False), b" b"
    return None if _separating(key) else (key, b"")
