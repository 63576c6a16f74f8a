import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from memcached_operator.runtime import lifecycle


def run_work(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run the work; fails after 10 s."""

    async def run() -> None:
        async with asyncio.timeout(10):
            stop = asyncio.Event()
            await lifecycle.run(work, stop)

    asyncio.run(run())


def test_run_ends_with_the_work() -> None:
    done: list[str] = []

    async def work(_: asyncio.Event) -> None:
        done.append("work")

    run_work(work)
    assert done == ["work"]


def test_error_of_the_work_is_raised() -> None:
    async def work(_: asyncio.Event) -> None:
        raise OSError("cannot continue")

    with pytest.raises(OSError, match="cannot continue"):
        run_work(work)


async def send_signal(number: int, stop: asyncio.Event) -> None:
    """Send a signal to this process and wait for `stop`."""
    os.kill(os.getpid(), number)
    await stop.wait()


async def set_stop(stop: asyncio.Event) -> None:
    """Set `stop`."""
    stop.set()


STOPS: dict[str, Callable[[asyncio.Event], Coroutine[Any, Any, None]]] = {
    "SIGTERM": lambda stop: send_signal(signal.SIGTERM, stop),
    "SIGINT": lambda stop: send_signal(signal.SIGINT, stop),
    "stop": set_stop,
}


@pytest.mark.parametrize("stop_by", STOPS.values(), ids=STOPS.keys())
def test_work_may_finish_after_stop(
    stop_by: Callable[[asyncio.Event], Coroutine[Any, Any, None]], caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    async def work(stop: asyncio.Event) -> None:
        await stop_by(stop)
        await asyncio.sleep(0.2)
        done.append("finished")

    run_work(work)
    assert done == ["finished"]
    assert not [record.message for record in caplog.records if record.name.startswith("kopf")]
