"""Simulated nodes, and draining them through the eviction API as `kubectl drain` does."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from memcached_operator.kube.client import MERGE_PATCH, ApiClient, ApiError
from memcached_operator.kube.resource import PODS, Key, Object, Resource, nested_list

NODES = Resource("", "v1", "Node", "nodes")
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
POOL = "pool"
"""The label of the nodes of one test. Its pods select it, so that they run on no other node."""

RETRY = 0.2
"""Seconds until an eviction is sent again that a budget does not allow at present; kubectl waits 5."""


def node(pool: str, number: int, cpu: str = "4", memory: str = "8Gi") -> Object:
    """A simulated node, in a zone of its own."""
    name = f"{pool}-{number}"
    resources = {"cpu": cpu, "memory": memory, "pods": "110"}
    labels = {HOSTNAME: name, ZONE: f"zone-{number}", POOL: pool, "kubernetes.io/os": "linux"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"allocatable": resources, "capacity": resources},
    }


def in_pool(pool: str) -> Object:
    """The part of a spec that places the pods on the nodes of a pool."""
    return {"podTemplate": {"spec": {"nodeSelector": {POOL: pool}}}}


def schedulable(found: Object) -> bool:
    """Whether a node accepts pods: a new one has taints until it is ready."""
    return not found["spec"].get("taints") and is_ready(found)


def is_ready(obj: Object) -> bool:
    """Whether a node or a pod is ready."""
    conditions = nested_list(obj, "status", "conditions")
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def nodes_of(pods: Iterable[Object]) -> list[str]:
    """The names of the nodes of pods, sorted, one for each pod."""
    return sorted(pod["spec"].get("nodeName", "") for pod in pods)


async def pods_of(client: ApiClient, namespace: str) -> list[Object]:
    """The pods of a namespace that are not being deleted."""
    items: list[Object] = (await client.request("GET", PODS.path(namespace)))["items"]
    return [pod for pod in items if not pod["metadata"].get("deletionTimestamp")]


async def drain(client: ApiClient, name: str, namespace: str) -> None:
    """Cordon a node, evict all of its pods in a namespace at the same time, and wait until they are deleted."""
    await client.request("PATCH", NODES.path(None, name), {"spec": {"unschedulable": True}}, MERGE_PATCH)
    pods = [pod for pod in await pods_of(client, namespace) if nodes_of([pod]) == [name]]
    await asyncio.gather(*(_evict_and_wait(client, pod) for pod in pods))


async def evict(client: ApiClient, pod: Object) -> None:
    """Evict a pod. Raises the ApiError: 429 if a budget does not allow it, 500 if two budgets select the pod."""
    meta = {name: pod["metadata"][name] for name in ("name", "namespace")}
    body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    await client.request("POST", PODS.path(meta["namespace"], meta["name"], "eviction"), body)


async def _evict_and_wait(client: ApiClient, pod: Object) -> None:
    key = Key(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])
    while await client.get(key) is not None:  # the Deployment never uses a pod's name again
        try:
            await evict(client, pod)
        except ApiError as error:
            if error.code not in (404, 429):
                raise
        await asyncio.sleep(RETRY)


class ReadyPods:
    """The number of ready pods of a namespace, after every event of its pods. Pods being deleted do not count."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.uids: set[str] = set()

    def add(self, event: str, pod: Object) -> None:
        """Record one event."""
        uid = pod["metadata"]["uid"]
        self.uids.discard(uid)
        if event != "DELETED" and is_ready(pod) and not pod["metadata"].get("deletionTimestamp"):
            self.uids.add(uid)
        self.counts.append(len(self.uids))

    async def watch(self, client: ApiClient, namespace: str, version: str) -> None:
        """Record all events after a version until cancelled."""
        async for event, pod in client.watch(PODS, namespace, "", version):
            if event != "BOOKMARK":
                self.add(event, pod)


@asynccontextmanager
async def ready_pods(client: ApiClient, namespace: str) -> AsyncGenerator[ReadyPods]:
    """Record the number of ready pods during the block, at its start and after each event until its end."""
    found = ReadyPods()
    listed = await client.request("GET", PODS.path(namespace))
    for pod in listed["items"]:
        found.add("ADDED", pod)
    found.counts = [len(found.uids)]
    task = asyncio.create_task(found.watch(client, namespace, listed["metadata"]["resourceVersion"]))
    try:
        yield found
        while found.uids != {pod["metadata"]["uid"] for pod in await pods_of(client, namespace) if is_ready(pod)}:
            assert not task.done(), task.exception()
            await asyncio.sleep(RETRY)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def condition(obj: Object, type_: str) -> Mapping[str, Any]:
    """One condition of an object; empty if it does not exist."""
    found = (each for each in nested_list(obj, "status", "conditions") if each["type"] == type_)
    return next(found, dict[str, Any]())
