"""An event loop in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Final, Self, TypeVar

T = TypeVar("T")

JOIN_TIMEOUT: Final = 5.0
"""Seconds to wait for the end of the thread. It is a daemon, so it does not outlive the process."""


class EventLoopThread:
    """Runs coroutines in a thread, for the duration of a `with` block: the work of the caller's event loop does not
    delay them. What they open, such as a session, must be opened, used and closed there.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)

    async def __aenter__(self) -> Self:
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(JOIN_TIMEOUT)
        if not self._thread.is_alive():
            self._loop.close()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread, and return its result or raise its error.

        If the caller is cancelled, the coroutine is cancelled too, and has ended when this call ends.
        """
        caller = asyncio.get_running_loop()
        ended: asyncio.Future[None] = caller.create_future()
        tasks: list[asyncio.Task[T]] = []

        def begin() -> None:
            task = self._loop.create_task(work)
            tasks.append(task)
            task.add_done_callback(lambda _: caller.call_soon_threadsafe(ended.set_result, None))

        self._loop.call_soon_threadsafe(begin)
        cancelled: asyncio.CancelledError | None = None
        while not ended.done():
            try:
                await asyncio.shield(ended)
            except asyncio.CancelledError as error:
                if cancelled is None:  # a second one would end what the coroutine does at its end
                    self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())
                cancelled = error
        if cancelled is not None:
            raise cancelled
        return tasks[0].result()
