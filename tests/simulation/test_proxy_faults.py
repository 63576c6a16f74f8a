"""A Memcached and its MemcachedProxy when lists fail, references change, and annotations are forged."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

import pytest

from faults.state import is_ready
from memcached_api.annotations import RING_ANNOTATION
from memcached_operator.kube.client import ApiClient, ApiError, Page
from memcached_operator.kube.resource import DEPLOYMENTS, NETWORK_POLICIES, PODS, STATEFULSETS, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES
from memcached_operator.memcachedproxy.ring import ring_of
from simulation.test_proxies import IMAGE, SETTLED, World, both, run


def failing_lists(code: int, times: int) -> Any:
    """Lists of MemcachedProxies fail with a code."""
    real, left = ApiClient.list, [times]

    async def fail(self: ApiClient, resource: Resource, *words: Any, **options: Any) -> AsyncGenerator[Page]:
        if resource == MEMCACHEDPROXIES and left[0]:
            left[0] -= 1
            raise ApiError(code, "Failed", "the list failed")
        async for page in real(self, resource, *words, **options):
            yield page

    return mock.patch.object(ApiClient, "list", fail)


async def keep_a_slot(world: World) -> None:
    """Reduce the cache to two slots while paused proxies use three."""
    await both(world)
    await world.change(MEMCACHEDPROXIES, "front", rollout={"paused": True})
    await world.change(MEMCACHEDS, "cache", size=2)
    await asyncio.sleep(SETTLED)
    assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 3


@pytest.mark.parametrize(("code", "kept"), [(500, 3), (403, 2)])
def test_slots_are_kept_if_the_proxies_cannot_be_listed_for_a_moment(code: int, kept: int) -> None:
    """Without the permission to list them, as with an older role, there can be no proxies; caches are not stopped."""

    async def scenario(world: World) -> None:
        await keep_a_slot(world)
        await world.sandbox.operator.stop()
        with failing_lists(code, 1 if code == 500 else 1000):
            world.sandbox.operator.start()
            await asyncio.sleep(SETTLED)
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == kept

    run(scenario)


async def other(world: World) -> None:
    """Create a second Memcached."""
    await world.create(MEMCACHEDS, "other", identity="Stable", size=2, image=IMAGE)
    await asyncio.sleep(SETTLED)


def test_slots_of_the_cache_before_are_kept_until_no_proxy_uses_them() -> None:
    async def scenario(world: World) -> None:
        await both(world)
        await other(world)
        await world.change(MEMCACHEDPROXIES, "front", rollout={"paused": True}, memcachedRef={"name": "other"})
        await asyncio.sleep(SETTLED)
        await world.change(MEMCACHEDS, "cache", size=1)
        await asyncio.sleep(SETTLED)
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 3
        await world.change(MEMCACHEDPROXIES, "front", rollout={"paused": False})
        await asyncio.sleep(2 * SETTLED)
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 1
        assert world.caches() == [{"name": "other", "servers": 2}]

    run(scenario)


def test_proxies_keep_their_cache_until_the_next_one_is_ready() -> None:
    async def scenario(world: World) -> None:
        await both(world)
        world.held |= {"other-0", "other-1"}
        await other(world)
        await world.change(MEMCACHEDPROXIES, "front", memcachedRef={"name": "other"})
        await asyncio.sleep(SETTLED)
        text = "The proxies use Memcached cache until all pods of Memcached other are ready"
        assert world.condition(MEMCACHEDPROXIES, "front", "Progressing") == ("RollingOut", text)
        assert {ring.name for pod in world.pods("front") if (ring := ring_of(pod))} == {"cache"}
        world.held.clear()
        await asyncio.sleep(2 * SETTLED)
        assert is_ready(world.get(MEMCACHEDPROXIES, "front"))
        assert {ring.name for pod in world.pods("front") if (ring := ring_of(pod))} == {"other"}

    run(scenario)


@pytest.mark.parametrize("first", ["proxy", "cache"])
@pytest.mark.parametrize("seconds", [0.0, 0.002, 0.005, 0.008])
def test_new_proxy_uses_no_slot_that_is_removed_at_the_same_time(first: str, seconds: float) -> None:
    async def scenario(world: World) -> None:
        await world.cache()
        await asyncio.sleep(SETTLED)
        work = [world.front, partial(world.change, MEMCACHEDS, "cache", size=1)]
        for each in work if first == "proxy" else reversed(work):
            await each()
            await asyncio.sleep(seconds)
        await asyncio.sleep(SETTLED)
        world.check(1)

    run(scenario)


@pytest.mark.parametrize("seconds", [0.0, 0.002, 0.005, 0.008])
def test_proxy_of_another_cache_uses_no_slot_that_is_removed_at_the_same_time(seconds: float) -> None:
    async def scenario(world: World) -> None:
        await both(world)
        await other(world)
        await world.change(MEMCACHEDPROXIES, "front", memcachedRef={"name": "other"})
        await asyncio.sleep(seconds)
        await world.change(MEMCACHEDS, "other", size=1)
        await asyncio.sleep(2 * SETTLED)
        assert world.broken == []
        assert world.caches() == [{"name": "other", "servers": 1}]
        assert world.get(STATEFULSETS, "other")["spec"]["replicas"] == 1

    run(scenario)


async def recreated(world: World) -> None:
    """The Memcached of the proxies is created again, with more slots."""
    await both(world)
    await world.sandbox.delete(MEMCACHEDS, "cache")
    await asyncio.sleep(SETTLED)
    await world.cache(size=5)


async def created_later(world: World) -> None:
    """The Memcached of the proxies is created."""
    await world.front()
    await asyncio.sleep(SETTLED)
    await world.cache(size=5)


async def usable_again(world: World) -> None:
    """Proxies can use the Memcached again."""
    auth = {"secretName": "users"}
    await world.create(MEMCACHEDS, "cache", identity="Stable", size=5, image=IMAGE, auth=auth)
    await world.front()
    await asyncio.sleep(SETTLED)
    await world.change(MEMCACHEDS, "cache", auth=None)


@pytest.mark.parametrize("first", [recreated, created_later, usable_again])
@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.05, 0.3, 1.0, 1.2])
def test_first_slots_of_a_cache_are_not_removed_at_the_same_time(
    first: Callable[[World], Awaitable[None]], seconds: float
) -> None:
    async def scenario(world: World) -> None:
        await first(world)
        await asyncio.sleep(seconds)
        await world.change(MEMCACHEDS, "cache", size=1)
        await asyncio.sleep(2 * SETTLED)
        world.check(1)

    run(scenario)


@contextmanager
def denied_status(resource: Resource) -> Generator[None]:
    """No one may patch the status of this kind during the block."""
    patch = ApiClient.patch

    async def denied(self: ApiClient, key: Key, *arguments: Any, **options: Any) -> Object:
        if key.resource == resource and options.get("subresource") == "status":
            raise ApiError(403, "Forbidden", "may not patch the status")
        return await patch(self, key, *arguments, **options)

    with mock.patch.object(ApiClient, "patch", denied):
        yield


def test_proxies_do_not_wait_for_the_status_of_their_cache() -> None:
    async def scenario(world: World) -> None:
        await both(world)
        with denied_status(MEMCACHEDS):
            await world.change(MEMCACHEDS, "cache", resources={"requests": {"cpu": "50m"}})
            await asyncio.sleep(SETTLED)
            await world.sandbox.delete(DEPLOYMENTS, "front")
            await world.create(MEMCACHEDPROXIES, "second", memcachedRef={"name": "cache"}, size=1, image=IMAGE)
            await asyncio.sleep(SETTLED)
            assert len(world.pods("front")) == 2
            assert len(world.pods("second")) == 1

    run(scenario)


def test_proxy_that_never_had_pods_keeps_no_slots() -> None:
    """A finalizer holds it after its deletion."""

    async def scenario(world: World) -> None:
        auth = {"secretName": "users"}
        await world.create(MEMCACHEDS, "cache", identity="Stable", size=3, image=IMAGE, auth=auth)
        await world.front()
        await asyncio.sleep(SETTLED)
        key = world.key(MEMCACHEDPROXIES, "front")
        await world.sandbox.merge(key, {"metadata": {"finalizers": ["example.com/held"]}})
        await world.sandbox.delete(MEMCACHEDPROXIES, "front")
        await asyncio.sleep(SETTLED)
        await world.change(MEMCACHEDS, "cache", size=1)
        await asyncio.sleep(SETTLED)
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 1

    run(scenario)


@pytest.mark.parametrize("ring", ["x" * 60 + "/u/3", "Cache/u/3", "cache/u/0", "cache/u/" + "9" * 12])
def test_forged_ring_of_a_pod_is_ignored(ring: str) -> None:
    async def scenario(world: World) -> None:
        await both(world)
        name = world.pods("front")[0]["metadata"]["name"]
        await world.sandbox.merge(world.key(PODS, name), {"metadata": {"annotations": {RING_ANNOTATION: ring}}})
        await asyncio.sleep(SETTLED)
        assert world.caches() == [{"name": "cache", "servers": 3}]

    run(scenario)


def test_network_policy_stays_while_pods_of_a_deleted_deployment_stop() -> None:
    async def scenario(world: World) -> None:
        await both(world)
        await world.change(MEMCACHEDPROXIES, "front", networkPolicy={})
        await asyncio.sleep(SETTLED)
        await world.change(MEMCACHEDPROXIES, "front", memcachedRef={"name": "typo"})
        await asyncio.sleep(SETTLED)
        await world.sandbox.delete(DEPLOYMENTS, "front")
        for _ in range(30):
            await asyncio.sleep(1)
            assert world.key(NETWORK_POLICIES, "front") in world.plane.server.objects

    run(scenario)
