from typing import Any

import pytest

from memcached_operator.kube.resource import Object
from memcached_operator.workloads.rollout import rollout_of
from unit.builders import deployment, rolled_out

DONE: dict[str, Any] = {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3}


def test_no_deployment_has_nothing() -> None:
    rollout = rollout_of(None)
    assert not rollout.exists
    assert not rollout.complete
    assert not rollout.available


def test_a_deployment_without_a_status_is_not_current() -> None:
    live = deployment()
    del live["status"]
    rollout = rollout_of(live)
    assert (rollout.exists, rollout.size, rollout.ready, rollout.current) == (True, 3, 0, False)


INCOMPLETE = {
    "old pods are left": deployment(**DONE | {"replicas": 4}),
    "not all are updated": deployment(**DONE | {"updatedReplicas": 2}),
    "not all are available": deployment(**DONE | {"availableReplicas": 2}),
    "of an earlier generation": deployment(**DONE, observedGeneration=1),
}


@pytest.mark.parametrize("live", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_incomplete(live: Object) -> None:
    assert not rollout_of(live).complete


def test_complete() -> None:
    assert rollout_of(rolled_out()).complete


AVAILABLE: dict[str, tuple[Any, Any]] = {
    "yes": ({"Available": "True"}, True),
    "no": ({"Available": "False"}, False),
    "not said": ({}, False),
}


@pytest.mark.parametrize(("conditions", "expected"), AVAILABLE.values(), ids=AVAILABLE.keys())
def test_available_is_what_the_deployment_says(conditions: dict[str, Any], expected: bool) -> None:
    assert rollout_of(deployment(conditions=conditions)).available is expected


OUTDATED = {
    "one of three is missing": (3, 2, False),
    "one of four is missing": (4, 3, True),
    "two of seven are missing": (7, 5, False),
    "more than enough": (2, 3, True),
    "none yet": (1, 0, False),
}


@pytest.mark.parametrize(("size", "available", "expected"), OUTDATED.values(), ids=OUTDATED.keys())
def test_available_is_foreseen_while_the_deployment_tells_of_an_earlier_size(
    size: int, available: int, expected: bool
) -> None:
    for said in ("True", "False"):
        live = deployment(size, {"Available": said}, availableReplicas=available, observedGeneration=1)
        assert rollout_of(live).available is expected


DEADLINES = {
    "passed": ({"status": "False", "reason": "ProgressDeadlineExceeded"}, True),
    "not passed": ({"status": "True", "reason": "ReplicaSetUpdated"}, False),
}


@pytest.mark.parametrize(("condition", "expected"), DEADLINES.values(), ids=DEADLINES.keys())
def test_deadline(condition: dict[str, str], expected: bool) -> None:
    assert rollout_of(deployment(conditions={"Progressing": condition})).deadline_exceeded is expected


REFUSALS = {
    "by a quota": ({"status": "True", "message": "exceeded quota"}, "exceeded quota"),
    "no more": ({"status": "False", "message": "exceeded quota"}, ""),
}


@pytest.mark.parametrize(("condition", "failure"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refused_pods(condition: dict[str, str], failure: str) -> None:
    assert rollout_of(deployment(conditions={"ReplicaFailure": condition})).replica_failure == failure
