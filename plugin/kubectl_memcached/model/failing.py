"""Whether memcached fails with an image: by the pods of a cache, and the reason of its condition Degraded."""

import json
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any, Final, cast

from kubectl_memcached.model import units
from kubectl_memcached.model.conditions import condition
from kubectl_memcached.model.objects import EMPTY, Object, first, integer, mapping, objects, text
from kubectl_memcached.model.pods import AGENT, CREATING, MEMCACHED, STARTING

UNAVAILABLE: Final = "ImageUnavailable"
OVERDUE: Final = "ProgressDeadlineExceeded"
REASONS: Final = (UNAVAILABLE, "PodsCrashing", OVERDUE)
"""The reasons of Degraded that another image can end. A more severe one, such as Conflict, can hide them."""
RECORD: Final = "memcached-operator.example.com/update"
"""The annotation of a pod with the operator's record of its update in place, as JSON."""
BACK_OFF: Final = "CrashLoopBackOff"
DELAY: Final = 60.0
"""Seconds by which the operator can report a crash later than its node, with the difference of their clocks."""


def is_possible(cr: Object) -> bool:
    """Whether an image can be a cause of the problem of a cache, so that its pods show it."""
    return condition(cr, "Degraded").status == "True"


def signs(cr: Object, pods: Iterable[Object], image: str, before: str = "") -> frozenset[str]:
    """The signs that memcached fails with an image; empty if the problem of the cache has another cause.

    A sign stays the same while a pod has the same failed container, or the same failed update. `image`: empty for any.
    `before`: the image of the pods that do not have it yet.
    """
    degraded = condition(cr, "Degraded")
    if not is_possible(cr):
        return frozenset()
    known = [each for each in pods if not text(each, "metadata", "deletionTimestamp")]
    known = [each for each in known if text(each, "status", "phase") not in ("Succeeded", "Failed")]
    # The time of another reason says nothing: then a container that is ready again does not count.
    since = (units.seconds(degraded.since) or 0.0) - DELAY if degraded.reason in REASONS else inf
    return frozenset(
        f"{text(pod, 'metadata', 'uid')}/{sign}"
        for pod in known
        for sign in _signs(pod, since, degraded.reason, has_image=_has_image(pod, image, before))
    )


def _has_image(pod: Object, image: str, before: str) -> bool:
    """Whether a pod has an image. Admission of the cluster can have replaced its registry by that of a mirror."""
    own = _image(pod)
    if "@" not in image:  # admission can have added a digest
        own, before = own.partition("@")[0], before.partition("@")[0]
    return not image or own == image or (own != before and own.rpartition("/")[2] == image.rpartition("/")[2])


def _image(pod: Object) -> str:
    return text(first(objects(pod, "spec", "containers"), "name", MEMCACHED), "image")


def _signs(pod: Object, since: float, reason: str, *, has_image: bool) -> Iterator[str]:
    """The signs of a pod. `since`: an earlier crash does not count if memcached is ready again."""
    record = _record(pod)
    if reason == UNAVAILABLE and _is_taken_back(record):
        yield text(record, "revision")
    if not has_image:
        return
    # The containers that the update itself has ended had the image before.
    old = {text(record, "restarts", MEMCACHED, "id"), text(record, "ended", MEMCACHED)} - {""}
    status = _status(pod, MEMCACHED)
    failed = _failed(status, since)
    found = [failed, text(status, "containerID") if reason == OVERDUE and _is_late(pod) else None]
    yield from (each or _image(pod) for each in found if each is not None and each not in old)


def _is_taken_back(record: Object) -> bool:
    """Whether the operator has restored the image before, because the one of memcached could not be pulled."""
    is_image = record.get("reason", UNAVAILABLE) == UNAVAILABLE and MEMCACHED in mapping(record, "restarts")
    return is_image and bool(text(record, "failed"))


def _record(pod: Object) -> Object:
    """The record of the update of a pod; empty without one. Another client can have changed it."""
    try:
        found: Any = json.loads(text(pod, "metadata", "annotations", RECORD))
    except (ValueError, RecursionError):
        return EMPTY
    return cast("Object", found) if isinstance(found, Mapping) else EMPTY


def _status(pod: Object, container: str) -> Object:
    return first(objects(pod, "status", "containerStatuses"), "name", container)


def _failed(status: Object, since: float) -> str | None:
    """The ID of the container that has crashed; empty if the next one cannot be created. None without a failure."""
    reason = text(status, "state", "waiting", "reason")
    if reason not in ("", BACK_OFF):
        return None if reason in STARTING else ""
    ended = mapping(status, "state", "terminated") or mapping(status, "lastState", "terminated")
    if not reason and integer(ended, "exitCode") in (None, 0):
        return None
    is_running = "running" in mapping(status, "state") and status.get("ready") is True
    is_over = is_running and (units.seconds(text(ended, "finishedAt")) or 0.0) < since
    return None if is_over else text(ended, "containerID")


def _is_late(pod: Object) -> bool:
    """Whether a pod with a node is not ready because of memcached: it waits for its image, or it runs but is not ready.

    The same applies to the agent, which is ready only if it can use memcached.
    """
    own = [_status(pod, name) for name in (MEMCACHED, AGENT)]
    network = first(objects(pod, "status", "conditions"), "type", "PodReadyToStartContainers")
    is_pulling = text(network, "status") == "True" and text(own[0], "state", "waiting", "reason") == CREATING
    return is_pulling or any("running" in mapping(each, "state") and each.get("ready") is not True for each in own)
