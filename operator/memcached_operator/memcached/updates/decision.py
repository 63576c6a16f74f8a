"""Decides which pod of a StatefulSet is updated next, and with which step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from memcached_api.annotations import RECORD_ANNOTATION
from memcached_api.memcached.rules.spec import MAX_SLOTS
from memcached_operator.engine.kind import PodStep, PodUpdate
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.resource import Object, nested_map
from memcached_operator.kube.times import earliest
from memcached_operator.memcached.updates.facts import Facts
from memcached_operator.memcached.updates.origin import template_origin
from memcached_operator.memcached.updates.record import is_unreadable
from memcached_operator.memcached.updates.states import UNKNOWN, Slot, SlotState, assess
from memcached_operator.memcached.updates.target import InPlace, Target
from memcached_operator.world.pod import Pod
from memcached_operator.world.snapshot import Resize

MAX_DOING: Final = 3
"""Maximum pods whose state is reported."""
UNREADABLE: Final = f"another client changed the annotation {RECORD_ANNOTATION}; the operator ignores and removes it"
NO_TIME: Final = datetime.min.replace(tzinfo=UTC)
"""The time of facts that do not depend on it."""


@dataclass(frozen=True)
class UpdateDecision:
    """A decision about the update of the pods of a StatefulSet.

    `complete`: all pods are updated. `step`: the next write. `must_finish`: the step completes or restores a pod, also
    during a pause. `doing`: what happens to pods now, such as `is being resized`, by their names. `problems`: why the
    update cannot continue. `requeue_after`: seconds until it may continue without an event, or None. `notices`:
    sentences for the status that are not problems.
    """

    complete: bool
    step: PodStep | None = None
    must_finish: bool = False
    doing: Mapping[str, str] = field(default_factory=dict[str, str])
    problems: tuple[Problem, ...] = ()
    requeue_after: float | None = None
    notices: tuple[str, ...] = ()

    @property
    def update(self) -> PodUpdate:
        """The part that the engine and the status need."""
        return PodUpdate(self.complete, self.step, self.doing)


def decide(
    live: Object,
    pods: Iterable[Pod],
    rules: InPlace,
    resize: Resize | None,
    now: datetime,
    *,
    limit: int = 1,
    creates_pods: bool = True,
) -> UpdateDecision | None:
    """The decision about the pods of a StatefulSet; None until its controller has seen its latest spec.

    `limit`: the maximum of slots that are changed or not ready at once, at least 1. `creates_pods`: False while the
    cluster rejects new pods. Then no pod is deleted, because nothing would replace it.
    """
    target = _target(live, rules, resize)
    if target is None:
        return None
    size = min(live["spec"].get("replicas", 1), MAX_SLOTS)  # another client can set any number
    by_name = {pod.name: pod for pod in pods if pod.is_active}
    # The highest slot first, as in a rolling update by the StatefulSet controller.
    names = [f"{live['metadata']['name']}-{slot}" for slot in reversed(range(size))]
    slots = [assess(by_name[name], target, now) for name in names if name in by_name]
    slots = slots if creates_pods else list(map(_kept, slots))
    doing = "is being replaced" if creates_pods else "cannot be created"
    slots += [Slot(name, SlotState.BUSY, doing) for name in names if name not in by_name]
    unreadable = (f"Pod {name}: {UNREADABLE}" for name, pod in by_name.items() if is_unreadable(pod))
    return replace(_decision(slots, limit), notices=tuple(unreadable)[:MAX_DOING])


def replaces(template: Object, pods: Iterable[Pod], rules: InPlace, resize: Resize | None) -> bool:
    """Whether an update to a pod template replaces pods that may have items.

    True for other amounts if it is not known whether the cluster can resize pods.
    """
    origin = template_origin(template)
    if origin is None:
        return False
    target = Target("", template, origin, rules, resize or Resize.NONE, 0)
    found = (Facts.of(pod, target, NO_TIME) for pod in pods if pod.is_active)
    return any(not it.has_nothing_to_lose and it.needs_new_pod() for it in found)


def _kept(slot: Slot) -> Slot:
    """The slot without a step that deletes its pod."""
    if slot.step is None or slot.step.patch is not None:
        return slot
    return replace(slot, step=None, requeue_after=earliest((slot.requeue_after, UNKNOWN)))


def _target(live: Object, rules: InPlace, resize: Resize | None) -> Target | None:
    status, template = nested_map(live, "status"), live["spec"]["template"]
    revision, origin = status.get("updateRevision"), template_origin(template)
    if not revision or origin is None or status.get("observedGeneration", 0) < live["metadata"].get("generation", 0):
        return None
    return Target(revision, template, origin, rules, resize, live["spec"].get("minReadySeconds", 0))


def _decision(slots: Sequence[Slot], limit: int) -> UpdateDecision:
    """The decision, given the slots, the highest first."""
    problems = tuple(slot.problem for slot in slots if slot.problem)
    next_one = _next(slots, limit)
    doing = [slot for slot in slots if slot.doing and (slot is next_one or slot.state is not SlotState.OUTDATED)]
    return UpdateDecision(
        complete=all(slot.state is SlotState.DONE for slot in slots),
        step=next_one.step if next_one else None,
        must_finish=next_one is not None and next_one.state is SlotState.UNFINISHED,
        doing={slot.name: slot.doing for slot in doing[:MAX_DOING]},
        problems=problems,
        requeue_after=earliest(slot.requeue_after for slot in slots),
    )


def _next(slots: Sequence[Slot], limit: int) -> Slot | None:
    """The slot whose pod is to be changed now, or None. Records of completed updates are removed last."""
    steps = [slot for slot in slots if slot.step]
    unfinished = (slot for slot in steps if slot.state is SlotState.UNFINISHED)
    tried_again = (slot for slot in steps if slot.problem)
    done = (slot for slot in steps if slot.state is SlotState.DONE)
    return next(unfinished, None) or next(tried_again, None) or _outdated(slots, limit) or next(done, None)


def _outdated(slots: Sequence[Slot], limit: int) -> Slot | None:
    """The slot whose pod is to be updated now, or None. At most `limit` slots are changed or not ready at once.

    A pod that is not ready is updated before the others: it may need the correction, and has nothing to lose. It waits
    only for pods that are being changed if its first container does not run, or if the step does not touch that. No pod
    is updated while one that has been updated fails.
    """
    if any(slot.problem or slot.failing for slot in slots):
        return None
    moving = sum(slot.moving for slot in slots)
    outdated = [slot for slot in slots if slot.state is SlotState.OUTDATED and slot.step]
    outdated = [slot for slot in outdated if moving - slot.moving < limit]
    outdated.sort(key=lambda slot: (slot.ready, not slot.begun))
    if urgent := [slot for slot in outdated if slot.broken or (slot.keeps_memcached and not slot.ready)]:
        return urgent[0]
    disturbed = sum(slot.disturbed for slot in slots)
    # A limit of 1 needs no count of begun updates: they come first. Others would then be ordered differently.
    changing = sum(slot.changing and not slot.disturbed for slot in outdated) if limit > 1 else 0
    return next((slot for slot in outdated if _others(slot, disturbed, changing) < limit), None)


def _others(slot: Slot, disturbed: int, changing: int) -> int:
    """The number of other slots that count when a slot is to be updated.

    `disturbed`: slots that are being changed or are not ready. `changing`: other slots whose update has begun and waits
    for its next step. Those count only before a further update begins: if the limit was lowered, each must still be
    completed.
    """
    if slot.disturbed:
        return disturbed - 1
    return disturbed if slot.changing else disturbed + changing
