"""Rings of the pods of proxies that others change or remove."""

import asyncio

import pytest

from memcached_api.annotations import RING_ANNOTATION
from memcached_operator.kube.resource import PODS, STATEFULSETS
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES
from simulation.test_proxies import SETTLED, World, both, run

FORGED = ("x" * 60 + "/u/3", "Cache/u/3", "cache/u/0", "cache/u/1001", "cache/u/" + "9" * 12, f"cache/{'u' * 64}/9")


@pytest.mark.parametrize("ring", FORGED)
def test_forged_ring_of_a_pod_is_ignored(ring: str) -> None:
    async def scenario(world: World) -> None:
        await both(world)
        name = world.pods("front")[0]["metadata"]["name"]
        await world.sandbox.merge(world.key(PODS, name), {"metadata": {"annotations": {RING_ANNOTATION: ring}}})
        await asyncio.sleep(SETTLED)
        assert world.caches() == [{"name": "cache", "servers": 3}]

    run(scenario)


@pytest.mark.parametrize("held", [False, True], ids=["known", "unknown"])
def test_no_slot_is_removed_while_a_pod_has_no_ring(held: bool) -> None:
    """A policy removes the annotation. `held`: no event has reported it."""

    async def scenario(world: World) -> None:
        await both(world)
        if held:
            world.sandbox.proxy.hold(PODS.plural)
        name = world.pods("front")[0]["metadata"]["name"]
        await world.sandbox.merge(world.key(PODS, name), {"metadata": {"annotations": {RING_ANNOTATION: None}}})
        await world.change(MEMCACHEDPROXIES, "front", rollout={"paused": True})
        await world.change(MEMCACHEDS, "cache", size=2)
        await asyncio.sleep(SETTLED)
        assert world.caches() == [{"name": "cache", "servers": 3}]
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 3
        world.sandbox.proxy.release()
        await asyncio.sleep(SETTLED)
        text = f"Pod {name} has no valid annotation {RING_ANNOTATION}, so no slot of the Memcached is removed. "
        assert text in world.condition(MEMCACHEDPROXIES, "front", "Degraded")[1]
        await world.change(MEMCACHEDPROXIES, "front", rollout={"paused": False})
        await asyncio.sleep(2 * SETTLED)
        world.check(2)

    run(scenario)


def test_no_slot_is_removed_while_a_pod_of_a_deleted_proxy_has_no_ring() -> None:
    async def scenario(world: World) -> None:
        await both(world)
        for pod in world.pods("front"):
            key = world.key(PODS, pod["metadata"]["name"])
            await world.sandbox.merge(key, {"metadata": {"annotations": {RING_ANNOTATION: None}}})
        await world.sandbox.delete(MEMCACHEDPROXIES, "front")
        await world.change(MEMCACHEDS, "cache", size=1)
        await asyncio.sleep(3)
        assert world.pods("front")
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 3
        reason, text = world.condition(MEMCACHEDS, "cache", "Progressing")
        assert (reason, f" has no valid annotation {RING_ANNOTATION}. " in text) == ("WaitingForProxies", True)
        await asyncio.sleep(4 * SETTLED)
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 1

    run(scenario)
