"""Statuses and their Events: when they are written, and how often, while requests fail and other clients write."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any, Final
from unittest import mock

import pytest
from aiohttp import web

from faults.calls import Entry
from faults.faulty import Exchange, Fault, Reject
from faults.rules import Rule
from faults.state import is_ready
from faults.workloads import IMAGE, OTHER_IMAGE
from memcached_operator.engine.reporting.conditions import START_PERIOD
from memcached_operator.engine.reporting.writer import STATUS_PERIOD
from memcached_operator.engine.runtime.queue import BASE_DELAY, JITTER
from memcached_operator.kube.client import MERGE_PATCH
from memcached_operator.kube.resource import DEPLOYMENTS, EVENTS, PODS, Object
from memcached_operator.memcached.controller import MEMCACHEDS
from simulation.api.kinds import Kind
from simulation.test_proxies import SETTLED, World, run

PATCH: Final = "patch memcacheds/status"
BROKEN: Final = Reject(500, "InternalError")


async def cache(world: World) -> None:
    """Create a Memcached, and wait until nothing changes any more."""
    await world.create(MEMCACHEDS, "cache", size=1, image=IMAGE)
    await asyncio.sleep(SETTLED)
    assert is_ready(live(world))


def live(world: World) -> Object:
    """The Memcached."""
    return world.get(MEMCACHEDS, "cache")


def patches(world: World) -> list[Entry]:
    """The patches of statuses that the operator has sent."""
    return [each for each in world.sandbox.proxy.requests.entries if each.call.matches(PATCH)]


def gaps(entries: list[Entry]) -> list[float]:
    """The seconds between requests."""
    return [later.at - earlier.at for earlier, later in pairwise(entries)]


def retry_delays(world: World) -> list[float]:
    """The seconds until the retry of each failed reconcile, from the log: they double while failures are counted."""
    return [float(each) for each in re.findall(r"retrying in ([\d.]+) s", world.sandbox.operator.log_text())]


async def write_status(world: World, **fields: Any) -> None:
    """Change fields of the status, as another client."""
    key = world.key(MEMCACHEDS, "cache")
    path = f"{key.resource.path(key.namespace, key.name)}/status"
    await world.sandbox.client.request("PATCH", path, {"status": fields}, MERGE_PATCH, {"fieldManager": "other"})


def unseen(world: World, change: Callable[[], Awaitable[Any]]) -> Fault:
    """Another client changes the Memcached before the API server receives the request; no event causes a reconcile."""

    async def fault(exchange: Exchange) -> web.StreamResponse:
        world.sandbox.proxy.hold(*(each.plural for each in (MEMCACHEDS, DEPLOYMENTS, PODS)))
        await change()
        return await exchange.forward()

    return fault


def test_status_recovers_with_the_api_server() -> None:
    async def scenario(world: World) -> None:
        await cache(world)
        (failing,) = world.sandbox.proxy.inject(Rule("patch deployments", BROKEN))
        await world.change(MEMCACHEDS, "cache", size=5)
        await asyncio.sleep(SETTLED)
        assert world.condition(MEMCACHEDS, "cache", "Degraded")[0] == "ApplyFailed"
        failing.stop()
        await asyncio.sleep(SETTLED)
        assert is_ready(live(world))
        assert world.get(DEPLOYMENTS, "cache")["spec"]["replicas"] == 5

    run(scenario)


def test_events_do_not_reset_the_backoff_of_a_failed_status_write() -> None:
    async def scenario(world: World) -> None:
        await cache(world)
        world.sandbox.proxy.inject(Rule(PATCH, BROKEN, seconds=8))
        for number in range(100):
            await world.sandbox.merge(world.key(MEMCACHEDS, "cache"), {"metadata": {"annotations": {"n": f"{number}"}}})
            if number == 0:
                await world.change(MEMCACHEDS, "cache", size=2)
            await asyncio.sleep(0.1)
        assert max(retry_delays(world)) >= 4 * BASE_DELAY * (1 - JITTER)
        await asyncio.sleep(SETTLED)
        assert is_ready(live(world))

    run(scenario, "--max-retry-delay=60")


def test_pending_status_does_not_keep_the_backoff_of_earlier_failures() -> None:
    """Another client scales the Deployment, and the first attempt to revert that fails each time."""

    async def scenario(world: World) -> None:
        await cache(world)
        written = len(patches(world))
        for _ in range(2):
            world.sandbox.proxy.inject(Rule("patch deployments", BROKEN, times=1))
            await world.sandbox.merge(world.key(DEPLOYMENTS, "cache"), {"spec": {"replicas": 2}})
            await asyncio.sleep(0.45 * START_PERIOD)
            assert world.get(DEPLOYMENTS, "cache")["spec"]["replicas"] == 1
        assert len(patches(world)) == written
        assert retry_delays(world) == pytest.approx([BASE_DELAY] * 2, rel=JITTER, abs=0.05)

    run(scenario)


def test_one_status_is_written_per_period_and_the_last_one_always() -> None:
    async def scenario(world: World) -> None:
        await cache(world)
        before = len(patches(world))
        for size in range(2, 30):
            await world.change(MEMCACHEDS, "cache", size=size)
            await asyncio.sleep(STATUS_PERIOD / 5)
        await asyncio.sleep(SETTLED)
        assert live(world)["status"]["observedGeneration"] == live(world)["metadata"]["generation"]
        found = gaps(patches(world)[before:])
        assert len(found) >= 3
        assert min(found) >= 0.99 * STATUS_PERIOD

    run(scenario)


def test_field_that_the_crd_prunes_is_not_written_repeatedly() -> None:
    """Another release has installed its CRD, which lacks a field."""
    decoded = Kind.decoded

    def pruned(self: Kind, obj: Object, live: Object | None = None) -> Object:
        found = decoded(self, obj, live)
        kept = {name: value for name, value in found.get("status", {}).items() if name != "nodes"}
        return {**found, "status": kept} if self.resource == MEMCACHEDS else found

    async def scenario(world: World) -> None:
        await world.create(MEMCACHEDS, "cache", size=1, image=IMAGE)
        await asyncio.sleep(SETTLED)
        assert "nodes" not in live(world)["status"]
        written = len(patches(world))
        for number in range(10):
            await world.sandbox.merge(world.key(MEMCACHEDS, "cache"), {"metadata": {"annotations": {"n": f"{number}"}}})
            await asyncio.sleep(SETTLED)
        assert len(patches(world)) == written <= 5
        await world.change(MEMCACHEDS, "cache", size=2)
        await asyncio.sleep(SETTLED)
        assert live(world)["status"]["observedGeneration"] == 2

    with mock.patch.object(Kind, "decoded", pruned):
        run(scenario)


def test_status_changed_by_another_client_is_corrected() -> None:
    async def scenario(world: World) -> None:
        await cache(world)
        expected = live(world)["status"]
        await write_status(world, observedGeneration=0, nodes=["other"])
        await asyncio.sleep(SETTLED)
        assert live(world)["status"] == expected

    run(scenario)


def test_status_that_another_client_writes_at_the_same_time_is_corrected() -> None:
    async def scenario(world: World) -> None:
        await cache(world)
        selector = live(world)["status"]["selector"]
        write = unseen(world, lambda: write_status(world, selector="other"))
        (active,) = world.sandbox.proxy.inject(Rule(PATCH, write, times=1))
        await world.change(MEMCACHEDS, "cache", size=2)
        await asyncio.sleep(SETTLED)
        assert live(world)["status"]["observedGeneration"] == 2
        assert live(world)["status"]["selector"] == selector
        assert active.hits == 1

    run(scenario)


def test_each_change_is_one_event() -> None:
    """A pod that is not available for a moment is not the end of a rollout."""

    async def scenario(world: World) -> None:
        await cache(world)
        await world.change(MEMCACHEDS, "cache", image=OTHER_IMAGE)
        await asyncio.sleep(SETTLED)
        (pod,) = world.pods("cache")
        await world.sandbox.delete(PODS, pod["metadata"]["name"])
        await asyncio.sleep(2 * SETTLED)
        assert is_ready(live(world))
        events = [(each["type"], each["reason"]) for each in world.plane.server.of(EVENTS).values()]
        assert [each for each in events if each[1] != "Created"] == [
            ("Normal", "MinimumReplicasAvailable"),
            ("Normal", "RolloutStarted"),
            ("Normal", "RolloutComplete"),
            ("Warning", "MinimumReplicasUnavailable"),
            ("Normal", "MinimumReplicasAvailable"),
        ]

    run(scenario)
