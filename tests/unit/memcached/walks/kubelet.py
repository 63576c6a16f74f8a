"""One pod as its kubelet and its agent run it: containers, resizes and readiness, with what can go wrong."""

import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from memcached_api.annotations import ARGS_ANNOTATION
from memcached_operator.kube.resource import Object
from memcached_operator.status.conditions import timestamp

FIRST: Final = "memcached"
AGENT: Final = "agent"
START: Final = timedelta(seconds=3)
"""Time from the start of a container until its probe succeeds."""
BACK_OFF: Final = 10.0
"""Seconds until an image is pulled, or a container started, once more. They double, up to 5 minutes."""
NO_ROOM: Final = "Node didn't have enough capacity: memory"


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
    """The kubelet of one pod. `pod`: the stored object. `ran`: image and arguments with which each container runs.

    `images`: those with which it has ever run. `changed`: since when memcached must restart because of a write of the
    operator. `tampered`: another client has changed the pod. `down`: until then, it does nothing.
    """

    def __init__(self, chance: random.Random, pod: Object, nodes: Nodes, skew: timedelta) -> None:
        self.chance, self.pod, self.nodes, self.skew = chance, pod, nodes, skew
        self.ran: dict[str, tuple[str, str]] = {}
        self.images: dict[str, set[str]] = {name: set() for name in self._specs()}
        self.allocated = {name: spec["resources"] for name, spec in self._specs().items()}
        self.refused: dict[str, Object] | None = None
        self.changed: datetime | None = None
        self.tampered = False
        self.down: datetime | None = None
        self._number = 0
        self._tries: dict[str, int] = {}

    def sync(self, now: datetime) -> tuple[Object, float | None]:
        """The next status of the pod, and seconds until the next sync; None without one."""
        status = self._status()
        known = {each["name"]: each for each in status.get("containerStatuses", ())}
        statuses = [known.get(name) or _new(name) for name in sorted(self._specs())]
        local = now + self.skew
        delays = [self._run(each, local) for each in statuses]
        delays.append(self._resize(status, statuses))
        ready = all(list(self._are_ready(statuses, local)))
        old = next((each for each in status["conditions"] if each["type"] == "Ready"), {"status": ""})
        if old["status"] != str(ready):
            condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": timestamp(local)}
            status["conditions"] = [each for each in status["conditions"] if each["type"] != "Ready"] + [condition]
        if not ready and all("running" in each["state"] for each in statuses):
            delays.append(START.total_seconds())
        status |= {"phase": "Running", "containerStatuses": statuses}
        return status, min((delay for delay in delays if delay), default=None)

    def ended(self, now: datetime, names: set[str], code: int) -> Object:
        """The pod after these containers have ended by themselves. Their counts are reset."""
        status = self._status()
        for each in status.get("containerStatuses", ()):
            if "running" in each["state"] and each["name"] in names:
                each |= {"state": {"terminated": self._end(each, code, now + self.skew)}, "restartCount": 0}
        return {**self.pod, "status": status}

    def wanted(self, name: str) -> tuple[str, str]:
        """The image and the arguments of a container. Only a memcached that restarts warm reads the arguments."""
        annotations, has_args = self.pod["metadata"]["annotations"], name == FIRST and self._is_warm()
        return self._specs()[name]["image"], annotations.get(ARGS_ANNOTATION, "") if has_args else ""

    def is_pending(self, now: datetime) -> bool:
        """Whether memcached may restart at any moment because of a write of the operator that was made lately.

        Not after 2 minutes, nor if the image is missing, nor without the agent that would signal it: all documented.
        """
        if self.changed is None or now - self.changed > timedelta(seconds=110) or self.ran.get(FIRST) is None:
            return False
        (image, args), ran = self.wanted(FIRST), self.ran[FIRST]
        by_image = image != ran[0] and not self.nodes.lacks(image)
        return by_image or (args != ran[1] and AGENT in self.ran)

    def _is_warm(self) -> bool:
        return any(ARGS_ANNOTATION in str(each.get("command")) for each in self._specs().values())

    def _status(self) -> Object:
        return deepcopy(self.pod.get("status") or {"conditions": []})

    def _specs(self) -> dict[str, Object]:
        return {each["name"]: each for each in self.pod["spec"]["containers"]}

    def _run(self, status: Object, local: datetime) -> float | None:
        """Start, stop or signal a container; returns seconds until there is more to do."""
        name, state = status["name"], status["state"]
        image, args = self.wanted(name)
        if "running" in state:
            signalled = name == FIRST and args not in ("", self.ran[name][1]) and AGENT in self.ran
            if self.ran[name][0] == image and not signalled:
                return None
            code = self.chance.choice((0, 0, 0, 137)) if self.ran[name][0] != image else 0
            status["state"] = {"terminated": self._end(status, code, local)}
            return 0.5
        if "terminated" in state:
            status["lastState"] = state
        self.ran.pop(name, None)
        if self.nodes.lacks(image):
            pulled = state.get("waiting", {}).get("reason") == "ErrImagePull"
            reason, prefix = (
                ("ImagePullBackOff", f'Back-off pulling image "{image}": ErrImagePull: ')
                if pulled
                else ("ErrImagePull", "")
            )
            status["state"] = {"waiting": {"reason": reason, "message": f'{prefix}failed to pull "{image}": not found'}}
            return self._back_off(image)
        if (name == FIRST and self._is_warm() and not args) or (
            status.get("containerID") and self.chance.random() < 0.1
        ):
            status["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
            return self._back_off(name)
        self._start(status, local)
        return START.total_seconds()

    def _back_off(self, what: str) -> float:
        tries = self._tries[what] = self._tries.get(what, -1) + 1
        return min(BACK_OFF * 2**tries, 300.0)

    def _start(self, status: Object, local: datetime) -> None:
        name, wanted = status["name"], self.wanted(status["name"])
        self._number += 1
        self.ran[name] = wanted
        self.images[name].add(wanted[0])
        if name == FIRST:
            self.changed = None
        status["restartCount"] += bool(status.get("containerID"))
        status |= {"containerID": f"id-{self._number}", "imageID": f"sha-{wanted[0]}", "ready": False}
        status["state"] = {"running": {"startedAt": timestamp(local)}}
        status["resources"] = self.allocated[name]

    def _end(self, status: Object, code: int, local: datetime) -> Object:
        self.ran.pop(status["name"], None)
        status["ready"] = False
        reason = "Completed" if code == 0 else "Error"
        return {
            "exitCode": code,
            "containerID": status["containerID"],
            "finishedAt": timestamp(local),
            "reason": reason,
        }

    def _resize(self, status: Object, statuses: list[Object]) -> float | None:
        """Admit and make a resize, or say why not; returns seconds until it is tried again."""
        wanted = {name: spec["resources"] for name, spec in self._specs().items()}
        created = [each for each in statuses if each.get("containerID")]
        done = wanted == self.allocated and all(each["resources"] == wanted[each["name"]] for each in created)
        room = "" if done else "Infeasible" if wanted == self.refused else self.nodes.room
        self.refused = wanted if room == "Infeasible" else None  # a kubelet does not try that again
        names = ("PodResizePending", "PodResizeInProgress")
        status["conditions"] = [each for each in status["conditions"] if each["type"] not in names]
        if room in ("Deferred", "Infeasible"):
            status["conditions"].append(_condition("PodResizePending", room, NO_ROOM))
        elif room == "Error":
            self.allocated = wanted
            status["conditions"].append(_condition("PodResizeInProgress", room, "the runtime cannot update containers"))
        elif not room:
            self.allocated = wanted
            for each in created:
                each |= {"resources": wanted[each["name"]]}
                each |= {"allocatedResources": wanted[each["name"]].get("requests", {})}
        return 60.0 if room in ("Deferred", "Error") else None

    def _are_ready(self, statuses: list[Object], local: datetime) -> Iterator[bool]:
        """Whether each container is ready: the agent only if memcached has the arguments of the pod."""
        for each in statuses:
            running = each["state"].get("running")
            started = running is not None and local - datetime.fromisoformat(running["startedAt"]) >= START
            works = each["name"] != AGENT or self.ran.get(FIRST, ("", None))[1] == self.wanted(FIRST)[1]
            each["ready"] = started and works
            yield each["ready"]


def _condition(kind: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": "True", "reason": reason, "message": message}


def _new(name: str) -> dict[str, Any]:
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    return {"name": name, "ready": False, "restartCount": 0, "state": waiting, "lastState": {}}
