"""The state of a StatefulSet, which reports no conditions: everything is computed from its counts and its pods.

Its update strategy is OnDelete: the operator updates the pods itself. `kubectl rollout status` does not support that.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from memcached_api import conditions as c
from memcached_operator.kind import Snapshot, Update
from memcached_operator.kube import labels
from memcached_operator.kube.resource import STATEFULSETS, Object, controller_of, nested_list, nested_map
from memcached_operator.workloads import warm_up
from memcached_operator.workloads.rollout import PROGRESS_DEADLINE, Rollout, WorkloadType, counted
from memcached_operator.workloads.times import past_time

PAUSED_ANNOTATION = "memcached-operator.example.com/paused"
"""Annotation of a StatefulSet whose pod template is not changed now, which Kubernetes has no field for."""

OUTDATED, UP_TO_DATE = "outdated", "up-to-date"
"""The values of PAUSED_ANNOTATION: whether the spec has another pod template, which is written after the pause."""

_EPOCH = datetime(1970, 1, 2, tzinfo=UTC)
"""Earlier times are not computed with."""

_REASONS_OF_PODS = (c.PROGRESS_DEADLINE_EXCEEDED, c.PODS_CRASHING, c.IMAGE_UNAVAILABLE, c.SECRET_UNAVAILABLE)
"""Reasons of Degraded that a stalled rollout can have. Other reasons prevent the rollout."""


class _StatefulSet:
    resource = STATEFULSETS

    def owns(self, pod: Object, workload: Object) -> bool:
        """True for a pod whose controller is the StatefulSet."""
        controller = controller_of(pod)
        return controller is not None and controller["uid"] == workload["metadata"]["uid"]

    def rollout(self, snapshot: Snapshot, update: Update | None, now: datetime) -> Rollout:
        """The rollout, from the counts of the StatefulSet controller, the times in its pods, and the update."""
        live = snapshot.child(STATEFULSETS)
        return Rollout() if live is None else _rollout(live, snapshot, update, now)


STATEFULSET: Final[WorkloadType] = _StatefulSet()
"""The workload of a kind whose pods have stable names."""


def _rollout(live: Object, snapshot: Snapshot, update: Update | None, now: datetime) -> Rollout:
    found = _with_serving(_with_pause(counted(live), live, snapshot.cr), live, snapshot)
    counts = found.current and found.size == found.replicas == found.available_pods == found.updated
    complete = counts and (update is None or update.complete)
    left = float("inf") if complete or found.paused else _until_deadline(live, snapshot, now, found.warm_up)
    doing = update.doing.items() if update else ()
    return replace(
        found,
        complete=complete,
        doing=tuple(f"{name} {text}" for name, text in doing if name not in found.warming),
        deadline_exceeded=left <= 0,
        requeue_after=left if 0 < left < float("inf") else None,
    )


def _with_pause(found: Rollout, live: Object, cr: Object) -> Rollout:
    """The counts during a pause: pods with an older template than the spec's are not updated."""
    if nested_map(cr, "spec", "rollout").get("paused") is not True:
        return found
    outdated = nested_map(live, "metadata", "annotations").get(PAUSED_ANNOTATION) == OUTDATED
    return replace(found, paused=True, updated=0 if outdated else found.updated)


def _with_serving(found: Rollout, live: Object, snapshot: Snapshot) -> Rollout:
    """The counts if pods serve before they are ready: those whose first container is ready, beside others."""
    template = nested_map(live, "spec", "template")
    first, *others = nested_list(template, "spec", "containers")
    if not others:
        return found
    serving = sum(warm_up.serves(pod, first["name"]) for pod in snapshot.pods)
    if (timeout := warm_up.timeout_of(template)) is None:
        return replace(found, serving=serving)
    warming = warm_up.warming(snapshot.pods, first["name"])
    return replace(found, serving=serving, warming=tuple(warming), warm_up=timeout)


def _until_deadline(live: Object, snapshot: Snapshot, now: datetime, warm_up_seconds: int) -> float:
    """Seconds until the rollout has made no progress for PROGRESS_DEADLINE. A StatefulSet has no field for it.

    `warm_up_seconds`: how long a pod may need, in addition, until it is ready.
    """
    texts = [*_write_times(live), *_pod_times(snapshot)]
    progress = (found for text in texts if (found := past_time(text, now)) is not None)
    last = max([_started(snapshot, now), *progress])
    ready = timedelta(seconds=live["spec"].get("minReadySeconds", 0) + warm_up_seconds)
    return (last + PROGRESS_DEADLINE + ready - now).total_seconds()


def _started(snapshot: Snapshot, now: datetime) -> datetime:
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


def _write_times(live: Object) -> Iterator[Any]:
    """The times at which the operator created and changed a StatefulSet or a pod."""
    for entry in nested_list(live, "metadata", "managedFields"):
        if entry.get("manager") == labels.MANAGER and entry.get("subresource") != "status":
            yield entry.get("time")


def _pod_times(snapshot: Snapshot) -> Iterator[Any]:
    """The times at which pods were created and changed, and became ready."""
    for pod in snapshot.pods:
        yield from _write_times(pod)
        yield pod["metadata"].get("creationTimestamp")
        for condition in nested_list(pod, "status", "conditions"):
            if condition["type"] == "Ready" and condition.get("status") == "True":
                yield condition.get("lastTransitionTime")
