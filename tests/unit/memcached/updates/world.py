"""A simulated pod with its kubelet and its agent, in any state, for walks through updates."""

import random
from collections.abc import Sequence
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Final

import msgspec

from memcached_operator.kind import PodStep, Resize
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.updates.decision import UpdateDecision, decide
from memcached_operator.memcached.updates.origin import ORIGIN_ANNOTATION
from memcached_operator.memcached.updates.record import RECORD_ANNOTATION
from memcached_operator.status.conditions import timestamp
from unit.builders import NOW
from unit.memcached.updates.updating import ARGS, GATE, MEMORY, NEW, OLD, RULES, created, statefulset, template

TICK: Final = timedelta(seconds=20)
IMAGES: Final = ("memcached:1", "memcached:2", "missing:1")
LIMITS: Final = ("64Mi", "128Mi", "256Mi")
REVISIONS: Final = (OLD, NEW, "cache-middle")


def random_template(chance: random.Random, images: Sequence[str] = IMAGES) -> Object:
    """A pod template that differs from others in some of the parts that an update can change."""
    annotations = {ARGS: f"-c {chance.randint(1, 2)}", MEMORY: chance.choice(("64", "128"))}
    annotations |= {GATE: "hitRatio=80,timeout=60"} if chance.random() < 0.3 else {}
    return template(
        chance.choice("aaab"),
        chance.choice(images),
        chance.choice(("agent:1", "agent:2")),
        chance.choice(LIMITS),
        annotations,
    )


class World:
    """One pod, its kubelet and its agent. What they do not do: `asleep` acts never, `full` resizes never."""

    def __init__(self, chance: random.Random, slot: int = 0, *, forged: bool = True) -> None:
        self.chance, self.slot = chance, slot
        self.now: datetime = NOW
        self.resize = chance.choice(list(Resize))
        self.asleep, self.full = chance.random() < 0.1, chance.choice(["", "", "", "Infeasible", "Deferred"])
        self.target, self.revision = random_template(chance), NEW
        self.pod = created(slot, random_template(chance), chance.choice(REVISIONS))
        self.ran = self.wanted()
        self.number = 1
        if forged:
            self._forge()

    def _forge(self) -> None:
        """Another client, or an earlier decision, has written anything."""
        chance, annotations = self.chance, self.pod["metadata"]["annotations"]
        if chance.random() < 0.7:
            annotations[RECORD_ANNOTATION] = msgspec.json.encode(self._record()).decode()
        if chance.random() < 0.1:
            annotations[chance.choice((RECORD_ANNOTATION, ORIGIN_ANNOTATION, ARGS, MEMORY))] = "forged"
        for status in self.pod["status"]["containerStatuses"]:
            status["restartCount"] = chance.randint(0, 3)
            if chance.random() < 0.2:
                status["state"] = chance.choice(
                    (
                        {"waiting": {"reason": "CrashLoopBackOff"}},
                        {"terminated": {"exitCode": 1, "finishedAt": timestamp(self.now)}},
                        {},
                    )
                )

    def _record(self) -> Object:
        chance = self.chance
        found: Object = {"revision": chance.choice(REVISIONS), "since": chance.choice(("", timestamp(self.now)))}
        if chance.random() < 0.6:
            ran = {"id": chance.choice(("id-1", "id-0", "")), "args": chance.random() < 0.5}
            found["restarts"] = {chance.choice(("memcached", "agent", "other")): ran}
        if chance.random() < 0.5:
            images = {"memcached": chance.choice((*IMAGES, "no image"))}
            found["before"] = {"revision": chance.choice(REVISIONS), "images": images, "annotations": {ARGS: "-c 1"}}
        if chance.random() < 0.5:
            found["amounts"] = {"memcached": {"limits": {"memory": chance.choice((*LIMITS, "many"))}}}
        found["lowers"] = chance.random() < 0.3
        found["failed"] = chance.choice(("", "", "it has failed"))
        return found

    def decide(self) -> UpdateDecision:
        """The decision about the pod now."""
        found = decide(statefulset(self.target, 1), [self.pod], RULES, self.resize, self.now)
        assert found is not None
        return found

    def write(self, step: PodStep) -> None:
        """Make a step: a merge of the patch, or another pod."""
        if step.patch is None:
            self.pod = created(self.slot, deepcopy(self.target), self.revision, ready=timestamp(self.now))
            self.ran = self.wanted()
            return
        pod = deepcopy(self.pod)
        meta = step.patch.get("metadata", {})
        pod["metadata"]["labels"] |= meta.get("labels", {})
        for name, text in meta.get("annotations", {}).items():
            pod["metadata"]["annotations"].pop(name, None)
            pod["metadata"]["annotations"] |= {} if text is None else {name: text}
        for change in step.patch.get("spec", {}).get("containers", ()):
            (container,) = (each for each in pod["spec"]["containers"] if each["name"] == change["name"])
            container |= change
        self.pod = pod

    def pass_time(self) -> None:
        """The kubelet and the agent act, and time passes."""
        if not self.asleep:
            for status in self.pod["status"]["containerStatuses"]:
                self._run(status, status["name"])
            running = all("running" in each["state"] for each in self.pod["status"]["containerStatuses"])
            self._ready("True" if running else "False")
            self._resize()
        self.now += TICK

    def wanted(self) -> dict[str, tuple[str, str]]:
        """The image and the arguments of each container."""
        arguments = self.pod["metadata"]["annotations"].get(ARGS, "")
        return {
            each["name"]: (each["image"], arguments if each["name"] == "memcached" else "")
            for each in self.pod["spec"]["containers"]
        }

    def _run(self, status: Object, name: str) -> None:
        wanted = self.wanted()[name]
        if wanted == self.ran[name] and "running" in status["state"]:
            return
        if wanted[0].startswith("missing"):
            message = f'failed to pull "{wanted[0]}"'
            status["state"] = {"waiting": {"reason": "ErrImagePull", "message": message}}
            return
        self.number += 1
        ended = {"exitCode": self.chance.choice((0, 0, 137)), "containerID": status["containerID"]}
        status["lastState"] = {"terminated": ended} if self.chance.random() < 0.8 else {}
        status |= {"containerID": f"id-{self.number}", "imageID": f"sha-{wanted[0]}"}
        status["state"] = {"running": {"startedAt": timestamp(self.now)}}
        self.ran[name] = wanted

    def _ready(self, text: str) -> None:
        (ready,) = (each for each in self.pod["status"]["conditions"] if each["type"] == "Ready")
        if ready["status"] != text:
            ready |= {"status": text, "lastTransitionTime": timestamp(self.now)}

    def _resize(self) -> None:
        status = self.pod["status"]
        status["conditions"] = [each for each in status["conditions"] if each["type"] != "PodResizePending"]
        wanted = {each["name"]: each["resources"] for each in self.pod["spec"]["containers"]}
        if all(wanted[each["name"]] == each["resources"] for each in status["containerStatuses"]):
            return
        if self.full:
            status["conditions"].append({"type": "PodResizePending", "status": "True", "reason": self.full})
            return
        for each in status["containerStatuses"]:
            each["resources"] = wanted[each["name"]]
