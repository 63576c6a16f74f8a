from typing import Any

import pytest

from memcached_operator.kube.resource import Object
from memcached_operator.workloads.pods import (
    IMAGE_REASONS,
    START_REASONS,
    Failure,
    belongs_to,
    failures,
    running_pod_names,
    unschedulable,
)
from unit.builders import NOW, container, crashed, pod, running_again, waiting

PULL_SECRETS_FIELD = "spec.imagePullSecrets"
ERROR = 'rpc error: code = NotFound desc = failed to pull "example.com/memcached:1": not found'
NOT_SCHEDULED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes: no memory",
}


def deleted(obj: Object) -> Object:
    """The pod while it is being deleted."""
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": "2030-01-01T12:00:00Z"}}


def only(*pods: Object) -> Failure:
    """The one failure there is."""
    (failure,) = failures(pods, NOW, PULL_SECRETS_FIELD)
    return failure


def with_container(status: Object) -> Object:
    """A pod with one container in this state."""
    return pod(containerStatuses=[status])


def restarted(obj: Object) -> Object:
    """The pod with a container that has been started again."""
    found = obj["status"]["containerStatuses"]
    return {**obj, "status": {**obj["status"], "containerStatuses": [{**each, "restartCount": 1} for each in found]}}


NAMES: dict[str, tuple[list[Object], list[str]]] = {
    "sorted": ([pod("b"), pod("a")], ["a", "b"]),
    "without those that wait for a node": ([pod("a"), pod("b", phase="Pending")], ["a"]),
    "without those that are over": ([pod("a", phase="Failed"), pod("b", phase="Succeeded")], []),
    "without those being deleted": ([deleted(pod("a")), pod("b")], ["b"]),
    "without those of no phase": ([{"metadata": {"name": "a"}}], []),
}


@pytest.mark.parametrize(("pods", "names"), NAMES.values(), ids=NAMES.keys())
def test_live_names(pods: list[Object], names: list[str]) -> None:
    assert running_pod_names(pods) == names


@pytest.mark.parametrize("reason", sorted(IMAGE_REASONS))
def test_an_image_that_cannot_be_had(reason: str) -> None:
    assert only(with_container(waiting(reason, ERROR))) == Failure(
        "ImageUnavailable",
        f"Pod cache-1: the image example.com/memcached:1 cannot be pulled: {ERROR}; "
        f"correct spec.image, or name a Secret with the registry's credentials in {PULL_SECRETS_FIELD}",
    )


KUBELET_TEXTS = {
    "not found": ("ErrImagePull", ERROR),
    "registry unavailable": ("RegistryUnavailable", "image pull failed because the registry is unavailable: dial tcp"),
    "a text that repeats the words": ("ErrImagePull", "cannot pull: ErrImagePull: unauthorized"),
}


@pytest.mark.parametrize(("reason", "text"), KUBELET_TEXTS.values(), ids=KUBELET_TEXTS.keys())
def test_the_kubelets_alternating_texts_stay_one_message(reason: str, text: str) -> None:
    backing_off = f'Back-off pulling image "example.com/memcached:1": {reason}: {text}'
    while_trying, while_waiting = waiting(reason, text), waiting("ImagePullBackOff", backing_off)
    assert only(with_container(while_trying)) == only(with_container(while_waiting))


def test_without_a_text_the_reason_is_told() -> None:
    assert "cannot be pulled: ImagePullBackOff;" in only(with_container(waiting("ImagePullBackOff"))).message


@pytest.mark.parametrize("reason", sorted(START_REASONS))
def test_a_container_that_cannot_be_started(reason: str) -> None:
    failure = only(with_container(waiting(reason, 'secret "x" not found')))
    assert failure == Failure("PodsCrashing", 'Pod cache-1: the container cannot be started: secret "x" not found')


def test_the_two_states_of_a_container_that_never_starts_stay_one_message() -> None:
    message = 'exec: "memcached": executable file not found in $PATH'
    ended = {"exitCode": 128, "reason": "StartError", "message": message}
    states = (
        waiting("RunContainerError", message),
        container({"terminated": ended}),
        waiting("CrashLoopBackOff", "back-off 10s restarting failed container", ended=ended),
    )
    assert {only(with_container(state)) for state in states} == {
        Failure("PodsCrashing", f"Pod cache-1: the container cannot be started: {message}")
    }


CRASHES: dict[str, tuple[Object, str]] = {
    "waits to be started again": (crashed(), "container memcached terminated with exit code 64 (Error)"),
    "has just ended": (
        with_container(container({"terminated": {"exitCode": 71, "reason": "Error"}})),
        "container memcached terminated with exit code 71 (Error)",
    ),
    "no reason given": (
        with_container(container({"terminated": {"exitCode": 71}})),
        "container memcached terminated with exit code 71 (Error)",
    ),
    "ends well again and again": (restarted(crashed(exit_code=0, reason="Completed")), "exit code 0 (Completed)"),
    "has just ended well once more": (
        restarted(with_container(container({"terminated": {"exitCode": 0, "reason": "Completed"}}))),
        "exit code 0 (Completed)",
    ),
    "runs, not ready": (running_again(None), "terminated with exit code 64"),
    "ended well and runs again, not ready": (
        restarted(running_again(None, exit_code=0)),
        "terminated with exit code 0",
    ),
}


@pytest.mark.parametrize(("crashing", "message"), CRASHES.values(), ids=CRASHES.keys())
def test_a_crash_names_exit_code_reason_and_where_to_look(crashing: Object, message: str) -> None:
    failure = only(crashing)
    assert (failure.reason, failure.clears_in) == ("PodsCrashing", None)
    assert message in failure.message
    assert failure.message.endswith("; see kubectl logs --previous -n test cache-1")


def test_a_pod_killed_for_its_memory_says_what_to_raise() -> None:
    assert only(crashed(exit_code=137, reason="OOMKilled")).message == (
        "Pod cache-1: container memcached terminated with exit code 137 (OOMKilled); "
        "raise spec.resources.limits.memory, or reduce the memory use of the process"
    )


READY_SINCE = {
    "not yet ready": (None, None),
    "just now": ("2030-01-01T12:00:00Z", 30.0),
    "for 10 s": ("2030-01-01T11:59:50Z", 20.0),
    "for 29 s": ("2030-01-01T11:59:31Z", 1.0),
}


@pytest.mark.parametrize(("since", "clears_in"), READY_SINCE.values(), ids=READY_SINCE.keys())
def test_a_crash_is_remembered_until_the_pod_was_ready_for_30_s(since: str | None, clears_in: float | None) -> None:
    assert only(running_again(since)).clears_in == clears_in
    assert only(restarted(running_again(since, exit_code=0))).clears_in == clears_in


@pytest.mark.parametrize("since", ["2030-01-01T11:59:30Z", "2029-12-31T00:00:00Z"], ids=["for 30 s", "for a day"])
def test_a_crash_is_forgotten_when_the_pod_was_ready_for_30_s(since: str) -> None:
    assert failures([running_again(since), restarted(running_again(since, exit_code=0))], NOW, PULL_SECRETS_FIELD) == []


HEALTHY: dict[str, Object] = {
    "no status yet": pod(phase="Pending"),
    "being created": with_container(waiting("ContainerCreating")),
    "runs": with_container(container({"running": {}}, ready=True)),
    "ended well for the first time": with_container(container({"terminated": {"exitCode": 0, "reason": "Completed"}})),
    "crashed, and is being deleted": deleted(crashed()),
    "crashed, and is over": {**crashed(), "status": {**crashed()["status"], "phase": "Failed"}},
}


@pytest.mark.parametrize("healthy", HEALTHY.values(), ids=HEALTHY.keys())
def test_no_failure(healthy: Object) -> None:
    assert failures([healthy], NOW, PULL_SECRETS_FIELD) == []


def controlled(kind: str = "ReplicaSet", name: str = "cache-5d4f", template: str | None = "5d4f") -> Object:
    """A pod with our labels and this controller; the hash is of its template."""
    found = pod()
    labels = found["metadata"]["labels"] | ({"pod-template-hash": template} if template else {})
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "rs", "controller": True}
    return {**found, "metadata": {**found["metadata"], "labels": labels, "ownerReferences": [reference]}}


OF_DEPLOYMENT: dict[str, tuple[Object, bool]] = {
    "made by the Deployment": (controlled(), True),
    "made by one whose name begins alike": (controlled(name="cache-2-5d4f"), False),
    "of another template": (controlled(template="77aa"), False),
    "without a template": (controlled(template=None), False),
    "of another kind of controller": (controlled("StatefulSet"), False),
    "of no controller": (pod(), False),
}


@pytest.mark.parametrize(("made", "expected"), OF_DEPLOYMENT.values(), ids=OF_DEPLOYMENT.keys())
def test_only_what_a_replica_set_of_the_deployment_made_is_its_pod(made: Object, expected: bool) -> None:
    assert belongs_to(made, ["cache"]) is expected
    assert not belongs_to(made, [])


def test_failures_come_in_the_order_of_the_pods_names() -> None:
    found = failures([crashed("cache-2"), pod("cache-3"), crashed("cache-1")], NOW, PULL_SECRETS_FIELD)
    assert [failure.message.split(":")[0] for failure in found] == ["Pod cache-1", "Pod cache-2"]


UNSCHEDULABLE: dict[str, tuple[list[Object], str]] = {
    "none": ([pod()], ""),
    "scheduled": ([pod(conditions=[{"type": "PodScheduled", "status": "True"}])], ""),
    "the first by name": (
        [pod("b", conditions=[NOT_SCHEDULED]), pod("a", phase="Pending", conditions=[NOT_SCHEDULED])],
        "pod a cannot be scheduled: 0/1 nodes: no memory",
    ),
    "not one being deleted": ([deleted(pod(conditions=[NOT_SCHEDULED]))], ""),
}


@pytest.mark.parametrize(("pods", "hint"), UNSCHEDULABLE.values(), ids=UNSCHEDULABLE.keys())
def test_unschedulable(pods: list[Any], hint: str) -> None:
    assert unschedulable(pods) == hint
