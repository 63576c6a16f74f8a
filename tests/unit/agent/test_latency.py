"""The histogram of the times that memcached takes to answer."""

import asyncio
from collections.abc import Iterable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.memcached.errors import MemcachedError
from memcached_agent.metrics.exposition import Family, render
from memcached_agent.metrics.histogram import Histogram
from memcached_agent.metrics.latency import BUCKETS, DURATION, Latency
from support.streams import until

from .memcacheds import CLOSE, FakeMemcached, replies_again, with_client


def buckets(families: Iterable[Family]) -> dict[str, float]:
    """The samples of the histogram, by the limit of the bucket, `sum` and `count`."""
    (family,) = text_string_to_metric_families(render(families).decode())
    assert (family.name, family.type) == (DURATION.name, "histogram")
    return {each.labels.get("le", each.name.rpartition("_")[2]): each.value for each in family.samples}


def test_times_are_counted_up_to_each_limit() -> None:
    histogram = Histogram(DURATION, BUCKETS)
    for seconds in (0.0001, 0.0002, 0.3, 1.5):
        histogram.observe(seconds)
    found = buckets([histogram.family()])
    assert list(found) == [*map(str, BUCKETS), "+Inf", "sum", "count"]
    expected = {"0.0001": 1, "0.00025": 2, "0.25": 2, "0.5": 3, "1.0": 3, "+Inf": 4, "sum": 1.8003, "count": 4}
    assert {name: found[name] for name in expected} == expected


def test_a_command_without_effect_is_timed_periodically() -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await replies_again(client)
        memcached.delay = 0.02
        latency = Latency(client, period=0.001)
        task = asyncio.create_task(latency.run())
        await until(lambda: buckets(latency.metrics())["count"] >= 3)
        task.cancel()
        found = buckets(latency.metrics())
        assert (found["0.01"], memcached.connections) == (0, 1)
        assert found["sum"] >= 0.06
        assert set(memcached.commands) == {"version", "mn"}

    with_client(scenario)


def test_an_empty_histogram_has_all_its_buckets() -> None:
    async def scenario(_: FakeMemcached, client: MemcachedClient) -> None:
        assert set(buckets(Latency(client).metrics()).values()) == {0}

    with_client(scenario)


def test_a_memcached_that_does_not_know_the_command_is_not_timed_and_stays_connected() -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await replies_again(client)
        memcached.replies["mn"] = b"ERROR\r\n"
        assert await client.no_op() is None
        assert (memcached.connections, set(client.errors.values())) == (1, {0})

    with_client(scenario)


@pytest.mark.parametrize(("reply", "reason"), [(b"EN\r\n", "protocol"), (CLOSE, "closed")])
def test_failures_are_not_timed(reply: bytes | None, reason: str) -> None:
    async def scenario(memcached: FakeMemcached, client: MemcachedClient) -> None:
        await replies_again(client)
        memcached.replies["mn"] = reply
        with pytest.raises(MemcachedError) as raised:
            await client.no_op()
        assert raised.value.reason == reason
        latency = Latency(client, period=0.001)
        task = asyncio.create_task(latency.run())
        await until(lambda: client.errors[raised.value.reason] >= 2)
        task.cancel()
        assert buckets(latency.metrics())["count"] == 0

    with_client(scenario)
