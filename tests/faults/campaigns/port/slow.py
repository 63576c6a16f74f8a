"""Clients that never complete the body of a request."""

import asyncio
import time
from contextlib import AsyncExitStack, suppress

from faults.campaigns.port.setup import SLACK, Setup

LIMIT = 15.0
"""Seconds after which a client that sends very little is disconnected; 5 of them are a margin."""
OVERTAKEN = 8.0
"""Seconds within which a large review is answered although slow clients came first, on a busy machine as well.

The server disconnects them after 10 s, and then it would be answered in any order.
"""


async def slow(setup: Setup, begin: bytes, count: int) -> None:
    """`count` clients send the beginning of a request, then one byte per second: they are disconnected."""
    async with AsyncExitStack() as stack:
        connections: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        for _ in range(count):
            connections.append(await stack.enter_async_context(setup.connection()))
            connections[-1][1].write(begin)
        setup.large_limit = min(setup.large_limit, OVERTAKEN)
        responses = asyncio.gather(*(_send_slowly(reader, writer) for reader, writer in connections))
        started = time.monotonic()
        try:
            while not responses.done() and time.monotonic() < started + LIMIT + SLACK:
                await setup.check_reviews()
                await asyncio.sleep(1)
            setup.sandbox.check(responses.done(), f"a slow client is still connected after {LIMIT:g} s")
            setup.sandbox.check(
                not any(b'"allowed":true' in found for found in await responses), "a slow client's review was allowed"
            )
        finally:
            responses.cancel()
            await asyncio.gather(responses, return_exceptions=True)


async def _send_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Send a byte each second until the server closes the connection; returns the response."""
    found = b""
    with suppress(OSError):
        while True:
            with suppress(TimeoutError):
                chunk = await asyncio.wait_for(reader.read(65536), 1)
                if not chunk:
                    break
                found += chunk
            writer.write(b" ")
    return found


async def parallel_bodies(setup: Setup, count: int, data: bytes) -> None:
    """`count` parallel bodies, none of which is completed."""
    async with AsyncExitStack() as stack:
        for _ in range(count):
            _, writer = await stack.enter_async_context(setup.connection())
            writer.write(data)
        for _ in range(10):
            await setup.check_reviews()
            await asyncio.sleep(0.5)
    await setup.check_reviews()
