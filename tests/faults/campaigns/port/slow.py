"""Clients that are slow, silent, or never finish what they begin."""

import asyncio
import time
from contextlib import AsyncExitStack, suppress

from faults.campaigns.port.scene import SLACK, Scene
from faults.stage import until

HANDSHAKE, REQUEST, IDLE = 10.0, 15.0, 105.0
"""Seconds after which who sends nothing, or next to nothing, is dropped; 5 of them to hear of it."""


async def slow(scene: Scene, begin: bytes, count: int, within: float, *, tls: bool = True) -> None:
    """So many send the beginning of something, and then a byte per second: they are dropped, and others served."""
    async with AsyncExitStack() as stack:
        lines: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        for _ in range(count):
            lines.append(await stack.enter_async_context(scene.line(tls=tls)))
            lines[-1][1].write(begin)
        ended = asyncio.gather(*(_dripped(reader, writer) for reader, writer in lines))
        began = time.monotonic()
        try:
            while not ended.done() and time.monotonic() < began + within + SLACK:
                await scene.well()
                await asyncio.sleep(1)
            scene.stage.holds(ended.done(), f"somebody who sends next to nothing is still there after {within:g} s")
            scene.stage.holds(not any(b'"allowed":true' in found for found in await ended), "allowed")
        finally:
            ended.cancel()
            await asyncio.gather(ended, return_exceptions=True)


async def _dripped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Send a byte each second until the other side closes the connection; what it said."""
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


async def idle(scene: Scene, count: int, within: float, *, tls: bool) -> None:
    """So many connections on which nothing is ever said; they go in the end."""
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(scene.line(tls=tls)) for _ in range(count)]
        await scene.well()

        async def gone() -> bool:
            await scene.well()
            return all(reader.at_eof() or reader.exception() for reader, _ in lines)

        await until(gone, within + SLACK, "silent connections are closed")


async def large_at_once(scene: Scene, count: int, data: bytes) -> None:
    """So many bodies at once, none of them finished."""
    async with AsyncExitStack() as stack:
        for _ in range(count):
            _, writer = await stack.enter_async_context(scene.line())
            writer.write(data)
        for _ in range(10):
            await scene.well()
            await asyncio.sleep(0.5)
    await scene.well()
