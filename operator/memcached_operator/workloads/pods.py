"""What pods tell of themselves: which are alive, and why others are not."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memcached_api import conditions as c
from memcached_operator.kube.resource import Object, controller_of, entries, mapping

READY_PERIOD = 30.0
"""Seconds that a container which crashed must be Ready to count as well again: no flapping during a crash loop."""

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
"""Reasons of a waiting container that lacks its image (kubernetes pkg/kubelet/images/types.go, cri-api pkg/errors)."""

BACK_OFF = re.compile(r'Back-off pulling image "[^"]*": \w+: ')
"""What the kubelet writes before the error while it waits for the next try (its image_manager.go)."""

START_REASONS = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
"""Reasons of a waiting container that cannot be started (kubernetes pkg/kubelet/kuberuntime)."""

START_ENDS = frozenset({"StartError", "ContainerCannotRun"})
"""Reasons of a container's end that mean it never ran (containerd, docker); it turns up beside RunContainerError."""


_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Failure:
    """Why a pod does not work, as a reason of Degraded; `clears_in` seconds, where time alone may mend it."""

    reason: str
    message: str
    clears_in: float | None = None


def live_names(pods: Iterable[Object]) -> list[str]:
    """Sorted names of the pods that run and are not being deleted."""
    return sorted(pod["metadata"]["name"] for pod in pods if is_live(pod) and _phase(pod) == "Running")


def is_live(pod: Object) -> bool:
    """False for a pod that is over, or being deleted."""
    return _phase(pod) not in ("Succeeded", "Failed") and not pod["metadata"].get("deletionTimestamp")


def is_of(pod: Object, deployments: Iterable[str]) -> bool:
    """True for a pod that one of these Deployments made: labels alone, on a copy of a pod for example, do not count."""
    controller = controller_of(pod)
    if controller is None or controller["kind"] != "ReplicaSet":
        return False
    template = mapping(pod, "metadata", "labels").get("pod-template-hash")
    return any(controller["name"] == f"{name}-{template}" for name in deployments)


def failures(pods: Iterable[Object], now: datetime, pull_secrets: str) -> list[Failure]:
    """One failure per container that fails, in the order of the pods' names.

    `pull_secrets`: the field that names Secrets for pulling the image.
    """
    found: list[Failure] = []
    for pod in sorted(pods, key=lambda pod: pod["metadata"]["name"]):
        if is_live(pod):
            found += _of_pod(pod, now, pull_secrets)
    return found


def unschedulable(pods: Iterable[Object]) -> str:
    """Why the first pod that no node will take is not scheduled, or nothing."""
    for pod in sorted(pods, key=lambda pod: pod["metadata"]["name"]):
        scheduled = _condition(pod, "PodScheduled")
        if is_live(pod) and scheduled.get("reason") == "Unschedulable":
            return f"pod {pod['metadata']['name']} cannot be scheduled: {scheduled.get('message', '')}"
    return ""


def _of_pod(pod: Object, now: datetime, pull_secrets: str) -> Iterator[Failure]:
    for container in entries(pod, "status", "containerStatuses"):
        failure = _of_container(pod, container, now, pull_secrets)
        if failure is not None:
            yield failure


def _of_container(pod: Object, container: Mapping[str, Any], now: datetime, pull_secrets: str) -> Failure | None:
    waiting = mapping(container, "state", "waiting")
    reason = waiting.get("reason", "")
    where = f"pod {pod['metadata']['name']}"
    if reason in IMAGE_REASONS:
        return Failure(c.IMAGE_UNAVAILABLE, f"{where}: {_image_message(container, waiting, pull_secrets)}")
    if reason in START_REASONS:
        return _unstartable(where, waiting)
    ended = _last_end(container)
    if ended is None:
        return None
    if ended.get("reason") in START_ENDS and not container.get("ready"):
        return _unstartable(where, ended)
    clears_in = _ready_in(pod, container, now)
    if clears_in == 0:
        return None
    return Failure(c.PODS_CRASHING, f"{where}: {_crash_message(pod, container, ended)}", clears_in)


def _unstartable(where: str, state: Mapping[str, Any]) -> Failure:
    cause = state.get("message") or state["reason"]
    return Failure(c.PODS_CRASHING, f"{where}: the container cannot be started: {cause}")


def _last_end(container: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """How the container ended last, if it should not have."""
    ended = mapping(container, "state", "terminated") or mapping(container, "lastState", "terminated")
    # It should not end with 0 either; only one that never ran before may be on its way.
    return ended if ended and (ended.get("exitCode") != 0 or container.get("restartCount", 0) > 0) else None


def _ready_in(pod: Object, container: Mapping[str, Any], now: datetime) -> float | None:
    """Seconds until a container that crashed counts as well: 0 where it does, None where it is not even Ready."""
    ready = _condition(pod, "Ready")
    if not container.get("ready") or ready.get("status") != "True":
        return None
    since = datetime.fromisoformat(ready["lastTransitionTime"])
    return max(0.0, READY_PERIOD - (now - since).total_seconds())


def _image_message(container: Mapping[str, Any], waiting: Mapping[str, Any], pull_secrets: str) -> str:
    text: str = waiting.get("message") or waiting["reason"]
    # The kubelet's text alternates between the error and "Back-off …: <the error>": keep to the error.
    cause = BACK_OFF.sub("", text, count=1)
    remedy = f"correct spec.image, or name a Secret with the registry's credentials in {pull_secrets}"
    return f"the image {container.get('image')} cannot be pulled: {cause}; {remedy}"


def _crash_message(pod: Object, container: Mapping[str, Any], ended: Mapping[str, Any]) -> str:
    code, reason = ended.get("exitCode"), ended.get("reason", "Error")
    meta = pod["metadata"]
    if reason == "OOMKilled":
        remedy = "raise spec.resources.limits.memory, or lower what the process uses"
    else:
        remedy = f"see kubectl logs --previous -n {meta.get('namespace')} {meta['name']}"
    return f"container {container['name']} ended with exit code {code} ({reason}); {remedy}"


def _condition(pod: Object, name: str) -> Mapping[str, Any]:
    found = (condition for condition in entries(pod, "status", "conditions") if condition["type"] == name)
    return next(found, _NOTHING)


def _phase(pod: Object) -> str:
    return mapping(pod, "status").get("phase", "")
