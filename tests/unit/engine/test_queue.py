import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcached_operator.engine.runtime.queue import (
    BASE_DELAY,
    JITTER,
    MAX_DELAY,
    MAX_OLD_TIMERS,
    MIN_PAUSE,
    Queue,
    backoff,
)

Scenario = Callable[[Queue[str]], Coroutine[Any, Any, None]]
SHORT = 0.05


def run_scenario(scenario: Scenario) -> None:
    """Run a scenario while the queue's timers run."""

    async def run() -> None:
        queue: Queue[str] = Queue("test")
        timers = asyncio.create_task(queue.run_timers())
        try:
            async with asyncio.timeout(5):
                await scenario(queue)
        finally:
            timers.cancel()

    asyncio.run(run())


async def stays_empty(queue: Queue[str], seconds: float = SHORT) -> bool:
    """True if the queue returns no key for this long."""
    try:
        async with asyncio.timeout(seconds):
            await queue.get()
    except TimeoutError:
        return True
    return False


def test_keys_are_returned_in_the_order_they_were_added() -> None:
    async def scenario(queue: Queue[str]) -> None:
        for key in "abc":
            queue.add(key)
        assert [await queue.get() for _ in "abc"] == ["a", "b", "c"]

    run_scenario(scenario)


def test_flows_are_served_in_turn() -> None:
    async def scenario() -> None:
        queue: Queue[str] = Queue("test", flow=lambda key: key[0])
        for key in ("a1", "a2", "a3", "a4", "b1", "b2", "c1"):
            queue.add(key)
        first = [await queue.get() for _ in range(3)]
        queue.add("b3")
        queue.add("d1")
        assert first == ["a1", "b1", "c1"]
        assert [await queue.get() for _ in range(6)] == ["a2", "b2", "d1", "a3", "b3", "a4"]

    asyncio.run(scenario())


def test_flow_pauses_as_long_as_it_was_busy() -> None:
    async def scenario() -> None:
        queue: Queue[str] = Queue("test", flow=lambda key: key[0])
        for key in ("a1", "a2", "a3", "b1"):
            queue.add(key)
        assert [await queue.get(), await queue.get()] == ["a1", "b1"]
        loop = asyncio.get_running_loop()
        started = loop.time()
        queue.done("a1", 2 * SHORT)
        assert await queue.get() == "a2"
        assert 2 * SHORT <= loop.time() - started < 1
        # The pauses of keys that were processed at the same time follow each other.
        started = loop.time()
        queue.add("a1")
        assert await queue.get() == "a3"
        queue.done("a2", 2 * SHORT)
        queue.done("a3", 2 * SHORT)
        queue.add("b2")
        assert await queue.get() == "b2"
        assert await queue.get() == "a1"
        assert 4 * SHORT <= loop.time() - started < 1

    asyncio.run(scenario())


def test_short_work_causes_no_pause() -> None:
    async def scenario(queue: Queue[str]) -> None:
        for _ in range(50):
            queue.add("a")
            assert await queue.get() == "a"
            queue.done("a", 0.9 * MIN_PAUSE)
        assert not vars(queue)["_paused_until"]

    run_scenario(scenario)


def test_key_is_queued_only_once() -> None:
    async def scenario(queue: Queue[str]) -> None:
        queue.add("a")
        queue.add("a")
        assert await queue.get() == "a"
        assert await stays_empty(queue)

    run_scenario(scenario)


def test_key_added_while_processed_is_queued_again_when_done() -> None:
    async def scenario(queue: Queue[str]) -> None:
        queue.add("a")
        await queue.get()
        queue.add("a")
        queue.add("a")
        assert await stays_empty(queue)
        queue.done("a")
        assert await queue.get() == "a"
        queue.done("a")
        assert await stays_empty(queue)

    run_scenario(scenario)


def test_key_in_process_does_not_block_others() -> None:
    async def scenario(queue: Queue[str]) -> None:
        queue.add("a")
        await queue.get()
        queue.add("a")
        queue.add("b")
        assert await queue.get() == "b"

    run_scenario(scenario)


def test_waiting_workers_are_woken() -> None:
    async def scenario(queue: Queue[str]) -> None:
        waiters = [asyncio.create_task(queue.get()) for _ in range(3)]
        await asyncio.sleep(0)
        for key in "abc":
            queue.add(key)
        assert sorted(await asyncio.gather(*waiters)) == ["a", "b", "c"]

    run_scenario(scenario)


def test_cancelled_waiter_takes_no_key() -> None:
    async def scenario(queue: Queue[str]) -> None:
        assert await stays_empty(queue)
        queue.add("a")
        assert await queue.get() == "a"

    run_scenario(scenario)


def test_delayed_key_is_queued_when_due() -> None:
    async def scenario(queue: Queue[str]) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        queue.add_after("a", 2 * SHORT)
        assert await queue.get() == "a"
        assert 2 * SHORT <= loop.time() - started < 1

    run_scenario(scenario)


def test_delayed_keys_are_queued_in_order_of_time() -> None:
    async def scenario(queue: Queue[str]) -> None:
        queue.add_after("late", 2 * SHORT)
        queue.add_after("early", SHORT)
        assert [await queue.get(), await queue.get()] == ["early", "late"]

    run_scenario(scenario)


@pytest.mark.parametrize("delays", [(3600.0, SHORT), (SHORT, 3600.0)], ids=["later first", "earlier first"])
def test_shorter_of_two_delays_counts(delays: tuple[float, float]) -> None:
    async def scenario(queue: Queue[str]) -> None:
        for delay in delays:
            queue.add_after("a", delay)
        assert await queue.get() == "a"

    run_scenario(scenario)


def test_processing_a_key_cancels_its_delay() -> None:
    async def scenario(queue: Queue[str]) -> None:
        queue.add_after("a", SHORT)
        queue.add("a")
        assert await queue.get() == "a"
        queue.done("a")
        assert await stays_empty(queue, 3 * SHORT)

    run_scenario(scenario)


def test_queued_key_is_not_delayed() -> None:
    async def scenario(queue: Queue[str]) -> None:
        queue.add("a")
        queue.add_after("a", SHORT)
        assert await queue.get() == "a"
        queue.done("a")
        assert await stays_empty(queue, 3 * SHORT)

    run_scenario(scenario)


def test_key_can_be_delayed_while_processed() -> None:
    async def scenario(queue: Queue[str]) -> None:
        queue.add("a")
        await queue.get()
        queue.add_after("a", SHORT)
        queue.done("a")
        assert await queue.get() == "a"

    run_scenario(scenario)


def test_failures_are_counted_until_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.engine.runtime.queue.BASE_DELAY", SHORT)

    async def scenario(queue: Queue[str]) -> None:
        for _ in range(3):
            await asyncio.sleep(queue.retry("a") + SHORT / 10)
        assert queue.failures("a") == 3
        queue.forget("a")
        assert queue.failures("a") == 0
        assert queue.retry("a") <= SHORT * (1 + JITTER)

    run_scenario(scenario)


def test_events_do_not_lengthen_the_backoff() -> None:
    async def scenario(queue: Queue[str]) -> None:
        first = queue.retry("a")
        for _ in range(20):
            queue.add("a")
            await queue.get()
            assert queue.retry("a") <= first
            queue.done("a")
        assert queue.failures("a") == 1

    run_scenario(scenario)


def test_failures_of_one_key_do_not_delay_another() -> None:
    async def scenario(queue: Queue[str]) -> None:
        queue.retry("a", min_delay=300)
        assert queue.retry("b") <= BASE_DELAY * (1 + JITTER)

    run_scenario(scenario)


def test_retry_delay_is_at_least_the_given_minimum() -> None:
    async def scenario(queue: Queue[str]) -> None:
        assert queue.retry("a", min_delay=17) == 17

    run_scenario(scenario)


def test_failed_key_is_queued_again_after_its_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memcached_operator.engine.runtime.queue.BASE_DELAY", SHORT)

    async def scenario(queue: Queue[str]) -> None:
        queue.add("a")
        await queue.get()
        queue.retry("a")
        queue.done("a")
        assert await queue.get() == "a"

    run_scenario(scenario)


def test_backoff_doubles() -> None:
    assert [backoff(failures, 0.5) for failures in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_backoff_stays_within_its_bounds(failures: int, random_fraction: float) -> None:
    assert BASE_DELAY * (1 - JITTER) <= backoff(failures, random_fraction) <= MAX_DELAY


def test_maximum_delay_is_configurable() -> None:
    assert [backoff(failures, 1, 2.0) for failures in (1, 3, 100)] == [0.5 * (1 + JITTER), 2.0, 2.0]


@given(st.integers(1, 10_000))
def test_every_backoff_is_spread_by_the_jitter(failures: int) -> None:
    assert backoff(failures, 1) / backoff(failures, 0) == pytest.approx((1 + JITTER) / (1 - JITTER))


def test_timers_of_keys_that_were_enqueued_earlier_take_little_memory() -> None:
    async def scenario(queue: Queue[str]) -> None:
        queue.add_after("b", 3600)
        for _ in range(3 * MAX_OLD_TIMERS):
            queue.add_after("a", 3600)
            queue.add("a")
            queue.done(await queue.get())
        queue.add_after("a", SHORT)
        assert len(vars(queue)["_timers"]) <= MAX_OLD_TIMERS + 5
        assert "b" in [key for *_, key in vars(queue)["_timers"]], "a timer that counts is kept"
        assert await queue.get() == "a"

    run_scenario(scenario)
