"""The lists of the real controller: their order at the start, their period, and resources that are not served."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from itertools import pairwise
from typing import Final

import pytest

from faults.calls import Entry
from faults.faulty import Delay, Reject
from faults.rules import Rule
from faults.sandbox import LONG_SYNC_PERIOD
from faults.state import is_ready
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.engine.manager import START_GRACE
from memcached_operator.kube.resource import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    POD_MONITORS,
    PODS,
    SERVICES,
    Resource,
)
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES
from memcached_operator.world.reflector import MISSING_PERIOD
from simulation.operator import START
from simulation.test_proxies import IMAGE, NAMESPACE, SETTLED, World, run
from simulation.test_proxy_faults import unserved

KINDS: Final = {"memcacheds", "memcachedproxies", "appservices"}


def lists(world: World, resource: str = "*") -> list[Entry]:
    """The lists of a resource that the operator has sent."""
    return [each for each in world.sandbox.proxy.requests.entries if each.call.matches(f"list {resource}")]


@contextmanager
def missing(world: World, resource: Resource) -> Generator[None]:
    """The API server does not serve a resource: it is in no list of resources, and lists of it fail."""
    (active,) = world.sandbox.proxy.inject(Rule(f"list {resource.plural}", Reject(404, "NotFound")))
    with unserved(resource):
        yield
    active.stop()


async def monitored(world: World) -> None:
    """Create a Memcached with a PodMonitor at the start, and wait until nothing changes any more."""
    await world.create(MEMCACHEDS, "cache", size=1, image=IMAGE, monitoring={"podMonitor": {}})
    await asyncio.sleep(START_GRACE - START)
    assert world.key(DEPLOYMENTS, "cache") in world.plane.server.objects, "it waits for no list"
    await asyncio.sleep(SETTLED)
    assert is_ready(world.get(MEMCACHEDS, "cache"))


def is_monitored(world: World) -> bool:
    """Whether the PodMonitor exists."""
    return world.key(POD_MONITORS, "cache") in world.plane.server.objects


def test_everything_is_listed_once_per_period_with_a_jitter() -> None:
    async def scenario(world: World) -> None:
        await asyncio.sleep(10 * LONG_SYNC_PERIOD)
        gaps = [later.at - earlier.at for earlier, later in pairwise(lists(world, SERVICES.plural))]
        assert len(gaps) >= 9
        assert all(0.9 * LONG_SYNC_PERIOD <= gap <= 1.11 * LONG_SYNC_PERIOD for gap in gaps), gaps
        assert len(set(gaps)) > 1

    run(scenario)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_children_are_listed_after_the_kinds(kind: str) -> None:
    """What is kept of a child depends on the objects that exist."""

    async def scenario(world: World) -> None:
        await world.sandbox.operator.stop()
        before = len(lists(world))
        world.sandbox.proxy.inject(Rule(f"list {kind}", Delay(10), times=1))
        world.sandbox.operator.start()
        await asyncio.sleep(9)
        assert {each.call.resource for each in lists(world)[before:]} == KINDS

    run(scenario)


CHILDREN: Final = (DEPLOYMENTS, SERVICES, POD_DISRUPTION_BUDGETS, PODS, MEMCACHEDPROXIES)
"""Resources of children, and MemcachedProxies, which name an object without being its child."""


@pytest.mark.parametrize("resource", CHILDREN, ids=lambda resource: resource.plural)
def test_no_object_is_reconciled_before_its_children_are_listed(resource: Resource) -> None:
    async def scenario(world: World) -> None:
        await world.sandbox.operator.stop()
        await world.create(MEMCACHEDS, "cache", size=1, image=IMAGE)
        (failing,) = world.sandbox.proxy.inject(Rule(f"list {resource.plural}", Reject(500), times=2))
        world.sandbox.operator.start()
        await failing.done.wait()
        await asyncio.sleep(1)
        assert not world.sandbox.proxy.requests.writes()
        await asyncio.sleep(SETTLED)
        assert is_ready(world.get(MEMCACHEDS, "cache"))

    run(scenario)


def test_kind_that_is_not_served_does_not_block_the_others() -> None:
    async def scenario(world: World) -> None:
        await world.sandbox.operator.stop()
        with missing(world, APPSERVICES):
            world.sandbox.operator.start()
            await world.create(APPSERVICES, "app", image=IMAGE)
            await monitored(world)
            assert "the resource is not served; install the CRDs" in world.sandbox.operator.log_text()
            assert not world.get(APPSERVICES, "app").get("status", {}).get("conditions")
        await asyncio.sleep(SETTLED)
        assert is_ready(world.get(APPSERVICES, "app"))

    run(scenario)


def test_missing_optional_resource_is_used_when_it_is_served() -> None:
    async def scenario(world: World) -> None:
        await world.sandbox.operator.stop()
        before = len(lists(world, POD_MONITORS.plural))
        with missing(world, POD_MONITORS):
            world.sandbox.operator.start()
            await monitored(world)
            await asyncio.sleep(SETTLED)
            assert not is_monitored(world)
            assert 3 <= len(lists(world, POD_MONITORS.plural)) - before <= 1 + 2 * SETTLED / MISSING_PERIOD
        await asyncio.sleep(2 * MISSING_PERIOD)
        assert is_monitored(world)
        log = world.sandbox.operator.log_text()
        assert log.count("podmonitors of simulated: this optional resource is not available") == 1
        assert "ApplyFailed" not in log

    run(scenario)


def test_optional_resource_that_a_resync_finds_missing_is_used_again() -> None:
    """The CRD is deleted, with its objects, and installed again."""

    async def scenario(world: World) -> None:
        await monitored(world)
        with missing(world, POD_MONITORS):
            await asyncio.sleep(1.2 * LONG_SYNC_PERIOD)
            await world.sandbox.delete(POD_MONITORS, "cache")
            await asyncio.sleep(SETTLED)
            assert not is_monitored(world)
            assert is_ready(world.get(MEMCACHEDS, "cache"))
        for stream in world.sandbox.proxy.open_watches(POD_MONITORS.plural):
            await stream.interrupt()
        await asyncio.sleep(2 * MISSING_PERIOD)
        assert is_monitored(world)

    run(scenario)


def test_rights_that_are_missing_in_one_namespace_concern_no_other_one() -> None:
    async def scenario(world: World) -> None:
        await world.sandbox.operator.stop()
        world.sandbox.operator.start()
        await monitored(world)
        await world.sandbox.delete(POD_MONITORS, "cache")
        await asyncio.sleep(SETTLED)
        assert is_monitored(world)
        assert "cannot list or watch memcacheds of other" in world.sandbox.operator.log_text()

    run(scenario, f"--watch-namespaces={NAMESPACE},other")
