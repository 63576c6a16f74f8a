"""The record of an update in place: an annotation that the controller writes to a pod, and removes at the end.

Another client can change it, so everything in it is checked when it is read.
"""

import re
from datetime import datetime, timedelta
from typing import Final

import msgspec

from memcached_api import conditions as c
from memcached_api.annotations import RECORD_ANNOTATION
from memcached_api.image import is_reference
from memcached_api.memcached.changes.resizing import PARTS, are_amounts
from memcached_operator.kube import texts
from memcached_operator.kube.times import time_of
from memcached_operator.world.pod import Pod, Terminated

MAX_MESSAGE: Final = 700
"""Characters of a message in a record: more than the longest one, so that none is cut within quotes."""

LONG_AGO: Final = timedelta(days=365)
NOTHING: Final = object()
"""Equals no containerID."""
MAX_SKEW: Final = timedelta(seconds=60)
"""The maximum by which the clock of another leader can be fast."""

FIRST_PERIOD: Final = timedelta(minutes=1)
LAST_PERIOD: Final = timedelta(minutes=30)
MAX_DOUBLINGS: Final = 5
"""The back-off of a failed resize: a resize restarts nothing, so a try costs no item."""

_REVISION: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
"""A value of a label."""


class Ran(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a container before an update that restarts it.

    `id`: the containerID. `image`: the imageID, if the update changes the image and the next one can be told from it.
    `args`: the update changes the arguments.
    """

    id: str
    image: str = ""
    args: bool = False


class Before(msgspec.Struct, frozen=True):
    """The state of a pod before an update, to restore it. `annotations`: None if the pod had none of this name.

    `revision`: empty if another client had removed the label.
    """

    revision: str
    images: dict[str, str]
    annotations: dict[str, str | None]


class UpdateRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """An update of a pod to a revision of its template.

    `since`: when it was written. `restarts`: the containers that restart. `before`: what to restore if an image is not
    available. `amounts`: the requests and limits of the containers before they were changed. `lowers`: its limits
    become lower when the rest is in effect. `failed`: why the pod was restored, with a reason for Degraded. `tries`:
    the resizes that have failed. `again`: the resize is tried once more. `ended`: the containerIDs of the containers
    that an earlier update has ended, by name. `added`: the names of the requests and limits that it or an earlier
    update adds, such as `limits.cpu`, by container.
    """

    revision: str
    since: str = ""
    restarts: dict[str, Ran] = {}
    before: Before | None = None
    amounts: dict[str, dict[str, dict[str, str]]] | None = None
    lowers: bool = False
    failed: str = ""
    reason: str = c.IMAGE_UNAVAILABLE
    tries: int = 0
    again: bool = False
    ended: dict[str, str] = {}
    added: dict[str, list[str]] = {}


NO_RECORD: Final = UpdateRecord("")
"""The record of a pod that is not being updated. No valid record has an empty revision."""


def record_of(pod: Pod) -> UpdateRecord:
    """The record of a pod; NO_RECORD without a valid one."""
    try:
        record = _RECORDS.decode(pod.metadata.annotations.get(RECORD_ANNOTATION, ""))
    except (msgspec.MsgspecError, RecursionError):  # deeply nested JSON: another client can change the annotation
        return NO_RECORD
    if not _is_valid(record, {container.name for container in pod.spec.containers}):
        return NO_RECORD
    return msgspec.structs.replace(record, failed=texts.kept(record.failed, MAX_MESSAGE))


def is_unreadable(pod: Pod) -> bool:
    """Whether a pod has an annotation for the record that is none."""
    return RECORD_ANNOTATION in pod.metadata.annotations and record_of(pod) is NO_RECORD


def age(record: UpdateRecord, now: datetime) -> timedelta:
    """The time since a record was written. LONG_AGO without a valid time, so that nothing waits for it."""
    written = time_of(record.since)
    return LONG_AGO if written is None or written > now + MAX_SKEW else min(LONG_AGO, max(timedelta(), now - written))


def next_try(record: UpdateRecord, now: datetime) -> datetime:
    """The time at which a failed resize is tried again: after 1, 2, 4 … 30 minutes."""
    period = FIRST_PERIOD * 2 ** min(max(record.tries - 1, 0), MAX_DOUBLINGS)
    return now - age(record, now) + min(period, LAST_PERIOD)


def is_end_of(record: UpdateRecord, container: str, terminated: Terminated) -> bool:
    """Whether a container ended because of an update: it is the one that ran before, and has not failed."""
    if terminated.exit_code != 0 or not terminated.container_id:
        return False
    ran = record.restarts.get(container)
    return terminated.container_id in (record.ended.get(container, NOTHING), ran.id if ran else NOTHING)


def is_planned_end(pod: Pod, container: str, terminated: Terminated) -> bool:
    """Whether an update of a pod in place has ended a container."""
    return is_end_of(record_of(pod), container, terminated)


def ends(pod: Pod, record: UpdateRecord) -> dict[str, str]:
    """The containerIDs of the last containers that an update has ended, by name."""
    last = ((each.name, each.last_state.terminated) for each in pod.status.container_statuses)
    return {name: end.container_id for name, end in last if end is not None and is_end_of(record, name, end)}


def annotation(record: UpdateRecord | None) -> dict[str, str | None]:
    """The annotation in a patch; None removes it."""
    return {RECORD_ANNOTATION: None if record is None else msgspec.json.encode(record).decode()}


def _is_valid(record: UpdateRecord, names: set[str]) -> bool:
    images = record.before.images if record.before else {}
    return (
        _REVISION.fullmatch(record.revision) is not None
        and (record.before is None or _REVISION.fullmatch(record.before.revision or "none") is not None)
        and {*record.restarts, *images, *(record.amounts or {}), *record.ended, *record.added} <= names
        and all(map(is_reference, images.values()))
        and are_amounts(record.amounts or {})
        and all(amounts.keys() <= set(PARTS) for amounts in (record.amounts or {}).values())
        and record.reason in (c.IMAGE_UNAVAILABLE, c.APPLY_FAILED)
    )


_RECORDS: Final = msgspec.json.Decoder(UpdateRecord)
