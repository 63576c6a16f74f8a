"""Reads responses of a bounded size: anyone who may write objects decides how large they are."""

import re
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Final, NamedTuple

MIB: Final = 2**20

MAX_BODY: Final = 16 * MIB
"""Bytes of a response with one object. etcd stores at most 1.5 MiB (`--max-request-bytes`), of which JSON makes up
to six times as much: `<` becomes `\\u003c`."""

MAX_PAGE: Final = 4 * MIB
"""Bytes of a page of a list with several objects. A larger page is read again with fewer objects."""

MAX_LINE: Final = 2 * MIB
"""Bytes of an event of a watch that are kept."""

_HEAD: Final = 4096  # bytes of an event with what identifies its object
_TEXT: Final = r'"(?:[^"\\]{0,300})"'
_IDENTITY: Final = re.compile(
    rf'\{{"type":"(?P<type>ADDED|MODIFIED|DELETED)","object":\{{(?:"kind":{_TEXT},"apiVersion":{_TEXT},)?'
    rf'"metadata":\{{"name":"(?P<name>[^"\\]{{1,253}})",(?:"generateName":{_TEXT},)?'
    rf'"namespace":"(?P<namespace>[^"\\]{{1,63}})",(?:"selfLink":{_TEXT},)?'
    r'"uid":"(?P<uid>[^"\\]{1,64})","resourceVersion":"(?P<version>[0-9]{1,20})"'
)


class TooLargeError(Exception):
    """A response has more bytes than are read."""


class Line(NamedTuple):
    """A line of a response. `cut`: it is longer than the limit, and only its start is kept."""

    text: bytes
    cut: bool = False


class Identity(NamedTuple):
    """The fields of an object that the start of its event contains."""

    event_type: str
    namespace: str
    name: str
    uid: str
    version: str


async def read(chunks: AsyncIterable[bytes], limit: int) -> bytes:
    """The whole response. Raises TooLargeError if it has more bytes than `limit`."""
    received: list[bytes] = []
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise TooLargeError
        received.append(chunk)
    return b"".join(received)


async def lines(chunks: AsyncIterable[bytes], limit: int = MAX_LINE) -> AsyncGenerator[Line]:
    """Yield complete lines, of at most `limit` bytes. An unterminated last line is dropped."""
    rest, cut = bytearray(), False
    async for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            rest += chunk[start:end]
            yield _line(rest, cut or len(rest) > limit)
            rest, cut, start = bytearray(), False, end + 1
        rest += chunk[start:]
        if len(rest) > limit:
            del rest[_HEAD:]
            cut = True


def _line(text: bytearray, cut: bool) -> Line:
    return Line(bytes(text[:_HEAD] if cut else text), cut)


def identity(head: bytes) -> Identity | None:
    """The identity of the object of an event that was cut.

    None if the start of the event does not show it: the API server writes the name of a built-in type first, but that
    of a custom resource after its annotations.
    """
    match = _IDENTITY.match(head.decode(errors="replace"))
    return None if match is None else Identity(*match.group("type", "namespace", "name", "uid", "version"))
