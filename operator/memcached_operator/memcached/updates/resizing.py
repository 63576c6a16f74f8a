"""The part of an update that changes requests and limits: higher ones before the rest, lower ones afterwards.

A resize restarts no container, so that it can be tried again without the loss of an item.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from memcached_api import conditions as c
from memcached_api.memcached.changes.resizing import Amounts
from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.findings.rollout import PROGRESS_DEADLINE
from memcached_operator.memcached.updates import patches
from memcached_operator.memcached.updates.amounts import (
    Obstacle,
    adds_memory_limit,
    allocated_amounts,
    amounts_in,
    effective_limits,
    has_amounts,
    is_in_effect,
    is_infeasible,
    lowers_memory_limit,
    names_of,
    obstacle,
    plain,
    spec_amounts,
)
from memcached_operator.memcached.updates.confirmation import SETTLED
from memcached_operator.memcached.updates.observed import never_started
from memcached_operator.memcached.updates.origin import Origin, origin_of
from memcached_operator.memcached.updates.record import UpdateRecord, age, next_try
from memcached_operator.memcached.updates.state import Slot, SlotState, slot_of, stuck, unknown
from memcached_operator.memcached.updates.target import Target
from memcached_operator.world.pod import Pod
from memcached_operator.world.snapshot import Resize

RESIZING: Final = "is being resized"
MINUTE: Final = timedelta(minutes=1)


def has_other_amounts(target: Target, origin: Origin, record: UpdateRecord) -> bool:
    """Whether a pod was created with other amounts, or an update may have changed them."""
    return origin.resources != target.origin.resources or record.amounts is not None or record.lowers


def needs_new_pod(pod: Pod, target: Target) -> bool:
    """Whether the cluster cannot give a pod the amounts of the target."""
    amounts, current = missing(pod, target.amounts()), spec_amounts(pod)
    lower = any(_limits_memory(desired, current.get(name, {})) for name, desired in amounts.items())
    return bool(amounts) and (target.resize is Resize.NONE or (target.resize is Resize.RAISE and lower))


def keeps_added(pod: Pod, target: Target, record: UpdateRecord) -> bool:
    """Whether a pod keeps an amount that an earlier update added, and that the target lacks: none can be removed."""
    current, desired = spec_amounts(pod), target.amounts()
    pairs = ((names_of(current[name]) - names_of(desired.get(name, {})), names) for name, names in record.added.items())
    return any(kept.intersection(names) for kept, names in pairs)


def _added(pod: Pod, target: Target, record: UpdateRecord) -> dict[str, list[str]]:
    """The names of the amounts, by container, that a pod gets although it did not have them before the update."""
    current = spec_amounts(pod)
    names = {
        name: sorted({*record.added.get(name, ()), *(names_of(amounts) - names_of(current[name]))})
        for name, amounts in target.amounts().items()
        if name in current
    }
    return {name: added for name, added in names.items() if added}


def _limits_memory(new: Amounts, old: Amounts) -> bool:
    """Whether a memory limit becomes lower, or is added."""
    return lowers_memory_limit(new, old) or adds_memory_limit(new, old)


def missing(pod: Pod, desired: Mapping[str, Amounts]) -> dict[str, Amounts]:
    """The amounts, by container, that the spec of a pod does not have."""
    current = spec_amounts(pod)
    return {name: amounts for name, amounts in desired.items() if not has_amounts(current.get(name, {}), amounts)}


def raising(pod: Pod, target: Target, desired: dict[str, Amounts], record: UpdateRecord, now: datetime) -> Slot | None:
    """The state of a pod that must have its higher amounts before anything else changes; None if it has them."""
    # Compared with the limits in effect: the spec of the pod can have a limit for which its node lacks memory.
    limits = effective_limits(pod)
    # A container that never ran has nothing that a lower limit could end.
    falling = {
        name
        for name, amounts in desired.items()
        if lowers_memory_limit(amounts, limits.get(name, {})) and not never_started(pod, name)
    }
    first = {name: amounts for name, amounts in desired.items() if name not in falling}
    if amounts := missing(pod, first):
        if record.revision != target.revision or record.amounts is None:
            step = patches.record(pod, _begun(pod, target, record, now))
        else:
            step = patches.resize(pod, amounts, target)
        return replace(slot_of(pod, SlotState.OUTDATED, RESIZING, step), keeps_memcached_running=True)
    if is_in_effect(pod, first):
        return None
    if not record.revision:  # another client has resized the pod, or removed the record
        created = _created_with(pod, target)
        new_record = UpdateRecord(target.revision, timestamp(now), amounts=created, ended=record.ended)
        step = patches.record(pod, new_record)
        return replace(slot_of(pod, SlotState.OUTDATED, RESIZING, step), keeps_memcached_running=True)
    return _waiting(pod, target, record, now)


def lowering(pod: Pod, target: Target, new_record: UpdateRecord | None) -> Slot:
    """The state of a pod that gets the amounts of the target now. `new_record`: the record afterwards.

    Nothing depends on when they are in effect: the node lowers a memory limit only when less memory is used. Where the
    cluster cannot lower it, it stays.
    """
    if target.resize is None:
        return unknown(pod)
    if amounts := _possible(pod, target, target.amounts()):
        return slot_of(pod, SlotState.UNFINISHED, RESIZING, patches.resize(pod, amounts, target))
    return slot_of(pod, SlotState.UNFINISHED, RESIZING, patches.record(pod, new_record))


def restoring(pod: Pod, target: Target, record: UpdateRecord) -> Slot | None:
    """The state of a pod whose update has failed until it has its previous amounts; None if it has them."""
    if record.amounts is None:
        return None
    if target.resize is None:
        return unknown(pod)
    if amounts := _possible(pod, target, _own(target, record.amounts)):
        step = patches.resize(pod, amounts, target)
        return slot_of(pod, SlotState.UNFINISHED, "is being restored to its previous resources", step)
    return None


def failed(pod: Pod, target: Target, record: UpdateRecord, now: datetime) -> Slot:
    """The state of a pod that has its previous amounts again, because its node could not resize it.

    The resize is tried again, if a write can: where a limit cannot be lowered, the pod asks for the new one already.
    """
    added = ", apart from added amounts," if record.added else ","
    message = f"{record.failed}. It uses its previous resources again{added} and its items are kept"
    if not missing(pod, target.amounts()):
        return stuck(pod, c.APPLY_FAILED, f"{message}. Request less in the spec. {target.rules.replacing}")
    at = next_try(record, now)
    if (left := (at - now).total_seconds()) > 0:
        message = f"{message}. The next try is at {timestamp(at)}. {_remedy(target)}"
        return stuck(pod, c.APPLY_FAILED, message, after=left)
    step = patches.record(pod, msgspec.structs.replace(record, since=timestamp(now), again=True))
    return stuck(pod, c.APPLY_FAILED, _trying(target, record), step=step)


def trying_again(slot: Slot, pod: Pod, target: Target, record: UpdateRecord) -> Slot:
    """The state of a pod whose resize is being tried again: it keeps its problem, so that no other pod follows."""
    problem = slot.problem or stuck(pod, c.APPLY_FAILED, _trying(target, record)).problem
    return replace(slot, problem=problem)


def _trying(target: Target, record: UpdateRecord) -> str:
    return f"{record.failed}. Its items are kept. It is being tried again. {_remedy(target)}"


def _remedy(target: Target) -> str:
    return f"If its node will not have enough resources, request less in the spec. {target.rules.replacing}"


def _begun(pod: Pod, target: Target, record: UpdateRecord, now: datetime) -> UpdateRecord:
    """The record before a resize. It keeps what must be restored if an image of an earlier update is missing."""
    return msgspec.structs.replace(
        record,
        revision=target.revision,
        since=timestamp(now),
        amounts=record.amounts or _own(target, spec_amounts(pod)),
        added=_added(pod, target, record),
        failed="",
        tries=0,
        again=False,
    )


def _created_with(pod: Pod, target: Target) -> dict[str, dict[str, dict[str, str]]]:
    """The amounts before the present update: the origin of a pod changes when an update is in effect."""
    created = origin_of(pod).resources
    return _own(target, {name: amounts_in(each) for name, each in created.items()})


def _waiting(pod: Pod, target: Target, record: UpdateRecord, now: datetime) -> Slot:
    """The state of a pod whose resize is not in effect yet."""
    waited = age(record, now)
    left = (PROGRESS_DEADLINE - waited).total_seconds()
    found = obstacle(pod)
    if found is not None and (lasts := found.lasts - waited.total_seconds()) > 0:
        return slot_of(pod, SlotState.BUSY, RESIZING, after=lasts)
    if found is None and left > 0:
        return slot_of(pod, SlotState.BUSY, RESIZING, after=left)
    late = f"the resize has not finished within {PROGRESS_DEADLINE // MINUTE} minutes"
    found = found or Obstacle(late)
    message = f"its node cannot resize it: {found.cause}"
    # Earlier, the condition can be about the previous resize, because the node may not have seen the latest one.
    settled_in = (SETTLED - waited).total_seconds() if is_infeasible(pod) else None
    if settled_in is not None and settled_in <= 0:
        step = patches.record(pod, _failed(pod, target, record, message, now))
        return slot_of(pod, SlotState.UNFINISHED, RESIZING, step)
    remedy = found.remedy or (patches.UNDO_ADDED if record.added else patches.UNDO)
    message = f"{message}. It keeps its items and its current resources. {remedy}. {target.rules.replacing}"
    return stuck(pod, c.APPLY_FAILED, message, after=settled_in)


def _failed(pod: Pod, target: Target, record: UpdateRecord, message: str, now: datetime) -> UpdateRecord:
    """The record of a resize that the node cannot make, with the amounts that the pod gets back."""
    previous = _own(target, record.amounts or {})
    if not missing(pod, previous):  # what an earlier update asked for, and the node refused then
        previous |= _own(target, allocated_amounts(pod))
    return msgspec.structs.replace(
        record,
        revision=target.revision,
        amounts=previous,
        since=timestamp(now),
        failed=message,
        reason=c.APPLY_FAILED,
        tries=record.tries + 1,
        again=False,
    )


def _own(target: Target, amounts: Mapping[str, Amounts]) -> dict[str, dict[str, dict[str, str]]]:
    """The amounts of the containers that the operator changes, in the form of a record."""
    return {name: plain(each) for name, each in amounts.items() if name in target.containers}


def _possible(pod: Pod, target: Target, amounts: Mapping[str, Amounts]) -> dict[str, Amounts]:
    """Those of the amounts that a pod does not have, and that the cluster can give it."""
    if target.resize is Resize.NONE:
        return {}
    current, lacking = spec_amounts(pod), missing(pod, amounts)
    if target.resize is Resize.ANY:
        return lacking
    return {name: desired for name, desired in lacking.items() if not _limits_memory(desired, current.get(name, {}))}
