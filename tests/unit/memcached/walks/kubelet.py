"""One pod as its kubelet and its agent run it, at random times, with what can go wrong."""

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from memcached_operator.kube.resource import Object
from support.kubelet import AGENT, DEFERRED, ERROR, MEMCACHED, Process, RunningPod, specs

START: Final = timedelta(seconds=3)
"""Time from the start of a container until its probe succeeds."""
BACK_OFF: Final = 10.0
"""Seconds until an image is pulled, or a container started, once more. They double, up to 5 minutes."""


@dataclass
class Nodes:
    """The state of all nodes. `missing`: images that cannot be pulled. `room`: how resizes go, empty if well.

    `mirror`: admission gives new pods images of a mirror, and others cannot be pulled.
    """

    missing: set[str] = field(default_factory=set[str])
    room: str = ""
    mirror: bool = False

    def lacks(self, image: str) -> bool:
        """Whether an image cannot be pulled."""
        return image.rpartition("/")[2] in self.missing or (self.mirror and not image.startswith("mirror/"))


class Kubelet:
    """The kubelet of one pod. `images`: those with which each container has ever run.

    `changed`: since when memcached must restart because of a write of the operator. `tampered`: another client has
    changed the pod. `down`: until then, it does nothing. `skew`: how fast its clock is.
    """

    def __init__(self, chance: random.Random, pod: Object, nodes: Nodes, now: datetime, skew: timedelta) -> None:
        self.chance, self.nodes, self.skew = chance, nodes, skew
        self.images: dict[str, set[str]] = {name: set() for name in specs(pod)}
        self.changed: datetime | None = None
        self.tampered = False
        self.down: datetime | None = None
        self._model = RunningPod(pod, now + skew)
        self._tries: dict[str, int] = {}

    @property
    def pod(self) -> Object:
        """The stored object."""
        return self._model.pod

    @pod.setter
    def pod(self, pod: Object) -> None:
        self._model.pod = pod

    @property
    def ran(self) -> dict[str, Process]:
        """The processes that run, by container."""
        return self._model.running

    @property
    def allocated(self) -> dict[str, Object]:
        """The resources that the node has accepted, by container."""
        return self._model.allocated

    def wanted(self, name: str) -> Process:
        """What a container must run."""
        return self._model.wanted(name)

    def sync(self, now: datetime) -> tuple[Object, float | None]:
        """The next status of the pod, and seconds until the next sync; None without one."""
        local = now + self.skew
        delays = [self._run(name, local) for name in self._model.containers]
        reason = self._model.try_resize(self.nodes.room, local)
        delays.append(60.0 if reason in (DEFERRED, ERROR) else None)
        status = self._status(local)
        running = all(each.runs for each in self._model.containers.values())
        if running and not all(each["ready"] for each in status["containerStatuses"]):
            delays.append(START.total_seconds())
        return status, min((delay for delay in delays if delay), default=None)

    def ended(self, now: datetime, names: set[str], code: int) -> Object:
        """The pod after these containers have ended by themselves. Their counts are reset."""
        if self.pod.get("status", {}).get("phase") == "Failed":
            return self.pod
        local = now + self.skew
        for name in names & self.ran.keys():
            self._model.end(name, code, local)
            self._model.containers[name].restarts = 0
        return {**self.pod, "status": self._status(local)}

    def is_pending(self, now: datetime) -> bool:
        """Whether memcached may restart at any moment because of a write of the operator that was made lately.

        Not after 2 minutes, nor if the image is missing, nor without the agent that would signal it: all documented.
        """
        ran = self.ran.get(MEMCACHED)
        if self.changed is None or now - self.changed > timedelta(seconds=110) or ran is None:
            return False
        image, args = self.wanted(MEMCACHED)
        by_image = image != ran.image and not self.nodes.lacks(image)
        return by_image or (args != ran.args and AGENT in self.ran)

    def _status(self, local: datetime) -> Object:
        return self._model.status(lambda name: self._works(name, local), local)

    def _works(self, name: str, local: datetime) -> bool:
        """Whether a container that runs is ready: the agent only if memcached has the arguments of the pod."""
        started = datetime.fromisoformat(self._model.containers[name].state["running"]["startedAt"])
        memcached = self.ran.get(MEMCACHED, Process("", ""))
        return local - started >= START and (name != AGENT or memcached.args == self.wanted(MEMCACHED).args)

    def _run(self, name: str, local: datetime) -> float | None:
        """Start or stop a container; returns seconds until there is more to do."""
        model, (image, args) = self._model, self.wanted(name)
        if name in self.ran:
            if name not in model.outdated():
                return None
            model.end(name, self.chance.choice((0, 0, 0, 137)) if self.ran[name].image != image else 0, local)
            return 0.5
        if self.nodes.lacks(image):
            model.fail_pull(name)
            return self._back_off(image)
        lacks_args = name == MEMCACHED and model.is_warm and not args
        if lacks_args or (model.containers[name].starts and self.chance.random() < 0.1):
            model.wait(name, "CrashLoopBackOff")
            return self._back_off(name)
        model.start(name, local)
        self.images[name].add(image)
        self.changed = None if name == MEMCACHED else self.changed
        return START.total_seconds()

    def _back_off(self, what: str) -> float:
        tries = self._tries[what] = self._tries.get(what, -1) + 1
        return min(BACK_OFF * 2**tries, 300.0)
