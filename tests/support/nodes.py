"""Kubelets: what each does after a change of its pod, how long that takes, and what goes wrong.

A new image restarts a container, new arguments restart memcached, and new resources are actuated or refused. A new
target of memcached's memory shows nowhere: the agent does the rest. The driver of a kubelet has the clock, gives it the
newest pod, and writes the status that it shows.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from memcached_operator.kube.resource import Object
from support.kubelet import AGENT, CREATING, MEMCACHED, Process, RunningPod, specs

RACE: Final = 3.0
"""Seconds for which a container runs as it was before a change, measured with Kubernetes 1.35."""
OUT_OF_MEMORY: Final = 137
"""The exit code of a container that the kernel has killed."""
Steps = Generator[float | None]
"""Seconds until the kubelet continues, or None until something changes."""


@dataclass
class Nodes:
    """How the nodes run pods, and what goes wrong. Pods have their names.

    Seconds: `reaction`, until a kubelet sees a change; `restart`, for which a restarted container does not run;
    `stop`, until a deleted pod ends. `lacks`: whether an image does not exist.
    `resizes`: why pods are not resized, as of RunningPod. `broken`: containers (pod, name) that run and are not ready.
    `warming`: pods whose agent is not ready after the next start of a container. `stuck`: deleted pods that stay.
    `resets`: restart counts are reported as 0. `forgets`: how containers ended is not reported. `races`: pods whose
    kubelet starts containers as they were before, once, when they are changed, because they end at this moment.
    `kills`: pods whose memcached is killed when they are resized. `code`: with which containers end that a change
    restarts.
    """

    reaction: float = 0.2
    restart: float = 1.2  # the times in a status have whole seconds
    stop: float = 0.5
    lacks: Callable[[str], bool] = lambda _: False
    resizes: str = ""
    broken: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    warming: set[str] = field(default_factory=set[str])
    stuck: set[str] = field(default_factory=set[str])
    resets: bool = False
    forgets: bool = False
    races: set[str] = field(default_factory=set[str])
    kills: set[str] = field(default_factory=set[str])
    code: int = 0

    def release(self, pod: str) -> None:
        """The containers of a pod become ready, and a deleted one ends."""
        self.broken = {each for each in self.broken if each[0] != pod}
        self.warming.discard(pod)
        self.stuck.discard(pod)


class Kubelet:
    """The kubelet of one pod. `shown`: the status to write. `crashed`: containers that end by themselves.

    `launched`: it has begun to start the containers. `removed`: the pod is deleted, and its containers have ended.
    `images`: those with which each container has ever run.
    """

    def __init__(self, pod: Object, nodes: Nodes, clock: Callable[[], datetime]) -> None:
        self.nodes, self.shown = nodes, dict[str, object]()
        self.crashed: set[str] = set()
        self.launched = self.removed = False
        self.images: dict[str, set[str]] = {name: set() for name in specs(pod)}
        self.model = RunningPod(pod, clock())
        self._waiting = set(self.images)
        self._clock = clock
        self._name: str = pod["metadata"]["name"]

    def run(self) -> Steps:
        """Run the containers until the pod is removed."""
        yield self.nodes.reaction
        self.launched = True
        while not self._is_deleted():
            self._launch()
            if self.outdated() - self._waiting or self.should_resize():
                # Changes that are undone before the kubelet has seen them have no effect.
                yield self.nodes.reaction
                yield from self._act()
            elif self._is_ready() != self.model.is_ready or (self.model.resize and self.model.is_resized()):
                self._try_resize()
                self._show()
            else:
                yield None
        yield self.nodes.stop
        while self._name in self.nodes.stuck:
            yield None
        self.removed = True

    def outdated(self) -> set[str]:
        """The containers that the pod's state, or a crash, lets the kubelet restart."""
        return self.model.outdated() | self.crashed

    def should_resize(self) -> bool:
        """Whether there is something to do about resources."""
        return self.model.should_resize(self.nodes.resizes)

    def _is_deleted(self) -> bool:
        return bool(self.model.pod["metadata"].get("deletionTimestamp"))

    def _act(self) -> Steps:
        """Make the first of the changes that the newest state of the pod asks for."""
        if self._is_deleted():
            return
        if names := self.outdated() - self._waiting:
            yield from self._restart(names)
        elif self.should_resize():
            yield from self._actuate()

    def _restart(self, names: set[str]) -> Steps:
        if self._name in self.nodes.races:
            self.nodes.races.discard(self._name)
            yield from self._end(names, 1)
            self._run_again(names)
            yield RACE
        yield from self._end(names, 1 if names & self.crashed else self.nodes.code)
        self._waiting |= names

    def _end(self, names: Iterable[str], code: int) -> Steps:
        """Containers end with an exit code, and start after a while."""
        for name in names:
            self.model.end(name, code, self._clock())
            self.model.wait(name, CREATING)
        self._show()
        yield self.nodes.restart

    def _launch(self) -> None:
        """Start the containers that wait for it with the newest image and arguments, as soon as they can."""
        if not self._waiting:
            return
        ready = {name for name in self._waiting if not self._is_blocked(name)}
        self._waiting -= ready
        self.crashed -= ready
        for name in ready:
            self._start(name)
        if ready and self._name in self.nodes.warming:
            self.nodes.warming.discard(self._name)
            self.nodes.broken.add((self._name, AGENT))
        self._show()

    def _is_blocked(self, name: str) -> bool:
        """Whether a container cannot start, which its state then reports."""
        image, args = self.model.wanted(name)
        if self.nodes.lacks(image):
            self.model.fail_pull(name)
            return True
        if name == MEMCACHED and self.model.is_warm and not args:
            self.model.wait(name, "CrashLoopBackOff")
            return True
        return False

    def _start(self, name: str, process: Process | None = None) -> None:
        self.model.start(name, self._clock(), process)
        self.images[name].add(self.model.running[name].image)

    def _run_again(self, names: Iterable[str]) -> None:
        """Containers run, with the image and the arguments that they had."""
        for name in names:
            self._start(name, self.model.containers[name].process)
        self._show()

    def _actuate(self) -> Steps:
        """Resize the containers, or report why not."""
        if self._name in self.nodes.kills:
            self.nodes.kills.discard(self._name)
            yield from self._end((MEMCACHED,), OUT_OF_MEMORY)
            self._run_again((MEMCACHED,))
        self._try_resize()
        self._show()

    def _try_resize(self) -> None:
        self.model.try_resize(self.nodes.resizes, self._clock())

    def _is_ready(self) -> bool:
        return all(each.runs and self._works(name) for name, each in self.model.containers.items())

    def _works(self, name: str) -> bool:
        return (self._name, name) not in self.nodes.broken

    def _show(self) -> None:
        status = self.model.status(self._works, self._clock())
        if init := self.model.pod["spec"].get("initContainers"):
            ended: Object = {"terminated": {"exitCode": 0, "reason": "Completed"}}
            status["initContainerStatuses"] = [{"name": each["name"], "ready": True, "state": ended} for each in init]
        for each in status["containerStatuses"]:
            each |= {"restartCount": 0} if self.nodes.resets else {}
            each |= {"lastState": {}} if self.nodes.forgets else {}
        self.shown = status
