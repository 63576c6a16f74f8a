"""The steps of users and of other clients."""

from dataclasses import dataclass, replace
from typing import Final

from faults.campaigns.drift import CHILDREN, FOREIGN, NOTE
from memcached_operator.kube.client import FIELD_MANAGER
from memcached_operator.kube.labels import INSTANCE, MANAGED_BY
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    POD_MONITORS,
    PODS,
    PROMETHEUS_RULES,
    SERVICES,
    STATEFULSETS,
    Key,
    Object,
    Resource,
    controller_of,
)
from simulation.walks.specs import NAME, NAMESPACE, OWNERS, PAUSED, PLAIN, Spec, key_of_owner
from simulation.walks.world import FINALIZER, World

PATCHES: Final = {child.resource: child.patch for child in CHILDREN}
"""A patch of one of our fields, for each resource of children."""
HELD: Final = "Held"
WORKLOADS: Final = (DEPLOYMENTS, STATEFULSETS)
THEIRS: Final = "theirs"
FOREIGN_CHILDREN: Final[tuple[tuple[Resource, str], ...]] = (
    (DEPLOYMENTS, ""),
    (STATEFULSETS, ""),
    (SERVICES, ""),
    (SERVICES, "-0"),
    (CONFIG_MAPS, "-connection"),
    (POD_DISRUPTION_BUDGETS, ""),
    (NETWORK_POLICIES, ""),
    (POD_MONITORS, ""),
    (PROMETHEUS_RULES, ""),
)
"""The names that another owner's object can have: resources, and what follows the object's name."""


@dataclass(frozen=True)
class Put:
    """A user creates an object, or changes its spec."""

    name: str
    spec: Spec

    async def __call__(self, world: World) -> None:
        await world.put(self.name, self.spec)


@dataclass(frozen=True)
class Scale:
    """A user or an autoscaler scales an object."""

    name: str
    size: int

    async def __call__(self, world: World) -> None:
        spec = world.wanted.get(self.name)
        if spec is not None:
            world.wanted[self.name] = replace(spec, size=self.size)
            await world.merge(key_of_owner(self.name), {"spec": {"size": self.size}})


@dataclass(frozen=True)
class Refer:
    """A user lets a MemcachedProxy name another Memcached, which may not exist."""

    name: str
    reference: str

    async def __call__(self, world: World) -> None:
        spec = world.wanted.get(self.name)
        if spec is not None:
            world.wanted[self.name] = replace(spec, reference=self.reference)
            await world.merge(key_of_owner(self.name), {"spec": {"memcachedRef": {"name": self.reference}}})


@dataclass(frozen=True)
class Pause:
    """A user pauses the rollout of an object, or continues it. Its other options are those of the spec `plain`."""

    name: str
    paused: bool

    async def __call__(self, world: World) -> None:
        spec = world.wanted.get(self.name)
        if spec is not None:
            await world.put(self.name, replace(spec, option=PAUSED if self.paused else PLAIN))


@dataclass(frozen=True)
class Delete:
    """A user deletes an object. `propagation`: or HELD, for an object that exists for a while after its children."""

    name: str
    propagation: str

    async def __call__(self, world: World) -> None:
        world.wanted.pop(self.name, None)
        key, propagation = key_of_owner(self.name), self.propagation
        if propagation == HELD:
            await world.merge(key, {"metadata": {"finalizers": [FINALIZER]}})
            propagation = "Foreground"
        await world.delete(key, propagation)


@dataclass(frozen=True)
class Replace:
    """A user deletes an object and creates it again at once, as `kubectl replace --force` does."""

    name: str
    spec: Spec

    async def __call__(self, world: World) -> None:
        await world.delete(key_of_owner(self.name))
        await world.put(self.name, self.spec)


@dataclass(frozen=True)
class Drift:
    """Another client does something with the n-th child. `value`: of a scaled or deleted child."""

    what: str
    number: int
    value: str = ""

    async def __call__(self, world: World) -> None:
        found = [key for key, obj in world.objects() if key.resource in PATCHES and _was_ours(obj)]
        if found:
            await _drift(world, self, found[self.number % len(found)])


async def _drift(world: World, drift: Drift, key: Key) -> None:
    match drift.what:
        case "deleted":
            await world.delete(key, drift.value or "Background")
        case "adopted":
            await _adopt(world, key)
        case "given back":
            await _give_back(world, key)
        case "finalized":
            await world.merge(key, {"metadata": {"finalizers": [FINALIZER]}})
            await world.delete(key)
        case "scaled" if key.resource in WORKLOADS:
            await world.merge(key, {"spec": {"replicas": int(drift.value or 0)}})
        case _:
            await world.merge(key, METADATA.get(drift.what, PATCHES[key.resource]))


METADATA: Final[dict[str, Object]] = {
    "orphaned": {"metadata": {"ownerReferences": None}},
    "annotated": {"metadata": {"annotations": {NOTE: "foreign"}}},
    "relabelled": {"metadata": {"labels": {INSTANCE: "changed"}}},
    "hidden": {"metadata": {"labels": {MANAGED_BY: "changed"}}},
}
"""The changes of a child's metadata."""
DRIFTS: Final = (*METADATA, "deleted", "adopted", "given back", "finalized", "scaled", "changed")


async def _adopt(world: World, key: Key) -> None:
    """Make a ConfigMap the owner of a child."""
    other = Key(CONFIG_MAPS, NAMESPACE, "other-owner")
    await world.request("POST", other, {"metadata": {"name": other.name}, "data": {}})
    owner = world.get(other) or {}
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": other.name, "uid": owner["metadata"]["uid"]}
    await world.merge(key, {"metadata": {"ownerReferences": [{**reference, "controller": True}]}})


async def _give_back(world: World, key: Key) -> None:
    """Make the object with the name of a child its owner again."""
    name = key.name[:NAME]
    owner = world.get(key_of_owner(name)) if name in OWNERS else None
    if owner is not None:
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name}
        reference |= {"uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}
        await world.merge(key, {"metadata": {"ownerReferences": [reference]}})


@dataclass(frozen=True)
class Foreign:
    """Another owner creates an object with the name of a child, if the name is free."""

    name: str
    number: int

    async def __call__(self, world: World) -> None:
        resource, suffix = FOREIGN_CHILDREN[self.number % len(FOREIGN_CHILDREN)]
        key = Key(resource, NAMESPACE, f"{self.name}{suffix}")
        created = await world.request("POST", key, {**FOREIGN[resource.kind], "metadata": {"name": key.name}})
        if created is not None:
            world.foreign.add(created["metadata"]["uid"])


@dataclass(frozen=True)
class Budget:
    """Another user creates a PodDisruptionBudget for the pods of an object, or deletes it."""

    name: str

    async def __call__(self, world: World) -> None:
        key = Key(POD_DISRUPTION_BUDGETS, NAMESPACE, THEIRS)
        if world.get(key) is not None:
            await world.delete(key)
            return
        spec = {"minAvailable": 1, "selector": {"matchLabels": {INSTANCE: self.name}}}
        await world.request("POST", key, {"metadata": {"name": THEIRS}, "spec": spec})


@dataclass(frozen=True)
class Pod:
    """The n-th pod is deleted. `held`: a finalizer blocks the deletion."""

    number: int
    held: bool

    async def __call__(self, world: World) -> None:
        found = [key for key, _ in world.objects() if key.resource == PODS]
        if not found:
            return
        key = found[self.number % len(found)]
        if self.held:
            await world.merge(key, {"metadata": {"finalizers": [FINALIZER]}})
        await world.delete(key)


@dataclass(frozen=True)
class Release:
    """All finalizers of other clients are removed. `foreign`: and other owners' objects are deleted."""

    foreign: bool

    async def __call__(self, world: World) -> None:
        for key, obj in world.objects():
            await world.release(key)
            if self.foreign and (is_foreign(world, obj) or key.name == THEIRS):
                await world.delete(key)


def is_foreign(world: World, obj: Object) -> bool:
    """Whether an object with the name of a child is another owner's, because of a step."""
    owner = controller_of(obj)
    return obj["metadata"]["uid"] in world.foreign or (owner is not None and owner["kind"] == CONFIG_MAPS.kind)


def _was_ours(obj: Object) -> bool:
    """Whether the operator has created an object."""
    return any(each["manager"] == FIELD_MANAGER for each in obj["metadata"].get("managedFields") or ())
