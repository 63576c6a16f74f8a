"""The steps of walks whose pods are updated in place: what users change, and what goes wrong with nodes and pods."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Final

from faults.workloads import IMAGE, OTHER_IMAGE, SLOTS, cache
from memcached_api.conditions import DEGRADED, PROGRESSING
from memcached_operator.kube.resource import PODS, Object, nested_list, nested_map
from simulation.cluster.access import is_deleted
from simulation.cluster.statefulsets import REVISION
from simulation.in_place.checks import FORGED_NAMES
from simulation.walks.specs import PAUSED, PLAIN, STABLE, Spec, key_of_owner
from simulation.walks.world import World
from support.kubelet import AGENT, DEFERRED, ERROR, INFEASIBLE, MEMCACHED

NAME: Final = STABLE[0]
AGENT_IMAGE, OTHER_AGENT_IMAGE = "agent:1", "agent:2"
IMAGES: Final = (IMAGE, OTHER_IMAGE, AGENT_IMAGE, OTHER_AGENT_IMAGE)


@dataclass(frozen=True)
class Updated(Spec):
    """A Memcached with everything that an update in place can change. `cpu`: a limit, besides the request.

    `restarted`: the number of times that a user has replaced all pods.
    """

    warm: bool = True
    connections: int = 1024
    memory: str = "64Mi"
    request: str = "10m"
    cpu: bool = False
    agent: str = AGENT_IMAGE
    agent_memory: str = "48Mi"
    at_once: int = 1
    restarted: int = 0

    def of(self, name: str) -> Object:
        """The spec of the object with this name."""
        del name
        rollout: Object = {"maxUnavailable": self.at_once, "paused": self.option == PAUSED}
        if self.restarted:
            rollout["restartedAt"] = f"2030-01-01T00:00:{self.restarted:02}Z"
        settings = {"memory": self.memory, "warmRestart": self.warm, "maxConnections": self.connections}
        limits = {"limits": {"cpu": "1"}} if self.cpu else {}
        fields = cache(
            size=self.size,
            image=self.image,
            agent={"image": self.agent, "resources": {"limits": {"memory": self.agent_memory}}},
            monitoring={},
            cache=settings,
            resources={"requests": {"cpu": self.request}, **limits},
            rollout=rollout,
            podDisruptionBudget={"maxUnavailable": 4},
            **SLOTS,
        )
        return dict(fields)


def replaced(spec: Spec) -> Spec:
    """The spec with which all pods are replaced."""
    return replace(spec, restarted=spec.restarted + 1) if isinstance(spec, Updated) else spec


VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "size": (1, 2, 3, 4),
    "option": (PLAIN, PLAIN, PAUSED),
    "image": IMAGES[:2],
    "connections": (512, 1024, 8192),
    "memory": ("64Mi", "128Mi"),
    "request": ("10m", "20m"),
    "cpu": (True, False),
    "agent": IMAGES[2:],
    "agent_memory": ("48Mi", "96Mi"),
    "at_once": (1, 2, 3),
}
"""The values of the fields that a user changes."""
IN_PLACE: Final = ("image", "connections", "memory", "request", "agent", "agent_memory")
"""Those that mostly change pods in place."""


@dataclass(frozen=True)
class Change:
    """A user changes some fields."""

    fields: tuple[tuple[str, Any], ...]

    async def __call__(self, world: World) -> None:
        await world.put(NAME, self.of(world.wanted[NAME]))

    def of(self, spec: Spec) -> Spec:
        """The changed spec."""
        return replace(spec, **dict(self.fields))


@dataclass(frozen=True)
class Nodes:
    """What goes wrong with all nodes from now on. `resizes`, `reaction`, `code`: as of their kubelets.

    `missing`: an image that does not exist.
    """

    resizes: str = ""
    missing: str = ""
    reaction: float = 0.2
    code: int = 0

    async def __call__(self, world: World) -> None:
        nodes = world.pods.nodes
        nodes.resizes, nodes.reaction, nodes.code = self.resizes, self.reaction, self.code
        nodes.lacks = {self.missing}.__contains__
        world.pods.wake()


PROBLEMS: Final = (
    *(Nodes(resizes=each) for each in (DEFERRED, INFEASIBLE, INFEASIBLE, ERROR, "never")),
    *(Nodes(reaction=each) for each in (5.0, 60.0, 300.0)),
    *(Nodes(missing=each) for each in (*IMAGES, OTHER_IMAGE, OTHER_IMAGE)),
    Nodes(code=137),
    Nodes(),
)


@dataclass(frozen=True)
class Slot:
    """Something happens to the n-th pod that is bound to a node. `unready`: and to the next one."""

    number: int
    what: str

    async def __call__(self, world: World) -> None:
        found = [
            pod for key, pod in world.objects() if key.resource == PODS and pod["metadata"]["uid"] in world.pods.pods
        ]
        if not found or is_deleted(pod := found[self.number % len(found)]):
            return
        name = pod["metadata"]["name"]
        match self.what:
            case "crashed":
                world.pods.crash(pod, MEMCACHED)
            case "rebooted":
                world.pods.of(pod).crashed |= {MEMCACHED, AGENT}
                world.pods.wake()
            case "evicted":
                world.plane.server.put({**pod, "status": {**nested_map(pod, "status"), "phase": "Failed"}}, "status")
            case "unready":
                both = (found * 2)[self.number % len(found) :][:2]
                world.pods.nodes.broken |= {(each["metadata"]["name"], AGENT) for each in both}
                world.pods.wake()
            case "released":
                world.pods.nodes.release(name)
                world.pods.wake()
            case "raced":
                world.pods.nodes.races.add(name)
            case _:
                world.pods.nodes.kills.add(name)


SLOT_EVENTS: Final = ("crashed", "rebooted", "evicted", "unready", "unready", "released", "raced", "killed")
FORGED: Final = (
    None,
    "",
    "x",
    "{}",
    "[]",
    '{"revision":"a","failed":"x"}',
    '{"revision":"a","restarts":{"agent":{"id":"simulated://agent-0"}}}',
)


@dataclass(frozen=True)
class Forge:
    """Another client changes an annotation or the revision of the n-th pod."""

    number: int
    field: int
    text: str | None

    async def __call__(self, world: World) -> None:
        found = [(key, pod) for key, pod in world.objects() if key.resource == PODS]
        if not found:
            return
        key, pod = found[self.number % len(found)]
        world.updates.tampered.add(pod["metadata"]["uid"])
        names = (*FORGED_NAMES, REVISION)
        name = names[self.field % len(names)]
        value = self.text if name != REVISION else "cache-x" if self.text else None
        await world.merge(key, {"metadata": {"labels" if name == REVISION else "annotations": {name: value}}})


@dataclass(frozen=True)
class Hasty:
    """A user changes the image, and replaces all pods a while later."""

    image: str
    seconds: float

    async def __call__(self, world: World) -> None:
        spec = replace(world.wanted[NAME], image=self.image)
        await world.put(NAME, spec)
        await asyncio.sleep(self.seconds)
        await world.put(NAME, replaced(spec))


@dataclass(frozen=True)
class Settle:
    """Nothing else goes wrong. After the longest backoff, the update is complete, or its status has a remedy."""

    async def __call__(self, world: World) -> None:
        await world.end_faults()
        world.pods.correct()
        await asyncio.sleep(SETTLED)
        world.updates.problems += world.updates.stopped()
        spec, live = world.wanted.get(NAME), world.get(key_of_owner(NAME))
        if spec is None or live is None or spec.is_paused(NAME):
            return
        conditions = {each["type"]: each for each in nested_list(live, "status", "conditions")}
        message: str = conditions[DEGRADED]["message"]
        is_stuck = conditions[PROGRESSING]["status"] == "True" or conditions[DEGRADED]["status"] == "True"
        if is_stuck and not any(each in message for each in REMEDIES):
            world.updates.problems.append(f"the update has no remedy: {message}")


SETTLED: Final = 2700.0
"""Seconds: the longest backoff is 30 minutes."""
REMEDIES: Final = ("To replace the pod", "restartedAt", "Correct", "correct", "Request less", "Set the previous values")


@dataclass(frozen=True)
class Replaced:
    """A user replaces all pods, which is the remedy after an image was missing, or another client changed a pod."""

    async def __call__(self, world: World) -> None:
        await world.put(NAME, replaced(world.wanted[NAME]))
