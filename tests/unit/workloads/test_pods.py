from typing import Any

import pytest

from memcached_operator.kube.resource import Object
from memcached_operator.workloads.pods import (
    IMAGE_REASONS,
    START_REASONS,
    Failure,
    PodRules,
    failures,
    running_pod_names,
    unschedulable,
)
from unit.builders import NOW, container, crashed, pod, running_again, waiting

RULES = PodRules("spec.imagePullSecrets")
ERROR = 'rpc error: code = NotFound desc = failed to pull "example.com/memcached:1": not found'
NOT_SCHEDULED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes: no memory",
}


def deleted(obj: Object) -> Object:
    """This pod while it is being deleted."""
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": "2030-01-01T12:00:00Z"}}


def only(*pods: Object) -> Failure:
    """The only failure of these pods."""
    (failure,) = failures(pods, NOW, RULES)
    return failure


def with_container(status: Object) -> Object:
    """A pod with one container in this state."""
    return pod(containerStatuses=[status])


def restarted(obj: Object) -> Object:
    """This pod with containers that were restarted."""
    statuses = obj["status"]["containerStatuses"]
    return {**obj, "status": {**obj["status"], "containerStatuses": [{**each, "restartCount": 1} for each in statuses]}}


NAMES: dict[str, tuple[list[Object], list[str]]] = {
    "sorted": ([pod("b"), pod("a")], ["a", "b"]),
    "without pending ones": ([pod("a"), pod("b", phase="Pending")], ["a"]),
    "without finished ones": ([pod("a", phase="Failed"), pod("b", phase="Succeeded")], []),
    "without terminating ones": ([deleted(pod("a")), pod("b")], ["b"]),
    "without those that have no phase": ([{"metadata": {"name": "a"}}], []),
}


@pytest.mark.parametrize(("pods", "names"), NAMES.values(), ids=NAMES.keys())
def test_live_names(pods: list[Object], names: list[str]) -> None:
    assert running_pod_names(pods) == names


@pytest.mark.parametrize("reason", sorted(IMAGE_REASONS))
def test_image_that_cannot_be_pulled(reason: str) -> None:
    assert only(with_container(waiting(reason, ERROR))) == Failure(
        "ImageUnavailable",
        f"Pod cache-1: the image example.com/memcached:1 cannot be pulled: {ERROR}; "
        f"correct spec.image, or name a Secret with the registry's credentials in spec.imagePullSecrets",
    )


KUBELET_TEXTS = {
    "not found": ("ErrImagePull", ERROR),
    "registry unavailable": ("RegistryUnavailable", "image pull failed because the registry is unavailable: dial tcp"),
    "message that repeats the reason": ("ErrImagePull", "cannot pull: ErrImagePull: unauthorized"),
}


@pytest.mark.parametrize(("reason", "text"), KUBELET_TEXTS.values(), ids=KUBELET_TEXTS.keys())
def test_alternating_messages_of_the_kubelet_result_in_one_message(reason: str, text: str) -> None:
    backing_off = f'Back-off pulling image "example.com/memcached:1": {reason}: {text}'
    while_pulling, while_waiting = waiting(reason, text), waiting("ImagePullBackOff", backing_off)
    assert only(with_container(while_pulling)) == only(with_container(while_waiting))


def test_reason_is_reported_if_there_is_no_message() -> None:
    assert "cannot be pulled: ImagePullBackOff;" in only(with_container(waiting("ImagePullBackOff"))).message


@pytest.mark.parametrize("reason", sorted(START_REASONS))
def test_container_that_cannot_be_started(reason: str) -> None:
    failure = only(with_container(waiting(reason, 'secret "x" not found')))
    assert failure == Failure("PodsCrashing", 'Pod cache-1: the container cannot be started: secret "x" not found')


def test_all_states_of_a_container_that_never_starts_result_in_one_message() -> None:
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


def test_kind_knows_a_remedy_for_the_error() -> None:
    rules = PodRules("spec.imagePullSecrets", lambda cause: "use another" if cause == "bad image" else "")
    for cause, advice in (("bad image", "; use another"), ("other", "")):
        (failure,) = failures([with_container(waiting("RunContainerError", cause))], NOW, rules)
        assert failure.message.endswith(f"the container cannot be started: {cause}{advice}")


def test_end_that_the_operator_has_planned_is_no_crash() -> None:
    rules = PodRules(
        "spec.imagePullSecrets", is_planned=lambda _, name, end: (name, end["exitCode"]) == ("memcached", 3)
    )
    for code, expected in ((3, 0), (4, 1)):
        last = {"exitCode": code, "reason": "Completed", "containerID": "a"}
        found = with_container({**container({"running": {}}, ended=last), "restartCount": 1})
        assert len(failures([found], NOW, rules)) == expected


CRASHES: dict[str, tuple[Object, str]] = {
    "in CrashLoopBackOff": (crashed(), "container memcached terminated with exit code 64 (Error)"),
    "just terminated": (
        with_container(container({"terminated": {"exitCode": 71, "reason": "Error"}})),
        "container memcached terminated with exit code 71 (Error)",
    ),
    "no reason": (
        with_container(container({"terminated": {"exitCode": 71}})),
        "container memcached terminated with exit code 71 (Error)",
    ),
    "repeatedly completes": (restarted(crashed(exit_code=0, reason="Completed")), "exit code 0 (Completed)"),
    "just completed again": (
        restarted(with_container(container({"terminated": {"exitCode": 0, "reason": "Completed"}}))),
        "exit code 0 (Completed)",
    ),
    "runs again, not ready": (running_again(None), "terminated with exit code 64"),
    "completed and runs again, not ready": (
        restarted(running_again(None, exit_code=0)),
        "terminated with exit code 0",
    ),
}


@pytest.mark.parametrize(("crashing", "message"), CRASHES.values(), ids=CRASHES.keys())
def test_crash_message_names_exit_code_reason_and_logs(crashing: Object, message: str) -> None:
    failure = only(crashing)
    assert (failure.reason, failure.clears_in) == ("PodsCrashing", None)
    assert message in failure.message
    assert failure.message.endswith("; see kubectl logs --previous -n test cache-1")


def test_message_of_an_oom_kill_names_the_limit_to_raise() -> None:
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
def test_crash_is_reported_until_the_pod_was_ready_for_30_s(since: str | None, clears_in: float | None) -> None:
    assert only(running_again(since)).clears_in == clears_in
    assert only(restarted(running_again(since, exit_code=0))).clears_in == clears_in


@pytest.mark.parametrize("since", ["2030-01-01T11:59:30Z", "2029-12-31T00:00:00Z"], ids=["for 30 s", "for a day"])
def test_crash_is_not_reported_after_the_pod_was_ready_for_30_s(since: str) -> None:
    assert failures([running_again(since), restarted(running_again(since, exit_code=0))], NOW, RULES) == []


HEALTHY: dict[str, Object] = {
    "no status yet": pod(phase="Pending"),
    "being created": with_container(waiting("ContainerCreating")),
    "runs": with_container(container({"running": {}}, ready=True)),
    "completed for the first time": with_container(container({"terminated": {"exitCode": 0, "reason": "Completed"}})),
    "crashed and being deleted": deleted(crashed()),
    "crashed and failed": {**crashed(), "status": {**crashed()["status"], "phase": "Failed"}},
}


@pytest.mark.parametrize("healthy", HEALTHY.values(), ids=HEALTHY.keys())
def test_no_failure(healthy: Object) -> None:
    assert failures([healthy], NOW, RULES) == []


def test_failures_are_sorted_by_pod_name() -> None:
    found = failures([crashed("cache-2"), pod("cache-3"), crashed("cache-1")], NOW, RULES)
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


@pytest.mark.parametrize("since", [None, "2031-01-01T00:00:00Z"])
def test_crash_with_an_odd_ready_time_is_reported_for_the_whole_period(since: Any) -> None:
    found = running_again("2030-01-01T11:59:50Z")
    found["status"]["conditions"][0]["lastTransitionTime"] = since
    assert only(found).clears_in == 30
