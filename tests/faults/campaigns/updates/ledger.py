"""Every state of the pods in a namespace, in the order in which the API server stored them, and what it shows."""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from memcached_operator.kube.resource import Object, nested_list, nested_map

PREFIX = "memcached-operator.example.com/"
REVISION = "controller-revision-hash"
"""The label of a pod with the name of its StatefulSet's revision."""
ANNOTATIONS = ("warm-up", "memory", "args")
"""The annotations that a pod gets from its template. A change of one of them in a pod is a step of an update."""
LABEL = "label"
"""The part of a step that says that the pod has the new revision; it changes nothing in the containers."""
ORIGIN = "created-from"
"""The annotation that changes together with LABEL."""
RECORD = "update"
"""The annotation of a pod that is being updated."""
GRACE = 3.0
"""Seconds until the operator has received that a pod is not ready because of another client."""


@dataclass(frozen=True)
class State:
    """One state of a pod: its resourceVersion, when the watch reported it, and whether the pod was removed with it."""

    version: int
    at: float
    slot: int
    pod: Object
    removed: bool = False

    @property
    def uid(self) -> str:
        """The uid of the pod."""
        return self.pod["metadata"]["uid"]

    @property
    def ready(self) -> bool:
        """Whether the pod is ready, and not being deleted."""
        return not self.removed and not self.pod["metadata"].get("deletionTimestamp") and is_ready(self.pod)


@dataclass(frozen=True)
class Step:
    """One write on a pod that is part of an update: what it changed, such as `image memcached` or `delete`."""

    version: int
    slot: int
    uid: str
    what: frozenset[str]

    def __str__(self) -> str:
        return f"slot {self.slot}: {', '.join(sorted(self.what))}"


@dataclass
class Work:
    """What the kubelet does because of a change, from the change's resourceVersion to that of its last write."""

    slot: int
    begin: int
    end: int | None = None


@dataclass
class Ledger:
    """The states of all pods, the work of their kubelet, and the writes (resourceVersions) of clients of the test."""

    states: list[State] = field(default_factory=list[State])
    work: list[Work] = field(default_factory=list[Work])
    own: set[int] = field(default_factory=set[int])

    def record(self, what: str, pod: Object) -> State:
        """Add the pod of a watch event; returns its state."""
        version = int(pod["metadata"]["resourceVersion"])
        state = State(version, time.monotonic(), slot_of(pod), pod, what == "DELETED")
        self.states.append(state)
        return state

    @property
    def version(self) -> int:
        """The newest resourceVersion."""
        return max((state.version for state in self.states), default=0)

    def uids(self, slot: int, since: int = 0) -> list[str]:
        """The uids of the pods that a slot had since a resourceVersion, in order, and of the one at that moment."""
        before = [state for state in self.states if state.slot == slot and state.version <= since][-1:]
        later = [state for state in self.states if state.slot == slot and state.version > since]
        return list(dict.fromkeys(state.uid for state in (*before, *later)))

    def restarts(self, slot: int, since: int = 0) -> dict[str, int]:
        """How often each container of a slot was restarted since a resourceVersion, in the same pod."""
        found: dict[str, int] = {}
        for before, after in self._pairs(since):
            if after.slot == slot:
                old, new = restart_counts(before.pod), restart_counts(after.pod)
                for name, count in new.items():
                    found[name] = found.get(name, 0) + count - old.get(name, count)
        return {name: count for name, count in found.items() if count}

    def steps(self, since: int = 0) -> list[Step]:
        """The writes of the operator since a resourceVersion that are part of an update, in order."""
        steps = [
            Step(after.version, after.slot, after.uid, changed(before, after)) for before, after in self._pairs(since)
        ]
        found = [step for step in steps if step.what and step.version not in self.own]
        return sorted(found, key=lambda step: step.version)

    def changes(self, since: int = 0) -> list[Step]:
        """The steps that change more than the label."""
        return [step for step in self.steps(since) if step.what != frozenset({LABEL})]

    def count(self, slot: int, what: str, since: int = 0) -> int:
        """The number of steps of a slot that contain this change."""
        return sum(step.slot == slot and what in step.what for step in self.steps(since))

    def settled(self, slot: int) -> bool:
        """Whether a slot's pod is ready, and the kubelet has done what its changes ask for."""
        latest = self.latest(slot)
        return latest is not None and latest.ready and all(each.end for each in self.work if each.slot == slot)

    def latest(self, slot: int, version: int | None = None) -> State | None:
        """The newest state of a slot's pod, or that before a resourceVersion."""
        found = [each for each in self.states if each.slot == slot and (version is None or each.version < version)]
        return max(found, key=lambda each: each.version, default=None)

    def problem(self, step: Step, slots: Iterable[int], grace: float = GRACE) -> str:
        """Why no other slot may be changed at this moment; empty if each of these slots is ready and settled.

        `grace`: seconds for which a slot may have been unready.
        """
        at = max((state.at for state in self.states if state.version == step.version), default=0.0)
        for slot in slots:
            if slot == step.slot:
                continue
            if any(
                each.slot == slot and each.begin < step.version and _before(step.version, each) for each in self.work
            ):
                return f"slot {slot} was still being changed"
            if not self._was_ready(slot, step.version, at - grace):
                return f"slot {slot} was not ready"
        return ""

    def _was_ready(self, slot: int, version: int, since: float) -> bool:
        """Whether a slot was ready before a resourceVersion, or became unready only after a time."""
        states = sorted((each for each in self.states if each.slot == slot), key=lambda each: each.version)
        before = [each for each in states if each.version < version]
        last_ready = max((index for index, each in enumerate(before) if each.ready), default=-1)
        return last_ready == len(before) - 1 or before[last_ready + 1].at > since

    def _pairs(self, since: int) -> list[tuple[State, State]]:
        """Consecutive states of the same pods, of which the later one is newer than a resourceVersion."""
        pods: dict[str, list[State]] = {}
        for state in self.states:
            pods.setdefault(state.uid, []).append(state)
        pairs = (pair for states in pods.values() for pair in pairwise(states))
        return [(before, after) for before, after in pairs if after.version > since]


def _before(version: int, work: Work) -> bool:
    return work.end is None or version <= work.end


def slot_of(pod: Mapping[str, Any]) -> int:
    """The number of a pod's slot."""
    match = re.search(r"-(\d+)$", pod["metadata"]["name"])
    return int(match[1]) if match else -1


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether the condition Ready of a pod is True."""
    found = nested_list(pod, "status", "conditions")
    return any((each["type"], each["status"]) == ("Ready", "True") for each in found)


def restart_counts(pod: Mapping[str, Any]) -> dict[str, int]:
    """How often each container was restarted, which its ID says, because its count can be reset."""
    ids = {each["name"]: each.get("containerID") for each in nested_list(pod, "status", "containerStatuses")}
    return {name: int(text.rpartition("-")[2]) for name, text in ids.items() if text}


def images(pod: Mapping[str, Any]) -> dict[str, str]:
    """The image of each container."""
    return {each["name"]: each["image"] for each in nested_list(pod, "spec", "containers")}


def resources(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The resources of each container."""
    return {each["name"]: each.get("resources", {}) for each in nested_list(pod, "spec", "containers")}


def annotation(pod: Mapping[str, Any], name: str) -> str | None:
    """An annotation with our prefix."""
    return nested_map(pod, "metadata", "annotations").get(PREFIX + name)


def revision(pod: Mapping[str, Any]) -> str | None:
    """The revision that the label of a pod names."""
    return nested_map(pod, "metadata", "labels").get(REVISION)


def changed(before: State, after: State) -> frozenset[str]:
    """What a write on a pod changed, of that which an update changes."""
    one, other = before.pod, after.pod
    found = {f"image {name}" for name, image in images(other).items() if images(one).get(name) != image}
    found |= {name for name in ANNOTATIONS if annotation(one, name) != annotation(other, name)}
    found |= {"resources"} if resources(one) != resources(other) else set()
    found |= {LABEL} if revision(one) != revision(other) else set()
    was_deleted = bool(one["metadata"].get("deletionTimestamp"))
    is_deleted = after.removed or bool(other["metadata"].get("deletionTimestamp"))
    return frozenset(found | ({"delete"} if is_deleted and not was_deleted else set()))


def mismatch(pod: Mapping[str, Any], workload: Mapping[str, Any]) -> str:
    """The first difference between a pod and the pod template of its StatefulSet; empty if there is none."""
    template, name = workload["spec"]["template"], pod["metadata"]["name"]
    for what, read in (("image", images), ("resources", resources)):
        if read(pod) != read(template):
            return f"{name}: {what}: got {read(pod)}, want {read(template)}"
    for key in (*ANNOTATIONS, ORIGIN):
        if annotation(pod, key) != annotation(template, key):
            return f"{name}: annotation {key}: got {annotation(pod, key)}, want {annotation(template, key)}"
    wanted = nested_map(workload, "status").get("updateRevision")
    return "" if revision(pod) == wanted else f"{name}: revision: got {revision(pod)}, want {wanted}"
