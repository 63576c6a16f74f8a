"""Reads request bodies, with limits on their size and on the number of large ones."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import StreamReader, hdrs, web

MAX_BODY_SIZE: Final = 4 * 2**20  # bytes; an object has at most 1.5 MiB in etcd, and a review contains two of them
MAX_SMALL_SIZE: Final = 2**16  # bytes; most reviews have less than a tenth
MAX_LARGE_READS: Final = 4  # concurrent reads of larger bodies and of those with unknown length
SLOT_TIMEOUT: Final = 1.0  # for one large body while others wait; the API server's timeout is 5 s
CHUNK_SIZE: Final = 2**16  # bytes of a large body that are read at once

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class BodyTooLargeError(ValueError):
    """The body has more than MAX_BODY_SIZE bytes."""


class BodyTimeoutError(Exception):
    """The body did not arrive within SLOT_TIMEOUT while others waited."""


class BodyReader:
    """Reads bodies; small ones do not wait for large ones."""

    def __init__(self) -> None:
        self._slots = LifoSemaphore(MAX_LARGE_READS)

    async def read(self, request: web.BaseRequest) -> bytes | bytearray:
        """The whole body. Raises BodyTooLargeError and BodyTimeoutError."""
        content, length = request.content, request.content_length
        if content.is_eof() or (length is not None and length <= MAX_SMALL_SIZE):
            return await _read_all(request)
        if length is not None and length > MAX_BODY_SIZE:
            raise BodyTooLargeError
        async with self._slots.acquire():
            content.set_read_chunk_size(CHUNK_SIZE)
            return await _read_all(request)


class LifoSemaphore:
    """A semaphore with `count` slots that serves the newest waiter first.

    While others wait, a slot is released after SLOT_TIMEOUT with BodyTimeoutError. So the newest waiter gets a slot
    within that time, independently of the other clients, unless an even newer one arrives.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: list[asyncio.Future[None]] = []  # the newest last
        self._deadlines: dict[
            asyncio.Timeout, float
        ] = {}  # the loop's time at which each slot is released if others wait

    @asynccontextmanager
    async def acquire(self) -> AsyncGenerator[None]:
        """Wait for a slot and hold it."""
        await self._wait()
        try:
            async with asyncio.timeout(None) as limit:
                self._deadlines[limit] = asyncio.get_running_loop().time() + SLOT_TIMEOUT
                self._set_limits()
                try:
                    yield
                finally:
                    del self._deadlines[limit]
        except TimeoutError:
            raise BodyTimeoutError from None
        finally:
            self._release()

    async def _wait(self) -> None:
        if self._free:
            self._free -= 1
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._set_limits()
        try:
            await waiter
        except asyncio.CancelledError:  # the client has disconnected, possibly after the slot was assigned
            if waiter in self._waiting:
                self._waiting.remove(waiter)
                self._set_limits()
            else:
                self._release()
            raise

    def _release(self) -> None:
        if self._waiting:
            waiter = self._waiting.pop()
            if waiter.cancelled():
                self._release()
            else:
                waiter.set_result(None)
        else:
            self._free += 1
        self._set_limits()

    def _set_limits(self) -> None:
        for limit, end in self._deadlines.items():
            if not limit.expired():
                limit.reschedule(end if self._waiting else None)


async def _read_all(request: web.BaseRequest) -> bytes | bytearray:
    content = request.content
    if not content.is_eof():
        await _send_continue(request)
    body = await content.readany()
    return body if content.at_eof() else await _read_rest(content, bytearray(body))


async def _read_rest(content: StreamReader, body: bytearray) -> bytearray:
    while not content.at_eof():
        body += await content.readany()
        if len(body) > MAX_BODY_SIZE:
            raise BodyTooLargeError
    return body


async def _send_continue(request: web.BaseRequest) -> None:
    """Send `100 Continue` if the client expects it before it sends the body."""
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.version >= (1, 1):
        await request.writer.write(CONTINUE)
        request.writer.output_size = 0  # the response itself has not started
