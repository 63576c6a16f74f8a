"""Pods and policies that do not belong to an object, but have its labels: reported until the remedy is applied."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, Final

import pytest

from faults.sandbox import LONG_SYNC_PERIOD, Sandbox, Settings
from faults.state import is_ready
from faults.workloads import cache
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.engine.strays.finder import GRACE
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    LEASES,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SERVICES,
    STATEFULSETS,
    Key,
    Object,
    Resource,
    controller_of,
    nested_list,
)
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES
from simulation import clock
from simulation.cluster.access import REPLICA_SETS
from simulation.operator import logged
from simulation.plane import SimulatedPlane

NAMESPACE: Final = "strays"
SETTLED: Final = 30.0
"""Seconds after which nothing changes any more, except what takes GRACE."""
BY_NAME: Final[dict[str, Resource]] = {
    resource.kind.lower(): resource
    for resource in (CONFIG_MAPS, DEPLOYMENTS, NETWORK_POLICIES, POD_DISRUPTION_BUDGETS, SERVICES, STATEFULSETS)
}
STABLE, POOLED = {"identity": "Stable"}, dict[str, Any]()
SPECS: Final[dict[Resource, dict[str, Any]]] = {
    MEMCACHEDS: {},
    MEMCACHEDPROXIES: {"memcachedRef": {"name": "slots"}},
    APPSERVICES: {"ports": [{"port": 80}]},
}


@dataclass
class World:
    """A control plane and one operator. `reasons`: those of Degraded that `cache` has had. `changes`: of objects."""

    plane: SimulatedPlane
    sandbox: Sandbox
    reasons: set[str] = field(default_factory=set[str])
    changes: list[str] = field(default_factory=list[str])

    def changed(self, change: str, obj: Object) -> None:
        if obj["kind"] != LEASES.kind:
            self.changes.append(f"{change} {obj['kind']} {obj['metadata']['name']}")
        if obj["metadata"]["name"] == "cache":
            conditions = nested_list(obj, "status", "conditions")
            self.reasons |= {each["reason"] for each in conditions if each["type"] == "Degraded"}

    def get(self, resource: Resource, name: str = "cache") -> Object | None:
        return self.plane.server.objects.get(Key(resource, NAMESPACE, name))

    def degraded(self, resource: Resource = MEMCACHEDS) -> tuple[str, str]:
        """Reason and message of Degraded."""
        conditions = nested_list(self.get(resource) or {}, "status", "conditions")
        return next((each["reason"], each["message"]) for each in conditions if each["type"] == "Degraded")

    def message(self, resource: Resource = MEMCACHEDS) -> str:
        """The message of a conflict, with which the rollout is complete."""
        conditions = nested_list(self.get(resource) or {}, "status", "conditions")
        reasons = {each["type"]: each["reason"] for each in conditions}
        assert (reasons["Degraded"], reasons["Ready"], reasons["Progressing"]) == ("Conflict",) * 2 + (
            "RolloutComplete",
        )
        return self.degraded(resource)[1]

    def owners(self) -> set[str]:
        """The controllers of the pods of `cache`, or their names."""
        found = self.plane.server.of(PODS).values()
        pods = [pod for pod in found if pod["metadata"]["labels"]["app.kubernetes.io/instance"] == "cache"]
        return {(controller_of(pod) or {"kind": pod["metadata"]["name"]})["kind"] for pod in pods}

    async def create(self, resource: Resource, **spec: Any) -> None:
        await self.sandbox.create(resource, "cache", cache(size=2, **spec))
        await asyncio.sleep(SETTLED)

    async def run(self, message: str) -> None:
        """Run the command of a message as kubectl does."""
        words = re.findall(r"kubectl (.+?)(?:[.;] |$)", message)[0].split()
        assert words[0] in ("delete", "label")
        names = [word for word in words[1:] if word not in ("-n", NAMESPACE, "--wait=false", "pod")]
        assert "-n" in words
        if words[0] == "delete":
            assert "--wait=false" in words
            for resource, _, name in (name.partition("/") for name in names):
                await self.sandbox.delete(BY_NAME[resource], name)
            return
        (label,) = (name.removesuffix("-") for name in names if name.startswith("app.kubernetes.io/"))
        for name in names[:-1]:
            await self.sandbox.merge(Key(PODS, NAMESPACE, name), {"metadata": {"labels": {label: None}}})


Scenario = Callable[[World], Awaitable[None]]


def run(scenario: Scenario) -> None:
    """Run a scenario after the start of an operator."""

    async def work() -> None:
        plane = SimulatedPlane()
        async with plane.sandbox(NAMESPACE, Settings(sync_period=LONG_SYNC_PERIOD)) as sandbox:
            world = World(plane, sandbox)
            plane.server.subscribe(world.changed)
            await sandbox.start()
            await scenario(world)

    with logged():
        clock.run(work())


LEFT: Final = {
    "slots": (STABLE, POOLED, STATEFULSETS, "StatefulSet"),
    "pooled": (POOLED, STABLE, DEPLOYMENTS, "ReplicaSet"),
}


@pytest.mark.parametrize(("before", "after", "left", "owner"), LEFT.values(), ids=LEFT)
def test_pods_of_another_identity_are_reported_until_they_are_deleted(
    before: dict[str, Any], after: dict[str, Any], left: Resource, owner: str
) -> None:
    async def scenario(world: World) -> None:
        await world.create(MEMCACHEDS, **before)
        await world.sandbox.delete(MEMCACHEDS, "cache", "Orphan")
        await asyncio.sleep(SETTLED)
        workload = world.get(left)
        await world.create(MEMCACHEDS, **after)
        message = world.message()
        assert message.startswith(f"{left.kind} cache has no owner, and Service cache sends clients of this Memcached")
        assert world.owners() == {"ReplicaSet", "StatefulSet"}
        world.changes.clear()
        await asyncio.sleep(2 * GRACE)
        assert (world.changes, world.get(left)) == ([], workload)
        await world.run(message)
        await asyncio.sleep(SETTLED)
        assert is_ready(world.get(MEMCACHEDS))
        assert world.owners() == {"ReplicaSet", "StatefulSet"} - {owner}
        assert (world.get(left), world.get(CONFIG_MAPS, "cache-connection") is None) == (None, after == POOLED)

    run(scenario)


@pytest.mark.parametrize(("before", "after"), [(STABLE, POOLED), (POOLED, STABLE)], ids=["slots", "pooled"])
def test_earlier_identity_uses_the_old_pods_again(before: dict[str, Any], after: dict[str, Any]) -> None:
    async def scenario(world: World) -> None:
        await world.create(MEMCACHEDS, **before)
        pods = set(world.plane.server.of(PODS))
        await recreated(world, after, "Orphan")
        assert world.message()
        await recreated(world, before)
        assert is_ready(world.get(MEMCACHEDS))
        assert set(world.plane.server.of(PODS)) == pods

    run(scenario)


def test_object_of_a_user_is_a_conflict_until_it_is_deleted() -> None:
    async def scenario(world: World) -> None:
        service = {"metadata": {"name": "cache"}, "spec": {"ports": [{"port": 80}]}}
        await world.sandbox.client.request("POST", SERVICES.path(NAMESPACE), service)
        await world.create(MEMCACHEDS)
        message = (
            "Service cache exists and is not managed by this operator. The object is not modified, and clients that "
            "use its name reach what it selects. Delete or rename"
        )
        assert world.degraded()[1].startswith(message)
        await world.sandbox.delete(SERVICES, "cache")
        await asyncio.sleep(SETTLED)
        assert is_ready(world.get(MEMCACHEDS))

    run(scenario)


@pytest.mark.parametrize("resource", SPECS, ids=lambda resource: resource.kind)
def test_pods_of_other_owners_are_reported_until_they_have_other_labels(resource: Resource) -> None:
    async def scenario(world: World) -> None:
        await world.sandbox.create_ready(MEMCACHEDS, "slots", cache(**STABLE))
        await world.create(resource, **SPECS[resource])
        await asyncio.sleep(SETTLED)
        own = world.get(DEPLOYMENTS)
        assert own is not None
        assert is_ready(world.get(resource))
        names = await others(world, own)
        world.changes.clear()
        await asyncio.sleep(GRACE / 2)
        assert is_ready(world.get(resource))
        await asyncio.sleep(GRACE)
        message = world.message(resource)
        assert f"Pods of ReplicaSet {names[0]} have the labels of this {resource.kind}" in message
        assert "because they have its labels: debug. They are not modified" in message
        world.changes.clear()
        await asyncio.sleep(2 * GRACE)
        assert world.changes == []
        await world.run(message)
        await world.sandbox.delete(DEPLOYMENTS, "web")
        await asyncio.sleep(SETTLED)
        assert is_ready(world.get(resource))
        assert world.get(PODS, "debug") is not None
        assert world.get(DEPLOYMENTS) == own

    run(scenario)


async def others(world: World, own: Object) -> list[str]:
    """Create a Deployment and a pod with the labels of the pods of an object, as another user."""
    template = own["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**template["metadata"], "name": "debug"}}
    await world.sandbox.client.request("POST", PODS.path(NAMESPACE), {**pod, "spec": template["spec"]})
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": own["spec"]}
    await world.sandbox.client.request("POST", DEPLOYMENTS.path(NAMESPACE), web)
    await asyncio.sleep(1)
    return [key.name for key in world.plane.server.of(REPLICA_SETS) if key.name.startswith("web-")]


@pytest.mark.parametrize(
    ("resource", "fields"), [(NETWORK_POLICIES, "networkPolicy"), (POD_DISRUPTION_BUDGETS, "podDisruptionBudget")]
)
def test_policy_of_an_earlier_object_is_a_notice_until_it_is_deleted(resource: Resource, fields: str) -> None:
    async def scenario(world: World) -> None:
        await world.create(MEMCACHEDS, **{fields: {}})
        await world.sandbox.delete(MEMCACHEDS, "cache", "Orphan")
        await asyncio.sleep(SETTLED)
        await world.create(MEMCACHEDS, podDisruptionBudget={"enabled": False})
        assert is_ready(world.get(MEMCACHEDS))
        message = world.degraded()[1]
        assert f"All components are healthy. {resource.kind} cache has no owner, but" in message
        await world.run(message)
        await asyncio.sleep(SETTLED)
        assert world.degraded()[1] == "All components are healthy"
        assert world.get(resource) is None

    run(scenario)


async def recreated(world: World, spec: dict[str, Any], propagation: str = "Background") -> None:
    await world.sandbox.delete(MEMCACHEDS, "cache", propagation)
    await asyncio.sleep(1 if propagation == "Orphan" else 0)
    await world.create(MEMCACHEDS, **spec)


async def without_workload(world: World, spec: dict[str, Any], propagation: str) -> None:
    await world.sandbox.delete(STATEFULSETS if spec == STABLE else DEPLOYMENTS, "cache", propagation)
    await asyncio.sleep(SETTLED)


async def changed(world: World, identity: dict[str, Any]) -> None:
    await world.sandbox.merge(Key(MEMCACHEDS, NAMESPACE, "cache"), {"spec": {"identity": None, **identity}})
    await asyncio.sleep(SETTLED)


TRANSITIONS: Final[dict[str, Callable[[World, dict[str, Any], dict[str, Any]], Awaitable[None]]]] = {
    "created again": lambda world, spec, _: recreated(world, spec),
    "with another identity": lambda world, _, other: recreated(world, other),
    "identity changed": lambda world, _, other: changed(world, other),
    "adopted": lambda world, spec, _: recreated(world, spec, "Orphan"),
    "workload created again": lambda world, spec, _: without_workload(world, spec, "Background"),
    "workload created again for its pods": lambda world, spec, _: without_workload(world, spec, "Orphan"),
}


@pytest.mark.parametrize("identity", [STABLE, POOLED], ids=["slots", "pooled"])
@pytest.mark.parametrize("transition", TRANSITIONS.values(), ids=TRANSITIONS)
def test_transition_is_no_conflict(transition: Any, identity: dict[str, Any]) -> None:
    async def scenario(world: World) -> None:
        await world.create(MEMCACHEDS, **identity)
        await transition(world, identity, POOLED if identity == STABLE else STABLE)
        await asyncio.sleep(2 * GRACE)
        assert is_ready(world.get(MEMCACHEDS))
        assert world.reasons == {"AsExpected"}

    run(scenario)


RIVALS: Final = [(MEMCACHEDS, MEMCACHEDS), *permutations(SPECS, 2)]


@pytest.mark.parametrize(("first", "second"), RIVALS, ids=lambda each: each.kind)
def test_two_objects_that_need_the_same_child_are_both_named(first: Resource, second: Resource) -> None:
    """The remedy: one of them gets another name. A Memcached can also need the Service of another one's slot."""
    name = "cache-0" if first == second else "cache"

    async def scenario(world: World) -> None:
        await world.sandbox.create_ready(MEMCACHEDS, "slots", cache(**STABLE))
        slots = {**STABLE, "service": {"perPod": True}} if first == second else {}
        await world.create(first, **SPECS[first], **slots)
        before = world.get(SERVICES, name)
        await world.sandbox.create(second, name, cache(**SPECS[second]))
        await asyncio.sleep(SETTLED)
        condition = await world.sandbox.condition(second, name, "Degraded")
        assert condition["reason"] == "Conflict"
        expected = (
            f"Service {name} belongs to {first.kind} cache. The object is not modified, and clients that use its name "
            "reach what it selects. This operator creates it for only one of the two. Use another name for "
            f"{second.kind} {name} or for {first.kind} cache"
        )
        assert expected in condition["message"]
        assert "elete" not in condition["message"]
        assert world.get(SERVICES, name) == before
        await world.sandbox.delete(second, name)
        await world.sandbox.create_ready(second, "other", cache(**SPECS[second]))
        assert is_ready(world.get(first))

    run(scenario)
