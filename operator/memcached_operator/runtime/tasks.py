"""Tasks that run beside something, and end with it."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def background(stop: asyncio.Event, *coroutines: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Run coroutines while the block runs. One that ends by itself sets `stop`; its error is raised at the end."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    for task in tasks:
        task.add_done_callback(lambda _: stop.set())
    try:
        yield
    finally:
        ended = [task for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Also where the block was cancelled, because of the very task that failed: its error must not be lost.
        for task in ended:
            task.result()
