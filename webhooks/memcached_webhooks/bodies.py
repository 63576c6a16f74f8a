"""Reads request bodies, with limits on their size and on the number of large ones."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import StreamReader, hdrs, web

LARGEST: Final = 4 * 2**20  # bytes; an object has at most 1.5 MiB in etcd, and a review contains two of them
SMALL: Final = 2**16  # bytes; most reviews have less than a tenth
LARGE_AT_ONCE: Final = 4  # concurrent reads of larger bodies and of those with unknown length
TURN_SECONDS: Final = 1.0  # for one large body while others wait; the API server's timeout is 5 s
PIECE: Final = 2**16  # bytes of a large body that are read at once

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class TooLargeError(ValueError):
    """The body has more than LARGEST bytes."""


class TooSlowError(Exception):
    """The body did not arrive within TURN_SECONDS while others waited."""


class Bodies:
    """Reads bodies; small ones do not wait for large ones."""

    def __init__(self) -> None:
        self._turns = Turns(LARGE_AT_ONCE)

    async def read(self, request: web.BaseRequest) -> bytes | bytearray:
        """The whole body. Raises TooLargeError and TooSlowError."""
        content, length = request.content, request.content_length
        if content.is_eof() or (length is not None and length <= SMALL):
            return await _whole(request)
        if length is not None and length > LARGEST:
            raise TooLargeError
        async with self._turns.take():
            content.set_read_chunk_size(PIECE)
            return await _whole(request)


class Turns:
    """A semaphore with `count` slots that serves the newest waiter first.

    While others wait, a slot is released after TURN_SECONDS with TooSlowError. So the newest waiter gets a slot within
    that time, independently of the other clients, unless an even newer one arrives.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: list[asyncio.Future[None]] = []  # the newest last
        self._taken: dict[asyncio.Timeout, float] = {}  # the loop's time at which each slot is released if others wait

    @asynccontextmanager
    async def take(self) -> AsyncGenerator[None]:
        """Wait for a slot and hold it."""
        await self._wait()
        try:
            async with asyncio.timeout(None) as limit:
                self._taken[limit] = asyncio.get_running_loop().time() + TURN_SECONDS
                self._set_limits()
                try:
                    yield
                finally:
                    del self._taken[limit]
        except TimeoutError:
            raise TooSlowError from None
        finally:
            self._release()

    async def _wait(self) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._set_limits()
        try:
            await turn
        except asyncio.CancelledError:  # the client has disconnected, possibly after the slot was assigned
            if turn in self._waiting:
                self._waiting.remove(turn)
                self._set_limits()
            else:
                self._release()
            raise

    def _release(self) -> None:
        if self._waiting:
            turn = self._waiting.pop()
            if turn.cancelled():
                self._release()
            else:
                turn.set_result(None)
        else:
            self._free += 1
        self._set_limits()

    def _set_limits(self) -> None:
        for limit, end in self._taken.items():
            if not limit.expired():
                limit.reschedule(end if self._waiting else None)


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
    """Send `100 Continue` if the client expects it before it sends the body."""
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.version >= (1, 1):
        await request.writer.write(CONTINUE)
        request.writer.output_size = 0  # the response itself has not started
