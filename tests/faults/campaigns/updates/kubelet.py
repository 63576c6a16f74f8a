"""A simulated kubelet: it runs the containers of pods of one namespace, which no other node accepts.

Each change of a pod has the same effect as with a real kubelet, but within about 2 s: a new image restarts a container,
new arguments restart memcached, and new resources are actuated or refused. A new target of memcached's memory shows
nowhere: the agent does the rest.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from faults.background import while_running
from faults.campaigns.updates.ledger import Ledger, State, Work, images, is_ready, resources, slot_of
from faults.sandbox import Sandbox
from memcached_api.quantity import parse_quantity
from memcached_operator.kube.client import MERGE_PATCH, ApiClient, ApiError
from memcached_operator.kube.resource import PODS, Object, nested_map
from support.kubelet import AGENT, CREATING, DEFERRED, MEMCACHED, RunningPod
from support.lists import listed

NOWHERE: Object = {"podTemplate": {"spec": {"nodeSelector": {"example.com/node": "none"}}}}
"""No node has this label: the pods are never bound, so that the simulation of nodes leaves them to this kubelet."""
FINALIZER = "example.com/kubelet"
"""Keeps a deleted pod until its containers have ended."""
MISSING = "missing"
"""An image with this word in its name does not exist."""
REACTION = 0.2
"""Seconds until the kubelet sees a change, or has actuated resources."""
RESTART = 1.2
"""Seconds for which a restarted container is not ready: the times in a status have whole seconds."""
RACE = 3.0
"""Seconds for which a container runs as it was before a change, measured with Kubernetes 1.35."""
OUT_OF_MEMORY = 137
"""The exit code of a container that the kernel has killed."""
TERMINATION = 0.5
"""Seconds until the containers of a deleted pod have ended."""


@dataclass
class Kubelet:
    """The kubelet of the pods of one namespace with the labels of `selector`, and what the test lets it do.

    `broken`: containers (slot, name) that run and are not ready. `warming`: slots whose agent is not ready after the
    next start of a container. `stuck`: slots whose deleted pods stay. `resizes`: INFEASIBLE, DEFERRED or empty.
    `reaction`: seconds until it sees a change. `resets`: restart counts are reported as 0. `forgets`: how containers
    ended is not reported. `races`: slots in which the kubelet starts containers as they were before, once, when a pod
    is changed, because they end at this moment. `kills`: slots whose memcached is killed when it is resized.
    """

    client: ApiClient
    namespace: str
    selector: str = ""
    ledger: Ledger = field(default_factory=Ledger)
    broken: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    warming: set[int] = field(default_factory=set[int])
    stuck: set[int] = field(default_factory=set[int])
    resizes: str = ""
    reaction: float = REACTION
    resets: bool = False
    forgets: bool = False
    races: set[int] = field(default_factory=set[int])
    kills: set[int] = field(default_factory=set[int])
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
        """Let all pods consider what the test has changed here."""
        for pod in self._pods.values():
            pod.changed.set()

    def release(self, slot: int) -> None:
        """The containers of a slot become ready, and its deleted pod ends."""
        self.broken = {each for each in self.broken if each[0] != slot}
        self.warming.discard(slot)
        self.stuck.discard(slot)
        self.wake()

    def break_container(self, slot: int, name: str) -> None:
        """A container of a slot becomes unready."""
        self.broken.add((slot, name))
        self.wake()

    def crash(self, slot: int, name: str) -> None:
        """A container of a slot ends by itself, and is restarted."""
        for pod in self._pods.values():
            if pod.slot == slot and not pod.removed:
                pod.crashed.add(name)
        self.wake()

    def allow_resizes(self) -> None:
        """The node has resources for what it deferred before."""
        self.resizes = ""
        self.wake()


class _Pod:
    """A pod of the kubelet."""

    def __init__(self, kubelet: Kubelet, state: State) -> None:
        self.changed = asyncio.Event()
        self.crashed: set[str] = set()
        self.slot = slot_of(state.pod)
        self.removed = False
        self._kubelet = kubelet
        self._model = RunningPod(state.pod, datetime.now(UTC))
        self._version = state.version
        self._written = 0
        self._shown: Object = {}
        self._launched = False
        self._work: Work | None = None

    @property
    def _pod(self) -> Object:
        return self._model.pod

    def update(self, state: State) -> None:
        """The newest state of the pod."""
        self._model.pod, self._version, self.removed = state.pod, state.version, state.removed or self.removed
        if self._launched and self._work is None and self._is_urgent():
            self._work = Work(self.slot, state.version)
            self._kubelet.ledger.work.append(self._work)
        self.changed.set()

    async def run(self) -> None:
        """Run the containers until the pod is removed."""
        try:
            await self._start()
            while not self.removed:
                await self._follow()
                await self._wait()
        except ApiError as error:
            if error.code not in (404, 409):  # another pod has the slot already
                raise
        finally:
            self._model.resize = ""
            self._finish_work()

    async def _wait(self) -> None:
        await self.changed.wait()
        self.changed.clear()

    async def _start(self) -> None:
        await asyncio.sleep(REACTION)
        await self._patch({"metadata": {"finalizers": [FINALIZER]}})
        self._launched = True
        await self._launch(self._model.containers.keys())

    async def _follow(self) -> None:
        """Do what the newest state of the pod asks for, and what the test has changed."""
        while not self.removed:
            if self._pod["metadata"].get("deletionTimestamp"):
                await self._terminate()
                return
            if self._has_work():
                # Changes that are undone before the kubelet has seen them have no effect.
                await asyncio.sleep(self._kubelet.reaction)
                await self._act()
            elif self._is_ready() != self._was_ready() or (self._model.resize and self._model.is_resized()):
                self._try_resize()
                await self._write()
            else:
                break
        self._finish_work()

    def _has_work(self) -> bool:
        return bool(self._outdated()) or self._resized()

    def _is_urgent(self) -> bool:
        """Whether there is work that the next step must wait for. Nothing depends on when other resources change.

        A crash is none: the operator knows of it only when the pod is not ready, which is checked with a grace.
        """
        return bool(self._outdated() - self.crashed) or (self._resized() and self._raises())

    def _raises(self) -> bool:
        """Whether a memory limit rises."""
        sizes = resources(self._pod).items()
        return any(_limit(size) > _limit(self._model.containers[name].resources) for name, size in sizes)

    async def _act(self) -> None:
        """Make the first of the changes that the newest state of the pod asks for."""
        names = self._outdated()
        if names:
            await self._restart(names)
        elif self._resized():
            await self._actuate()

    def _finish_work(self) -> None:
        if self._work is not None and self._model.resize != DEFERRED:
            self._work.end, self._work = self._written or self._version, None

    def _outdated(self) -> set[str]:
        """The containers that the pod's state, or a crash, lets the kubelet restart."""
        return self._model.outdated() | self.crashed

    def _resized(self) -> bool:
        """Whether there is something to do about resources."""
        reason = self._model.resize
        return not self._model.is_resized() and (not reason or reason != self._kubelet.resizes)

    def _try_resize(self) -> None:
        self._model.try_resize(self._kubelet.resizes, datetime.now(UTC))

    async def _restart(self, names: set[str]) -> None:
        if self.slot in self._kubelet.races:
            self._kubelet.races.discard(self.slot)
            await self._end(names, 1)
            await self._run_again(names)
            await asyncio.sleep(RACE)
        await self._end(names, 1 if names & self.crashed else 0)
        await self._launch(names)

    async def _end(self, names: Iterable[str], code: int) -> None:
        """Containers end with an exit code, and start after a while."""
        for name in names:
            self._model.end(name, code, datetime.now(UTC))
            self._model.wait(name, CREATING)
        await self._write()
        await asyncio.sleep(RESTART)

    async def _launch(self, names: Iterable[str]) -> None:
        """Start containers with the newest image and arguments, as soon as their images exist."""
        while missing := [name for name in names if MISSING in images(self._pod)[name]]:
            for name in missing:
                self._model.fail_pull(name)
            await self._write()
            self._finish_work()
            await self._wait()
            if self.removed or self._pod["metadata"].get("deletionTimestamp"):
                return
        self.crashed -= set(names)
        for name in names:
            self._model.start(name, datetime.now(UTC))
        if self.slot in self._kubelet.warming:
            self._kubelet.warming.discard(self.slot)
            self._kubelet.broken.add((self.slot, AGENT))
        await self._write()

    async def _run_again(self, names: Iterable[str]) -> None:
        """Containers run, with the image and the arguments that they had."""
        for name in names:
            self._model.start(name, datetime.now(UTC), self._model.containers[name].process)
        await self._write()

    async def _actuate(self) -> None:
        """Resize the containers, or report why not."""
        if self.slot in self._kubelet.kills:
            self._kubelet.kills.discard(self.slot)
            await self._end((MEMCACHED,), OUT_OF_MEMORY)
            await self._run_again((MEMCACHED,))
        self._try_resize()
        await self._write()

    async def _terminate(self) -> None:
        await asyncio.sleep(TERMINATION)
        while self.slot in self._kubelet.stuck:
            await self._wait()
        await self._patch({"metadata": {"finalizers": None}})
        self.removed = True

    def _is_ready(self) -> bool:
        return all(each.runs and self._works(name) for name, each in self._model.containers.items())

    def _works(self, name: str) -> bool:
        return (self.slot, name) not in self._kubelet.broken

    def _was_ready(self) -> bool:
        return is_ready({"status": self._shown})

    async def _write(self) -> None:
        """Write the status."""
        self._shown = status = self._model.status(self._works, datetime.now(UTC))
        for each in status["containerStatuses"]:
            each |= {"restartCount": 0} if self._kubelet.resets else {}
            each |= {"lastState": {}} if self._kubelet.forgets else {}
        await self._patch({"status": status}, "status")

    async def _patch(self, patch: Object, subresource: str | None = None) -> None:
        uid = {"metadata": {**patch.get("metadata", {}), "uid": self._pod["metadata"]["uid"]}}
        written = await self._kubelet.client.request("PATCH", self._path(subresource), {**patch, **uid}, MERGE_PATCH)
        self._written = int(written["metadata"]["resourceVersion"])

    def _path(self, subresource: str | None = None) -> str:
        return PODS.path(self._kubelet.namespace, self._pod["metadata"]["name"], subresource)


def _limit(size: Mapping[str, Any]) -> Decimal:
    return parse_quantity(nested_map(size, "limits").get("memory", "0"))


@asynccontextmanager
async def simulated_kubelet(sandbox: Sandbox, selector: str = "") -> AsyncGenerator[Kubelet]:
    """Run the pods of a sandbox, all or those with the labels of `selector`, with a kubelet of their own meanwhile."""
    kubelet = Kubelet(sandbox.client, sandbox.namespace, selector)
    async with while_running({"running pods": kubelet.run()}):
        yield kubelet
