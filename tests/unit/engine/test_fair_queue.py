"""Which of the waiting keys is processed next, and how many at the same time."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memcached_operator.engine.runtime.fair_queue import LARGE, MAX_LARGE, FairQueue, Limits, ReadyKeys
from memcached_operator.engine.runtime.queue import Queue


def test_keys_of_a_flow_that_is_excluded_are_not_taken() -> None:
    queue: FairQueue[str] = FairQueue(lambda key: key[0])
    queue.append("a1")
    assert queue.peek({"a"}) is None
    with pytest.raises(KeyError):
        queue.popleft({"a"})
    assert (queue.peek({"b"}), queue.popleft({"b"}), len(queue)) == ("a1", "a1", 0)


def ready(sizes: dict[str, int], in_flow: int | None = None) -> ReadyKeys[str]:
    """Waiting keys of these sizes; the flow of a key is its first letter."""
    found = ReadyKeys[str](lambda key: key[0], Limits(in_flow, lambda key: sizes.get(key, 0)))
    for key in sizes:
        found.append(key)
    return found


def take_all(keys: ReadyKeys[str]) -> list[str]:
    """The keys that can be processed now, in order."""
    taken: list[str] = []
    while (key := keys.take()) is not None:
        taken.append(key)
    return taken


def test_full_flow_keeps_its_turn() -> None:
    keys = ready(dict.fromkeys(["a1", "a2", "a3", "a4", "b1"], 0), in_flow=2)
    assert take_all(keys) == ["a1", "b1", "a2"]
    keys.append("b2")
    keys.append("b3")
    keys.done("a1")
    assert take_all(keys) == ["a3", "b2"]
    keys.done("a2")
    keys.done("b1")
    assert take_all(keys) == ["a4", "b3"]


THIRD, HALF, MOST = MAX_LARGE // 3, MAX_LARGE // 2, MAX_LARGE - LARGE + 1


def test_large_keys_are_processed_in_the_order_of_flows_and_within_the_limit() -> None:
    keys = ready({"a1": THIRD, "a2": THIRD, "a3": THIRD, "a4": THIRD, "b1": THIRD})
    assert take_all(keys) == ["a1", "b1", "a2"]
    keys.done("b1")
    assert take_all(keys) == ["a3"]


def test_large_key_is_not_overtaken_by_smaller_ones_that_would_fit() -> None:
    sizes = {"a1": LARGE, "a2": LARGE, "b1": MOST}
    keys = ready(sizes)
    assert take_all(keys) == ["a1"]
    for number in range(3, 6):
        sizes[f"a{number}"] = LARGE
        keys.append(f"a{number}")
    assert take_all(keys) == []
    keys.done("a1")
    assert take_all(keys) == ["b1"]
    keys.done("b1")
    assert take_all(keys) == ["a2", "a3", "a4", "a5"]


def test_key_above_the_limit_is_processed_alone() -> None:
    keys = ready({"a1": 2 * MAX_LARGE, "b1": 2 * MAX_LARGE, "b2": 0})
    assert take_all(keys) == ["a1", "b2"]
    keys.done("a1")
    assert take_all(keys) == ["b1"]


def test_small_and_large_keys_are_served_alternately() -> None:
    sizes = {"a1": LARGE, "a2": LARGE, "a3": LARGE, "b1": 0, "b2": 0, "b3": 0}
    assert take_all(ready(sizes)) == ["a1", "b1", "a2", "b2", "a3", "b3"]


def test_key_that_has_grown_while_it_waited_is_large() -> None:
    sizes = {"a1": HALF, "b1": 0, "c1": 0}
    keys = ready(sizes)
    sizes["b1"] = MAX_LARGE
    assert take_all(keys) == ["a1", "c1"]
    keys.done("a1")
    assert take_all(keys) == ["b1"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2 * MAX_LARGE)), max_size=40), st.integers(1, 4))
def test_every_key_is_served_within_the_limits(wanted: Sequence[tuple[str, int]], in_flow: int) -> None:
    sizes = {f"{flow}{number}": size for number, (flow, size) in enumerate(wanted)}
    keys = ready(sizes, in_flow)
    served: list[str] = []
    processed: list[str] = []
    while len(keys) or processed:
        processed += take_all(keys)
        large = [sizes[key] for key in processed if sizes[key] >= LARGE]
        assert sum(large) <= MAX_LARGE or len(large) == 1
        assert all(len([key for key in processed if key[0] == flow]) <= in_flow for flow in "abc")
        served.append(processed.pop(0))
        keys.done(served[-1])
    assert sorted(served) == sorted(sizes)


def test_workers_that_wait_are_woken_when_keys_can_be_processed() -> None:
    sizes = {"a1": MAX_LARGE, "a2": THIRD, "b1": THIRD}

    async def run() -> None:
        queue = Queue[str]("test", lambda key: key[0], limits=Limits(size=lambda key: sizes.get(key, 0)))
        workers = [asyncio.create_task(queue.get()) for _ in range(4)]
        await asyncio.sleep(0)
        for key in sizes:
            queue.add(key)
        async with asyncio.timeout(5):
            first, second, third, fourth = asyncio.as_completed(workers)
            assert await first == "a1"
            queue.add("c1")
            assert await second == "c1"
            queue.done("a1")  # by a worker that does not come back
            assert {await third, await fourth} == {"a2", "b1"}

    asyncio.run(run())


def test_worker_of_a_full_flow_waits_until_a_key_is_done() -> None:
    async def run() -> None:
        queue = Queue[str]("test", lambda key: key[0], limits=Limits(in_flow=1))
        queue.add("a1")
        queue.add("a2")
        assert await queue.get() == "a1"
        worker = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not worker.done()
        queue.done("a1")
        async with asyncio.timeout(5):
            assert await worker == "a2"

    asyncio.run(run())
