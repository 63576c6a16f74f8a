"""What the pod of one slot needs."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Final

import msgspec

from memcached_api import conditions as c
from memcached_api.resizing import Amounts
from memcached_operator.kind import PodStep, Problem, Resize
from memcached_operator.kube.resource import Object
from memcached_operator.status.conditions import truncate
from memcached_operator.workloads.updates import observed, patches
from memcached_operator.workloads.updates.amounts import (
    effective_limits,
    falls,
    has_amounts,
    is_in_effect,
    obstacle,
    spec_amounts,
)
from memcached_operator.workloads.updates.origin import Origin, origin_of
from memcached_operator.workloads.updates.record import MAX_MESSAGE, Record, record_of
from memcached_operator.workloads.updates.target import Target

RESIZING: Final = "is being resized"
MAX_DIGITS: Final = 10
"""Digits of a number in an annotation."""


class State(Enum):
    """The state of the pod of a slot."""

    DONE = "done"
    """It is updated and available."""
    BUSY = "busy"
    """Something happens that the next step must wait for."""
    OUTDATED = "outdated"
    """It has a step, which must wait until the other pods are available."""
    UNFINISHED = "unfinished"
    """It has a step that completes or restores it, which need not wait."""
    STUCK = "stuck"
    """It has a problem that ends the update."""


@dataclass(frozen=True)
class Slot:
    """The pod of a slot. `doing`: what happens to it, for messages. `begun`: its update has begun.

    `broken`: it is outdated, and cannot become ready. `free`: its step does not touch the first container.
    `ready`: it is available. `requeue_after`: seconds until it may be.
    """

    name: str
    state: State
    doing: str = ""
    step: PodStep | None = None
    problem: Problem | None = None
    begun: bool = False
    broken: bool = False
    free: bool = False
    ready: bool = False
    requeue_after: float | None = None


def assess(pod: Object, target: Target, now: datetime) -> Slot:
    """The state of a pod that is not being deleted."""
    left = observed.until_available(pod, target.min_ready, now)
    is_labelled = observed.revision_of(pod) == target.revision
    found = _labelled(pod, target, left) if is_labelled else _outdated(pod, target, now)
    return replace(found, ready=left == 0, requeue_after=left or None)


def _slot(pod: Object, state: State, doing: str = "", step: PodStep | None = None) -> Slot:
    return Slot(pod["metadata"]["name"], state, doing, step)


def _stuck(pod: Object, reason: str, message: str) -> Slot:
    name = pod["metadata"]["name"]
    return Slot(name, State.STUCK, "cannot be updated", problem=Problem(reason, f"Pod {name}: {message}"))


def _labelled(pod: Object, target: Target, left: float | None) -> Slot:
    """The state of a pod with the revision of the target."""
    record = record_of(pod)
    if record is not None and record.revision != target.revision:
        return _abandoned(pod, target, record)
    if record is not None:
        if (failure := observed.image_failure(pod, record)) and record.before is not None:
            step = patches.restore(pod, record.revision, record.before, failure)
            return _slot(pod, State.UNFINISHED, "gets its image back", step)
        if doing := observed.unconfirmed(pod, record, target.containers[0]):
            return _slot(pod, State.BUSY, doing)
        if record.lowers:
            return _lowering(pod, target, msgspec.structs.replace(record, lowers=False))
    if step := patches.annotate(pod, target):
        return replace(_slot(pod, State.OUTDATED, "gets its annotations back", step), free=True)
    return _slot(pod, State.DONE) if left == 0 else _slot(pod, State.BUSY, "is not ready yet")


def _abandoned(pod: Object, target: Target, record: Record) -> Slot:
    """The state of a pod whose update to another revision was not completed, or failed."""
    then = Record(target.revision, restarts=record.restarts) if record.restarts else None
    if record.resized or record.lowers:
        return _lowering(pod, target, then)
    return _slot(pod, State.UNFINISHED, "is not updated any more", patches.record(pod, then))


def _lowering(pod: Object, target: Target, then: Record | None) -> Slot:
    """The state of a pod that gets the amounts of the target now. `then`: the record afterwards.

    Nothing depends on when they are in effect: the node lowers a memory limit only when less memory is used. Where the
    cluster cannot lower it, it stays.
    """
    has = spec_amounts(pod)
    wanted = _missing(pod, target.amounts())
    if target.resize is not Resize.ANY:
        wanted = {name: found for name, found in wanted.items() if not falls(found, has.get(name, {}))}
    if wanted and target.resize is not Resize.NONE:
        return _slot(pod, State.UNFINISHED, RESIZING, patches.resize(pod, wanted, target.rules.replace))
    return _slot(pod, State.UNFINISHED, RESIZING, patches.record(pod, then))


def _outdated(pod: Object, target: Target, now: datetime) -> Slot:
    """The state of a pod with another revision than the target."""
    record, origin = record_of(pod), origin_of(pod)
    begun = record is not None and record.revision == target.revision
    if record is not None and begun and record.failed:
        return _stuck(pod, c.IMAGE_UNAVAILABLE, f"{record.failed}. It has its previous image again, and its items")
    if origin is None or origin.images.keys() != target.origin.images.keys() or _needs_replacement(pod, target, origin):
        found = _slot(pod, State.OUTDATED, "is being replaced", patches.delete(pod))
    else:
        found = _in_place(pod, target, origin, record)
    return replace(found, begun=begun, broken=observed.is_broken(pod, target.containers, now))


def _in_place(pod: Object, target: Target, origin: Origin, record: Record | None) -> Slot:
    """The next step of an update in place. It waits until the kubelet has made the one before, so that it sees each."""
    if observed.is_restarting(pod) or (record is not None and observed.in_flight(pod, record)):
        return _slot(pod, State.BUSY, "restarts")
    wanted = target.amounts() if _has_other_amounts(target, origin, record) else {}
    if wanted and target.resize is None:
        return _slot(pod, State.BUSY, "waits until the API server has reported what it serves")
    # By what is in effect: the spec can have a limit for which there is not enough memory.
    limits = effective_limits(pod)
    falling = {name for name, found in wanted.items() if falls(found, limits.get(name, {}))}
    first = {name: found for name, found in wanted.items() if name not in falling}
    if missing := _missing(pod, first):
        if record is None or record.revision != target.revision or not record.resized:
            step = patches.record(pod, _begun(target, record))
        else:
            step = patches.resize(pod, missing, target.rules.replace)
        return replace(_slot(pod, State.OUTDATED, RESIZING, step), free=True)
    if not is_in_effect(pod, first):
        return _resizing(pod, target)
    step, free = patches.change(pod, target, origin, record, lowers=bool(_missing(pod, wanted)))
    return replace(_slot(pod, State.OUTDATED, "is being updated", step), free=free)


def _begun(target: Target, record: Record | None) -> Record:
    """The record before a resize. It keeps what must be restored if an image of an earlier update is missing."""
    found = record or Record(target.revision)
    return msgspec.structs.replace(found, revision=target.revision, ready_since=None, resized=True, failed="")


def _resizing(pod: Object, target: Target) -> Slot:
    """The state of a pod whose resize is not in effect yet."""
    if reason := obstacle(pod):
        keeps = "It keeps its items, and the resources that it has"
        remedy = f"Free resources of its node, or to replace the pods, {target.rules.replace}"
        message = f"its node cannot resize it: {truncate(reason, MAX_MESSAGE)}. {keeps}. {remedy}"
        return _stuck(pod, c.APPLY_FAILED, message)
    return _slot(pod, State.BUSY, RESIZING)


def _needs_replacement(pod: Object, target: Target, origin: Origin) -> bool:
    """Whether only a new pod has what the target asks for, or a new pod costs nothing."""
    if origin.fixed != target.origin.fixed or observed.never_started(pod, target.containers[0]):
        return True
    old, new = target.annotations(pod), target.annotations(target.template)
    if any(_number(new[name]) < _number(old[name]) for name in target.rules.growing):
        return True
    if target.resize is None or not _has_other_amounts(target, origin, record_of(pod)):
        return False
    missing, has = _missing(pod, target.amounts()), spec_amounts(pod)
    lower = any(falls(found, has.get(name, {})) for name, found in missing.items())
    return bool(missing) and (target.resize is Resize.NONE or (target.resize is Resize.RAISE and lower))


def _has_other_amounts(target: Target, origin: Origin, record: Record | None) -> bool:
    """Whether a pod was created with other amounts, or an update may have changed them."""
    return origin.resources != target.origin.resources or (record is not None and (record.resized or record.lowers))


def _missing(pod: Object, wanted: dict[str, Amounts]) -> dict[str, Amounts]:
    """The amounts, by container, that the spec of a pod does not have."""
    has = spec_amounts(pod)
    return {name: found for name, found in wanted.items() if not has_amounts(has.get(name, {}), found)}


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) <= MAX_DIGITS else 0
