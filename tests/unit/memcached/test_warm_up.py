"""Warm caches: the pods wait until they are warm, and the status says so."""

from datetime import timedelta
from typing import Any

import pytest

from memcached_api.images import Images
from memcached_api.memcached.warm_up import WarmUp, setting
from memcached_operator.engine.kind import Outcome
from memcached_operator.kube.resource import STATEFULSETS, Object, key_of
from memcached_operator.memcached.plan import plan_with
from memcached_operator.memcached.status import status_with
from unit.builders import NOW, deleted, memcached, snapshot_of

IMAGES = Images("example.com/memcached:1", "example.com/agent:1")
SPEC: dict[str, Any] = {"identity": "Stable", "size": 3, "podDisruptionBudget": {}}
WARM: dict[str, Any] = {**SPEC, "rollout": {"warmUp": {"timeout": "20m"}}}


def planned(spec: dict[str, Any]) -> dict[str, Object]:
    """The children by kind."""
    children = plan_with(IMAGES)(snapshot_of(memcached(**spec)), NOW).children or ()
    return {each["kind"]: each for each in children}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (WarmUp(), "hitRatio=80,timeout=900,minRequests=100"),
        (WarmUp(timeout="1h30m5s"), "hitRatio=80,timeout=5405,minRequests=100"),
        (WarmUp(hit_ratio=60, timeout="45s", min_requests=0), "hitRatio=60,timeout=45,minRequests=0"),
    ],
)
def test_settings_of_the_agent(given: WarmUp, expected: str) -> None:
    assert setting(given) == expected


def pod(number: int, *, ready: bool, serves: bool = True) -> Object:
    """A running pod. `serves`: its memcached is ready."""
    return {
        "metadata": {"name": f"cache-{number}", "uid": f"pod-{number}", "creationTimestamp": NOW.isoformat()},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [
                {"name": "memcached", "ready": serves, "state": {"running": {}}},
                {"name": "agent", "ready": ready, "state": {"running": {}}},
            ],
        },
    }


def conditions(spec: dict[str, Any], pods: list[Object], updated: int = 3, age: float = 0) -> dict[str, Object]:
    """The conditions by type, `age` seconds after the last progress."""
    ready = sum(each["status"]["conditions"][0]["status"] == "True" for each in pods)
    live = planned(spec)["StatefulSet"]
    live["metadata"] = {**live["metadata"], "generation": 1}
    counts = {"replicas": 3, "updatedReplicas": updated, "readyReplicas": ready, "availableReplicas": ready}
    live["status"] = {"observedGeneration": 1, **counts}
    cr = memcached(**spec)
    progressing = {"type": "Progressing", "status": "True", "lastTransitionTime": NOW.isoformat()}
    cr["status"] = {"observedGeneration": cr["metadata"]["generation"], "conditions": [progressing]}
    snapshot = snapshot_of(cr, {key_of(STATEFULSETS, live): live}, tuple(pods))
    found = status_with("cluster.local")(snapshot, Outcome(), NOW + timedelta(seconds=age)).status["conditions"]
    return {each["type"]: each for each in found}


def test_pods_that_warm_up_are_available() -> None:
    """They serve their clients, who fill them."""
    pods = [pod(0, ready=True), pod(1, ready=True), pod(2, ready=False)]
    found = conditions(WARM, pods, updated=1)
    assert (found["Available"]["status"], found["Available"]["message"]) == ("True", "3 of 3 pods serve clients")
    assert found["Progressing"]["status"] == "True"
    message = "1 of 3 pods are updated; cache-2 is warming up, for at most 1200 s"
    assert found["Progressing"]["message"] == message
    without = conditions(SPEC, pods, updated=1)
    assert (without["Available"]["status"], without["Progressing"]["message"]) == ("False", "1 of 3 pods are updated")


def test_pod_whose_memcached_does_not_serve_is_not_available() -> None:
    pods = [pod(0, ready=True), pod(1, ready=True), pod(2, ready=False, serves=False)]
    found = conditions(WARM, pods)
    assert (found["Available"]["status"], found["Available"]["message"]) == ("False", "2 of 3 pods serve clients")
    assert found["Progressing"]["message"] == "3 of 3 pods are updated"


def changed(pod: Object, name: str, **status: Any) -> Object:
    """The pod with another status of a container, or of one of another client."""
    statuses = {each["name"]: each for each in pod["status"]["containerStatuses"]}
    statuses[name] = {"name": name, **statuses.get(name, {}), **status}
    return {**pod, "status": {**pod["status"], "containerStatuses": list(statuses.values())}}


COLD = pod(2, ready=False)
OTHERWISE: dict[str, Object] = {
    "its agent does not run": changed(COLD, "agent", state={"waiting": {"reason": "ImagePullBackOff"}}),
    "it is being deleted": deleted(COLD),
    "another container is not ready": changed(COLD, "proxy", ready=False, state={"running": {}}),
    "only another container is not ready": changed(
        changed(COLD, "agent", ready=True), "proxy", ready=False, state={"running": {}}
    ),
}


@pytest.mark.parametrize("unready", OTHERWISE.values(), ids=OTHERWISE.keys())
def test_pod_that_waits_for_something_else_does_not_warm_up(unready: Object) -> None:
    found = conditions(WARM, [pod(0, ready=True), pod(1, ready=True), unready])
    assert "warming up" not in found["Progressing"]["message"]


def test_pod_on_a_node_that_does_not_report_serves_no_clients() -> None:
    """Its containers count as ready, but the node lifecycle controller has changed the condition Ready."""
    lost = changed(COLD, "agent", ready=True)
    lost["status"]["conditions"].append({"type": "ContainersReady", "status": "True"})
    found = conditions(WARM, [pod(0, ready=True), pod(1, ready=True), {**lost, "spec": {"nodeName": "n1"}}])
    assert (found["Available"]["status"], found["Available"]["message"]) == (
        "False",
        "2 of 3 pods serve clients; pod cache-2 is not ready, because its node n1 does not report its state",
    )
    assert "warming up" not in found["Progressing"]["message"]


def test_rollout_is_complete_when_all_pods_are_warm() -> None:
    found = conditions(WARM, [pod(number, ready=True) for number in range(3)])
    assert (found["Progressing"]["status"], found["Progressing"]["reason"]) == ("False", "RolloutComplete")


@pytest.mark.parametrize(("age", "reason"), [(601, "RollingOut"), (1799, "RollingOut"), (1801, "Stalled")])
def test_deadline_includes_the_time_to_warm_up(age: float, reason: str) -> None:
    pods = [pod(0, ready=True), pod(1, ready=True), pod(2, ready=False)]
    assert conditions(WARM, pods, updated=1, age=age)["Progressing"]["reason"] == reason
