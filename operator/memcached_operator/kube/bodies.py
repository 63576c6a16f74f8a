"""Reads responses of a bounded size: anyone who may write objects decides how large they are."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Final

MIB: Final = 2**20

MAX_BODY: Final = 16 * MIB
"""Bytes of a response with one object, or of an event. etcd stores at most 1.5 MiB (`--max-request-bytes`), of which
JSON makes up to six times as much: `<` becomes `\\u003c`."""

MAX_PAGE: Final = 4 * MIB
"""Bytes of a page of a list with several objects. A larger page is read again with fewer objects."""

LARGE_LINE: Final = 2 * MIB
"""Bytes of an event after which the rest of it is read in turn: only one of all watches reads such an event."""

TURN: Final = 30.0
"""Seconds in which the rest of a large event must be read."""


class TooLargeError(Exception):
    """A response has more bytes than are read."""


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


async def lines(chunks: AsyncIterable[bytes], turn: asyncio.Lock | None = None) -> AsyncGenerator[bytes]:
    """Yield complete lines. An unterminated last line is dropped. Raises TooLargeError if one exceeds MAX_BODY.

    `turn`: held while the rest of a large line is read. Raises TimeoutError if that takes longer than TURN, so that a
    peer which stalls does not block other watches.
    """
    rest, held, turn = bytearray(), False, turn or asyncio.Lock()
    try:
        async with asyncio.timeout(None) as limit:
            async for chunk in chunks:
                for number, part in enumerate(chunk.split(b"\n")):
                    if number:  # the part before this one has ended a line
                        if held:
                            turn.release()
                            held = False
                            limit.reschedule(None)
                        line, rest = bytes(rest), bytearray()
                        yield line
                        del line
                    rest += part
                    if len(rest) > MAX_BODY:
                        raise TooLargeError(f"an event has more than {MAX_BODY // MIB} MiB")
                if not held and len(rest) > LARGE_LINE:
                    held = await turn.acquire()
                    limit.reschedule(asyncio.get_running_loop().time() + TURN)
    finally:
        if held:
            turn.release()
