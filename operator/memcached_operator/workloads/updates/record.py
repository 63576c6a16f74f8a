"""The record of an update in place: an annotation that the controller writes to a pod."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from memcached_operator.kube.resource import nested_list, nested_map
from memcached_operator.status.conditions import truncate

RECORD_ANNOTATION: Final = "memcached-operator.example.com/update"

MAX_MESSAGE: Final = 400
"""Characters of an error message that are recorded."""


class Before(msgspec.Struct, frozen=True):
    """What a pod had before: to restore it. `annotations`: None: the pod had none of this name."""

    revision: str
    images: dict[str, str]
    annotations: dict[str, str | None]


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """An update of a pod to a revision of its template.

    `restarts`: the restart counts before of the containers that restart. `ready_since`: the time at which the pod
    became ready before, if it becomes ready again when the update is in effect. `before`: what to restore if an image
    is not available. `resized`: its resources may have been changed without the rest. `lowers`: its limits become lower
    when the rest is in effect. `failed`: why the pod was restored.
    """

    revision: str
    restarts: dict[str, int] = {}
    ready_since: str | None = None
    before: Before | None = None
    resized: bool = False
    lowers: bool = False
    failed: str = ""


def record_of(pod: Mapping[str, Any]) -> Record | None:
    """The record of a pod; None without one, or if another client changed it."""
    try:
        found = _RECORDS.decode(nested_map(pod, "metadata", "annotations").get(RECORD_ANNOTATION, ""))
    except (msgspec.MsgspecError, RecursionError):
        return None
    names = {each["name"] for each in nested_list(pod, "spec", "containers")}
    known = {name: count for name, count in found.restarts.items() if name in names}
    return msgspec.structs.replace(found, restarts=known, failed=truncate(" ".join(found.failed.split()), MAX_MESSAGE))


def annotation(record: Record | None) -> dict[str, str | None]:
    """The annotation in a patch; None removes it."""
    return {RECORD_ANNOTATION: None if record is None else msgspec.json.encode(record).decode()}


_RECORDS: Final = msgspec.json.Decoder(Record)
