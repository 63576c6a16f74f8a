"""A connection to a proxy, with the commands of the checker. Each write returns whether it was acknowledged."""

from collections.abc import Sequence
from typing import Final

from support.clients import Client, Server

TIMEOUT: Final = 20.0
"""Seconds for a reply. A proxy answers within a second; its own process may wait for the processor."""

Endpoint = tuple[str, int]
"""Host and port."""


class ErrorReplyError(Exception):
    """A proxy or a server has answered with an error."""


class UnknownReplyError(Exception):
    """A reply that the command does not have."""


class Connection:
    """One connection. Every method raises OSError if it ends, and the exceptions above."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._client = Client(Server(*endpoint), TIMEOUT)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def write(self, *lines: bytes) -> bool:
        """Send a write: True if it was acknowledged, False if its condition was not met."""
        reply = self._checked(self._client.request(*lines))
        word = reply.split()[0]
        if word in (b"STORED", b"HD", b"TOUCHED", b"DELETED") or word.isdigit():
            return True
        if word in (b"NOT_STORED", b"NOT_FOUND", b"EXISTS", b"NS", b"NF", b"EX"):
            return False
        raise UnknownReplyError(reply)

    def counted(self, line: bytes) -> int | None:
        """The number after an `incr` or an `ma` with `v`; None without an item."""
        reply = self._checked(self._client.request(line))
        if reply.startswith(b"VA "):
            reply = self._client.line()
        if reply in (b"NOT_FOUND\r\n", b"NF\r\n"):
            return None
        return int(reply)

    def values(self, command: bytes, keys: Sequence[bytes]) -> dict[bytes, tuple[bytes, bytes]]:
        """The values of keys, and their tokens if the command returns these: get, gets, or gat with its time."""
        self._client.send(b"%b %b\r\n" % (command, b" ".join(keys)))
        found, failed = dict[bytes, tuple[bytes, bytes]](), b""
        while (line := self._client.line()) != b"END\r\n":
            if b"ERROR" in line:
                # The reply to each key of several may be an error, and END follows. That to one key is the error only.
                failed = line
                if len(keys) == 1:
                    break
                continue
            _, key, _, size, *token = line.split()
            found[key] = (self._data(int(size)), token[0] if token else b"")
        if failed:
            raise ErrorReplyError(failed.decode().strip())
        if not found.keys() <= set(keys):
            raise UnknownReplyError(found)
        return found

    def meta(self, key: bytes, flags: bytes) -> tuple[bytes | None, list[bytes]]:
        """The value of a key, and the flags of the reply: `mg` with flags, among them `v`. None without an item."""
        status, *rest = self._checked(self._client.request(b"mg %b %b" % (key, flags))).split()
        if status == b"EN":
            return None, []
        if status != b"VA":
            raise UnknownReplyError(status)
        return self._data(int(rest[0])), rest[1:]

    def _data(self, size: int) -> bytes:
        data = b""
        while len(data) < size + 2:
            data += self._client.line()
        return data[:-2]

    def _checked(self, reply: bytes) -> bytes:
        if b"ERROR" in reply:
            raise ErrorReplyError(reply.decode().strip())
        return reply
