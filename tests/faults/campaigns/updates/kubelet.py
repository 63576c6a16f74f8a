"""A client that runs the pods of one namespace as their kubelets do. No other node accepts these pods."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from faults.background import while_running
from faults.campaigns.updates.ledger import Ledger, State, Work, resources, slot_of
from faults.esr import VICTIM
from faults.sandbox import Sandbox
from memcached_api.quantity import parse_quantity
from memcached_operator.kube.client import MERGE_PATCH, ApiClient, ApiError
from memcached_operator.kube.resource import PODS, Object, nested_map
from support.kubelet import DEFERRED
from support.lists import listed
from support.nodes import Kubelet, Nodes

NOWHERE: Object = {"podTemplate": {"spec": {"nodeSelector": {"example.com/node": "none"}}}}
"""No node has this label: the pods are never bound, so that the simulation of nodes leaves them to this client."""
FINALIZER = "example.com/kubelet"
"""Keeps a deleted pod until its containers have ended."""
MISSING = "missing"
"""An image with this word in its name does not exist."""


def pod_of(slot: int) -> str:
    """The name of the pod of a slot."""
    return f"{VICTIM}-{slot}"


@dataclass
class Kubelets:
    """The kubelets of the pods of one namespace with the labels of `selector`. `nodes`: what goes wrong with them."""

    client: ApiClient
    namespace: str
    selector: str = ""
    ledger: Ledger = field(default_factory=Ledger)
    nodes: Nodes = field(default_factory=lambda: Nodes(lacks=lambda image: MISSING in image))
    _pods: "dict[str, _Pod]" = field(default_factory=dict[str, "_Pod"])

    async def run(self) -> None:
        """Run pods until cancelled."""
        version = (await listed(self.client, PODS, self.namespace, self.selector))[1]
        async with asyncio.TaskGroup() as group:
            while True:
                async for what, pod in self.client.watch(PODS, self.namespace, self.selector, version):
                    version = pod["metadata"]["resourceVersion"]
                    if what != "BOOKMARK":
                        self._handle(group, self.ledger.record(what, pod))

    def _handle(self, group: asyncio.TaskGroup, state: State) -> None:
        found = self._pods.get(state.uid)
        if found is None:
            found = self._pods[state.uid] = _Pod(self, state)
            group.create_task(found.run())
        found.update(state)

    def wake(self) -> None:
        """Let all kubelets consider what the test has changed."""
        for pod in self._pods.values():
            pod.changed.set()

    def release(self, slot: int) -> None:
        """The containers of a slot become ready, and its deleted pod ends."""
        self.nodes.release(pod_of(slot))
        self.wake()

    def break_container(self, slot: int, name: str) -> None:
        """A container of a slot becomes unready."""
        self.nodes.broken.add((pod_of(slot), name))
        self.wake()

    def crash(self, slot: int, name: str) -> None:
        """A container of a slot ends by itself, and is restarted."""
        for pod in self._pods.values():
            if pod.slot == slot and not pod.removed:
                pod.kubelet.crashed.add(name)
        self.wake()


class _Pod:
    """A pod, its kubelet, and the entry of the ledger for what it does."""

    def __init__(self, kubelets: Kubelets, state: State) -> None:
        self.changed = asyncio.Event()
        self.slot = slot_of(state.pod)
        self.removed = False
        self.kubelet = Kubelet(state.pod, kubelets.nodes, lambda: datetime.now(UTC))
        self._kubelets = kubelets
        self._version = state.version
        self._written = 0
        self._work: Work | None = None

    def update(self, state: State) -> None:
        """The newest state of the pod."""
        self.kubelet.model.pod, self._version = state.pod, state.version
        self.removed = state.removed or self.removed
        if self.kubelet.launched and self._work is None and self._is_urgent():
            self._work = Work(self.slot, state.version)
            self._kubelets.ledger.work.append(self._work)
        self.changed.set()

    async def run(self) -> None:
        """Run the containers until the pod is removed."""
        try:
            await self._patch({"metadata": {"finalizers": [FINALIZER]}})
            await self._follow()
        except ApiError as error:
            if error.code not in (404, 409):  # another pod has the slot already
                raise
        finally:
            self.kubelet.model.resize = ""
            self._finish_work()

    async def _follow(self) -> None:
        shown = self.kubelet.shown
        for seconds in self.kubelet.run():
            if shown != self.kubelet.shown:
                shown = self.kubelet.shown
                await self._patch({"status": shown}, "status")
            if seconds is None:
                self._finish_work()
                await self._wait()
            else:
                await asyncio.sleep(seconds)
            if self.removed:
                return
        await self._patch({"metadata": {"finalizers": None}})

    async def _wait(self) -> None:
        await self.changed.wait()
        self.changed.clear()

    def _is_urgent(self) -> bool:
        """Whether there is work that the next step must wait for. Nothing depends on when other resources change.

        A crash is none: the operator knows of it only when the pod is not ready, which is checked with a grace.
        """
        kubelet = self.kubelet
        return bool(kubelet.outdated() - kubelet.crashed) or (kubelet.should_resize() and self._raises())

    def _raises(self) -> bool:
        """Whether a memory limit rises."""
        model = self.kubelet.model
        sizes = resources(model.pod).items()
        return any(_limit(size) > _limit(model.containers[name].resources) for name, size in sizes)

    def _finish_work(self) -> None:
        if self._work is not None and self.kubelet.model.resize != DEFERRED:
            self._work.end, self._work = self._written or self._version, None

    async def _patch(self, patch: Object, subresource: str | None = None) -> None:
        meta = self.kubelet.model.pod["metadata"]
        path = PODS.path(self._kubelets.namespace, meta["name"], subresource)
        body = {**patch, "metadata": {**patch.get("metadata", {}), "uid": meta["uid"]}}
        written = await self._kubelets.client.request("PATCH", path, body, MERGE_PATCH)
        self._written = int(written["metadata"]["resourceVersion"])


def _limit(size: Mapping[str, Any]) -> Decimal:
    return parse_quantity(nested_map(size, "limits").get("memory", "0"))


@asynccontextmanager
async def simulated_kubelet(sandbox: Sandbox, selector: str = "") -> AsyncGenerator[Kubelets]:
    """Run the pods of a sandbox, all or those with the labels of `selector`, with kubelets of their own meanwhile."""
    kubelets = Kubelets(sandbox.client, sandbox.namespace, selector)
    async with while_running({"running pods": kubelets.run()}):
        yield kubelets
