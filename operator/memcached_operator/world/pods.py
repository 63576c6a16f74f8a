"""Reads the state of pods: which are running, and what their conditions are."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from memcached_operator.kube.resource import Object, nested_list, nested_map

_NOTHING: Mapping[str, Any] = {}
_STARTED: Final = (("state", "running"), ("state", "terminated"), ("lastState", "terminated"))


def running_pod_names(pods: Iterable[Object]) -> list[str]:
    """Sorted names of the running pods that are not being deleted."""
    return sorted(pod["metadata"]["name"] for pod in pods if is_active(pod) and _phase(pod) == "Running")


def is_active(pod: Object) -> bool:
    """False for a pod that has completed or is being deleted."""
    return not has_completed(pod) and not is_deleted(pod)


def is_deleted(pod: Object) -> bool:
    """Whether a pod is being deleted."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def has_completed(pod: Object) -> bool:
    """Whether all containers of a pod have ended for good."""
    return _phase(pod) in ("Succeeded", "Failed")


def condition_of(obj: Object, name: str) -> Mapping[str, Any]:
    """A condition of a pod, or of a custom resource; empty if it is not reported."""
    conditions = (condition for condition in nested_list(obj, "status", "conditions") if condition["type"] == name)
    return next(conditions, _NOTHING)


def container_status(pod: Object, name: str) -> Mapping[str, Any]:
    """The status of a container of a pod; empty if it is not reported."""
    statuses = (status for status in nested_list(pod, "status", "containerStatuses") if status["name"] == name)
    return next(statuses, _NOTHING)


def is_ready(pod: Object) -> bool:
    """Whether the condition Ready of a pod is True."""
    return condition_of(pod, "Ready").get("status") == "True"


def serves(pod: Object, container: str) -> bool:
    """Whether a container of a pod is ready, also if the pod is not."""
    return is_active(pod) and container_status(pod, container).get("ready") is True


def has_run(pods: Iterable[Object], container: str) -> bool:
    """Whether a container of one of the pods has been started."""
    states = (container_status(pod, container) for pod in pods)
    return any(state in nested_map(each, of) for each in states for of, state in _STARTED)


def is_unreported(pod: Object) -> bool:
    """Whether the node of a pod has stopped to report: then the node lifecycle controller changes only the status of
    the condition Ready. A kubelet writes the reason, too, such as ReadinessGatesNotReady.
    """
    ready, containers = condition_of(pod, "Ready"), condition_of(pod, "ContainersReady")
    return ready.get("status") == "False" and not ready.get("reason") and containers.get("status") == "True"


def _phase(pod: Object) -> str:
    return nested_map(pod, "status").get("phase", "")
