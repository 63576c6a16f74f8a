"""What a pod waits for ends when the remedy in its message is applied, as the objects show it afterwards."""

from collections.abc import Callable
from typing import Final

import pytest

from memcached_operator.findings.obstacles import obstacles
from memcached_operator.kube.resource import Object
from unit.builders import NOW, container, pod, typed
from unit.findings import test_obstacles
from unit.findings.test_obstacles import condition, started

READY: Final = pod(
    conditions=[test_obstacles.SCHEDULED, test_obstacles.SANDBOX, test_obstacles.CONTAINERS, condition("Ready")],
    containerStatuses=[{**test_obstacles.RUNNING, "ready": True}],
)


def scheduled(_: Object) -> Object:
    """The scheduler finds a node. The pod has just been bound."""
    return pod(phase="Pending", conditions=[condition("PodScheduled", since=0)])


def without_gates(obj: Object) -> Object:
    """Another controller removes the scheduling gates."""
    spec = {name: value for name, value in obj["spec"].items() if name != "schedulingGates"}
    return {**scheduled(obj), "spec": spec}


def ended(obj: Object) -> Object:
    """The init container ends: the others start."""
    statuses = [
        {**status, "ready": True, "state": {"terminated": {"exitCode": 0}}}
        for status in obj["status"].get("initContainerStatuses", [])
    ]
    return {**obj, "status": {**READY["status"], "initContainerStatuses": statuses}}


def works(obj: Object) -> Object:
    """The container of another client, or the node, works: the pod is ready."""
    return {**obj, "status": READY["status"]}


def gate_met(obj: Object) -> Object:
    """The other controller sets the condition: the kubelet sets Ready."""
    conditions = [*READY["status"]["conditions"], condition(test_obstacles.GATE, since=0)]
    return {**obj, "status": {**READY["status"], "conditions": conditions}}


def deleted(_: Object) -> Object:
    """The pod is deleted, and its workload has created another one, which starts."""
    return started(condition("ContainersReady", "False"), containers=[container({"running": {}}, ready=False)])


REMEDIES: Final[dict[str, Callable[[Object], Object]]] = {
    "no node fits": scheduled,
    "no node fits, without what follows about preemption": scheduled,
    "the scheduler fails": scheduled,
    "a scheduler gives only a reason": scheduled,
    "scheduling gates": without_gates,
    "an init container that runs": ended,
    "a sidecar container that does not become started": works,
    "a sidecar container that is not ready": works,
    "another container that is not ready": works,
    "no volume, no network": works,
    "no status of the kubelet": works,
    "the image is pulled": works,
    "a readiness gate without its condition": gate_met,
    "a readiness gate that is False": gate_met,
    "a node that does not report": works,
    "a deletion that the node does not confirm": deleted,
    "a deletion that finalizers block": deleted,
    "a pod that has ended, and which finalizers hold": deleted,
    "a rejected pod": deleted,
    "an evicted pod without a message": deleted,
}


def test_each_obstacle_has_its_remedy() -> None:
    assert REMEDIES.keys() == test_obstacles.OBSTACLES.keys()


@pytest.mark.parametrize("name", REMEDIES)
def test_obstacle_ends_with_its_remedy(name: str) -> None:
    obj, message = test_obstacles.OBSTACLES[name]
    assert [found.message for found in obstacles(typed(obj), NOW, test_obstacles.RULES)] == [message]
    found = obstacles(typed(REMEDIES[name](obj)), NOW, test_obstacles.RULES)
    assert [each for each in found if not each.after] == []
