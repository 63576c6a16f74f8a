from typing import Any

import pytest

from memcached_operator.kube.resource import Object
from memcached_operator.parts.workloads.deployment import DEPLOYMENT, deployment_rollout
from unit.builders import deployment, owned, pod, pod_of, rolled_out

DONE: dict[str, Any] = {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3}


def test_missing_deployment() -> None:
    rollout = deployment_rollout(None)
    assert not rollout.exists
    assert not rollout.complete
    assert not rollout.available


def test_deployment_without_a_status_is_not_current() -> None:
    live = deployment()
    del live["status"]
    rollout = deployment_rollout(live)
    assert (rollout.exists, rollout.size, rollout.ready, rollout.current) == (True, 3, 0, False)


INCOMPLETE = {
    "old pods are left": deployment(**DONE | {"replicas": 4}),
    "not all are updated": deployment(**DONE | {"updatedReplicas": 2}),
    "not all are available": deployment(**DONE | {"availableReplicas": 2}),
    "of an earlier generation": deployment(**DONE, observedGeneration=1),
}


@pytest.mark.parametrize("live", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_incomplete(live: Object) -> None:
    assert not deployment_rollout(live).complete


def test_complete() -> None:
    assert deployment_rollout(rolled_out()).complete


AVAILABLE = {
    "all": (3, 3, True),
    "one of three is missing": (3, 2, False),
    "one of four is missing": (4, 3, True),
    "two of seven are missing": (7, 5, False),
    "more than enough": (2, 3, True),
    "no pod yet": (1, 0, False),
}


@pytest.mark.parametrize(("size", "ready", "expected"), AVAILABLE.values(), ids=AVAILABLE.keys())
def test_available_is_counted_and_not_copied(size: int, ready: int, expected: bool) -> None:
    """With maxUnavailable 1 and one pod, the condition of the Deployment is True while no pod is ready."""
    for reported in ("True", "False"):
        for observed in (1, 2):
            live = deployment(size, {"Available": reported}, readyReplicas=ready, observedGeneration=observed)
            assert deployment_rollout(live).available is expected


@pytest.mark.parametrize(("paused", "expected"), [(True, True), (False, False), (None, False)])
def test_paused(paused: bool | None, expected: bool) -> None:
    live = rolled_out()
    live["spec"] |= {} if paused is None else {"paused": paused}
    assert deployment_rollout(live).paused is expected


DEADLINES = {
    "passed": ({"status": "False", "reason": "ProgressDeadlineExceeded"}, True),
    "not passed": ({"status": "True", "reason": "ReplicaSetUpdated"}, False),
}


@pytest.mark.parametrize(("condition", "expected"), DEADLINES.values(), ids=DEADLINES.keys())
def test_deadline(condition: dict[str, str], expected: bool) -> None:
    assert deployment_rollout(deployment(conditions={"Progressing": condition})).deadline_exceeded is expected


def controlled(kind: str = "ReplicaSet", name: str = "cache-5d4f", template: str | None = "5d4f") -> Object:
    """A pod with our labels and this controller. `template`: the hash of its pod template."""
    found = pod()
    labels = found["metadata"]["labels"] | ({"pod-template-hash": template} if template else {})
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "rs", "controller": True}
    return {**found, "metadata": {**found["metadata"], "labels": labels, "ownerReferences": [reference]}}


OF_DEPLOYMENT: dict[str, tuple[Object, bool]] = {
    "of the Deployment": (controlled(), True),
    "of a Deployment with the same prefix": (controlled(name="cache-2-5d4f"), False),
    "of another template": (controlled(template="77aa"), False),
    "without a template": (controlled(template=None), False),
    "controlled by another kind": (controlled("StatefulSet"), False),
    "without a controller": (pod(), False),
}


@pytest.mark.parametrize(("candidate", "expected"), OF_DEPLOYMENT.values(), ids=OF_DEPLOYMENT.keys())
def test_pod_belongs_to_the_deployment_of_its_replica_set(candidate: Object, expected: bool) -> None:
    assert DEPLOYMENT.owns(pod_of(candidate).metadata, owned()) is expected
