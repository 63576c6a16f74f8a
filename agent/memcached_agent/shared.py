"""Work that concurrent callers share."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Runs a coroutine function once at a time; callers that arrive meanwhile get the same result.

    A cancelled caller does not cancel the work.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """The result of the active run, or of a new one."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await asyncio.shield(self._task)
