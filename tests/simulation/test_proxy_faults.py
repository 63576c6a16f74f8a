"""A Memcached and its MemcachedProxy when lists fail, references change, and annotations are forged."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final
from unittest import mock

import pytest

from faults.sandbox import LONG_SYNC_PERIOD
from faults.state import is_ready
from memcached_operator.kube.client import ApiClient, ApiError, Page
from memcached_operator.kube.resource import (
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_MONITORS,
    PODS,
    STATEFULSETS,
    Key,
    Object,
    Resource,
)
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES
from memcached_operator.parts.ring import ring_of
from simulation.test_proxies import IMAGE, NAMESPACE, SETTLED, Scenario, World, both, run

FAILED: Final = "the list failed"
ALWAYS: Final = 10**6
CODES: Final = (403, 404, 500)
"""What lists can fail with. With 404, discovery still says that the resource is served."""


def failing_lists(code: int, times: int = ALWAYS, failing: Resource = MEMCACHEDPROXIES) -> Any:
    """The next lists of a resource, by default of MemcachedProxies, fail with a code."""
    real, left = ApiClient.list, [times]

    async def fail(self: ApiClient, resource: Resource, *words: Any, **options: Any) -> AsyncGenerator[Page]:
        if resource == failing and left[0]:
            left[0] -= 1
            raise ApiError(code, "Failed", FAILED)
        async for page in real(self, resource, *words, **options):
            yield page

    return mock.patch.object(ApiClient, "list", fail)


def unserved(resource: Resource) -> Any:
    """Discovery says that a resource is not served."""
    real = ApiClient.request

    async def request(self: ApiClient, method: str, path: str, *words: Any, **options: Any) -> Any:
        if path == f"/apis/{resource.api_version}":
            raise ApiError(404, "", "the server could not find the requested resource")
        return await real(self, method, path, *words, **options)

    return mock.patch.object(ApiClient, "request", request)


def cannot(resource: Resource, code: int) -> str:
    """That a resource cannot be listed, with the remedy if a right is missing."""
    remedy = ". Restore the operator's roles: install its release again" if code == 403 else ""
    return f"{resource.plural} in namespace {NAMESPACE} cannot be listed: {FAILED}{remedy}"


async def keep_a_slot(world: World) -> None:
    """Reduce the cache to two slots while paused proxies use three."""
    await both(world)
    await world.change(MEMCACHEDPROXIES, "front", rollout={"paused": True})
    await world.change(MEMCACHEDS, "cache", size=2)
    await asyncio.sleep(SETTLED)
    assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 3


@pytest.mark.parametrize("times", [1, ALWAYS])
@pytest.mark.parametrize("code", CODES)
def test_slots_are_kept_while_the_proxies_cannot_be_listed(code: int, times: int) -> None:
    async def scenario(world: World) -> None:
        await keep_a_slot(world)
        await world.sandbox.operator.stop()
        world.changes.clear()
        with failing_lists(code, times):
            world.sandbox.operator.start()
            await asyncio.sleep(SETTLED)
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 3
        if times == 1:
            assert world.changes == []
        await asyncio.sleep(SETTLED)
        await world.change(MEMCACHEDPROXIES, "front", rollout={"paused": False})
        await asyncio.sleep(2 * SETTLED)
        world.check(2)

    run(scenario)


@pytest.mark.parametrize("code", CODES)
def test_failing_list_of_proxies_stops_no_cache(code: int) -> None:
    async def scenario(world: World) -> None:
        await world.cache()
        await asyncio.sleep(SETTLED)
        await world.sandbox.operator.stop()
        with failing_lists(code):
            world.sandbox.operator.start()
            for size in (5, 4):
                await world.change(MEMCACHEDS, "cache", size=size)
                await asyncio.sleep(SETTLED)
                assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 5
            text = f"Slot 4 is kept, because a proxy may use it: {cannot(MEMCACHEDPROXIES, code)}"
            assert world.condition(MEMCACHEDS, "cache", "Progressing") == ("WaitingForProxies", text)
        await asyncio.sleep(SETTLED)
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 4
        assert is_ready(world.get(MEMCACHEDS, "cache"))

    run(scenario)


def test_proxies_that_are_not_served_use_no_slots() -> None:
    async def scenario(world: World) -> None:
        await world.cache()
        await asyncio.sleep(SETTLED)
        await world.sandbox.operator.stop()
        with failing_lists(404), unserved(MEMCACHEDPROXIES):
            world.sandbox.operator.start()
            await world.change(MEMCACHEDS, "cache", size=2)
            await asyncio.sleep(SETTLED)
            assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 2

    run(scenario)


@pytest.mark.parametrize(("code", "condition"), [(403, "Degraded"), (404, "Degraded"), (500, "Progressing")])
def test_no_slot_is_removed_while_the_pods_that_may_use_it_cannot_be_listed(code: int, condition: str) -> None:
    async def scenario(world: World) -> None:
        await world.cache()
        await asyncio.sleep(SETTLED)
        with failing_lists(code, failing=PODS):
            await world.change(MEMCACHEDS, "cache", size=2)
            await asyncio.sleep(1)
            text = f"Pods that may use removed slots cannot be listed: {FAILED}"
            assert world.condition(MEMCACHEDS, "cache", condition)[1] == text
            await asyncio.sleep(SETTLED)
            assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 3
        await asyncio.sleep(5 * SETTLED)
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 2
        assert is_ready(world.get(MEMCACHEDS, "cache"))

    run(scenario)


@pytest.mark.parametrize("code", CODES)
def test_proxies_are_kept_while_the_caches_cannot_be_listed(code: int) -> None:
    async def scenario(world: World) -> None:
        await both(world)
        await world.sandbox.operator.stop()
        before, address = world.get(DEPLOYMENTS, "front"), world.get(MEMCACHEDPROXIES, "front")["status"]["address"]
        with failing_lists(code, failing=MEMCACHEDS):
            world.sandbox.operator.start()
            await asyncio.sleep(SETTLED)
            await world.change(MEMCACHEDPROXIES, "front", size=3)
            await asyncio.sleep(SETTLED)
            assert world.get(DEPLOYMENTS, "front")["spec"] == before["spec"]
            text = f"Memcached cache is not known yet, so nothing is changed: {cannot(MEMCACHEDS, code)}"
            assert world.condition(MEMCACHEDPROXIES, "front", "Progressing") == ("WaitingForMemcached", text)
            assert world.condition(MEMCACHEDPROXIES, "front", "Degraded") == (
                "AsExpected",
                f"No component has failed, but {text}",
            )
            assert not is_ready(world.get(MEMCACHEDPROXIES, "front"))
            assert world.caches() == [{"name": "cache", "servers": 3}]
            assert world.get(MEMCACHEDPROXIES, "front")["status"]["address"] == address
        await asyncio.sleep(SETTLED)
        assert is_ready(world.get(MEMCACHEDPROXIES, "front"))
        assert len(world.pods("front")) == 3

    run(scenario)


@pytest.mark.parametrize("code", CODES)
def test_unlisted_monitors_are_in_the_status(code: int) -> None:
    monitored: dict[str, Any] = {"monitoring": {"podMonitor": {}}}

    async def scenario(world: World) -> None:
        await both(world)
        await world.change(MEMCACHEDPROXIES, "front", **monitored)
        await asyncio.sleep(SETTLED)
        monitor = world.get(POD_MONITORS, "front")
        await world.sandbox.operator.stop()
        with failing_lists(code, failing=POD_MONITORS):
            world.sandbox.operator.start()
            await world.change(MEMCACHEDS, "cache", **monitored)
            await asyncio.sleep(SETTLED)
            kept = f"The PodMonitor is not changed, because {cannot(POD_MONITORS, code)}"
            for resource, name in ((MEMCACHEDS, "cache"), (MEMCACHEDPROXIES, "front")):
                assert world.condition(resource, name, "Degraded")[1].endswith(f". {kept}")
            assert world.get(POD_MONITORS, "front") == monitor
        await asyncio.sleep(SETTLED)
        assert world.key(POD_MONITORS, "cache") in world.plane.server.objects
        assert "cannot be listed" not in str([world.get(MEMCACHEDS, "cache"), world.get(MEMCACHEDPROXIES, "front")])

    run(scenario)


@pytest.mark.parametrize("code", CODES)
def test_wait_for_proxies_says_that_its_end_cannot_be_noticed(code: int) -> None:
    """A right that is lost later: what has been listed before is still known."""

    async def scenario(world: World) -> None:
        await keep_a_slot(world)
        with failing_lists(code):
            await asyncio.sleep(2 * LONG_SYNC_PERIOD)
            text = f"Slot 2 is kept until MemcachedProxy front stops using it. {cannot(MEMCACHEDPROXIES, code)}"
            assert world.condition(MEMCACHEDS, "cache", "Progressing") == ("WaitingForProxies", text)

    run(scenario)


async def replace(world: World) -> None:
    """What `kubectl replace --force` does."""
    await world.sandbox.delete(MEMCACHEDPROXIES, "front")
    await world.front()


async def delete(world: World) -> None:
    """Delete the proxy."""
    await world.sandbox.delete(MEMCACHEDPROXIES, "front")


@pytest.mark.parametrize("held", [False, True], ids=["known", "unknown"])
@pytest.mark.parametrize("end", [delete, replace])
def test_slots_of_a_proxy_that_is_deleted_are_kept_while_its_pods_run(end: Scenario, held: bool) -> None:
    """`held`: no event has reported the pods."""

    async def scenario(world: World) -> None:
        await world.cache()
        await asyncio.sleep(SETTLED)
        if held:
            world.sandbox.proxy.hold(PODS.plural)
        await world.front()
        await asyncio.sleep(SETTLED)
        await end(world)
        await world.change(MEMCACHEDS, "cache", size=1)
        await asyncio.sleep(5)
        pods = sorted(
            pod["metadata"]["name"] for pod in world.pods("front") if pod["metadata"].get("deletionTimestamp")
        )
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 3
        user = f"Pod {pods[0]} and 1 more stop" if end == delete else "MemcachedProxy front stops"
        text = f"Slots 1 to 2 are kept until {user} using them"
        assert world.condition(MEMCACHEDS, "cache", "Progressing") == ("WaitingForProxies", text)
        world.sandbox.proxy.release()
        await asyncio.sleep(2 * SETTLED)
        assert world.broken == []
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 1
        assert is_ready(world.get(MEMCACHEDS, "cache"))

    run(scenario)


def test_proxy_of_a_cache_whose_slots_never_ran_is_not_ready() -> None:
    async def scenario(world: World) -> None:
        await both(world)
        world.hold("cache-0", "cache-1", "cache-2")
        await world.sandbox.delete(MEMCACHEDS, "cache")
        await asyncio.sleep(SETTLED)
        await world.cache()
        await asyncio.sleep(2 * SETTLED)
        text = "The proxies use Memcached cache when its slots are ready; see its conditions"
        assert world.condition(MEMCACHEDPROXIES, "front", "Progressing") == ("RollingOut", text)
        assert not is_ready(world.get(MEMCACHEDPROXIES, "front"))
        world.release()
        await asyncio.sleep(2 * SETTLED)
        world.check(3)

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
        world.hold("other-0", "other-1")
        await other(world)
        await world.change(MEMCACHEDPROXIES, "front", memcachedRef={"name": "other"})
        await asyncio.sleep(SETTLED)
        text = "The proxies use Memcached cache until all pods of Memcached other are ready"
        assert world.condition(MEMCACHEDPROXIES, "front", "Progressing") == ("RollingOut", text)
        assert {ring.name for pod in world.pods("front") if (ring := ring_of(pod))} == {"cache"}
        world.release()
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
