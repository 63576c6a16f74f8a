"""Assesses the pod of a slot: its state, and the next step of its update."""

from dataclasses import replace
from datetime import datetime
from typing import Final

import msgspec

from memcached_api import conditions as c
from memcached_operator.kube import texts
from memcached_operator.kube.times import earliest
from memcached_operator.memcached.updates import confirmation, observed, patches, resizing
from memcached_operator.memcached.updates.confirmation import Wait
from memcached_operator.memcached.updates.origin import NO_ORIGIN, Origin, origin_of
from memcached_operator.memcached.updates.record import NO_RECORD, UpdateRecord, ends, is_unreadable, record_of
from memcached_operator.memcached.updates.resizing import has_other_amounts
from memcached_operator.memcached.updates.state import Slot, SlotState, slot_of, stuck, unknown
from memcached_operator.memcached.updates.target import Target
from memcached_operator.world.pod import Pod

REPLACING: Final = "is being replaced"

MAX_IMAGE: Final = 255
"""Characters of an image in a message."""
MAX_DIGITS: Final = 10
"""Digits of a number in an annotation."""


def assess(pod: Pod, target: Target, now: datetime) -> Slot:
    """The state of a pod that is not being deleted."""
    left = observed.seconds_until_available(pod, target.min_ready, now)
    updated = _has_revision(pod, target)
    slot = _labelled(pod, target, left, now) if updated else _outdated(pod, target, now)
    failing = updated and slot.state is SlotState.BUSY and confirmation.is_failing(pod, target, now)
    return replace(slot, ready=left == 0, failing=failing, requeue_after=earliest((slot.requeue_after, left)))


def is_lost(pod: Pod, target: Target) -> bool:
    """Whether an update to the target replaces a pod that may have items."""
    origin = origin_of(pod)
    has_run = not observed.never_started(pod, target.containers[0])
    return has_run and _needs_replacement(pod, target, origin)


def _has_revision(pod: Pod, target: Target) -> bool:
    """Whether a pod has the revision of the target. Its label and its origin are always written together.

    So a pod with the label and with another valid origin was labelled by another client.
    """
    origin = origin_of(pod)
    return observed.revision_of(pod) == target.revision and (origin is NO_ORIGIN or origin == target.origin)


def _labelled(pod: Pod, target: Target, left: float | None, now: datetime) -> Slot:
    """The state of a pod with the revision of the target."""
    record = record_of(pod)
    if record is not NO_RECORD and record.revision != target.revision:
        return _abandoned(pod, target, record)
    if record is not NO_RECORD:
        if (failure := confirmation.image_failure(pod, record)) and record.before is not None:
            step = patches.restore(pod, target, record, record.before, failure, now)
            return slot_of(pod, SlotState.UNFINISHED, "is being restored to its previous image", step)
        if wait := confirmation.unconfirmed(pod, record, target, now):
            if step := patches.annotate(pod, target):  # without its arguments, memcached cannot start
                return slot_of(pod, SlotState.UNFINISHED, "gets its annotations back", step)
            return _waiting(pod, target, record, wait, now)
        if record.lowers:
            return resizing.lowering(pod, target, msgspec.structs.replace(record, lowers=False))
    if step := patches.annotate(pod, target):
        slot = slot_of(pod, SlotState.OUTDATED, "gets its annotations back", step)
        return replace(slot, keeps_memcached_running=True)
    if left != 0:
        return slot_of(pod, SlotState.BUSY, "is not ready yet")
    if record is NO_RECORD:
        return slot_of(pod, SlotState.DONE, step=patches.record(pod, None) if is_unreadable(pod) else None)
    return _confirmed(pod, record, now)


def _waiting(pod: Pod, target: Target, record: UpdateRecord, wait: Wait, now: datetime) -> Slot:
    """The state of a pod whose update is not confirmed."""
    problem, left = confirmation.overdue(pod, record, target, wait, now)
    if problem:
        return stuck(pod, c.PROGRESS_DEADLINE_EXCEEDED, problem, after=wait.seconds)
    return slot_of(pod, SlotState.BUSY, wait.doing, after=earliest((left, wait.seconds)))


def _confirmed(pod: Pod, record: UpdateRecord, now: datetime) -> Slot:
    """The state of a pod whose update is in effect: its record is removed when nothing needs it any more."""
    if after := confirmation.seconds_until_forgettable(pod, record, now):
        return slot_of(pod, SlotState.DONE, after=after)
    return slot_of(pod, SlotState.DONE, step=patches.record(pod, None))


def _abandoned(pod: Pod, target: Target, record: UpdateRecord) -> Slot:
    """The state of a pod whose update to another revision was not completed, or failed."""
    if resizing.keeps_added(pod, target, record):
        return slot_of(pod, SlotState.OUTDATED, REPLACING, patches.delete(pod))
    new_record = None
    if record.restarts:
        new_record = UpdateRecord(target.revision, record.since, record.restarts)
    if record.amounts is not None or record.lowers:
        return resizing.lowering(pod, target, new_record)
    return slot_of(pod, SlotState.UNFINISHED, "is no longer being updated", patches.record(pod, new_record))


def _outdated(pod: Pod, target: Target, now: datetime) -> Slot:
    """The state of a pod with another revision than the target."""
    record, origin = record_of(pod), origin_of(pod)
    begun = record.revision == target.revision
    if begun and record.failed and not record.again:
        return _failed(pod, target, record, now)
    if not begun and _is_complete(pod, target, record, now):
        record = UpdateRecord("", ended=ends(pod, record))
    unseen = confirmation.seconds_until_seen(pod, record, target, now)
    if _needs_replacement(pod, target, origin) or observed.never_started(pod, target.containers[0]):
        slot = slot_of(pod, SlotState.OUTDATED, REPLACING, patches.delete(pod))
    elif restarting := max(unseen, observed.seconds_until_restarted(pod, now)):  # so that the kubelet sees each step
        slot = slot_of(pod, SlotState.BUSY, "restarts", after=restarting)
    else:
        slot = _in_place(pod, target, origin, record, now)
    left = observed.seconds_until_broken(pod, target.containers, target.warm_up, now)
    after = earliest((slot.requeue_after, left, unseen))
    slot = replace(slot, begun=begun, changing=bool(record.revision), in_flight=unseen > 0)
    return replace(slot, broken=left == 0, requeue_after=after)


def _is_complete(pod: Pod, target: Target, record: UpdateRecord, now: datetime) -> bool:
    """Whether a record is of an earlier update that is in effect, so that nothing depends on it."""
    is_open = bool(record.failed) or record.lowers or record.revision != observed.revision_of(pod)
    return not is_open and confirmation.unconfirmed(pod, record, target, now) is None


def _failed(pod: Pod, target: Target, record: UpdateRecord, now: datetime) -> Slot:
    """The state of a pod that was restored, and gets the resources back that it had."""
    if slot := resizing.restoring(pod, target, record):
        return slot
    if record.reason == c.APPLY_FAILED:
        return resizing.failed(pod, target, record, now)
    message = f"{record.failed}. It uses its previous image again, and its items are kept"
    return stuck(pod, record.reason, f"{message}. {_image_remedy(pod, target)}")


def _image_remedy(pod: Pod, target: Target) -> str:
    """The remedy for an image that is missing. Admission of the cluster may change only the images of new pods."""
    created_from = origin_of(pod).images
    for container in pod.spec.containers:
        name, image = container.name, container.image
        if created_from.get(name, image) != image:
            written, actual = (texts.name(text, MAX_IMAGE) for text in (created_from[name], image))
            changed = f"When this pod was created, the cluster's admission replaced the image {written} with {actual}"
            kept = "but it does not replace images of existing pods. Correct the image if it does not exist"
            return f"{changed}, {kept}. {target.rules.replacing}"
    return f"Correct the image. To try the same image again, set the previous one first. {target.rules.replacing}"


def _in_place(pod: Pod, target: Target, origin: Origin, record: UpdateRecord, now: datetime) -> Slot:
    """The next step of an update in place, if the kubelet has made the one before."""
    desired = target.amounts() if has_other_amounts(target, origin, record) else {}
    if desired and target.resize is None:
        return unknown(pod)
    if slot := resizing.raising(pod, target, desired, record, now):
        again = record.again and record.revision == target.revision
        return resizing.trying_again(slot, pod, target, record) if again else slot
    lowers = bool(resizing.missing(pod, desired))
    change = patches.change(pod, target, origin, record, now, lowers=lowers)
    changed = slot_of(pod, SlotState.OUTDATED, "is being updated", change.step)
    return replace(changed, keeps_memcached_running=change.keeps_memcached_running)


def _needs_replacement(pod: Pod, target: Target, origin: Origin) -> bool:
    """Whether only a new pod has what the target asks for."""
    if not target.accepts(origin):
        return True
    old, new = target.annotations(pod.metadata.annotations), target.desired
    if any(_number(new[name]) < _number(old[name]) for name in target.rules.growing):
        return True
    record = record_of(pod)
    if resizing.keeps_added(pod, target, record):
        return True
    if target.resize is None or not has_other_amounts(target, origin, record):
        return False
    return resizing.needs_new_pod(pod, target)


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) <= MAX_DIGITS else 0
