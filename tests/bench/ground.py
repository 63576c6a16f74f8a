"""The ground the bench runs on: a control plane whose controllers are chosen, and that is swept in between."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from bench.load import user
from bench.programs import running
from bench.trail import Trail
from cluster.kube import Kube
from integration.control_plane import NAMESPACES, ROOT, ControlPlane
from memcached_operator.kube.client import Client
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Resource
from memcached_operator.memcached.controller import MEMCACHEDS

LOGS = ROOT / "build/bench"
CONTROLLERS = ("controller-manager", "scheduler", "kwok")
SWEPT = (MEMCACHEDS, DEPLOYMENTS, SERVICES)


@dataclass
class Ground:
    """A control plane, a user's client of it, and its audit log."""

    plane: ControlPlane
    client: Client
    trail: Trail
    _namespaces: list[str] = field(default_factory=list[str])
    _made: int = 0

    async def namespace(self, name: str) -> str:
        """A new namespace."""
        self._made += 1
        name = f"{name}-{self._made:03}"
        self._namespaces.append(name)
        await self.client.request("POST", NAMESPACES.path(), {"metadata": {"name": name}})
        return name

    async def objects(self) -> int:
        """How many Memcacheds there are."""
        answer = await self.client.request("GET", MEMCACHEDS.path(), params={"limit": "1"})
        return len(answer["items"]) + answer["metadata"].get("remainingItemCount", 0)

    async def quiet(self, seconds: float, agent: str = "") -> None:
        """Wait until a client, or everybody, has written nothing for so long."""
        last, since = -1, time.monotonic()
        while time.monotonic() - since < seconds:
            await asyncio.sleep(0.25)
            now = len(self.trail.writes(agent))
            if now != last:
                last, since = now, time.monotonic()

    async def sweep(self) -> None:
        """Delete everything in the namespaces made so far, and wait until it is gone and quiet."""
        for namespace in self._namespaces:
            for resource in SWEPT:
                await _delete_all(self.client, resource, namespace)
        while any([await _some(self.client, each) for each in SWEPT]):  # noqa: ASYNC110 - it happens elsewhere
            await asyncio.sleep(0.25)
        await self.quiet(1.0)
        self._namespaces.clear()


async def _delete_all(client: Client, resource: Resource, namespace: str) -> None:
    await client.request("DELETE", resource.path(namespace), {"propagationPolicy": "Background"})


async def _some(client: Client, resource: Resource) -> bool:
    answer = await client.request("GET", resource.path(), params={"limit": "2"})
    return len(answer["items"]) > (resource is SERVICES)  # the Service `kubernetes` stays


@asynccontextmanager
async def ground(plane: ControlPlane) -> AsyncGenerator[Ground]:
    """A user's view of a control plane."""
    async with user(plane.connection) as client:
        yield Ground(plane, client, Trail(plane.audit_log))


@contextmanager
def only_garbage_collector(on: Ground) -> Generator[None]:
    """No controllers meanwhile but the garbage collector: what is measured is one client and the API server."""
    for name in reversed(CONTROLLERS):
        _cluster(on, "stop", name)
    components = json.loads((on.plane.kubeconfig.parent / "components.json").read_text())
    command = [*components["controller-manager"]["argv"], "--controllers=garbage-collector-controller"]
    with running(command, LOGS / "garbage-collector.log"):
        yield
    for name in CONTROLLERS:
        _cluster(on, "start", name)


def _cluster(on: Ground, *arguments: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tools"), "CLUSTER_NAME": on.plane.kubeconfig.parent.name}
    env.pop("KUBECONFIG", None)
    subprocess.run([sys.executable, "-m", "cluster", *arguments], env=env, capture_output=True, check=True)


def room(on: Ground, pods: int) -> None:
    """Nodes that kwok pretends to be, for so many pods."""
    kube = Kube(on.plane.kubeconfig)
    capacity = {"cpu": "1000", "memory": "4Ti", "pods": "2000", "ephemeral-storage": "1Ti"}
    for number in range(pods // 1000):
        meta = {"name": f"room-{number}", "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": {"type": "kwok"}}
        status = {"allocatable": capacity, "capacity": capacity}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}
        if kube.request("POST", "/api/v1/nodes", node) is None:
            raise RuntimeError(f"the node {meta['name']} was not accepted")
