"""The environment of a measurement: a control plane with selected controllers, cleaned up between measurements."""

import asyncio
import json
import math
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from bench.load import user
from bench.programs import running
from bench.trail import Trail
from cluster.public.components import Kube
from integration.control_plane import NAMESPACES, ROOT, ControlPlane, without_controllers
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Resource
from memcached_operator.memcached.controller import MEMCACHEDS

LOGS = ROOT / "build/bench"
RESOURCES = (MEMCACHEDS, DEPLOYMENTS, SERVICES)


@dataclass
class Environment:
    """A control plane, a user's client, and the audit log."""

    plane: ControlPlane
    client: ApiClient
    trail: Trail
    _namespaces: list[str] = field(default_factory=list[str])
    _created: int = 0

    async def namespace(self, name: str) -> str:
        """Create a namespace with a new name."""
        self._created += 1
        name = f"{name}-{self._created:03}"
        self._namespaces.append(name)
        await self.client.request("POST", NAMESPACES.path(), {"metadata": {"name": name}})
        return name

    async def objects(self) -> int:
        """Number of Memcacheds."""
        response = await self.client.request("GET", MEMCACHEDS.path(), params={"limit": "1"})
        return len(response["items"]) + response["metadata"].get("remainingItemCount", 0)

    async def wait_quiet(self, seconds: float, agent: str = "") -> None:
        """Wait until a client, or all clients, have not written for this many seconds."""
        last, since = -1, time.monotonic()
        while time.monotonic() - since < seconds:
            await asyncio.sleep(0.25)
            now = len(self.trail.writes(agent))
            if now != last:
                last, since = now, time.monotonic()

    async def clean_up(self) -> None:
        """Delete everything in the created namespaces, and wait until it is deleted and no writes follow."""
        for namespace in self._namespaces:
            for resource in RESOURCES:
                await _delete_all(self.client, resource, namespace)
        while any([await _any_left(self.client, each) for each in RESOURCES]):  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.25)
        await self.wait_quiet(1.0)
        self._namespaces.clear()


async def _delete_all(client: ApiClient, resource: Resource, namespace: str) -> None:
    await client.request("DELETE", resource.path(namespace), {"propagationPolicy": "Background"})


async def _any_left(client: ApiClient, resource: Resource) -> bool:
    response = await client.request("GET", resource.path(), params={"limit": "2"})
    return len(response["items"]) > (resource is SERVICES)  # the Service `kubernetes` is not deleted


@asynccontextmanager
async def open_environment(plane: ControlPlane) -> AsyncGenerator[Environment]:
    """An environment for a control plane."""
    async with user(plane.connection) as client:
        yield Environment(plane, client, Trail(plane.audit_log))


@contextmanager
def only_garbage_collector(environment: Environment) -> Generator[None]:
    """Stop all controllers but the garbage collector: only one client and the API server are measured."""
    components = json.loads((environment.plane.kubeconfig.parent / "components.json").read_text())
    command = [*components["controller-manager"]["argv"], "--controllers=garbage-collector-controller"]
    with without_controllers(environment.plane), running(command, LOGS / "garbage-collector.log"):
        yield


def add_nodes(environment: Environment, pods: int) -> None:
    """Create nodes, simulated by kwok, for this many pods."""
    kube = Kube(environment.plane.kubeconfig)
    capacity = {"cpu": "1000", "memory": "4Ti", "pods": "2000", "ephemeral-storage": "1Ti"}
    for number in range(math.ceil(pods / 1000)):
        meta = {"name": f"kwok-{number}", "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": {"type": "kwok"}}
        status = {"allocatable": capacity, "capacity": capacity}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}
        if kube.request("POST", "/api/v1/nodes", node) is None:
            raise RuntimeError(f"node {meta['name']} could not be created")
