"""Reads the bodies of requests: bounded in size, and the large ones in number."""

import asyncio
from typing import Final

from aiohttp import StreamReader, hdrs, web

LARGEST: Final = 4 * 2**20  # bytes; an object is at most 1.5 MiB in etcd, and a review holds two of them
SMALL: Final = 2**16  # bytes; most reviews have less than a tenth
LARGE_AT_ONCE: Final = 4  # larger ones, and those of unknown length, that are read at the same time; more wait
PIECE: Final = 2**16  # bytes of a large body that are read at once

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class TooLargeError(ValueError):
    """The body has more than LARGEST bytes."""


class Bodies:
    """Reads bodies; small ones do not wait for large ones."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(LARGE_AT_ONCE)

    async def read(self, request: web.BaseRequest) -> bytes | bytearray:
        """The whole body. Raises TooLargeError."""
        content, length = request.content, request.content_length
        if content.is_eof() or (length is not None and length <= SMALL):
            return await _whole(request)
        if length is not None and length > LARGEST:
            raise TooLargeError
        async with self._turns:
            content.set_read_chunk_size(PIECE)
            return await _whole(request)


async def _whole(request: web.BaseRequest) -> bytes | bytearray:
    content = request.content
    if not content.is_eof():
        await _continue(request)
    body = await content.readany()
    return body if content.at_eof() else await _rest(content, bytearray(body))


async def _rest(content: StreamReader, body: bytearray) -> bytearray:
    while not content.at_eof():
        body += await content.readany()
        if len(body) > LARGEST:
            raise TooLargeError
    return body


async def _continue(request: web.BaseRequest) -> None:
    """Tell a client to go on that waits for this before it sends the body."""
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.version >= (1, 1):
        await request.writer.write(CONTINUE)
        request.writer.output_size = 0  # the answer itself has not begun
