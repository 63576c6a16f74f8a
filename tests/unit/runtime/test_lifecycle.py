import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from memcached_operator.runtime import lifecycle


def live(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run some work to its end, within seconds."""

    async def run() -> None:
        async with asyncio.timeout(10):
            stop = asyncio.Event()
            await lifecycle.run(work, stop)

    asyncio.run(run())


def test_work_that_ends_ends_it() -> None:
    done: list[str] = []

    async def work(_: asyncio.Event) -> None:
        done.append("work")

    live(work)
    assert done == ["work"]


def test_the_error_of_the_work_is_raised() -> None:
    async def work(_: asyncio.Event) -> None:
        raise OSError("no way to go on")

    with pytest.raises(OSError, match="no way to go on"):
        live(work)


async def by_signal(number: int, stop: asyncio.Event) -> None:
    """A signal arrives."""
    os.kill(os.getpid(), number)
    await stop.wait()


async def by_flag(stop: asyncio.Event) -> None:
    """Somebody sets the flag."""
    stop.set()


ENDS: dict[str, Callable[[asyncio.Event], Coroutine[Any, Any, None]]] = {
    "SIGTERM": lambda stop: by_signal(signal.SIGTERM, stop),
    "SIGINT": lambda stop: by_signal(signal.SIGINT, stop),
    "the flag": by_flag,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_the_work_is_let_end_by_itself(
    end: Callable[[asyncio.Event], Coroutine[Any, Any, None]], caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    async def work(stop: asyncio.Event) -> None:
        await end(stop)
        await asyncio.sleep(0.2)
        done.append("orderly")

    live(work)
    assert done == ["orderly"]
    assert not [record.message for record in caplog.records if record.name.startswith("kopf")]
