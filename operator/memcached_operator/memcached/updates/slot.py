"""Assesses the pod of a slot: its state, and the next step of its update."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

import msgspec

from memcached_api import conditions as c
from memcached_api.resizing import Amounts
from memcached_operator.kind import PodStep, Problem, Resize
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.updates import confirmation, observed, patches
from memcached_operator.memcached.updates.amounts import (
    effective_limits,
    has_amounts,
    is_in_effect,
    is_infeasible,
    lowers_memory_limit,
    obstacle,
    plain,
    spec_amounts,
)
from memcached_operator.memcached.updates.confirmation import SETTLED, Wait
from memcached_operator.memcached.updates.origin import Origin, origin_of
from memcached_operator.memcached.updates.record import MAX_MESSAGE, UpdateRecord, age, ends, is_unreadable, record_of
from memcached_operator.memcached.updates.target import Target
from memcached_operator.status.conditions import timestamp, truncate
from memcached_operator.workloads.rollout import PROGRESS_DEADLINE
from memcached_operator.workloads.times import earliest

RESIZING: Final = "is being resized"
MAX_DIGITS: Final = 10
"""Digits of a number in an annotation."""
UNKNOWN: Final = 60.0
"""Seconds until a pod is considered again whose next step depends on what the API server serves."""
MINUTE: Final = timedelta(minutes=1)


class SlotState(Enum):
    """The state of the pod of a slot."""

    DONE = "done"
    """It is updated and available. A step only removes its record."""
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

    `changing`: its update, or an earlier one, has begun and is not completed. `broken`: it is outdated, and cannot
    become ready. `failing`: it is updated, and cannot become ready. `keeps_memcached_running`: its step does not touch
    the first container. `in_flight`: an earlier step may still restart it. `ready`: it is available. `requeue_after`:
    seconds until it may be, or until that step is not waited for any more.
    """

    name: str
    state: SlotState
    doing: str = ""
    step: PodStep | None = None
    problem: Problem | None = None
    begun: bool = False
    changing: bool = False
    broken: bool = False
    failing: bool = False
    keeps_memcached_running: bool = False
    in_flight: bool = False
    ready: bool = False
    requeue_after: float | None = None

    @property
    def moving(self) -> bool:
        """Whether its pod is being changed."""
        return self.state is SlotState.BUSY or self.in_flight

    @property
    def disturbed(self) -> bool:
        """Whether its pod is being changed, or is not ready: it counts for the limit of slots at once."""
        return self.moving or not self.ready


def assess(pod: Object, target: Target, now: datetime) -> Slot:
    """The state of a pod that is not being deleted."""
    left = observed.until_available(pod, target.min_ready, now)
    updated = _has_revision(pod, target)
    slot = _labelled(pod, target, left, now) if updated else _outdated(pod, target, now)
    failing = updated and slot.state is SlotState.BUSY and confirmation.is_failing(pod, target, now)
    return replace(slot, ready=left == 0, failing=failing, requeue_after=earliest((slot.requeue_after, left)))


def _has_revision(pod: Object, target: Target) -> bool:
    """Whether a pod has the revision of the target. Its label and its origin are always written together.

    So a pod with the label and with another valid origin was labelled by another client.
    """
    return observed.revision_of(pod) == target.revision and origin_of(pod) in (None, target.origin)


def _slot(
    pod: Object, state: SlotState, doing: str = "", step: PodStep | None = None, after: float | None = None
) -> Slot:
    return Slot(pod["metadata"]["name"], state, doing, step, requeue_after=after)


def _stuck(pod: Object, reason: str, message: str) -> Slot:
    name = pod["metadata"]["name"]
    return Slot(name, SlotState.STUCK, "cannot be updated", problem=Problem(reason, f"Pod {name}: {message}"))


def _labelled(pod: Object, target: Target, left: float | None, now: datetime) -> Slot:
    """The state of a pod with the revision of the target."""
    record = record_of(pod)
    if record is not None and record.revision != target.revision:
        return _abandoned(pod, target, record)
    if record is not None:
        if (failure := confirmation.image_failure(pod, record)) and record.before is not None:
            step = patches.restore(pod, target, record, record.before, failure, now)
            return _slot(pod, SlotState.UNFINISHED, "is being restored to its previous image", step)
        if wait := confirmation.unconfirmed(pod, record, target, now):
            if step := patches.annotate(pod, target):  # without its arguments, memcached cannot start
                return _slot(pod, SlotState.UNFINISHED, "gets its annotations back", step)
            return _waiting(pod, target, record, wait, now)
        if record.lowers:
            return _lowering(pod, target, msgspec.structs.replace(record, lowers=False))
    if step := patches.annotate(pod, target):
        return replace(_slot(pod, SlotState.OUTDATED, "gets its annotations back", step), keeps_memcached_running=True)
    if left != 0:
        return _slot(pod, SlotState.BUSY, "is not ready yet")
    if record is None:
        return _slot(pod, SlotState.DONE, step=patches.record(pod, None) if is_unreadable(pod) else None)
    return _confirmed(pod, record, now)


def _waiting(pod: Object, target: Target, record: UpdateRecord, wait: Wait, now: datetime) -> Slot:
    """The state of a pod whose update is not confirmed."""
    problem, left = confirmation.overdue(pod, record, target, wait, now)
    if problem:
        message = f"{problem}. To replace it, delete it; its items are then lost"
        return replace(_stuck(pod, c.PROGRESS_DEADLINE_EXCEEDED, message), requeue_after=wait.seconds)
    return _slot(pod, SlotState.BUSY, wait.doing, after=min(left, wait.seconds or left))


def _confirmed(pod: Object, record: UpdateRecord, now: datetime) -> Slot:
    """The state of a pod whose update is in effect: its record is removed when nothing needs it any more."""
    if after := confirmation.is_forgettable(pod, record, now):
        return _slot(pod, SlotState.DONE, after=after)
    return _slot(pod, SlotState.DONE, step=patches.record(pod, None))


def _abandoned(pod: Object, target: Target, record: UpdateRecord) -> Slot:
    """The state of a pod whose update to another revision was not completed, or failed."""
    new_record = None
    if record.restarts:
        new_record = UpdateRecord(target.revision, record.since, record.restarts)
    if record.amounts is not None or record.lowers:
        return _lowering(pod, target, new_record)
    return _slot(pod, SlotState.UNFINISHED, "is no longer being updated", patches.record(pod, new_record))


def _lowering(pod: Object, target: Target, new_record: UpdateRecord | None) -> Slot:
    """The state of a pod that gets the amounts of the target now. `new_record`: the record afterwards.

    Nothing depends on when they are in effect: the node lowers a memory limit only when less memory is used. Where the
    cluster cannot lower it, it stays.
    """
    if target.resize is None:
        return _unknown(pod)
    if missing := _possible(pod, target, target.amounts()):
        return _slot(pod, SlotState.UNFINISHED, RESIZING, patches.resize(pod, missing, target.rules.replace))
    return _slot(pod, SlotState.UNFINISHED, RESIZING, patches.record(pod, new_record))


def _possible(pod: Object, target: Target, amounts: dict[str, Amounts]) -> dict[str, Amounts]:
    """Those of the amounts that a pod does not have, and that the cluster can give it."""
    if target.resize is Resize.NONE:
        return {}
    current, missing = spec_amounts(pod), _missing(pod, amounts)
    if target.resize is Resize.ANY:
        return missing
    return {
        name: desired for name, desired in missing.items() if not lowers_memory_limit(desired, current.get(name, {}))
    }


def _outdated(pod: Object, target: Target, now: datetime) -> Slot:
    """The state of a pod with another revision than the target."""
    record, origin = record_of(pod), origin_of(pod)
    begun = record is not None and record.revision == target.revision
    if record is not None and begun and record.failed:
        return _failed(pod, target, record)
    if record is not None and not begun and _is_complete(pod, target, record, now):
        record = UpdateRecord("", ended=ends(pod, record))
    flight = confirmation.in_flight(pod, record, target, now) if record else 0
    if origin is None or origin.images.keys() != target.origin.images.keys() or _needs_replacement(pod, target, origin):
        slot = _slot(pod, SlotState.OUTDATED, "is being replaced", patches.delete(pod))
    elif restarting := max(flight, observed.restarting(pod, now)):  # so that the kubelet sees each step
        slot = _slot(pod, SlotState.BUSY, "restarts", after=restarting)
    else:
        slot = _in_place(pod, target, origin, record, now)
    left = observed.until_broken(pod, target.containers, target.warm_up, now)
    changing = record is not None and bool(record.revision)
    after = earliest((slot.requeue_after, left, flight))
    slot = replace(slot, begun=begun, changing=changing, in_flight=flight > 0)
    return replace(slot, broken=left == 0, requeue_after=after)


def _is_complete(pod: Object, target: Target, record: UpdateRecord, now: datetime) -> bool:
    """Whether a record is of an earlier update that is in effect, so that nothing depends on it."""
    is_open = bool(record.failed) or record.lowers or record.revision != observed.revision_of(pod)
    return not is_open and confirmation.unconfirmed(pod, record, target, now) is None


def _failed(pod: Object, target: Target, record: UpdateRecord) -> Slot:
    """The state of a pod that was restored, and gets the resources back that it had."""
    if record.amounts is not None and target.resize is None:
        return _unknown(pod)
    previous: dict[str, Amounts] = {
        name: amounts for name, amounts in (record.amounts or {}).items() if name in target.containers
    }
    if previous := _possible(pod, target, previous):
        step = patches.resize(pod, previous, target.rules.replace)
        return _slot(pod, SlotState.UNFINISHED, "is being restored to its previous resources", step)
    restored = "image" if record.reason == c.IMAGE_UNAVAILABLE else "resources"
    message = f"{record.failed}. It uses its previous {restored} again, and its items are kept"
    if record.reason == c.APPLY_FAILED:
        message += f". Request less in the spec, or {target.rules.replace} to replace the pods"
    return _stuck(pod, record.reason, message)


def _in_place(pod: Object, target: Target, origin: Origin, record: UpdateRecord | None, now: datetime) -> Slot:
    """The next step of an update in place, if the kubelet has made the one before."""
    desired = target.amounts() if _has_other_amounts(target, origin, record) else {}
    if desired and target.resize is None:
        return _unknown(pod)
    # Compared with the limits in effect: the spec of the pod can have a limit for which its node lacks memory.
    limits = effective_limits(pod)
    falling = {name for name, amounts in desired.items() if lowers_memory_limit(amounts, limits.get(name, {}))}
    first = {name: amounts for name, amounts in desired.items() if name not in falling}
    if missing := _missing(pod, first):
        if record is None or record.revision != target.revision or record.amounts is None:
            step = patches.record(pod, _begun(pod, target, record, now))
        else:
            step = patches.resize(pod, missing, target.rules.replace)
        return replace(_slot(pod, SlotState.OUTDATED, RESIZING, step), keeps_memcached_running=True)
    if not is_in_effect(pod, first):
        if record is None or not record.revision:  # another client has resized the pod, or removed the record
            ended = record.ended if record else {}
            step = patches.record(pod, UpdateRecord(target.revision, timestamp(now), ended=ended))
            return replace(_slot(pod, SlotState.OUTDATED, RESIZING, step), keeps_memcached_running=True)
        return _resizing(pod, target, record, now)
    lowers = bool(_missing(pod, desired))
    change = patches.change(pod, target, origin, record or UpdateRecord(""), now, lowers=lowers)
    changed = _slot(pod, SlotState.OUTDATED, "is being updated", change.step)
    return replace(changed, keeps_memcached_running=change.keeps_memcached_running)


def _unknown(pod: Object) -> Slot:
    """The state of a pod whose next step depends on whether the cluster can resize pods."""
    return _slot(pod, SlotState.BUSY, "waits until the API server reports which APIs it serves", after=UNKNOWN)


def _begun(pod: Object, target: Target, record: UpdateRecord | None, now: datetime) -> UpdateRecord:
    """The record before a resize. It keeps what must be restored if an image of an earlier update is missing."""
    current = record or UpdateRecord(target.revision)
    own = {name: plain(amounts) for name, amounts in spec_amounts(pod).items() if name in target.containers}
    amounts = current.amounts or own
    return msgspec.structs.replace(current, revision=target.revision, since=timestamp(now), amounts=amounts, failed="")


def _resizing(pod: Object, target: Target, record: UpdateRecord, now: datetime) -> Slot:
    """The state of a pod whose resize is not in effect yet."""
    left = (PROGRESS_DEADLINE - age(record, now)).total_seconds()
    reason = obstacle(pod) or (
        f"the resize has not finished within {PROGRESS_DEADLINE // MINUTE} minutes" if left <= 0 else ""
    )
    if not reason:
        return _slot(pod, SlotState.BUSY, RESIZING, after=left)
    message = f"its node cannot resize it: {truncate(reason, MAX_MESSAGE)}"
    # Earlier, the condition can be about the previous resize, because the node may not have seen the latest one.
    settled_in = (SETTLED - age(record, now)).total_seconds() if record.amounts and is_infeasible(pod) else None
    if settled_in is not None and settled_in <= 0:
        failed = msgspec.structs.replace(record, revision=target.revision, failed=message, reason=c.APPLY_FAILED)
        return _slot(pod, SlotState.UNFINISHED, RESIZING, patches.record(pod, failed))
    keeps = "It keeps its items and its current resources"
    remedy = f"Free resources on its node, or {target.rules.replace} to replace the pods"
    slot = _stuck(pod, c.APPLY_FAILED, f"{message}. {keeps}. {remedy}")
    return replace(slot, requeue_after=settled_in)


def _needs_replacement(pod: Object, target: Target, origin: Origin) -> bool:
    """Whether only a new pod has what the target asks for, or a new pod costs nothing."""
    if origin.fixed != target.origin.fixed or observed.never_started(pod, target.containers[0]):
        return True
    old, new = target.annotations(pod), target.annotations(target.template)
    if any(_number(new[name]) < _number(old[name]) for name in target.rules.growing):
        return True
    if target.resize is None or not _has_other_amounts(target, origin, record_of(pod)):
        return False
    missing, current = _missing(pod, target.amounts()), spec_amounts(pod)
    lower = any(lowers_memory_limit(amounts, current.get(name, {})) for name, amounts in missing.items())
    return bool(missing) and (target.resize is Resize.NONE or (target.resize is Resize.RAISE and lower))


def _has_other_amounts(target: Target, origin: Origin, record: UpdateRecord | None) -> bool:
    """Whether a pod was created with other amounts, or an update may have changed them."""
    changed = record is not None and (record.amounts is not None or record.lowers)
    return origin.resources != target.origin.resources or changed


def _missing(pod: Object, desired: dict[str, Amounts]) -> dict[str, Amounts]:
    """The amounts, by container, that the spec of a pod does not have."""
    current = spec_amounts(pod)
    return {name: amounts for name, amounts in desired.items() if not has_amounts(current.get(name, {}), amounts)}


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) <= MAX_DIGITS else 0
