"""Several simulated slots with faults, for walks through updates that may change more than one slot at once."""

import random
from datetime import datetime
from typing import Final

from memcached_operator.kind import PodStep, Resize
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.updates.decision import UpdateDecision, decide
from memcached_operator.memcached.updates.observed import runs
from memcached_operator.memcached.updates.record import record_of
from memcached_operator.memcached.updates.target import REVISION_LABEL
from memcached_operator.workloads.pods import is_ready
from unit.memcached.updates.updating import NEW, OLD, RULES, created, statefulset
from unit.memcached.updates.world import TICK, World

MAX_ABSENT: Final = 2
"""Maximum ticks until a deleted pod exists again."""
MAX_COLD: Final = 3
"""Maximum ticks until a new pod is ready, and for which a fault lasts."""


class SlotWorld(World):
    """One slot. Ticks until it has a pod (`absent`), until its kubelet acts (`down`), until it is ready (`cold`)."""

    def __init__(self, chance: random.Random, slot: int, *, forged: bool) -> None:
        super().__init__(chance, slot, forged=forged)
        self.absent = self.down = self.cold = 0

    def write(self, step: PodStep) -> None:
        """Make a step. A deleted pod exists again later, and is ready even later."""
        super().write(step)
        if step.patch is None:
            self.absent, self.cold = self.chance.randint(0, MAX_ABSENT), self.chance.randint(0, MAX_COLD)
            self._ready("False")

    def pass_time(self) -> None:
        """Time passes; the pod is created, runs, and becomes ready."""
        if self.absent or self.down:
            self.absent, self.down = max(0, self.absent - 1), max(0, self.down - 1)
            self.now += TICK
            return
        super().pass_time()
        for status in self.pod["status"]["containerStatuses"]:
            status["ready"] = "running" in status["state"]
        if self.cold:
            self.cold -= 1
            self._ready("False")

    def fail(self) -> None:
        """A fault: another client deletes the pod, a container crashes, or the pod is not ready."""
        what = self.chance.choice(("deleted", "crashes", "unready"))
        if what == "deleted":
            self.write(PodStep(self.pod))
            return
        if what == "crashes":
            status = self.chance.choice(self.pod["status"]["containerStatuses"])
            ended = {"exitCode": 1, "containerID": status["containerID"]}
            status |= {"ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
            status["lastState"] = {"terminated": ended}
            self.down = self.chance.randint(0, MAX_COLD)
        self.cold = self.chance.randint(1, MAX_COLD)
        self._ready("False")

    @property
    def unready(self) -> bool:
        """Whether the slot has no pod that is ready, or its memcached does not run."""
        return bool(self.absent) or not is_ready(self.pod) or not runs(self.pod, "memcached")

    @property
    def begun(self) -> bool:
        """Whether an update of the pod has begun, also one that is in effect already."""
        return record_of(self.pod) is not None

    @property
    def changing(self) -> bool:
        """Whether an update of the pod has begun, and its kubelet, its agent or the operator have not completed it.

        A limit that the node is to lower does not count: no update waits for that.
        """
        record = record_of(self.pod)
        if record is None:
            return False
        is_open = record.lowers or record.revision != self.pod["metadata"]["labels"][REVISION_LABEL]
        return is_open or self.ran != self.wanted()


class Fleet:
    """The slots of one StatefulSet. `limit`: how many may be changed or not ready at once."""

    def __init__(self, chance: random.Random, size: int, limit: int, target: Object, *, forged: bool) -> None:
        self.chance, self.limit = chance, limit
        self.resize = chance.choice(list(Resize))
        self.worlds = {f"cache-{slot}": SlotWorld(chance, slot, forged=forged) for slot in range(size)}
        self.number = 0
        self.set_target(target)

    def start_from(self, old: Object) -> None:
        """All pods were created from a template, and are ready. Their kubelets act, and their nodes have room."""
        for world in self.worlds.values():
            world.asleep, world.full = False, ""
            world.pod = created(world.slot, old, OLD)
            world.ran = world.wanted()

    def set_target(self, target: Object) -> None:
        """The template becomes another one."""
        self.template, self.revision = target, f"{NEW}-{self.number}" if self.number else NEW
        self.number += 1
        for world in self.worlds.values():
            world.target, world.revision = target, self.revision

    def decide(self) -> UpdateDecision:
        """The decision about the pods now."""
        status = {"observedGeneration": 2, "updateRevision": self.revision}
        live = statefulset(self.template, len(self.worlds), status=status)
        pods = [world.pod for world in self.worlds.values() if not world.absent]
        found = decide(live, pods, RULES, self.resize, self.now, limit=self.limit)
        assert found is not None
        return found

    def write(self, step: PodStep) -> None:
        """Make a step."""
        self.worlds[step.pod["metadata"]["name"]].write(step)

    def pass_time(self, faults: float) -> None:
        """Time passes. `faults`: the probability that a slot fails."""
        for world in self.worlds.values():
            world.pass_time()
            if not world.absent and self.chance.random() < faults:
                world.fail()

    def unready(self) -> set[str]:
        """The slots that are not ready for any reason."""
        return {name for name, world in self.worlds.items() if world.unready}

    def affected(self) -> set[str]:
        """The slots that are being changed, or are not ready for any reason."""
        return self.unready() | {name for name, world in self.worlds.items() if world.changing}

    @property
    def now(self) -> datetime:
        """The time of all slots."""
        return self.worlds["cache-0"].now
