"""Background tasks that run for the duration of a `with` block."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def background(stop: asyncio.Event, *coroutines: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Run coroutines while the block runs. If one ends early, `stop` is set; its error is raised at the end."""
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
        # Raised even if the block was cancelled because of the failed task: its error must not be lost.
        for task in ended:
            task.result()
