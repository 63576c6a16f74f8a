from typing import Any

import pytest

from memcached_operator.findings.rollout import Rollout, counted
from memcached_operator.kube.resource import STATEFULSETS, Key, Object
from memcached_operator.parts.workloads.statefulset import STATEFULSET, with_progress
from unit.builders import NOW, memcached, owned, pod, pod_of, snapshot_of

DONE: Any = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 3)
HOUR_AGO, NINE_MINUTES_AGO, MINUTE_AGO = "2030-01-01T11:00:00Z", "2030-01-01T11:51:00Z", "2030-01-01T11:59:00Z"
TEMPLATE: Object = {"spec": {"containers": [{"name": "memcached"}]}}


def statefulset(size: int = 3, **status: Any) -> Object:
    """A live StatefulSet with this status, of the current generation."""
    spec: Object = {"replicas": size, "updateStrategy": {"type": "OnDelete"}, "template": TEMPLATE}
    return {**owned(resource=STATEFULSETS, generation=2), "spec": spec, "status": {"observedGeneration": 2, **status}}


def reported(status: str, reason: str, since: str, degraded: str = "AsExpected", generation: int = 1) -> Object:
    """A Memcached whose last status has this condition Progressing."""
    progressing = {"type": "Progressing", "status": status, "reason": reason, "lastTransitionTime": since}
    conditions = [progressing, {"type": "Degraded", "reason": degraded}]
    return {**memcached(), "status": {"observedGeneration": generation, "conditions": conditions}}


def created(at: str, ready_since: str | None = None, ready: str = "True") -> Object:
    """A pod of the StatefulSet. `ready_since`: the time of its condition Ready, whose status is `ready`."""
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": ready_since}
    found = pod(conditions=[condition] if ready_since else [])
    return {**found, "metadata": {**found["metadata"], "creationTimestamp": at}}


def rollout(live: Object, *pods: Object, cr: Object | None = None) -> Rollout:
    """The rollout of a StatefulSet that updates its pods itself, from its counts and from times in its pods."""
    snapshot = snapshot_of(cr or memcached(), {Key(STATEFULSETS, "test", "cache"): live}, pods)
    return with_progress(counted(STATEFULSETS.kind, live), live, snapshot, NOW)


def test_missing_statefulset() -> None:
    assert counted(STATEFULSETS.kind, None) == Rollout("StatefulSet")


COMPLETE: dict[str, tuple[Object, bool]] = {
    "all pods are updated and available": (statefulset(**DONE), True),
    "no pods": (statefulset(0), True),
    "the status is of an earlier generation": (statefulset(**DONE | {"observedGeneration": 1}), False),
    "one pod is not updated": (statefulset(**DONE | {"updatedReplicas": 2}), False),
    "one pod is not available": (statefulset(**DONE | {"availableReplicas": 2}), False),
    "one pod is left": (statefulset(**DONE | {"replicas": 4}), False),
    "no status yet": (statefulset(), False),
}


@pytest.mark.parametrize(("live", "expected"), COMPLETE.values(), ids=COMPLETE.keys())
def test_complete(live: Object, expected: bool) -> None:
    assert rollout(live).complete is expected


ROLLING = statefulset(**DONE | {"updatedReplicas": 1, "availableReplicas": 2})
STUCK = created(HOUR_AGO)
STALLED = reported("False", "Stalled", MINUTE_AGO, "PodsCrashing")

DEADLINE: dict[str, tuple[Object, Object, Object, bool, float | None]] = {
    "progressing for an hour": (ROLLING, STUCK, reported("True", "RollingOut", HOUR_AGO), True, None),
    "progressing for nine minutes": (ROLLING, STUCK, reported("True", "RollingOut", NINE_MINUTES_AGO), False, 60),
    "a pod was created": (ROLLING, created(NINE_MINUTES_AGO), reported("True", "RollingOut", HOUR_AGO), False, 60),
    "a pod became ready": (
        ROLLING,
        created(HOUR_AGO, NINE_MINUTES_AGO),
        reported("True", "RollingOut", HOUR_AGO),
        False,
        60,
    ),
    "a pod is not ready any more": (
        ROLLING,
        created(HOUR_AGO, NINE_MINUTES_AGO, "False"),
        reported("True", "RollingOut", HOUR_AGO),
        True,
        None,
    ),
    "not reported yet": (ROLLING, STUCK, memcached(), False, 600),
    "the rollout starts": (ROLLING, STUCK, reported("False", "RolloutComplete", HOUR_AGO), False, 600),
    "new generation": (ROLLING, STUCK, reported("True", "RollingOut", HOUR_AGO, generation=0), False, 600),
    "stalled": (ROLLING, STUCK, STALLED, True, None),
    "stalled, then a pod became ready": (ROLLING, created(HOUR_AGO, "2030-01-01T11:59:30Z"), STALLED, False, 570),
    "a conflict was resolved": (ROLLING, STUCK, reported("False", "Stalled", HOUR_AGO, "Conflict"), False, 600),
    "complete": (statefulset(**DONE), STUCK, reported("True", "RollingOut", HOUR_AGO), False, None),
}


@pytest.mark.parametrize(("live", "member", "cr", "exceeded", "requeue_after"), DEADLINE.values(), ids=DEADLINE.keys())
def test_deadline(live: Object, member: Object, cr: Object, exceeded: bool, requeue_after: float | None) -> None:
    found = rollout(live, member, cr=cr)
    assert (found.deadline_exceeded, found.requeue_after) == (exceeded, requeue_after)


def controlled(uid: str) -> Object:
    """A pod whose controller has this uid."""
    found = pod()
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "cache", "uid": uid, "controller": True}
    return {**found, "metadata": {**found["metadata"], "ownerReferences": [reference]}}


OWNED = {
    "of the StatefulSet": (controlled("child"), True),
    "of an earlier one of the same name": (controlled("earlier"), False),
    "without a controller": (pod(), False),
}


@pytest.mark.parametrize(("candidate", "expected"), OWNED.values(), ids=OWNED.keys())
def test_pod_belongs_to_its_controller(candidate: Object, expected: bool) -> None:
    assert STATEFULSET.owns(pod_of(candidate).metadata, statefulset()) is expected


def written(at: str, manager: str = "memcached-operator", **entry: str) -> Object:
    """A StatefulSet in a rollout whose fields were written at this time."""
    entries = [{"manager": manager, "operation": "Apply", "time": at, **entry}]
    return {**ROLLING, "metadata": {**ROLLING["metadata"], "managedFields": entries}}


WRITTEN: dict[str, tuple[Object, bool]] = {
    "by the operator": (written(MINUTE_AGO), False),
    "by the operator, long ago": (written(HOUR_AGO), True),
    "its status, by a controller": (written(MINUTE_AGO, "kube-controller-manager", subresource="status"), True),
}


@pytest.mark.parametrize(("live", "exceeded"), WRITTEN.values(), ids=WRITTEN.keys())
def test_write_of_the_operator_restarts_the_deadline(live: Object, exceeded: bool) -> None:
    found = rollout(live, cr=reported("True", "RollingOut", HOUR_AGO))
    assert found.deadline_exceeded is exceeded


ODD: dict[str, Any] = {
    "missing": created(None),  # pyright: ignore[reportArgumentType]
    "not a time": created("yesterday"),
    "without a time zone": created("2030-01-01T11:59:00"),
    "in the future": created("2031-01-01T00:00:00Z", "2031-01-01T00:00:00Z"),
}


@pytest.mark.parametrize("member", ODD.values(), ids=ODD.keys())
def test_odd_time_of_a_pod_is_ignored(member: Object) -> None:
    assert rollout(ROLLING, member, cr=reported("True", "RollingOut", HOUR_AGO)).deadline_exceeded


@pytest.mark.parametrize("since", ["0001-01-01T00:00:00Z", None, "2031-01-01T00:00:00Z"])
def test_odd_time_of_a_condition_is_no_error(since: Any) -> None:
    for status, reason in (("True", "RollingOut"), ("False", "Stalled")):
        assert rollout(ROLLING, STUCK, cr=reported(status, reason, since, "PodsCrashing")).exists
