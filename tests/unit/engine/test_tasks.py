import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from memcached_operator.engine.runtime.tasks import Measured, background


class BrokenError(Exception):
    """The error of a failing task."""


async def fail() -> None:
    """Fail."""
    await asyncio.sleep(0)
    raise BrokenError


def work_for(seconds: float) -> None:
    """Use the processor."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def run_until_cancelled(ended: list[bool]) -> None:
    """Run until cancelled, then append to `ended`."""
    try:
        await asyncio.Event().wait()
    finally:
        ended.append(True)


def test_background_task_ends_with_the_block() -> None:
    ended: list[bool] = []

    async def run() -> None:
        async with background(asyncio.Event(), run_until_cancelled(ended)):
            await asyncio.sleep(0)

    asyncio.run(run())
    assert ended == [True]


def test_failure_in_the_background_sets_stop_and_is_raised_after_the_block() -> None:
    ended: list[bool] = []

    async def run() -> None:
        stop = asyncio.Event()
        async with background(stop, fail(), run_until_cancelled(ended)), asyncio.timeout(5):
            await stop.wait()

    with pytest.raises(BrokenError):
        asyncio.run(run())
    assert ended == [True]


def test_background_task_that_returns_sets_stop() -> None:
    async def run() -> None:
        stop = asyncio.Event()
        async with background(stop, asyncio.sleep(0)), asyncio.timeout(5):
            await stop.wait()

    asyncio.run(run())


def test_error_of_the_block_is_raised() -> None:
    async def run() -> None:
        async with background(asyncio.Event(), run_until_cancelled([])):
            raise BrokenError

    with pytest.raises(BrokenError):
        asyncio.run(run())


def test_failure_in_the_background_is_raised_although_the_block_is_cancelled() -> None:
    ended: list[bool] = []

    async def run() -> None:
        stop = asyncio.Event()

        async def block() -> None:
            async with background(stop, fail(), run_until_cancelled(ended)):
                await asyncio.Event().wait()

        task = asyncio.create_task(block())
        async with asyncio.timeout(5):
            await stop.wait()
        task.cancel()
        await asyncio.wait((task,))
        assert not task.cancelled()
        task.result()

    with pytest.raises(BrokenError):
        asyncio.run(run())
    assert ended == [True]


def test_cancelled_block_without_failure_is_cancelled() -> None:
    ended: list[bool] = []

    async def run() -> None:
        async with background(asyncio.Event(), run_until_cancelled(ended)):
            await asyncio.Event().wait()

    async def cancelled() -> bool:
        task = asyncio.create_task(run())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait((task,))
        return task.cancelled()

    assert asyncio.run(cancelled())
    assert ended == [True]


def test_work_is_measured_without_the_time_for_which_it_waits() -> None:
    async def work() -> str:
        work_for(0.05)
        await asyncio.sleep(0.2)
        work_for(0.05)
        time.sleep(0.2)  # noqa: ASYNC251 - as if the machine did not run the process
        return "result"

    async def run() -> None:
        measured = Measured(work())
        started = time.monotonic()
        assert await measured == "result"
        assert 0.1 <= measured.busy <= time.monotonic() - started - 0.4

    asyncio.run(run())


def test_error_of_measured_work_is_raised() -> None:
    async def run() -> None:
        await Measured(fail())

    with pytest.raises(BrokenError):
        asyncio.run(run())


def test_error_that_measured_work_waits_for_can_be_handled_by_it() -> None:
    async def work() -> str:
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.01)
        except TimeoutError:
            return "handled"
        return "not raised"

    async def run() -> str:
        return await Measured(work())

    assert asyncio.run(run()) == "handled"


async def yield_until_cancelled(ended: list[bool]) -> None:
    """Yield without waiting for anything until cancelled, then append to `ended`."""
    try:
        for _ in range(100_000):
            await asyncio.sleep(0)
    finally:
        ended.append(True)


@pytest.mark.parametrize("work", [run_until_cancelled, yield_until_cancelled])
def test_measured_work_is_cancelled_with_its_task(work: Callable[[list[bool]], Coroutine[Any, Any, None]]) -> None:
    ended: list[bool] = []

    async def run() -> None:
        measured = Measured(work(ended))

        async def task() -> None:
            await measured

        running = asyncio.create_task(task())
        await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait((running,))
        assert running.cancelled()

    asyncio.run(run())
    assert ended == [True]
