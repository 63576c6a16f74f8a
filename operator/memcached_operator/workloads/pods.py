"""Reads the state of pods: which are running, and why others fail."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memcached_api import conditions as c
from memcached_operator.kube.resource import Object, nested_list, nested_map
from memcached_operator.workloads.times import past_time

RECOVERY_PERIOD = 30.0
"""Seconds for which a restarted container must be Ready to count as recovered, to avoid flapping in a crash loop."""

IMAGE_REASONS = frozenset(
    {
        "ErrImagePull",
        "ErrImageNeverPull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
"""Waiting reasons for a missing image (kubernetes pkg/kubelet/images/types.go, cri-api pkg/errors)."""

BACK_OFF_PREFIX = re.compile(r'Back-off pulling image "[^"]*": \w+: ')
"""The kubelet's prefix of the error during its backoff (its image_manager.go)."""

START_REASONS = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
"""Waiting reasons for a container that cannot be started (kubernetes pkg/kubelet/kuberuntime)."""

TERMINATED_START_REASONS = frozenset({"StartError", "ContainerCannotRun"})
"""Termination reasons for a container that never ran (containerd, docker); the kubelet alternates between these and
RunContainerError."""


_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True)
class PodRules:
    """The rules of a kind for the failures of its pods.

    `pull_secrets`: the field that names image pull secrets. `start_remedy`: the remedy for the error with which a
    container cannot be started, empty without one. `is_planned`: whether the operator itself has made a container of a
    pod end, given its name and its state.
    """

    pull_secrets: str
    start_remedy: Callable[[str], str] = lambda _: ""
    is_planned: Callable[[Object, str, Mapping[str, Any]], bool] = lambda _pod, _name, _state: False


@dataclass(frozen=True)
class Failure:
    """A failure of a pod, with a reason for Degraded. `clears_in`: seconds until it may clear without an event."""

    reason: str
    message: str
    clears_in: float | None = None


def running_pod_names(pods: Iterable[Object]) -> list[str]:
    """Sorted names of the running pods that are not being deleted."""
    return sorted(pod["metadata"]["name"] for pod in pods if is_active(pod) and _phase(pod) == "Running")


def is_active(pod: Object) -> bool:
    """False for a pod that has completed or is being deleted."""
    return not has_completed(pod) and not pod["metadata"].get("deletionTimestamp")


def has_completed(pod: Object) -> bool:
    """Whether all containers of a pod have ended for good."""
    return _phase(pod) in ("Succeeded", "Failed")


def failures(pods: Iterable[Object], now: datetime, rules: PodRules) -> list[Failure]:
    """One failure per failing container, in the order of the pods' names."""
    container_failures: list[Failure] = []
    for pod in sorted(pods, key=lambda pod: pod["metadata"]["name"]):
        if is_active(pod):
            container_failures += _pod_failures(pod, now, rules)
    return container_failures


def unschedulable(pods: Iterable[Object]) -> str:
    """A message about the first unschedulable pod; empty if there is none."""
    for pod in sorted(pods, key=lambda pod: pod["metadata"]["name"]):
        scheduled = condition_of(pod, "PodScheduled")
        if is_active(pod) and scheduled.get("reason") == "Unschedulable":
            return f"pod {pod['metadata']['name']} cannot be scheduled: {scheduled.get('message', '')}"
    return ""


def condition_of(pod: Object, name: str) -> Mapping[str, Any]:
    """A condition of a pod; empty if it is not reported."""
    conditions = (condition for condition in nested_list(pod, "status", "conditions") if condition["type"] == name)
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


def _pod_failures(pod: Object, now: datetime, rules: PodRules) -> Iterator[Failure]:
    for container in nested_list(pod, "status", "containerStatuses"):
        failure = _container_failure(pod, container, now, rules)
        if failure is not None:
            yield failure


def _container_failure(pod: Object, container: Mapping[str, Any], now: datetime, rules: PodRules) -> Failure | None:
    waiting = nested_map(container, "state", "waiting")
    reason = waiting.get("reason", "")
    prefix = f"Pod {pod['metadata']['name']}"
    if reason in IMAGE_REASONS:
        return Failure(c.IMAGE_UNAVAILABLE, f"{prefix}: {_image_message(_image(pod, container), waiting, rules)}")
    if reason in START_REASONS:
        return _start_failure(prefix, waiting, rules)
    terminated = _last_termination(container)
    if terminated is None or rules.is_planned(pod, container["name"], terminated):
        return None
    if terminated.get("reason") in TERMINATED_START_REASONS and not container.get("ready"):
        return _start_failure(prefix, terminated, rules)
    clears_in = _recovers_in(pod, container, now)
    if clears_in == 0:
        return None
    return Failure(c.PODS_CRASHING, f"{prefix}: {_crash_message(pod, container, terminated)}", clears_in)


def _start_failure(prefix: str, state: Mapping[str, Any], rules: PodRules) -> Failure:
    cause: str = state.get("message") or state["reason"]
    remedy = rules.start_remedy(cause)
    advice = f"; {remedy}" if remedy else ""
    return Failure(c.PODS_CRASHING, f"{prefix}: the container cannot be started: {cause}{advice}")


def _last_termination(container: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The last unexpected termination of the container, or None."""
    last = nested_map(container, "lastState", "terminated")
    terminated = nested_map(container, "state", "terminated") or last
    # Exit code 0 is unexpected too, unless the container has never been restarted. Its count can be reset.
    unexpected = terminated and (terminated.get("exitCode") != 0 or last or container.get("restartCount", 0) > 0)
    return terminated if unexpected else None


def _recovers_in(pod: Object, container: Mapping[str, Any], now: datetime) -> float | None:
    """Seconds until a restarted container counts as recovered: 0 if it does, None if it is not Ready."""
    ready = condition_of(pod, "Ready")
    if not container.get("ready") or ready.get("status") != "True":
        return None
    since = past_time(ready.get("lastTransitionTime"), now) or now
    return max(0.0, RECOVERY_PERIOD - (now - since).total_seconds())


def _image(pod: Object, container: Mapping[str, Any]) -> str:
    """The image of a container: that of its spec, because the status can have the one before."""
    images = (spec["image"] for spec in nested_list(pod, "spec", "containers") if spec["name"] == container["name"])
    return next(images, container.get("image", ""))


def _image_message(image: str, waiting: Mapping[str, Any], rules: PodRules) -> str:
    text: str = waiting.get("message") or waiting["reason"]
    # The kubelet's message alternates between "<error>" and "Back-off …: <error>". Without the prefix, ours does not.
    cause = BACK_OFF_PREFIX.sub("", text, count=1)
    remedy = f"correct spec.image, or name a Secret with the registry's credentials in {rules.pull_secrets}"
    return f"the image {image} cannot be pulled: {cause}; {remedy}"


def _crash_message(pod: Object, container: Mapping[str, Any], terminated: Mapping[str, Any]) -> str:
    code, reason = terminated.get("exitCode"), terminated.get("reason", "Error")
    meta = pod["metadata"]
    if reason == "OOMKilled":
        remedy = "raise spec.resources.limits.memory, or reduce the memory use of the process"
    else:
        remedy = f"see kubectl logs --previous -n {meta.get('namespace')} {meta['name']}"
    return f"container {container['name']} terminated with exit code {code} ({reason}); {remedy}"


def _phase(pod: Object) -> str:
    return nested_map(pod, "status").get("phase", "")
