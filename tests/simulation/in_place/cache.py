"""One Memcached with two slots whose pods are updated in place, with the real controller."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from faults.sandbox import LONG_SYNC_PERIOD, Sandbox, Settings, user_of
from memcached_operator.kube.client import JSON_PATCH
from memcached_operator.kube.resource import PODS, STATEFULSETS, Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcached.updates.confirmation import UNSEEN
from simulation import clock
from simulation.cluster.kubelets import Kubelets
from simulation.in_place.checks import MIRROR, Checks
from simulation.operator import logged
from simulation.plane import SimulatedPlane
from support.kubelet import AGENT
from support.nodes import Nodes

NAME, NAMESPACE = "cache", "simulated"
MINUTE: Final = 60.0
HEALTHY: Final = "All components are healthy"
MORE: Final[Object] = {"resources": {"requests": {"cpu": "20m"}}}
LIMITED: Final[Object] = {"resources": {"requests": {"cpu": "20m"}, "limits": {"cpu": "1"}}}
REPLACE: Final = "To replace the pods and lose their items, set spec.rollout.restartedAt to the current time"


def agent(image: str, memory: str = "48Mi") -> Object:
    """The fields of an agent."""
    return {AGENT: {"image": image, "resources": {"limits": {"memory": memory}}}}


def spec(**changes: Any) -> Object:
    """A spec with warm restarts and two slots."""
    return {
        "size": 2,
        "identity": "Stable",
        "image": "memcached:1",
        **agent("agent:1"),
        "monitoring": {},
        "cache": {"memory": "64Mi", "warmRestart": True, "maxConnections": 1024},
        "resources": {"requests": {"cpu": "10m"}},
        "rollout": {"maxUnavailable": 1},
        "podDisruptionBudget": {"maxUnavailable": 4},
        **changes,
    }


@dataclass
class Cache:
    """The Memcached `cache`. `statuses`: each one that was written. `kubelets`: those of its pods."""

    plane: SimulatedPlane
    sandbox: Sandbox
    kubelets: Kubelets
    checks: Checks
    statuses: list[Object] = field(default_factory=lambda: [{}])

    @property
    def nodes(self) -> Nodes:
        """What goes wrong with the nodes."""
        return self.kubelets.nodes

    @property
    def live(self) -> Object:
        """The object."""
        return self.plane.server.objects[Key(MEMCACHEDS, NAMESPACE, NAME)]

    @property
    def degraded(self) -> Object:
        """The condition Degraded."""
        return next(each for each in self.live["status"]["conditions"] if each["type"] == "Degraded")

    def uids(self) -> dict[str, str]:
        """The uids of the pods, by name."""
        return {key.name: pod["metadata"]["uid"] for key, pod in self.plane.server.of(PODS).items()}

    def correct(self, **nodes: Any) -> None:
        """Change what is wrong with the nodes."""
        for name, value in nodes.items():
            setattr(self.nodes, name, value)
        self.kubelets.wake()

    async def write(self, written: Object, seconds: float = 0.0) -> None:
        """The user writes another spec, and time passes."""
        patch = [{"op": "replace", "path": "/spec", "value": written}]
        path = MEMCACHEDS.path(NAMESPACE, NAME)
        await self.sandbox.client.request("PATCH", path, patch, JSON_PATCH)
        await asyncio.sleep(seconds)

    def check_complete(self) -> None:
        """All pods are as the spec says, and nothing was done that must not be."""
        assert self.checks.problems == []
        assert [*self.checks.incomplete(self.plane.server.objects[Key(STATEFULSETS, NAMESPACE, NAME)])] == []
        assert self.degraded["message"] == HEALTHY


def missing(*images: str) -> Callable[[str], bool]:
    """Nodes on which these images cannot be pulled."""
    return lambda image: image in images


NOTHING: Final = missing()


def mirrored(pod: Object) -> Object:
    """A pod as admission changes it: its images are those of a mirror."""
    containers = [{**each, "image": f"{MIRROR}{each['image']}"} for each in pod["spec"]["containers"]]
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def is_foreign(image: str) -> bool:
    """Whether an image is of no mirror."""
    return not image.startswith(MIRROR)


def run(
    scenario: Callable[[Cache], Awaitable[None]],
    written: Object | None = None,
    lacks: Callable[[str], bool] = NOTHING,
    admit: Callable[[Object], Object] | None = None,
) -> None:
    """Run a scenario with a cache that has existed for 2 minutes.

    `written`: its spec. `lacks`: as of Nodes. `admit`: changes new pods.
    """

    async def work() -> None:
        plane = SimulatedPlane()
        async with plane.sandbox(NAMESPACE, Settings(sync_period=LONG_SYNC_PERIOD)) as sandbox:
            kubelets = plane.cluster.run_containers(Nodes(lacks=lacks))
            plane.cluster.access.admit = admit or plane.cluster.access.admit
            cache = Cache(plane, sandbox, kubelets, Checks(plane, kubelets, user_of(NAMESPACE)))
            plane.server.subscribe(lambda _, obj: _note(cache, obj))
            await sandbox.start()
            await sandbox.create(MEMCACHEDS, NAME, written or spec())
            await asyncio.sleep(UNSEEN.total_seconds())
            await scenario(cache)

    with logged():
        clock.run(work())


def _note(cache: Cache, obj: Object) -> None:
    if obj["kind"] == MEMCACHEDS.kind and obj.get("status"):
        cache.statuses.append(obj["status"])
