"""Work that concurrent callers share, and work that blocks."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from threading import Thread
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


def in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """The result of work that blocks, in a thread of its own. The process ends without waiting for it."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except Exception as error:  # noqa: BLE001 - the edge of the thread: the caller gets it
            result.set_exception(error)

    Thread(target=run, daemon=True).start()
    return asyncio.wrap_future(result)
