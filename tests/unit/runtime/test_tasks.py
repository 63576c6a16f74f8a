import asyncio

import pytest

from memcached_operator.runtime.tasks import background


class BrokenError(Exception):
    """What a test raises."""


async def fails() -> None:
    """Raise."""
    await asyncio.sleep(0)
    raise BrokenError


async def lasts(ended: list[bool]) -> None:
    """Last until cancelled."""
    try:
        await asyncio.Event().wait()
    finally:
        ended.append(True)


def test_what_runs_in_the_background_ends_with_the_block() -> None:
    ended: list[bool] = []

    async def run() -> None:
        async with background(asyncio.Event(), lasts(ended)):
            await asyncio.sleep(0)

    asyncio.run(run())
    assert ended == [True]


def test_what_fails_in_the_background_stops_the_block_and_is_raised_after_it() -> None:
    ended: list[bool] = []

    async def run() -> None:
        stop = asyncio.Event()
        async with background(stop, fails(), lasts(ended)), asyncio.timeout(5):
            await stop.wait()

    with pytest.raises(BrokenError):
        asyncio.run(run())
    assert ended == [True]


def test_what_comes_to_its_end_stops_the_block_too() -> None:
    async def run() -> None:
        stop = asyncio.Event()
        async with background(stop, asyncio.sleep(0)), asyncio.timeout(5):
            await stop.wait()

    asyncio.run(run())


def test_an_error_of_the_block_itself_comes_first() -> None:
    async def run() -> None:
        async with background(asyncio.Event(), lasts([])):
            raise BrokenError

    with pytest.raises(BrokenError):
        asyncio.run(run())


def test_the_error_of_what_failed_is_raised_although_the_block_was_cancelled_because_of_it() -> None:
    ended: list[bool] = []

    async def run() -> None:
        stop = asyncio.Event()

        async def block() -> None:
            async with background(stop, fails(), lasts(ended)):
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


def test_a_block_cancelled_while_all_is_well_is_cancelled() -> None:
    ended: list[bool] = []

    async def run() -> None:
        async with background(asyncio.Event(), lasts(ended)):
            await asyncio.Event().wait()

    async def cancelled() -> bool:
        task = asyncio.create_task(run())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait((task,))
        return task.cancelled()

    assert asyncio.run(cancelled())
    assert ended == [True]
