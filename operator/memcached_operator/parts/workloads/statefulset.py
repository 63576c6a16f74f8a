"""The state of a StatefulSet, which reports no conditions: everything is computed from its counts and its pods."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from memcached_api import conditions as c
from memcached_operator.findings.rollout import PROGRESS_DEADLINE, Rollout
from memcached_operator.kube import labels
from memcached_operator.kube.resource import STATEFULSETS, Object, nested_list, nested_map
from memcached_operator.kube.times import past_time
from memcached_operator.world.kind import WorkloadType
from memcached_operator.world.pod import Head, ManagedFields
from memcached_operator.world.snapshot import Snapshot

_EPOCH = datetime(1970, 1, 2, tzinfo=UTC)
"""The earliest time from which PROGRESS_DEADLINE is subtracted: a difference before the year 1 is an OverflowError."""

_REASONS_OF_PODS = (c.PROGRESS_DEADLINE_EXCEEDED, c.PODS_CRASHING, c.IMAGE_UNAVAILABLE, c.SECRET_UNAVAILABLE)
"""Reasons of Degraded that a stalled rollout can have. Other reasons prevent the rollout."""


class _StatefulSet:
    resource = STATEFULSETS

    def owns(self, pod: Head, workload: Object) -> bool:
        """True for a pod whose controller is the StatefulSet."""
        controller = pod.controller
        return controller is not None and controller.uid == workload["metadata"]["uid"]


STATEFULSET: Final[WorkloadType] = _StatefulSet()
"""The workload of a kind whose pods have stable names."""


def with_progress(
    counts: Rollout, live: Object, snapshot: Snapshot, now: datetime, *, updated: bool = True, extra: int = 0
) -> Rollout:
    """The rollout with whether it is complete, and otherwise whether it is late.

    `counts`: those of `live`. `updated`: whether the pods have what the counts do not show. `extra`: seconds that a pod
    may need until it is ready, besides PROGRESS_DEADLINE.
    """
    complete = updated and counts.current and counts.size == counts.replicas == counts.available_pods == counts.updated
    left = float("inf") if complete or counts.paused else _until_deadline(live, snapshot, now, extra)
    return replace(
        counts,
        complete=complete,
        deadline_exceeded=left <= 0,
        requeue_after=left if 0 < left < float("inf") else None,
    )


def _until_deadline(live: Object, snapshot: Snapshot, now: datetime, extra: int) -> float:
    """Seconds until the rollout has made no progress for PROGRESS_DEADLINE. A StatefulSet has no field for it."""
    entries = msgspec.convert(nested_list(live, "metadata", "managedFields"), list[ManagedFields])
    texts = [*_write_times(entries), *_pod_times(snapshot)]
    progress = (time for text in texts if (time := past_time(text, now)) is not None)
    last = max([started(snapshot, now), *progress])
    ready = timedelta(seconds=live["spec"].get("minReadySeconds", 0) + extra)
    return (last + PROGRESS_DEADLINE + ready - now).total_seconds()


def started(snapshot: Snapshot, now: datetime) -> datetime:
    """The time at which the rollout started, from the last status; `now` if that does not report it yet."""
    status = nested_map(snapshot.cr, "status")
    by_type = {condition["type"]: condition for condition in nested_list(status, "conditions")}
    progressing, degraded = nested_map(by_type, c.PROGRESSING), nested_map(by_type, c.DEGRADED)
    if status.get("observedGeneration") != snapshot.cr["metadata"].get("generation"):
        return now
    since = past_time(progressing.get("lastTransitionTime"), now) or now
    if progressing.get("status") == c.TRUE:
        return since
    if progressing.get("reason") == c.STALLED and degraded.get("reason") in _REASONS_OF_PODS:
        # The deadline was exceeded at this time. Only later progress of a pod continues the rollout.
        return max(since, _EPOCH) - PROGRESS_DEADLINE
    return now


def _write_times(entries: Iterable[ManagedFields]) -> Iterator[str | None]:
    """The times at which the operator created and changed a StatefulSet or a pod."""
    return (each.time for each in entries if each.manager == labels.MANAGER and each.subresource != "status")


def _pod_times(snapshot: Snapshot) -> Iterator[str | None]:
    """The times at which pods were created and changed, and became ready."""
    for pod in snapshot.pods:
        yield from _write_times(pod.metadata.managed_fields)
        yield pod.metadata.creation_timestamp
        if pod.is_ready:
            yield pod.condition("Ready").last_transition_time
