"""One pod as its kubelet runs it: the processes of its containers, its resources, and what its status shows.

The model has no clock and no chance. Its driver says when something happens and what goes wrong: it calls a method for
each transition, and writes the status afterwards.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.kube.resource import Object, nested_map
from memcached_operator.memcached.desired.warm_restart import ARGS_ANNOTATION

MEMCACHED: Final = "memcached"
AGENT: Final = "agent"
CREATING: Final = "ContainerCreating"
PULL_FAILED, PULL_BACK_OFF = "ErrImagePull", "ImagePullBackOff"
"""Why a container waits: for its creation, or for an image that does not exist, at first and later."""
INFEASIBLE, DEFERRED, ERROR = "Infeasible", "Deferred", "Error"
"""Why the node does not resize a pod: it never can, it cannot at present, or the runtime fails."""
_NO_CAPACITY: Final = "Node didn't have enough capacity: memory, requested: 1, capacity: 0"
_RUNTIME_FAILED: Final = "the runtime cannot update containers"


class Process(NamedTuple):
    """The image and the arguments of a process."""

    image: str
    args: str


@dataclass
class Container:
    """A container.

    `process`: what runs or ran last. `starts`: the number of its processes. `restarts`: the count that is reported.
    `state`, `last`: the fields `state` and `lastState` of its status. `resources`: those of the last process.
    """

    process: Process | None = None
    starts: int = 0
    restarts: int = 0
    state: Object = field(default_factory=lambda: {"waiting": {"reason": CREATING}})
    last: Object = field(default_factory=dict[str, Any])
    resources: Object = field(default_factory=dict[str, Any])

    @property
    def runs(self) -> bool:
        """Whether a process runs."""
        return "running" in self.state


class RunningPod:
    """A pod on its node. `pod`: the newest object. `at`: when the node got it.

    `allocated`: the resources of each container that the node has accepted. `resize`: why it does not resize the pod.
    `is_ready`: as the last status says.
    """

    def __init__(self, pod: Object, at: datetime) -> None:
        self.pod = pod
        self.containers = {name: Container() for name in sorted(specs(pod))}
        self.allocated = _resources(pod)
        self.resize = ""
        self._refused: dict[str, Object] | None = None
        self._tried: tuple[dict[str, Object], str] | None = None
        self._resize_since = self._since = self._bound = timestamp(at)
        self.is_ready = False

    @property
    def is_warm(self) -> bool:
        """Whether memcached restarts warm."""
        return any(ARGS_ANNOTATION in str(each.get("command")) for each in specs(self.pod).values())

    @property
    def running(self) -> dict[str, Process]:
        """The processes that run, by container."""
        return {name: each.process for name, each in self.containers.items() if each.runs and each.process}

    def wanted(self, name: str) -> Process:
        """What a container must run. Only a memcached that restarts warm reads the arguments."""
        has_args = name == MEMCACHED and self.is_warm
        args = nested_map(self.pod, "metadata", "annotations").get(ARGS_ANNOTATION, "") if has_args else ""
        return Process(specs(self.pod)[name]["image"], args)

    def outdated(self) -> set[str]:
        """The containers whose last process has another image than the pod, or arguments that the agent reports."""
        found: set[str] = set()
        for name, each in self.containers.items():
            image, args = self.wanted(name)
            process = each.process or Process("", "")
            if image != process.image or (args not in ("", process.args) and AGENT in self.running):
                found.add(name)
        return found

    def end(self, name: str, code: int, at: datetime) -> None:
        """The process of a container ends."""
        found = self.containers[name]
        end = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": timestamp(at)}
        found.state = {"terminated": {**end, "containerID": _id(name, found)}}

    def wait(self, name: str, reason: str, message: str = "") -> None:
        """A container waits for its next start."""
        found = self.containers[name]
        found.last = found.state if "terminated" in found.state else found.last
        found.state = {"waiting": {"reason": reason, "message": message}}

    def fail_pull(self, name: str) -> None:
        """The image of a container does not exist."""
        image, state = self.wanted(name).image, self.containers[name].state
        before = nested_map(state, "waiting").get("reason")
        message = f'failed to pull and unpack image "{image}": not found'
        if before in (PULL_FAILED, PULL_BACK_OFF):
            self.wait(name, PULL_BACK_OFF, f'Back-off pulling image "{image}": {PULL_FAILED}: {message}')
        else:
            self.wait(name, PULL_FAILED, message)

    def start(self, name: str, at: datetime, process: Process | None = None) -> None:
        """A process starts in a container. `process`: by default what the pod asks for."""
        found = self.containers[name]
        found.last = found.state if "terminated" in found.state else found.last
        found.process = process or self.wanted(name)
        found.restarts += found.starts > 0
        found.starts += 1
        found.resources = self.allocated[name]
        found.state = {"running": {"startedAt": timestamp(at)}}

    def is_resized(self) -> bool:
        """Whether all containers have the resources that the pod asks for."""
        wanted = _resources(self.pod)
        created = {name: each for name, each in self.containers.items() if each.starts}
        return wanted == self.allocated and all(each.resources == wanted[name] for name, each in created.items())

    def should_resize(self, problem: str) -> bool:
        """Whether `try_resize` would have another result than the last time."""
        wanted = _resources(self.pod)
        return not self.is_resized() and wanted != self._refused and (wanted, problem) != self._tried

    def try_resize(self, problem: str, at: datetime) -> str:
        """Give the containers the resources that the pod asks for, unless there is a problem; return the problem.

        A resize that was INFEASIBLE is not tried again. Another problem than the known ones: nothing happens yet.
        """
        wanted = _resources(self.pod)
        reason = "" if self.is_resized() else INFEASIBLE if wanted == self._refused else problem
        self._refused = wanted if reason == INFEASIBLE else None
        self._tried = wanted, problem
        self._resize_since = self._resize_since if reason == self.resize else timestamp(at)
        self.resize = reason
        if reason in ("", ERROR):
            self.allocated = wanted
        if not reason:
            for name, each in self.containers.items():
                each.resources = wanted[name] if each.starts else {}
        return reason

    def status(self, works: Callable[[str], bool], at: datetime) -> Object:
        """The status. `works`: whether a container that runs is ready."""
        ready = {name: each.runs and works(name) for name, each in self.containers.items()}
        if all(ready.values()) != self.is_ready:
            self.is_ready, self._since = not self.is_ready, timestamp(at)
        started = all(each.starts for each in self.containers.values())
        return {
            "phase": "Running" if started else "Pending",
            "observedGeneration": self.pod["metadata"].get("generation", 0),
            "conditions": self._conditions(),
            "containerStatuses": [self._container(name, is_ready=is_ready) for name, is_ready in ready.items()],
        }

    def _conditions(self) -> list[Object]:
        since = {"PodScheduled": self._bound, "ContainersReady": self._since, "Ready": self._since}
        found: list[Object] = [
            {"type": kind, "status": str(kind == "PodScheduled" or self.is_ready), "lastTransitionTime": time}
            for kind, time in since.items()
        ]
        kinds = {
            INFEASIBLE: ("PodResizePending", _NO_CAPACITY),
            DEFERRED: ("PodResizePending", _NO_CAPACITY),
            ERROR: ("PodResizeInProgress", _RUNTIME_FAILED),
        }
        if self.resize in kinds:
            kind, message = kinds[self.resize]
            why = {"reason": self.resize, "message": message, "lastTransitionTime": self._resize_since}
            found.append({"type": kind, "status": "True", **why})
        return found

    def _container(self, name: str, *, is_ready: bool) -> Object:
        found = self.containers[name]
        image = found.process.image if found.process else ""
        resources = {"allocatedResources": self.allocated[name].get("requests", {}), "resources": found.resources}
        return {
            "name": name,
            "image": image or specs(self.pod)[name]["image"],
            "imageID": f"simulated:{image}" if image else "",
            "restartCount": found.restarts,
            "started": found.runs,
            "ready": is_ready,
            "state": found.state,
            "lastState": found.last,
            **({"containerID": _id(name, found), **resources} if found.starts else {}),
        }


def specs(pod: Object) -> dict[str, Object]:
    """The containers of a pod, by name."""
    containers: list[Object] = pod["spec"]["containers"]
    return {each["name"]: each for each in containers}


def _resources(pod: Object) -> dict[str, Object]:
    return {name: each.get("resources", {}) for name, each in specs(pod).items()}


def _id(name: str, found: Container) -> str:
    """The containerID of the last process: it ends with the number of restarts, which is never reset."""
    return f"simulated://{name}-{found.starts - 1}"
