"""Background tasks that run for the duration of a `with` block, and the measured work of a task."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Measured(Generic[T]):
    """A coroutine to await once. `busy`: seconds of the processor that it has used so far.

    For as long, it has kept the event loop from other work. Time for which a busy machine does not run the process does
    not count.
    """

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self.busy = 0.0

    def __await__(self) -> Generator[Any, Any, T]:
        step: Callable[[], Any] = partial(self._work.send, None)
        while True:
            started = time.thread_time()
            try:
                waits_for = step()
            except StopIteration as end:
                return end.value
            finally:
                self.busy += time.thread_time() - started
            try:
                reply = yield waits_for
            except BaseException as error:  # noqa: BLE001 - of the coroutine, such as its cancellation
                step = partial(self._work.throw, error)
            else:
                step = partial(self._work.send, reply)


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
