import re
from typing import Any

import pytest

from memcached_operator.kind import Problem, Snapshot
from memcached_operator.kube.resource import Object, key_of
from memcached_operator.status.conditions import MAX_MESSAGE_LENGTH
from memcached_operator.workloads.workload import workload_of
from unit.builders import (
    DEPLOYMENTS,
    NOW,
    crashed,
    deployment,
    memcached,
    pod,
    rolled_out,
    running_again,
    waiting,
)

PULL_SECRETS_FIELD = "spec.imagePullSecrets"
UP, DOWN = "MinimumReplicasAvailable", "MinimumReplicasUnavailable"
WELL = ("False", "AsExpected", "All components are healthy")
MENDED = "The rollout is stalled; see the Degraded condition"
LATE = {"Progressing": {"status": "False", "reason": "ProgressDeadlineExceeded"}}
REFUSED = {"ReplicaFailure": {"status": "True", "message": "exceeded quota"}}
NO_NODE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no memory"}
NO_IMAGE = pod(containerStatuses=[waiting("ErrImagePull", "not found")])


def snapshot(live: Object | None, *pods: Object, problems: tuple[Problem, ...] = ()) -> Snapshot:
    """What there is of a Memcached."""
    children = {} if live is None else {key_of(DEPLOYMENTS, live): live}
    return Snapshot(children, pods, problems)


def told(what: Snapshot) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message of each condition."""
    conditions = workload_of(memcached(), what, NOW, PULL_SECRETS_FIELD).conditions
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in conditions}


AVAILABLE: dict[str, tuple[Snapshot, tuple[str, str, str]]] = {
    "all ready": (snapshot(rolled_out()), ("True", UP, "3 of 3 pods are ready")),
    "enough ready": (
        snapshot(deployment(4, conditions={"Available": "True"}, readyReplicas=3)),
        ("True", UP, "3 of 4 pods are ready"),
    ),
    "more ready than asked for": (
        snapshot(deployment(2, conditions={"Available": "True"}, readyReplicas=3)),
        ("True", UP, "2 of 2 pods are ready"),
    ),
    "too few ready": (
        snapshot(deployment(conditions={"Available": "False"}, readyReplicas=1)),
        ("False", DOWN, "1 of 3 pods are ready"),
    ),
    "no status yet": (snapshot(deployment()), ("False", DOWN, "0 of 3 pods are ready")),
    "no node for a pod": (
        snapshot(deployment(), pod("a", phase="Pending", conditions=[NO_NODE])),
        ("False", DOWN, "0 of 3 pods are ready; pod a cannot be scheduled: no memory"),
    ),
    "no node for one pod of enough": (
        snapshot(rolled_out(), pod("a", phase="Pending", conditions=[NO_NODE])),
        ("True", UP, "3 of 3 pods are ready"),
    ),
    "no Deployment": (snapshot(None), ("False", DOWN, "The Deployment does not exist yet")),
}


@pytest.mark.parametrize(("what", "expected"), AVAILABLE.values(), ids=AVAILABLE.keys())
def test_available(what: Snapshot, expected: tuple[str, str, str]) -> None:
    assert told(what)["Available"] == expected


WAITS = Problem("WaitingForDeletion", "Service cache is being deleted")
CONFLICTS = Problem("Conflict", "Service cache belongs to Redis r")
PROGRESSING: dict[str, tuple[Snapshot, tuple[str, str, str]]] = {
    "no Deployment": (snapshot(None), ("True", "RollingOut", "The Deployment is being created")),
    "pods are replaced": (
        snapshot(deployment(updatedReplicas=1)),
        ("True", "RollingOut", "1 of 3 pods are updated"),
    ),
    "the counts are of an earlier generation": (
        snapshot(deployment(updatedReplicas=3, observedGeneration=1)),
        ("True", "RollingOut", "0 of 3 pods are updated"),
    ),
    "done, but its pods are not all seen yet": (
        snapshot(rolled_out(), pod("a"), pod("b")),
        ("True", "RollingOut", "3 of 3 pods are updated"),
    ),
    "done": (
        snapshot(rolled_out(), pod("a"), pod("b"), pod("c")),
        ("False", "RolloutComplete", "3 of 3 pods are updated and ready"),
    ),
    "something is still being deleted": (
        snapshot(rolled_out(), problems=(WAITS,)),
        ("True", "WaitingForDeletion", WAITS.message),
    ),
    "a conflict stands in the way": (snapshot(rolled_out(), problems=(CONFLICTS,)), ("False", "Stalled", MENDED)),
    "no progress in time": (snapshot(deployment(conditions=LATE)), ("False", "Stalled", MENDED)),
    "one waits and one conflicts": (
        snapshot(rolled_out(), problems=(CONFLICTS, WAITS)),
        ("True", "WaitingForDeletion", WAITS.message),
    ),
    "crashing pods do not stop a roll-out by themselves": (
        snapshot(deployment(updatedReplicas=2), crashed()),
        ("True", "RollingOut", "2 of 3 pods are updated"),
    ),
}


@pytest.mark.parametrize(("what", "expected"), PROGRESSING.values(), ids=PROGRESSING.keys())
def test_progressing(what: Snapshot, expected: tuple[str, str, str]) -> None:
    assert told(what)["Progressing"] == expected


DEGRADED: dict[str, tuple[Snapshot, tuple[str, str, str]]] = {
    "well": (snapshot(rolled_out()), WELL),
    "nothing there yet": (snapshot(None), WELL),
    "waiting is no fault": (snapshot(None, problems=(WAITS,)), WELL),
    "invalid spec": (
        snapshot(rolled_out(), problems=(Problem("InvalidSpec", "spec.size: must be at least 1"),)),
        ("True", "InvalidSpec", "spec.size: must be at least 1"),
    ),
    "conflict": (snapshot(None, problems=(CONFLICTS,)), ("True", "Conflict", CONFLICTS.message)),
    "refused": (
        snapshot(None, problems=(Problem("ApplyFailed", "Deployment cache: no"),)),
        ("True", "ApplyFailed", "Deployment cache: no"),
    ),
    "pods refused": (
        snapshot(deployment(conditions=REFUSED)),
        ("True", "ApplyFailed", "Pods cannot be created: exceeded quota"),
    ),
    "late": (
        snapshot(deployment(conditions=LATE, updatedReplicas=1)),
        (
            "True",
            "ProgressDeadlineExceeded",
            "The rollout exceeded its progress deadline: 1 of 3 pods are updated; see kubectl describe pods",
        ),
    ),
}


@pytest.mark.parametrize(("what", "expected"), DEGRADED.values(), ids=DEGRADED.keys())
def test_degraded(what: Snapshot, expected: tuple[str, str, str]) -> None:
    assert told(what)["Degraded"] == expected


OF_PODS = {
    "crash": (crashed(), "PodsCrashing", "exit code 64"),
    "no image": (NO_IMAGE, "ImageUnavailable", "example.com/memcached:1 cannot be pulled: not found"),
}


@pytest.mark.parametrize(("failing", "reason", "message"), OF_PODS.values(), ids=OF_PODS.keys())
def test_degraded_by_a_pod(failing: Object, reason: str, message: str) -> None:
    found = told(snapshot(deployment(), failing))["Degraded"]
    assert found[:2] == ("True", reason)
    assert message in found[2]


def test_of_several_reasons_the_gravest_is_named_and_all_are_told() -> None:
    everything = snapshot(deployment(conditions=LATE), crashed(), problems=(CONFLICTS,))
    status, reason, message = told(everything)["Degraded"]
    assert (status, reason) == ("True", "Conflict")
    first, second, third = message.split("; ", 2)
    assert first == CONFLICTS.message
    assert "exit code 64" in second
    assert "The rollout exceeded its progress deadline" in third


def test_of_many_failing_pods_three_are_named() -> None:
    message = told(snapshot(deployment(), *(crashed(f"cache-{n}") for n in range(10))))["Degraded"][2]
    assert [f"Pod cache-{n}:" in message for n in range(4)] == [True, True, True, False]
    assert message.endswith("; and 7 more")


def test_all_three_conditions_in_order_tell_of_the_objects_generation() -> None:
    cr = memcached()
    cr["metadata"]["generation"] = 7
    conditions = workload_of(cr, snapshot(None), NOW, PULL_SECRETS_FIELD).conditions
    assert [(each["type"], each["observedGeneration"]) for each in conditions] == [
        ("Available", 7),
        ("Progressing", 7),
        ("Degraded", 7),
    ]


AGAIN: dict[str, tuple[list[Any], float | None]] = {
    "nothing changes by time": ([crashed()], None),
    "a crash will be forgotten": ([running_again("2030-01-01T11:59:50Z")], 20.0),
    "the first of two": ([running_again("2030-01-01T11:59:50Z"), running_again("2030-01-01T11:59:40Z")], 10.0),
}


@pytest.mark.parametrize(("pods", "requeue_after"), AGAIN.values(), ids=AGAIN.keys())
def test_when_to_look_again(pods: list[Object], requeue_after: float | None) -> None:
    assert (
        workload_of(memcached(), snapshot(rolled_out(), *pods), NOW, PULL_SECRETS_FIELD).requeue_after == requeue_after
    )


def test_nodes_are_the_live_pods() -> None:
    assert workload_of(memcached(), snapshot(rolled_out(), pod("b"), pod("a")), NOW, PULL_SECRETS_FIELD).nodes == [
        "a",
        "b",
    ]


def test_the_longest_problems_fit_a_message() -> None:
    problems = tuple(Problem("ApplyFailed", letter * 40_000) for letter in "abcdefg")
    status, reason, message = told(snapshot(rolled_out(), problems=problems))["Degraded"]
    assert (status, reason) == ("True", "ApplyFailed")
    assert re.fullmatch(r"a{100,}…; b{100,}…; c{100,}…; and 4 more", message)
    assert len(message) <= MAX_MESSAGE_LENGTH
