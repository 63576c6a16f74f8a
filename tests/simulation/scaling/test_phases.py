"""A change of size in phases: each state × each event ends with all proxies on the size that is wanted last.

`ScalingWorld` checks at each moment that only neighbouring phases serve, and that each slot in use exists.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

import pytest

from memcached_api.annotations import MOVE_ANNOTATION, RING_ANNOTATION
from memcached_operator import metrics
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, STATEFULSETS
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES
from memcached_operator.parts.ring import Phase
from simulation.scaling.world import PHASES, ScalingWorld, run
from simulation.test_proxies import IMAGE
from simulation.test_proxy_faults import failing_lists

Event = Callable[[ScalingWorld], Awaitable[None]]


@pytest.mark.parametrize(("before", "after"), [(3, 4), (4, 3), (3, 6), (6, 2), (1, 2)])
def test_change_of_size(before: int, after: int) -> None:
    async def scenario(world: ScalingWorld) -> None:
        await world.warm(before)
        await world.scale(after)
        await world.settle(after)
        assert world.phases == [
            (before, before, Phase.STABLE),
            *((before, after, phase) for phase in PHASES),
            (after, after, Phase.STABLE),
        ]

    run(scenario)


async def kill(world: ScalingWorld) -> None:
    world.sandbox.operator.kill()


async def stop(world: ScalingWorld) -> None:
    await world.sandbox.operator.stop()
    await asyncio.sleep(60)
    await world.sandbox.start()


async def change_statefulset(world: ScalingWorld) -> None:
    """Another client changes the StatefulSet between the operator's read and write."""
    for number in range(40):
        labels = {"example.com/touched": str(number)}
        await world.sandbox.merge(world.key(STATEFULSETS, "cache"), {"metadata": {"labels": labels}})
        await asyncio.sleep(0.3)


async def hold_pods(world: ScalingWorld) -> None:
    """No event reports pods."""
    world.sandbox.proxy.hold(PODS.plural)
    await asyncio.sleep(40)
    world.sandbox.proxy.release()


async def fail_lists(world: ScalingWorld) -> None:
    """The live list before each arrow fails."""
    with failing_lists(500, failing=PODS):
        await asyncio.sleep(40)


async def create_proxy(world: ScalingWorld) -> None:
    await world.second()


async def delete_proxy(world: ScalingWorld) -> None:
    await world.sandbox.delete(MEMCACHEDPROXIES, "front")


async def replace_proxy(world: ScalingWorld) -> None:
    await delete_proxy(world)
    await world.front()


async def point_elsewhere(world: ScalingWorld) -> None:
    """The proxy uses another Memcached for a while."""
    await world.create(MEMCACHEDS, "other", identity="Stable", size=1, image=IMAGE)
    for name in ("other", "cache"):
        await world.change(MEMCACHEDPROXIES, "front", memcachedRef={"name": name})
        await asyncio.sleep(20)


async def add_pods(world: ScalingWorld) -> None:
    await world.change(MEMCACHEDPROXIES, "front", size=4)


async def restart_proxies(world: ScalingWorld) -> None:
    await world.change(MEMCACHEDPROXIES, "front", rollout={"restartedAt": "2030-01-01T00:00:00Z"})


async def pause_proxies(world: ScalingWorld) -> None:
    """One of two proxies is slower than the other."""
    await world.second()
    await world.change(MEMCACHEDPROXIES, "front", rollout={"paused": True})
    await asyncio.sleep(60)
    await world.change(MEMCACHEDPROXIES, "front", rollout={"paused": False})


async def delete_pod(world: ScalingWorld) -> None:
    await world.sandbox.delete(PODS, world.pods("front")[0]["metadata"]["name"])


async def delete_deployment(world: ScalingWorld) -> None:
    await world.sandbox.delete(DEPLOYMENTS, "front")


async def hold_terminating(world: ScalingWorld) -> None:
    """Pods that are being deleted stay, as on a node that does not respond."""
    names = [pod["metadata"]["name"] for pod in world.pods("front")]
    for name in names:
        await world.sandbox.merge(world.key(PODS, name), {"metadata": {"finalizers": ["example.com/stays"]}})
    await asyncio.sleep(60)
    left = [pod["metadata"]["name"] for pod in world.pods("front")]
    for name in set(names) & set(left):
        await world.sandbox.merge(world.key(PODS, name), {"metadata": {"finalizers": None}})


async def break_slot(world: ScalingWorld) -> None:
    await unready(world, 40)


async def break_slot_for_long(world: ScalingWorld) -> None:
    await unready(world, 400)


async def unready(world: ScalingWorld, seconds: float) -> None:
    """The first slot is not ready."""
    await world.sandbox.delete(PODS, "cache-0")
    world.hold("cache-0")
    await asyncio.sleep(seconds)
    world.release()


async def switch_off(world: ScalingWorld) -> None:
    """A user asks for a change of size without phases: then other sizes serve at the same time."""
    world.plain = True
    await world.change(MEMCACHEDS, "cache", scaling=None)


async def shorten(world: ScalingWorld) -> None:
    await world.change(MEMCACHEDS, "cache", scaling={"warm": {"duration": "0s"}})


async def change_image(world: ScalingWorld) -> None:
    await world.change(MEMCACHEDS, "cache", image="docker.io/library/memcached:1.6.44")


async def change_port(world: ScalingWorld) -> None:
    await world.change(MEMCACHEDS, "cache", containerPort=11300)


async def forge_state(world: ScalingWorld) -> None:
    """Another client writes what is no state."""
    key = world.key(STATEFULSETS, "cache")
    await world.sandbox.merge(
        key, {"metadata": {"annotations": {MOVE_ANNOTATION: '{"from":3,"to":1,"phase":"Later"}'}}}
    )


async def remove_state(world: ScalingWorld) -> None:
    key = world.key(STATEFULSETS, "cache")
    await world.sandbox.merge(key, {"metadata": {"annotations": {MOVE_ANNOTATION: None}}})


async def delete_statefulset(world: ScalingWorld) -> None:
    """The remedy for a StatefulSet that cannot be changed: its pods stay."""
    await world.sandbox.delete(STATEFULSETS, "cache", "Orphan")


async def forge_ring(world: ScalingWorld) -> None:
    """Another client changes the ring of a pod, which then blocks each arrow until it is deleted."""
    name = world.pods("front")[0]["metadata"]["name"]
    ring = {RING_ANNOTATION: "cache/u/9>1/Later/7"}
    await world.sandbox.merge(world.key(PODS, name), {"metadata": {"annotations": ring}})
    await asyncio.sleep(40)
    if any(pod["metadata"]["name"] == name for pod in world.pods("front")):
        await world.sandbox.delete(PODS, name)


def to(*sizes: int) -> Event:
    """Other sizes, one after another."""

    async def change(world: ScalingWorld) -> None:
        for size in sizes:
            await world.scale(size)
            await asyncio.sleep(2.3)

    return change


class Row(NamedTuple):
    """An event, and the size that is wanted after it."""

    event: Event
    size: int = 4


EVENTS: Final[Mapping[str, Row]] = {
    "leader killed": Row(kill),
    "operator stopped": Row(stop),
    "conflicts": Row(change_statefulset),
    "pod events late": Row(hold_pods),
    "lists fail": Row(fail_lists),
    "proxy created": Row(create_proxy),
    "proxy deleted": Row(delete_proxy),
    "proxy replaced": Row(replace_proxy),
    "proxy re-pointed": Row(point_elsewhere),
    "proxy scaled": Row(add_pods),
    "proxy restarted": Row(restart_proxies),
    "one proxy paused": Row(pause_proxies),
    "proxy pod deleted": Row(delete_pod),
    "Deployment deleted": Row(delete_deployment),
    "terminating pods stay": Row(hold_terminating),
    "slot not ready": Row(break_slot),
    "slot not ready for long": Row(break_slot_for_long),
    "size back": Row(to(3), 3),
    "size further": Row(to(6), 6),
    "size to and fro": Row(to(3, 4, 5, 3, 2, 4, 3, 5), 5),
    "switched off": Row(switch_off),
    "shortened": Row(shorten),
    "image": Row(change_image),
    "port": Row(change_port),
    "state forged": Row(forge_state),
    "state removed": Row(remove_state),
    "StatefulSet deleted": Row(delete_statefulset),
    "ring forged": Row(forge_ring),
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(("event", "size"), EVENTS.values(), ids=EVENTS.keys())
def test_event_in_phase(event: Event, size: int, phase: Phase) -> None:
    async def scenario(world: ScalingWorld) -> None:
        await world.warm()
        await world.scale(4)
        await world.reach(phase)
        await event(world)
        await world.settle(size, 1200)

    run(scenario, election=event is kill)


async def repair(world: ScalingWorld) -> None:
    """All slots become ready."""
    world.release()


@pytest.mark.parametrize(("remedy", "phase"), [(shorten, Phase.FINISH), (repair, Phase.MOVE)])
def test_move_with_a_broken_slot_goes_on_with_its_remedy(remedy: Event, phase: Phase) -> None:
    async def scenario(world: ScalingWorld) -> None:
        await world.warm(duration="10m")
        await world.scale(4)
        await world.reach(Phase.MOVE)
        await asyncio.sleep(20)
        await world.sandbox.delete(PODS, "cache-0")
        world.hold("cache-0")
        text = "slot cache-0 is not ready: writes of keys that move fail. Repair it, or set spec.scaling.warm.duration"
        await world.until(lambda: text in world.condition(MEMCACHEDS, "cache", "Progressing")[1], "reported")
        await remedy(world)
        await world.until(lambda: text not in world.condition(MEMCACHEDS, "cache", "Progressing")[1], "ended")
        await world.reach(phase)
        await repair(world)
        await world.settle(4, 1200)

    run(scenario)


def waiting_since() -> float | None:
    """The metric about the change of size."""
    (family,) = metrics.CHANGES.collect()
    return next((sample.value for sample in family.samples), None)


def test_phase_that_waits_for_a_paused_proxy_is_stuck_until_it_goes_on() -> None:
    async def scenario(world: ScalingWorld) -> None:
        await world.warm()
        await world.change(MEMCACHEDPROXIES, "front", rollout={"paused": True})
        await world.scale(4)
        changes = "The size changes from 3 to 4 slots in phases, now Prepare"
        cause = "MemcachedProxy front has pods that are not updated or not available; see its conditions"
        stuck = ("MoveStuck", f"{changes}; {cause}")
        await world.until(lambda: world.condition(MEMCACHEDS, "cache", "Progressing") == stuck, "stuck", 1000)
        latch = world.latch()
        assert latch is not None
        assert latch.since is not None
        assert waiting_since() == int(latch.since.timestamp())
        await world.change(MEMCACHEDPROXIES, "front", rollout={"paused": False})
        await world.settle(4)
        assert waiting_since() is None

    run(scenario)


def test_autoscaler_that_changes_its_mind() -> None:
    """It never changes the direction of keys that move, and the last size wins."""

    async def scenario(world: ScalingWorld) -> None:
        await world.warm(duration="45s")
        for number in range(20):
            await world.scale(3 + number % 2)
            await asyncio.sleep(30)
        await world.scale(4)
        await world.settle(4)

    run(scenario)
