import re
from typing import Any

import pytest

from memcached_operator.status.conditions import MESSAGE_LIMIT
from memcached_operator.kind import Observed, Trouble
from memcached_operator.kube.resource import Object, key_of
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

PULL_SECRETS = "spec.imagePullSecrets"
UP, DOWN = "MinimumReplicasAvailable", "MinimumReplicasUnavailable"
WELL = ("False", "AsExpected", "nothing is wrong")
MENDED = "nothing moves until what Degraded tells of is mended"
LATE = {"Progressing": {"status": "False", "reason": "ProgressDeadlineExceeded"}}
REFUSED = {"ReplicaFailure": {"status": "True", "message": "exceeded quota"}}
NO_NODE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no memory"}
NO_IMAGE = pod(containerStatuses=[waiting("ErrImagePull", "not found")])


def observed(live: Object | None, *pods: Object, troubles: tuple[Trouble, ...] = ()) -> Observed:
    """What there is of a Memcached."""
    children = {} if live is None else {key_of(DEPLOYMENTS, live): live}
    return Observed(children, pods, troubles)


def told(what: Observed) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message of each condition."""
    conditions = workload_of(memcached(), what, NOW, PULL_SECRETS).conditions
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in conditions}


AVAILABLE: dict[str, tuple[Observed, tuple[str, str, str]]] = {
    "all ready": (observed(rolled_out()), ("True", UP, "3 of 3 pods are ready")),
    "enough ready": (
        observed(deployment(4, conditions={"Available": "True"}, readyReplicas=3)),
        ("True", UP, "3 of 4 pods are ready"),
    ),
    "more ready than asked for": (
        observed(deployment(2, conditions={"Available": "True"}, readyReplicas=3)),
        ("True", UP, "2 of 2 pods are ready"),
    ),
    "too few ready": (
        observed(deployment(conditions={"Available": "False"}, readyReplicas=1)),
        ("False", DOWN, "1 of 3 pods are ready"),
    ),
    "no status yet": (observed(deployment()), ("False", DOWN, "0 of 3 pods are ready")),
    "no node for a pod": (
        observed(deployment(), pod("a", phase="Pending", conditions=[NO_NODE])),
        ("False", DOWN, "0 of 3 pods are ready; pod a cannot be scheduled: no memory"),
    ),
    "no node for one pod of enough": (
        observed(rolled_out(), pod("a", phase="Pending", conditions=[NO_NODE])),
        ("True", UP, "3 of 3 pods are ready"),
    ),
    "no Deployment": (observed(None), ("False", DOWN, "there is no Deployment yet")),
}


@pytest.mark.parametrize(("what", "expected"), AVAILABLE.values(), ids=AVAILABLE.keys())
def test_available(what: Observed, expected: tuple[str, str, str]) -> None:
    assert told(what)["Available"] == expected


WAITS = Trouble("WaitingForDeletion", "Service cache is being deleted")
CONFLICTS = Trouble("Conflict", "Service cache belongs to Redis r")
PROGRESSING: dict[str, tuple[Observed, tuple[str, str, str]]] = {
    "no Deployment": (observed(None), ("True", "RollingOut", "the Deployment is being created")),
    "pods are replaced": (
        observed(deployment(updatedReplicas=1)),
        ("True", "RollingOut", "1 of 3 pods updated"),
    ),
    "the counts are of an earlier generation": (
        observed(deployment(updatedReplicas=3, observedGeneration=1)),
        ("True", "RollingOut", "0 of 3 pods updated"),
    ),
    "done, but its pods are not all seen yet": (
        observed(rolled_out(), pod("a"), pod("b")),
        ("True", "RollingOut", "3 of 3 pods updated"),
    ),
    "done": (
        observed(rolled_out(), pod("a"), pod("b"), pod("c")),
        ("False", "RolloutComplete", "3 of 3 pods are updated and ready"),
    ),
    "something is still being deleted": (
        observed(rolled_out(), troubles=(WAITS,)),
        ("True", "WaitingForDeletion", WAITS.message),
    ),
    "a conflict stands in the way": (observed(rolled_out(), troubles=(CONFLICTS,)), ("False", "Stalled", MENDED)),
    "no progress in time": (observed(deployment(conditions=LATE)), ("False", "Stalled", MENDED)),
    "one waits and one conflicts": (
        observed(rolled_out(), troubles=(CONFLICTS, WAITS)),
        ("True", "WaitingForDeletion", WAITS.message),
    ),
    "crashing pods do not stop a roll-out by themselves": (
        observed(deployment(updatedReplicas=2), crashed()),
        ("True", "RollingOut", "2 of 3 pods updated"),
    ),
}


@pytest.mark.parametrize(("what", "expected"), PROGRESSING.values(), ids=PROGRESSING.keys())
def test_progressing(what: Observed, expected: tuple[str, str, str]) -> None:
    assert told(what)["Progressing"] == expected


DEGRADED: dict[str, tuple[Observed, tuple[str, str, str]]] = {
    "well": (observed(rolled_out()), WELL),
    "nothing there yet": (observed(None), WELL),
    "waiting is no fault": (observed(None, troubles=(WAITS,)), WELL),
    "invalid spec": (
        observed(rolled_out(), troubles=(Trouble("InvalidSpec", "spec.size: must be at least 1"),)),
        ("True", "InvalidSpec", "spec.size: must be at least 1"),
    ),
    "conflict": (observed(None, troubles=(CONFLICTS,)), ("True", "Conflict", CONFLICTS.message)),
    "refused": (
        observed(None, troubles=(Trouble("ApplyFailed", "Deployment cache: no"),)),
        ("True", "ApplyFailed", "Deployment cache: no"),
    ),
    "pods refused": (
        observed(deployment(conditions=REFUSED)),
        ("True", "ApplyFailed", "the pods are refused: exceeded quota"),
    ),
    "late": (
        observed(deployment(conditions=LATE, updatedReplicas=1)),
        (
            "True",
            "ProgressDeadlineExceeded",
            "the roll-out made no progress in time: 1 of 3 pods are updated; see kubectl describe pods",
        ),
    ),
}


@pytest.mark.parametrize(("what", "expected"), DEGRADED.values(), ids=DEGRADED.keys())
def test_degraded(what: Observed, expected: tuple[str, str, str]) -> None:
    assert told(what)["Degraded"] == expected


OF_PODS = {
    "crash": (crashed(), "PodsCrashing", "exit code 64"),
    "no image": (NO_IMAGE, "ImageUnavailable", "example.com/memcached:1 cannot be pulled: not found"),
}


@pytest.mark.parametrize(("failing", "reason", "message"), OF_PODS.values(), ids=OF_PODS.keys())
def test_degraded_by_a_pod(failing: Object, reason: str, message: str) -> None:
    found = told(observed(deployment(), failing))["Degraded"]
    assert found[:2] == ("True", reason)
    assert message in found[2]


def test_of_several_reasons_the_gravest_is_named_and_all_are_told() -> None:
    everything = observed(deployment(conditions=LATE), crashed(), troubles=(CONFLICTS,))
    status, reason, message = told(everything)["Degraded"]
    assert (status, reason) == ("True", "Conflict")
    first, second, third = message.split("; ", 2)
    assert first == CONFLICTS.message
    assert "exit code 64" in second
    assert "the roll-out made no progress in time" in third


def test_of_many_failing_pods_three_are_named() -> None:
    message = told(observed(deployment(), *(crashed(f"cache-{n}") for n in range(10))))["Degraded"][2]
    assert [f"pod cache-{n}:" in message for n in range(4)] == [True, True, True, False]
    assert message.endswith("; and 7 more")


def test_all_three_conditions_in_order_tell_of_the_objects_generation() -> None:
    cr = memcached()
    cr["metadata"]["generation"] = 7
    conditions = workload_of(cr, observed(None), NOW, PULL_SECRETS).conditions
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


@pytest.mark.parametrize(("pods", "again_in"), AGAIN.values(), ids=AGAIN.keys())
def test_when_to_look_again(pods: list[Object], again_in: float | None) -> None:
    assert workload_of(memcached(), observed(rolled_out(), *pods), NOW, PULL_SECRETS).again_in == again_in


def test_nodes_are_the_live_pods() -> None:
    assert workload_of(memcached(), observed(rolled_out(), pod("b"), pod("a")), NOW, PULL_SECRETS).nodes == ["a", "b"]


def test_the_longest_problems_fit_a_message() -> None:
    problems = tuple(Trouble("ApplyFailed", letter * 40_000) for letter in "abcdefg")
    status, reason, message = told(observed(rolled_out(), troubles=problems))["Degraded"]
    assert (status, reason) == ("True", "ApplyFailed")
    assert re.fullmatch(r"a{100,}…; b{100,}…; c{100,}…; and 4 more", message)
    assert len(message) <= MESSAGE_LIMIT
