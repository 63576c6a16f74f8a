"""Coroutines in the thread of another event loop, and the Lease, which is renewed there."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest
from aiohttp import web

from memcached_operator import app
from memcached_operator.engine.runtime import leader_election
from memcached_operator.engine.runtime.leader_election import LeaseLostError, holder_of
from memcached_operator.engine.runtime.threads import EventLoopThread
from memcached_operator.kube.resource import Object
from unit.servers import serving

LIMIT = 20.0
"""Seconds until a condition must hold."""


class BrokenError(Exception):
    """The error of a failing coroutine."""


async def name_of_thread() -> str:
    """The name of the thread that runs this."""
    await asyncio.sleep(0)
    return threading.current_thread().name


async def fail() -> None:
    """Fail."""
    await asyncio.sleep(0)
    raise BrokenError


def test_coroutine_runs_in_the_thread_and_returns_its_result() -> None:
    async def run() -> str:
        async with EventLoopThread("other") as thread, asyncio.timeout(LIMIT):
            return await thread.run(name_of_thread())

    assert asyncio.run(run()) == "other"


def test_error_of_the_coroutine_is_raised() -> None:
    async def run() -> None:
        async with EventLoopThread("other") as thread, asyncio.timeout(LIMIT):
            await thread.run(fail())

    with pytest.raises(BrokenError):
        asyncio.run(run())


def test_cancelled_call_ends_after_its_coroutine() -> None:
    begun, ended = threading.Event(), list[str]()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            ended.append("work")

    async def run() -> None:
        async with EventLoopThread("other") as thread, asyncio.timeout(LIMIT):
            task = asyncio.create_task(thread.run(work()))
            while not begun.is_set():  # noqa: ASYNC110 - waits for the thread
                await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.sleep(0)
            task.cancel()  # a second time, while the coroutine ends
            await asyncio.wait((task,))
            ended.append("call")
            assert task.cancelled()

    asyncio.run(run())
    assert ended == ["work", "call"]


def test_thread_ends_with_the_block() -> None:
    async def run() -> None:
        async with EventLoopThread("that ends") as thread:
            pass
        assert vars(thread)["_loop"].is_closed()

    asyncio.run(run())
    assert "that ends" not in [thread.name for thread in threading.enumerate()]


class Leases:
    """An API server with one lease. Counts its writes."""

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.writes = 0

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            return web.json_response(self.lease or {}, status=200 if self.lease else 404)
        self.put(await request.json())
        return web.json_response(self.lease)

    def put(self, lease: Object) -> None:
        """Write the lease."""
        self.writes += 1
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self.writes)}}


def block_until(condition: Callable[[], bool]) -> None:
    """Keep the event loop busy until the condition is true."""
    until = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_busy_event_loop_delays_no_renewal_and_notices_a_lost_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_election, "RETRY_PERIOD", 0.05)
    leases = Leases()

    async def run() -> None:
        # The server has a thread of its own, because the event loop of the test does not run.
        async with EventLoopThread("server") as server:
            served = serving(leases)
            config = await server.run(served.__aenter__())
            async with app.election(config, "test") as (elector, thread):
                await thread.run(elector.acquire())
                renewing = asyncio.create_task(thread.run(elector.renew()))
                await asyncio.sleep(0)
                block_until(lambda: leases.writes >= 5)
                assert elector.is_leader()
                assert leases.lease is not None
                taken = {**leases.lease, "spec": {**leases.lease["spec"], "holderIdentity": "other"}}
                await server.run(put(taken))
                # Before the event loop runs again, nothing may be written any more.
                block_until(lambda: not elector.is_leader())
                with pytest.raises(LeaseLostError):
                    await renewing
            await server.run(served.__aexit__(None, None, None))

    async def put(lease: Object) -> None:
        leases.put(lease)

    asyncio.run(run())
    assert leases.lease is not None
    assert holder_of(leases.lease) == "other"


def test_lease_is_released_at_the_end() -> None:
    leases = Leases()

    async def run() -> None:
        async with serving(leases) as config, app.election(config, "test") as (elector, thread):
            await thread.run(elector.acquire())
            assert leases.lease is not None
            assert holder_of(leases.lease)

    asyncio.run(run())
    assert leases.lease is not None
    assert not holder_of(leases.lease)
