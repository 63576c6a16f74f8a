"""A Memcached and its MemcachedProxy, with the real controller: what proxies use exists, and what exists is found."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from faults.sandbox import LONG_SYNC_PERIOD, Sandbox, Settings
from faults.state import is_ready
from memcached_api.shared.rules.placing import RESTARTED_AT
from memcached_operator.kube.resource import (
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    PODS,
    SERVICES,
    STATEFULSETS,
    Key,
    Object,
    nested_map,
)
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES
from memcached_operator.parts.ring import Ring, ring_of
from simulation import clock
from simulation.cluster import access
from simulation.cluster.kubelets import Kubelets
from simulation.operator import logged
from simulation.plane import SimulatedPlane
from support.kubelet import MEMCACHED

NAMESPACE: Final = "simulated"
SETTLED: Final = 60.0
"""Seconds after which nothing changes any more, without a sync."""
IMAGE: Final = "docker.io/library/memcached:1.6.45"


@dataclass
class World:
    """A control plane, one operator, and what must always hold.

    `kubelets`: those of the pods. `broken`: what did not hold. `changes`: all but Leases.
    `ready`: the names of the slots that have been ready.
    """

    plane: SimulatedPlane
    sandbox: Sandbox
    kubelets: Kubelets
    broken: list[str] = field(default_factory=list[str])
    changes: list[tuple[str, Key]] = field(default_factory=list[tuple[str, Key]])
    ready: set[str] = field(default_factory=set[str])
    _rings: dict[Key, Ring] = field(default_factory=dict[Key, Ring])

    def changed(self, change: str, obj: Object) -> None:
        """Check what must always hold."""
        key = self.plane.cluster.access.key_of(obj)
        if key.resource == LEASES:
            return
        self.changes.append((change, key))
        if key.resource == PODS and access.is_ready(obj):
            self.ready.add(key.name)
        if key.resource == STATEFULSETS and change != "DELETED":
            self._check_slots(obj)
        if key.resource == DEPLOYMENTS:
            self._check_growth(key, obj) if change != "DELETED" else self._rings.pop(key, None)

    def _check_slots(self, live: Object) -> None:
        """A slot exists while a pod of a proxy uses it."""
        name, kept = live["metadata"]["name"], live["spec"]["replicas"]
        rings = [ring for pod in self.pods("front") if (ring := ring_of(pod)) and ring.name == name]
        used = max((ring.servers for ring in rings), default=0)
        if kept < used:
            self.broken.append(f"{kept} slots, but a proxy uses {used}")

    def _check_growth(self, key: Key, live: Object) -> None:
        """A proxy gets another slot only when it has been ready, and starts only when all that can be have been."""
        ring, before = ring_of(live["spec"]["template"]), self._rings.get(key)
        if ring is None:
            self.broken.append("a Deployment without a ring")
            return
        slots = self.plane.server.objects.get(self.key(STATEFULSETS, ring.name))
        if before != ring and slots is not None and slots["spec"]["replicas"] < ring.servers:
            self.broken.append(f"{ring} is used, but there are {slots['spec']['replicas']} slots")
        missing = [slot for slot in range(ring.servers) if f"cache-{slot}" not in self.ready]
        starts_early = before is None and any(not self._is_held(f"cache-{slot}") for slot in missing)
        grows = before is not None and before.is_of(ring) and before.servers < ring.servers
        if (grows and missing) or starts_early:
            self.broken.append(f"slot {missing[0]} is used, but has never been ready")
        self._rings[key] = ring

    def hold(self, *names: str) -> None:
        """Memcached does not become ready in these pods."""
        self.kubelets.nodes.broken |= {(name, MEMCACHED) for name in names}

    def release(self) -> None:
        """Memcached becomes ready in all pods."""
        self.kubelets.nodes.broken.clear()
        self.kubelets.wake()

    def _is_held(self, name: str) -> bool:
        return (name, MEMCACHED) in self.kubelets.nodes.broken

    def pods(self, instance: str) -> list[Object]:
        """The pods of an object, with those that are being deleted."""
        labels = "app.kubernetes.io/instance"
        found = self.plane.server.of(PODS).values()
        return [pod for pod in found if nested_map(pod, "metadata", "labels").get(labels) == instance]

    async def create(self, resource: Any, name: str, **spec: Any) -> None:
        """Create an object."""
        await self.sandbox.create(resource, name, spec)

    async def cache(self, size: int = 3) -> None:
        """Create the Memcached."""
        await self.create(MEMCACHEDS, "cache", identity="Stable", size=size, image=IMAGE)

    async def front(self) -> None:
        """Create the MemcachedProxy."""
        await self.create(MEMCACHEDPROXIES, "front", memcachedRef={"name": "cache"}, size=2, image=IMAGE)

    async def change(self, resource: Any, name: str, **spec: Any) -> None:
        """Change fields of a spec."""
        await self.sandbox.merge(self.key(resource, name), {"spec": spec})

    def key(self, resource: Any, name: str) -> Key:
        """The key of an object."""
        return Key(resource, NAMESPACE, name)

    def get(self, resource: Any, name: str) -> Object:
        """An object that exists."""
        return self.plane.server.objects[self.key(resource, name)]

    def condition(self, resource: Any, name: str, kind: str) -> tuple[str, str]:
        """Reason and message of a condition."""
        found = self.get(resource, name)["status"]["conditions"]
        return next((each["reason"], each["message"]) for each in found if each["type"] == kind)

    def caches(self) -> Any:
        """What the proxy reports."""
        return self.get(MEMCACHEDPROXIES, "front")["status"].get("caches")

    def check(self, servers: int) -> None:
        """Everything is as users want it."""
        assert self.broken == []
        assert is_ready(self.get(MEMCACHEDS, "cache"))
        assert is_ready(self.get(MEMCACHEDPROXIES, "front"))
        assert self.get(STATEFULSETS, "cache")["spec"]["replicas"] == servers
        rings = [ring_of(pod) for pod in self.pods("front")]
        assert [ring.servers for ring in rings if ring] == [servers, servers]
        assert self.caches() == [{"name": "cache", "servers": servers}]


Scenario = Callable[[World], Awaitable[None]]


def run(scenario: Scenario, *arguments: str, election: bool = False, seed: int = 0) -> World:
    """Run a scenario after the start of an operator, with further arguments."""

    async def work() -> World:
        plane = SimulatedPlane(seed)
        options = (*arguments, "--leader-elect") if election else arguments
        settings = Settings(sync_period=LONG_SYNC_PERIOD, arguments=options)
        async with plane.sandbox(NAMESPACE, settings) as sandbox:
            world = World(plane, sandbox, plane.cluster.run_containers())
            plane.server.subscribe(world.changed)
            await sandbox.start()
            await scenario(world)
            return world

    with logged():
        return clock.run(work(), seed)


async def both(world: World) -> None:
    """Create both objects."""
    await world.cache()
    await world.front()
    await asyncio.sleep(SETTLED)
    world.check(3)


@pytest.mark.parametrize("first", ["cache", "proxy"])
def test_either_can_be_created_first(first: str) -> None:
    async def scenario(world: World) -> None:
        create = [world.cache, world.front]
        for each in create if first == "cache" else reversed(create):
            await each()
            await asyncio.sleep(SETTLED)
            if each == world.front and first == "proxy":
                assert world.condition(MEMCACHEDPROXIES, "front", "Degraded")[0] == "ReferenceNotFound"
                assert world.key(SERVICES, "front") in world.plane.server.objects
                assert world.key(DEPLOYMENTS, "front") not in world.plane.server.objects
        world.check(3)

    run(scenario)


def test_first_proxies_wait_for_a_minute_for_a_slot_that_does_not_start() -> None:
    async def scenario(world: World) -> None:
        world.hold("cache-1")
        await world.cache()
        await world.front()
        await asyncio.sleep(30)
        reason, message = world.condition(MEMCACHEDPROXIES, "front", "Progressing")
        assert (reason, message[:31]) == ("RollingOut", "The proxies use Memcached cache")
        assert world.key(DEPLOYMENTS, "front") not in world.plane.server.objects
        await asyncio.sleep(SETTLED)
        assert world.get(DEPLOYMENTS, "front")["status"]["readyReplicas"] == 2
        assert world.condition(MEMCACHEDPROXIES, "front", "Progressing")[0] == "WaitingForMemcached"
        world.release()
        await asyncio.sleep(SETTLED)
        world.check(3)
        assert is_ready(world.get(MEMCACHEDPROXIES, "front"))

    run(scenario)


def test_new_slots_are_used_when_they_are_ready() -> None:
    async def scenario(world: World) -> None:
        await both(world)
        world.hold("cache-4")
        await world.change(MEMCACHEDS, "cache", size=5)
        await asyncio.sleep(SETTLED)
        reason, message = world.condition(MEMCACHEDPROXIES, "front", "Progressing")
        assert (reason, message[:33]) == ("RollingOut", "The proxies use 3 of 5 slots unti")
        assert world.caches() == [{"name": "cache", "servers": 3}]
        world.release()
        await asyncio.sleep(SETTLED)
        world.check(5)

    run(scenario)


def test_slots_are_kept_until_no_proxy_uses_them() -> None:
    async def scenario(world: World) -> None:
        await both(world)
        world.changes.clear()
        await world.change(MEMCACHEDS, "cache", size=2)
        await asyncio.sleep(5)
        # The old pods of the proxy still stop.
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 3
        assert world.condition(MEMCACHEDS, "cache", "Progressing") == (
            "WaitingForProxies",
            "Slot 2 is kept until MemcachedProxy front stops using it",
        )
        assert len(world.get(MEMCACHEDS, "cache")["status"]["servers"]) == 2
        await asyncio.sleep(SETTLED)
        world.check(2)
        assert world.changes.count(("MODIFIED", world.key(MEMCACHEDPROXIES, "front"))) <= 3

    run(scenario)


def test_slots_are_kept_while_the_rollout_of_the_proxies_is_paused() -> None:
    async def scenario(world: World) -> None:
        await both(world)
        await world.change(MEMCACHEDPROXIES, "front", rollout={"paused": True})
        await world.change(MEMCACHEDS, "cache", size=2)
        await asyncio.sleep(SETTLED)
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 3
        assert world.condition(MEMCACHEDS, "cache", "Progressing")[0] == "WaitingForProxies"
        assert world.condition(MEMCACHEDPROXIES, "front", "Progressing")[0] == "Paused"
        await world.change(MEMCACHEDPROXIES, "front", rollout={"paused": False})
        await asyncio.sleep(SETTLED)
        world.check(2)

    run(scenario)


def test_deletion_of_the_proxy_ends_the_wait() -> None:
    async def scenario(world: World) -> None:
        await both(world)
        await world.change(MEMCACHEDPROXIES, "front", rollout={"paused": True})
        await world.change(MEMCACHEDS, "cache", size=2)
        await asyncio.sleep(SETTLED)
        await world.sandbox.delete(MEMCACHEDPROXIES, "front")
        await asyncio.sleep(SETTLED)
        assert world.broken == []
        assert world.get(STATEFULSETS, "cache")["spec"]["replicas"] == 2
        assert is_ready(world.get(MEMCACHEDS, "cache"))

    run(scenario)


def test_cache_that_is_deleted_while_no_controller_runs() -> None:
    async def scenario(world: World) -> None:
        await both(world)
        before = world.get(DEPLOYMENTS, "front")
        await world.sandbox.operator.stop()
        await world.sandbox.delete(MEMCACHEDS, "cache")
        await asyncio.sleep(SETTLED)
        await world.sandbox.start()
        await asyncio.sleep(SETTLED)
        assert world.condition(MEMCACHEDPROXIES, "front", "Degraded")[0] == "ReferenceNotFound"
        assert world.condition(MEMCACHEDPROXIES, "front", "Available")[0] == "MinimumReplicasAvailable"
        assert world.get(DEPLOYMENTS, "front") == before
        await world.cache(size=4)
        await asyncio.sleep(SETTLED)
        world.check(4)

    run(scenario)


def test_another_cache_behind_the_same_address() -> None:
    async def scenario(world: World) -> None:
        await both(world)
        address = world.get(SERVICES, "front")["spec"]["clusterIP"]
        await world.create(MEMCACHEDS, "other", identity="Stable", size=2, image=IMAGE)
        await asyncio.sleep(SETTLED)
        await world.change(MEMCACHEDPROXIES, "front", memcachedRef={"name": "other"})
        await asyncio.sleep(2)
        assert world.caches() == [{"name": "other", "servers": 2}, {"name": "cache", "servers": 3}]
        await asyncio.sleep(SETTLED)
        assert world.caches() == [{"name": "other", "servers": 2}]
        assert is_ready(world.get(MEMCACHEDPROXIES, "front"))
        assert world.get(SERVICES, "front")["spec"]["clusterIP"] == address

    run(scenario)


INVALID: Final[dict[str, tuple[dict[str, Any], str, dict[str, Any]]]] = {
    "Pooled": ({}, "has identity: Pooled", {}),
    "passwords": ({"identity": "Stable", "auth": {"secretName": "users"}}, "requires passwords", {}),
    "TLS": (
        {"identity": "Stable", "tls": {"secretName": "tls"}},
        "serves only TLS",
        {"tls": {"port": 11212, "plaintext": "Enabled"}},
    ),
    "old": ({"identity": "Stable", "image": "memcached:1.6.38"}, "runs memcached 1.6.38", {"image": IMAGE}),
    "missing": ({}, "does not exist", {}),
}
"""A Memcached, what the message says about it, and a change of it that is the remedy, if there is one."""


@pytest.mark.parametrize(("spec", "message", "remedy"), INVALID.values(), ids=INVALID.keys())
def test_remedy_for_a_cache_that_cannot_be_used(spec: dict[str, Any], message: str, remedy: dict[str, Any]) -> None:
    """Each message names a field, or says to refer to another Memcached. Proxies that serve are not changed."""

    async def scenario(world: World) -> None:
        await both(world)
        if message != "does not exist":
            await world.create(MEMCACHEDS, "bad", **{"size": 1, "image": IMAGE, **spec})
        before = world.get(DEPLOYMENTS, "front")
        await world.change(MEMCACHEDPROXIES, "front", memcachedRef={"name": "bad"})
        await asyncio.sleep(SETTLED)
        assert message in world.condition(MEMCACHEDPROXIES, "front", "Degraded")[1]
        stalled = [each["type"] for each in world.get(MEMCACHEDPROXIES, "front")["status"]["conditions"]][4:]
        assert stalled == ([] if message == "does not exist" else ["Stalled"])
        assert world.get(DEPLOYMENTS, "front")["spec"] == before["spec"]
        if message == "does not exist":
            await world.create(MEMCACHEDS, "bad", identity="Stable", size=1, image=IMAGE)
        elif remedy:
            await world.change(MEMCACHEDS, "bad", **remedy)
        else:
            await world.change(MEMCACHEDPROXIES, "front", memcachedRef={"name": "cache"})
        await asyncio.sleep(SETTLED)
        assert is_ready(world.get(MEMCACHEDPROXIES, "front"))

    run(scenario)


KILLS: Final = (0.004, 0.02, 0.1, 0.5, 0.7, 1.2, 2.1, 3.1, 4.0, 6.5, 9.2, 10.0, 13.0)
"""Seconds after a change at which the leader is killed."""


@pytest.mark.parametrize("seconds", KILLS)
@pytest.mark.parametrize("size", [2, 5])
def test_leader_is_killed_while_the_ring_changes(size: int, seconds: float) -> None:
    async def scenario(world: World) -> None:
        await both(world)
        await world.change(MEMCACHEDS, "cache", size=size)
        await asyncio.sleep(seconds)
        world.sandbox.operator.kill()
        await asyncio.sleep(2 * SETTLED)
        world.check(size)

    run(scenario, election=True, seed=int(seconds * 1000))


def test_quick_changes_of_the_size() -> None:
    async def scenario(world: World) -> None:
        await both(world)
        for size in (4, 3, 5, 2, 3, 6, 3):
            await world.change(MEMCACHEDS, "cache", size=size)
            await asyncio.sleep(3.3)
        await asyncio.sleep(2 * SETTLED)
        world.check(3)

    run(scenario)


def test_restart_and_steady_state_write_nothing() -> None:
    async def scenario(world: World) -> None:
        await both(world)
        world.changes.clear()
        await asyncio.sleep(SETTLED)
        await world.sandbox.operator.stop()
        await world.sandbox.start()
        await asyncio.sleep(SETTLED)
        assert world.changes == []

    run(scenario)


def test_writes_of_a_new_proxy_and_of_a_larger_ring() -> None:
    """Four children at most and a status; a ring change is one write of a child and two of the status."""

    def writes(world: World, name: str) -> dict[str, int]:
        found = [change for change, key in world.changes if key == world.key(MEMCACHEDPROXIES, name)]
        return {change: found.count(change) for change in found}

    async def scenario(world: World) -> None:
        await world.cache()
        await asyncio.sleep(SETTLED)
        await world.front()
        await asyncio.sleep(SETTLED)
        assert writes(world, "front")["MODIFIED"] <= 2
        await world.change(MEMCACHEDS, "cache", size=4)
        await asyncio.sleep(0.1)
        world.changes.clear()
        await asyncio.sleep(SETTLED)
        assert writes(world, "front")["MODIFIED"] <= 3
        world.check(4)

    run(scenario)


def test_restart_by_kubectl_is_reported_with_a_remedy_that_replaces_the_pods() -> None:
    """A MemcachedProxy has no items, and the plugin restarts Memcacheds only."""

    async def scenario(world: World) -> None:
        await world.cache()
        await world.front()
        await world.change(MEMCACHEDPROXIES, "front", rollout={"restartedAt": "2030-01-01T00:00:00Z"})
        await asyncio.sleep(SETTLED)
        restarted = {"metadata": {"annotations": {RESTARTED_AT: "2030-01-01T01:00:00Z"}}}
        await world.change(DEPLOYMENTS, "front", template=restarted)
        await asyncio.sleep(SETTLED)
        _, message = world.condition(MEMCACHEDPROXIES, "front", "Degraded")
        assert "Deployment front: kubectl rollout restart was reverted" in message
        remedy = "set spec.rollout.restartedAt to the current time: kubectl edit -n simulated memcachedproxy front"
        assert message.endswith(f"To replace the pods, {remedy}")
        events = [each["message"] for each in world.plane.server.of(EVENTS).values()]
        (posted,) = [each for each in events if "reverted" in each]
        assert posted in message
        assert remedy in posted
        before = {pod["metadata"]["uid"] for pod in world.pods("front")}
        await world.change(MEMCACHEDPROXIES, "front", rollout={"restartedAt": "2030-01-01T02:00:00Z"})
        await asyncio.sleep(SETTLED)
        assert before.isdisjoint(pod["metadata"]["uid"] for pod in world.pods("front"))
        assert world.condition(MEMCACHEDPROXIES, "front", "Degraded") == ("AsExpected", "All components are healthy")

    run(scenario)
