import re
from typing import Any

import pytest

from memcached_api.remedies import Action
from memcached_operator.engine.kind import Outcome
from memcached_operator.engine.reporting.conditions import MAX_MESSAGE_LENGTH
from memcached_operator.findings.finding import Problem
from memcached_operator.findings.rules import OwnContainer, PodRules
from memcached_operator.kube.resource import SERVICES, Key, Object, key_of
from memcached_operator.parts.workloads.deployment import deployment_rollout
from memcached_operator.parts.workloads.workload import WorkloadState, workload_state
from memcached_operator.world.snapshot import NO_MESSAGES, Message, Messages, Snapshot
from unit.builders import (
    DEPLOYMENTS,
    NOW,
    crashed,
    deployment,
    memcached,
    pod,
    rolled_out,
    running_again,
    snapshot_of,
    waiting,
)

RESUME = "set spec.rollout.paused to false"
OWN = OwnContainer("spec.image", Action("name a Secret"), (Action("raise the limit"),))
RULES = PodRules("Memcached", {"memcached": OWN})
UP, DOWN = "MinimumReplicasAvailable", "MinimumReplicasUnavailable"
HEALTHY = ("False", "AsExpected", "All components are healthy")
ABC = (pod("a"), pod("b"), pod("c"))
STALLED = "The rollout is stalled; see the Degraded condition"
DEADLINE_EXCEEDED = {"Progressing": {"status": "False", "reason": "ProgressDeadlineExceeded"}}
REPLICA_FAILURE = {"ReplicaFailure": {"status": "True", "message": "exceeded quota"}}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no memory"}
PENDING = pod("d", phase="Pending", conditions=[UNSCHEDULABLE])
OTHERS = {resource: (Key(resource, "test", "cache"),) for resource in (DEPLOYMENTS, SERVICES)}
TAKEN = Problem("Conflict", "Deployment cache exists", objects=OTHERS[DEPLOYMENTS])
TAKEN_MESSAGE = "The Deployment of this name is not managed by this object; see the Degraded condition"
IMAGE_UNAVAILABLE = pod(containerStatuses=[waiting("ErrImagePull", "not found")])


Observed = tuple[Snapshot, Outcome]


def snapshot(
    live: Object | None,
    *pods: Object,
    problems: tuple[Problem, ...] = (),
    notices: tuple[str, ...] = (),
    cr: Object | None = None,
    messages: Messages = NO_MESSAGES,
) -> Observed:
    """A snapshot of a Memcached's Deployment and pods, and the outcome of its plan."""
    children = {} if live is None else {key_of(DEPLOYMENTS, live): live}
    return snapshot_of(cr or memcached(), children, pods, messages=messages), Outcome(problems, notices)


def state_of(observed: Observed) -> WorkloadState:
    """The state of the Deployment."""
    live = observed[0].child(DEPLOYMENTS)
    return workload_state(deployment_rollout(live), *observed, NOW, rules=RULES, resume=RESUME)


def conditions_of(observed: Observed) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message of each condition."""
    conditions = state_of(observed).conditions
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in conditions}


AVAILABLE: dict[str, tuple[Observed, tuple[str, str, str]]] = {
    "all ready": (snapshot(rolled_out()), ("True", UP, "3 of 3 pods are ready")),
    "enough ready": (
        snapshot(deployment(4, conditions={"Available": "True"}, readyReplicas=3)),
        ("True", UP, "3 of 4 pods are ready"),
    ),
    "more ready than desired": (
        snapshot(deployment(2, conditions={"Available": "True"}, readyReplicas=3)),
        ("True", UP, "2 of 2 pods are ready"),
    ),
    "a quarter is not ready, rounded down": (
        snapshot(deployment(50, conditions={"Available": "True"}, readyReplicas=38)),
        ("True", UP, "38 of 50 pods are ready"),
    ),
    "more than a quarter is not ready": (
        snapshot(deployment(50, conditions={"Available": "True"}, readyReplicas=37)),
        ("False", DOWN, "37 of 50 pods are ready"),
    ),
    "too few ready": (
        snapshot(deployment(conditions={"Available": "False"}, readyReplicas=1)),
        ("False", DOWN, "1 of 3 pods are ready"),
    ),
    "no status yet": (snapshot(deployment()), ("False", DOWN, "0 of 3 pods are ready")),
    "pod cannot be scheduled": (
        snapshot(deployment(), pod("a", phase="Pending", conditions=[UNSCHEDULABLE])),
        ("False", DOWN, "0 of 3 pods are ready; pod a cannot be scheduled: no memory"),
    ),
    "pod cannot be scheduled, enough ready": (
        snapshot(rolled_out(), pod("a", phase="Pending", conditions=[UNSCHEDULABLE])),
        ("True", UP, "3 of 3 pods are ready"),
    ),
    "no Deployment": (snapshot(None), ("False", DOWN, "The Deployment does not exist yet")),
    "Deployment of another owner": (snapshot(None, problems=(TAKEN,)), ("False", DOWN, TAKEN_MESSAGE)),
    "Service of another owner": (
        snapshot(None, problems=(Problem("Conflict", "Service cache exists", objects=OTHERS[SERVICES]),)),
        ("False", DOWN, "The Deployment does not exist yet"),
    ),
}


@pytest.mark.parametrize(("observed", "expected"), AVAILABLE.values(), ids=AVAILABLE.keys())
def test_available(observed: Observed, expected: tuple[str, str, str]) -> None:
    assert conditions_of(observed)["Available"] == expected


WAITING_FOR_DELETION = Problem("WaitingForDeletion", "Service cache is being deleted")
WAITING_FOR_PODS = Problem("RollingOut", "Service cache waits for pods")
CONFLICT = Problem("Conflict", "Service cache belongs to Redis r")
AUTOSCALER = Problem("Conflict", "HorizontalPodAutoscaler a scales Deployment cache", blocks=False)
PAUSED = {**rolled_out(), "spec": {"replicas": 3, "paused": True}}
PAUSE_MESSAGE = "The rollout is paused: 3 of 3 pods are updated; to continue, set spec.rollout.paused to false"
UNSERVED = Problem("WaitingForMemcached", "Memcached cache is not available")
PROGRESSING: dict[str, tuple[Observed, tuple[str, str, str]]] = {
    "paused": (snapshot(PAUSED), ("True", "Paused", PAUSE_MESSAGE)),
    "paused, the counts are of an earlier generation": (
        snapshot(PAUSED | {"metadata": {**PAUSED["metadata"], "generation": 7}}),
        ("True", "Paused", PAUSE_MESSAGE.replace("3 of 3", "0 of 3")),
    ),
    "paused, with a problem": (snapshot(PAUSED, problems=(CONFLICT,)), ("True", "Paused", PAUSE_MESSAGE)),
    "a problem that does not block": (
        snapshot(rolled_out(), *(pod(name) for name in "abc"), problems=(AUTOSCALER,)),
        ("False", "RolloutComplete", "3 of 3 pods are updated and ready"),
    ),
    "no Deployment": (snapshot(None), ("True", "RollingOut", "The Deployment is being created")),
    "a pod has an obstacle": (
        snapshot(deployment(updatedReplicas=1), pod("a", phase="Pending", conditions=[UNSCHEDULABLE])),
        ("True", "RollingOut", "1 of 3 pods are updated; pod a cannot be scheduled: no memory"),
    ),
    "many pods have an obstacle": (
        snapshot(deployment(), *(pod(name, phase="Pending", conditions=[UNSCHEDULABLE]) for name in "abcde")),
        ("True", "RollingOut", "0 of 3 pods are updated; pods a, b, c and 2 more cannot be scheduled: no memory"),
    ),
    "pods are replaced": (snapshot(deployment(updatedReplicas=1)), ("True", "RollingOut", "1 of 3 pods are updated")),
    "a pod above the size is not deleted": (
        snapshot(deployment(1, replicas=2, updatedReplicas=2), pod("a"), pod("b")),
        ("True", "RollingOut", "1 of 1 pods are updated; 1 more pod is not deleted yet"),
    ),
    "pods of a rollout above the size are not deleted": (
        snapshot(deployment(2, replicas=4, updatedReplicas=2), *(pod(name) for name in "abcd")),
        ("True", "RollingOut", "2 of 2 pods are updated; 2 more pods are not deleted yet"),
    ),
    "an additional pod of a rollout": (
        snapshot(deployment(3, replicas=4, updatedReplicas=1), *(pod(name) for name in "abcd")),
        ("True", "RollingOut", "1 of 3 pods are updated"),
    ),
    "paused, with a pod above the size": (
        snapshot({**deployment(1, replicas=2, updatedReplicas=2), "spec": {"replicas": 1, "paused": True}}),
        (
            "True",
            "Paused",
            "The rollout is paused: 1 of 1 pods are updated; 1 more pod is not deleted yet; to continue, set "
            "spec.rollout.paused to false",
        ),
    ),
    "a pod of a rollout cannot be scheduled": (
        snapshot(deployment(1, readyReplicas=1, updatedReplicas=1), pod("a"), PENDING),
        ("True", "RollingOut", "1 of 1 pods are updated; pod d cannot be scheduled: no memory"),
    ),
    "pods cannot be created": (
        snapshot(deployment(conditions=REPLICA_FAILURE), pod("a")),
        ("False", "Stalled", STALLED),
    ),
    "the counts are of an earlier generation": (
        snapshot(deployment(updatedReplicas=3, observedGeneration=1)),
        ("True", "RollingOut", "0 of 3 pods are updated"),
    ),
    "complete, but not all pods observed yet": (
        snapshot(rolled_out(), pod("a"), pod("b")),
        ("True", "RollingOut", "3 of 3 pods are updated"),
    ),
    "complete": (
        snapshot(rolled_out(), pod("a"), pod("b"), pod("c")),
        ("False", "RolloutComplete", "3 of 3 pods are updated and ready"),
    ),
    "waiting for a deletion": (
        snapshot(rolled_out(), problems=(WAITING_FOR_DELETION,)),
        ("True", "WaitingForDeletion", WAITING_FOR_DELETION.message),
    ),
    "two transient problems": (
        snapshot(rolled_out(), problems=(WAITING_FOR_PODS, WAITING_FOR_DELETION)),
        ("True", "RollingOut", f"{WAITING_FOR_PODS.message}; {WAITING_FOR_DELETION.message}"),
    ),
    "conflict": (snapshot(rolled_out(), problems=(CONFLICT,)), ("False", "Stalled", STALLED)),
    "waiting for a Memcached": (
        snapshot(rolled_out(), *ABC, problems=(UNSERVED,)),
        ("True", "WaitingForMemcached", UNSERVED.message),
    ),
    "waiting for a Memcached, paused": (
        snapshot(PAUSED, *ABC, problems=(UNSERVED,)),
        ("True", "Paused", f"{PAUSE_MESSAGE}; {UNSERVED.message}"),
    ),
    "waiting for a Memcached and a deletion, paused": (
        snapshot(PAUSED, *ABC, problems=(UNSERVED, WAITING_FOR_DELETION)),
        ("True", "WaitingForDeletion", WAITING_FOR_DELETION.message),
    ),
    "waiting for a Memcached, and a conflict": (
        snapshot(rolled_out(), *ABC, problems=(CONFLICT, UNSERVED)),
        ("False", "Stalled", f"{STALLED}; {UNSERVED.message}"),
    ),
    "no progress in time": (snapshot(deployment(conditions=DEADLINE_EXCEEDED)), ("False", "Stalled", STALLED)),
    "waiting for a deletion, and a conflict": (
        snapshot(rolled_out(), problems=(CONFLICT, WAITING_FOR_DELETION)),
        ("True", "WaitingForDeletion", WAITING_FOR_DELETION.message),
    ),
    "crashing pods alone do not stall a rollout": (
        snapshot(deployment(updatedReplicas=2), crashed()),
        ("True", "RollingOut", "2 of 3 pods are updated"),
    ),
}


@pytest.mark.parametrize(("observed", "expected"), PROGRESSING.values(), ids=PROGRESSING.keys())
def test_progressing(observed: Observed, expected: tuple[str, str, str]) -> None:
    assert conditions_of(observed)["Progressing"] == expected


@pytest.mark.parametrize("live", [PAUSED, rolled_out()], ids=["paused", "rolled out"])
def test_pods_without_a_memcached_are_not_ready_for_clients(live: Object) -> None:
    found = conditions_of(snapshot(live, *ABC, problems=(UNSERVED,)))["Ready"]
    assert found == ("False", "WaitingForMemcached", UNSERVED.message)


LATE = "The rollout exceeded its progress deadline"


def ready_pod(name: str) -> Object:
    """A pod that is ready."""
    return pod(name, conditions=[{"type": "Ready", "status": "True"}])


def since(time: str) -> Object:
    """A Memcached that reports a rollout since a time."""
    progressing = {"type": "Progressing", "status": "True", "reason": "RollingOut", "lastTransitionTime": time}
    return {**memcached(), "status": {"observedGeneration": 1, "conditions": [progressing]}}


def unhealthy(state: str) -> tuple[str, str, str]:
    """Degraded, if pods do not run although no problem is known."""
    return ("False", "AsExpected", f"No component has failed, but {state}")


APPLY_FAILED = Problem("ApplyFailed", "Deployment cache: no")
DEGRADED: dict[str, tuple[Observed, tuple[str, str, str]]] = {
    "healthy": (snapshot(rolled_out(), *ABC), HEALTHY),
    "healthy, paused": (snapshot(PAUSED, *ABC), HEALTHY),
    "no Deployment yet": (snapshot(None), unhealthy("the Deployment does not exist yet")),
    "pods are missing": (snapshot(deployment(readyReplicas=2), *ABC[:2]), unhealthy("2 of 3 pods are ready")),
    "pods are missing, paused": (
        snapshot({**deployment(readyReplicas=2), "spec": {"replicas": 3, "paused": True}}, *ABC[:2]),
        unhealthy("2 of 3 pods are ready"),
    ),
    "a rollout": (snapshot(deployment(readyReplicas=3), *ABC), unhealthy("the rollout is not complete")),
    "a pod of a rollout cannot be scheduled": (
        snapshot(deployment(readyReplicas=3), *ABC, PENDING),
        unhealthy("the rollout is not complete; pod d cannot be scheduled: no memory"),
    ),
    "a pod has an obstacle": (
        snapshot(deployment(), pod("a", phase="Pending", conditions=[UNSCHEDULABLE]), notices=("One",)),
        unhealthy("0 of 3 pods are ready; pod a cannot be scheduled: no memory. One"),
    ),
    "progress deadline exceeded, because of an obstacle": (
        snapshot(
            deployment(conditions=DEADLINE_EXCEEDED, updatedReplicas=1),
            pod("a", phase="Pending", conditions=[UNSCHEDULABLE]),
        ),
        (
            "True",
            "ProgressDeadlineExceeded",
            "The rollout exceeded its progress deadline: 1 of 3 pods are updated; pod a cannot be scheduled: no memory",
        ),
    ),
    "healthy, with notices": (
        snapshot(rolled_out(), *ABC, notices=("One", "Two")),
        ("False", "AsExpected", "All components are healthy. One. Two"),
    ),
    "a problem, with a notice": (
        snapshot(None, problems=(CONFLICT,), notices=("One",)),
        ("True", "Conflict", f"{CONFLICT.message}. One"),
    ),
    "waiting for a deletion": (
        snapshot(None, problems=(WAITING_FOR_DELETION,)),
        unhealthy("the Deployment does not exist yet"),
    ),
    "invalid spec": (
        snapshot(rolled_out(), problems=(Problem("InvalidSpec", "spec.size: must be at least 1"),)),
        ("True", "InvalidSpec", "spec.size: must be at least 1"),
    ),
    "conflict": (snapshot(None, problems=(CONFLICT,)), ("True", "Conflict", CONFLICT.message)),
    "apply failed": (
        snapshot(None, problems=(Problem("ApplyFailed", "Deployment cache: no"),)),
        ("True", "ApplyFailed", "Deployment cache: no"),
    ),
    "pods cannot be created": (
        snapshot(deployment(conditions=REPLICA_FAILURE)),
        ("True", "ApplyFailed", "Pods cannot be created: exceeded quota"),
    ),
    "progress deadline exceeded": (
        snapshot(deployment(conditions=DEADLINE_EXCEEDED, updatedReplicas=1)),
        (
            "True",
            "ProgressDeadlineExceeded",
            f"{LATE}: 1 of 3 pods are updated; no pods exist; see kubectl describe deployment -n test cache",
        ),
    ),
    "progress deadline exceeded, pods cannot be created": (
        snapshot(deployment(conditions=DEADLINE_EXCEEDED | REPLICA_FAILURE)),
        ("True", "ApplyFailed", f"Pods cannot be created: exceeded quota; {LATE}: 0 of 3 pods are updated"),
    ),
    "progress deadline exceeded, a pod is not ready": (
        snapshot(deployment(conditions=DEADLINE_EXCEEDED, updatedReplicas=1), ready_pod("a"), pod("c"), pod("b")),
        (
            "True",
            "ProgressDeadlineExceeded",
            f"{LATE}: 1 of 3 pods are updated; pod b is not ready; see kubectl describe pod -n test b",
        ),
    ),
    "progress deadline exceeded, a pod cannot be scheduled": (
        snapshot(deployment(1, conditions=DEADLINE_EXCEEDED, updatedReplicas=1), pod("a"), PENDING),
        ("True", "ProgressDeadlineExceeded", f"{LATE}: 1 of 1 pods are updated; pod d cannot be scheduled: no memory"),
    ),
    "progress deadline exceeded, all pods are ready": (
        snapshot(deployment(1, conditions=DEADLINE_EXCEEDED), ready_pod("a")),
        (
            "True",
            "ProgressDeadlineExceeded",
            f"{LATE}: 0 of 1 pods are updated; all pods are ready; see kubectl describe deployment -n test cache",
        ),
    ),
    "progress deadline exceeded, and another problem explains it": (
        snapshot(deployment(1, conditions=DEADLINE_EXCEEDED), ready_pod("a"), problems=(APPLY_FAILED,)),
        ("True", "ApplyFailed", f"{APPLY_FAILED.message}; {LATE}: 0 of 1 pods are updated"),
    ),
    "complete, but the operator does not know all pods": (
        snapshot(rolled_out(), ready_pod("a"), cr=since("2030-01-01T11:50:00Z")),
        (
            "True",
            "ProgressDeadlineExceeded",
            f"{LATE}: 3 of 3 pods are updated; the operator knows 1 running pods; "
            "see kubectl get pods -n test -l app.kubernetes.io/instance=cache",
        ),
    ),
    "complete, but the operator does not know all pods yet": (
        snapshot(rolled_out(), ready_pod("a"), cr=since("2030-01-01T11:50:01Z")),
        unhealthy("the rollout is not complete"),
    ),
}


@pytest.mark.parametrize(("observed", "expected"), DEGRADED.values(), ids=DEGRADED.keys())
def test_degraded(observed: Observed, expected: tuple[str, str, str]) -> None:
    assert conditions_of(observed)["Degraded"] == expected


DEADLINE = f"{LATE}: 3 of 3 pods are updated; no pods exist; see kubectl describe deployment -n test cache"
INVALID = Problem("InvalidSpec", "spec.size: must be at least 1")
STALLED_BY: dict[str, tuple[Observed, tuple[str, str, str] | None]] = {
    "healthy": (snapshot(rolled_out()), None),
    "a rollout": (snapshot(deployment(updatedReplicas=1)), None),
    "waiting for a deletion": (snapshot(rolled_out(), problems=(WAITING_FOR_DELETION,)), None),
    "apply failed: a quota can be raised": (snapshot(rolled_out(), problems=(APPLY_FAILED,)), None),
    "crashing pods": (snapshot(deployment(updatedReplicas=2), crashed()), None),
    "no image yet": (snapshot(deployment(), IMAGE_UNAVAILABLE), None),
    "invalid spec": (snapshot(rolled_out(), problems=(INVALID,)), ("True", "InvalidSpec", INVALID.message)),
    "conflict": (snapshot(None, problems=(CONFLICT,)), ("True", "Conflict", CONFLICT.message)),
    "a conflict that blocks no rollout": (
        snapshot(rolled_out(), problems=(AUTOSCALER,)),
        ("True", "Conflict", AUTOSCALER.message),
    ),
    "no progress in time, because pods crash": (
        snapshot(deployment(conditions=DEADLINE_EXCEEDED, updatedReplicas=3), crashed()),
        (
            "True",
            "ProgressDeadlineExceeded",
            f"{LATE}: 3 of 3 pods are updated; pod cache-1 is not ready; see kubectl describe pod -n test cache-1",
        ),
    ),
    "several": (
        snapshot(
            deployment(conditions=DEADLINE_EXCEEDED, updatedReplicas=3), problems=(APPLY_FAILED, CONFLICT, INVALID)
        ),
        ("True", "InvalidSpec", f"{INVALID.message}; {CONFLICT.message}; {DEADLINE}"),
    ),
}


@pytest.mark.parametrize(("observed", "expected"), STALLED_BY.values(), ids=STALLED_BY.keys())
def test_stalled(observed: Observed, expected: tuple[str, str, str] | None) -> None:
    assert conditions_of(observed).get("Stalled") == expected


OF_PODS = {
    "crash": (crashed(), "PodsCrashing", "exit code 64"),
    "no image": (
        IMAGE_UNAVAILABLE,
        "ImageUnavailable",
        "example.com/memcached:1 of container memcached cannot be pulled: not found",
    ),
}


@pytest.mark.parametrize(("failing", "reason", "message"), OF_PODS.values(), ids=OF_PODS.keys())
def test_degraded_by_a_pod(failing: Object, reason: str, message: str) -> None:
    degraded = conditions_of(snapshot(deployment(), failing))["Degraded"]
    assert degraded[:2] == ("True", reason)
    assert message in degraded[2]


def test_most_severe_reason_is_set_and_all_messages_are_reported() -> None:
    everything = snapshot(deployment(conditions=DEADLINE_EXCEEDED), crashed(), problems=(CONFLICT,))
    status, reason, message = conditions_of(everything)["Degraded"]
    assert (status, reason) == ("True", "Conflict")
    first, second, third = message.split("; ", 2)
    assert first == CONFLICT.message
    assert "exit code 64" in second
    assert "The rollout exceeded its progress deadline" in third


def test_message_names_at_most_three_failing_pods() -> None:
    message = conditions_of(snapshot(deployment(), *(crashed(f"cache-{n}") for n in range(10))))["Degraded"][2]
    assert [f"Pod cache-{n}:" in message for n in range(4)] == [True, True, True, False]
    assert message.endswith("; and 7 more")


def test_conditions_are_in_order_and_have_the_generation_of_the_object() -> None:
    cr = memcached()
    cr["metadata"]["generation"] = 7
    conditions = state_of(snapshot(None, cr=cr)).conditions
    assert [(each["type"], each.get("observedGeneration")) for each in conditions] == [
        ("Available", 7),
        ("Progressing", 7),
        ("Degraded", 7),
        ("Ready", 7),
    ]


def test_error_of_an_image_is_that_of_the_events() -> None:
    """Before release 1.32, a kubelet does not repeat the error during its back-off."""
    before = conditions_of(snapshot(deployment(), IMAGE_UNAVAILABLE))["Degraded"][2]
    image = "example.com/memcached:1"
    backing_off = pod(containerStatuses=[waiting("ImagePullBackOff", f'Back-off pulling image "{image}"')])
    message = Message(NOW, f'Failed to pull image "{image}": not found')
    known = {backing_off["metadata"]["uid"]: (message,)}
    after = conditions_of(snapshot(deployment(), backing_off, messages=known))["Degraded"][2]
    assert "cannot be pulled: not found; correct" in before
    assert after == before


STARTING = pod(
    phase="Pending",
    conditions=[{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2030-01-01T11:59:40Z"}],
)
REQUEUE_AFTER: dict[str, tuple[list[Any], float | None]] = {
    "a start that takes 20 s": ([STARTING], 40.0),
    "no change with time": ([crashed()], None),
    "a crash expires": ([running_again("2030-01-01T11:59:50Z")], 20.0),
    "the first of two crashes": ([running_again("2030-01-01T11:59:50Z"), running_again("2030-01-01T11:59:40Z")], 10.0),
}


@pytest.mark.parametrize(("pods", "requeue_after"), REQUEUE_AFTER.values(), ids=REQUEUE_AFTER.keys())
def test_requeue_after(pods: list[Object], requeue_after: float | None) -> None:
    assert state_of(snapshot(rolled_out(len(pods)), *pods)).requeue_after == requeue_after


def test_nodes_are_the_names_of_live_pods() -> None:
    assert state_of(snapshot(rolled_out(), pod("b"), pod("a"))).nodes == ["a", "b"]


def test_message_with_the_longest_problems_fits() -> None:
    problems = tuple(Problem("ApplyFailed", letter * 40_000) for letter in "abcdefg")
    status, reason, message = conditions_of(snapshot(rolled_out(), problems=problems))["Degraded"]
    assert (status, reason) == ("True", "ApplyFailed")
    assert re.fullmatch(r"a{100,}…; b{100,}…; c{100,}…; and 4 more", message)
    assert len(message) <= MAX_MESSAGE_LENGTH
