"""Finds containers that fail, and explains each: what the kubelet reports, whose container it is, and a remedy."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from memcached_api import conditions as c
from memcached_api.image import MAX_LENGTH as MAX_IMAGE_LENGTH
from memcached_api.remedies import NONE
from memcached_operator.findings import image_errors
from memcached_operator.findings.image_errors import ImageError, error_of
from memcached_operator.findings.rules import OwnContainer, PodRules
from memcached_operator.kube import texts
from memcached_operator.kube.resource import Object, nested_list, nested_map
from memcached_operator.kube.times import past_time
from memcached_operator.world.pods import condition_of, is_active, is_ready
from memcached_operator.world.snapshot import NO_MESSAGES, Messages

RECOVERY_PERIOD = 30.0
"""Seconds for which a restarted container must be ready to count as recovered, to avoid flapping in a crash loop."""

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

BACK_OFF: Final = re.compile(r'Back-off pulling image "[^"]*"(?:: \w+: |$)')
"""The kubelet's text during its backoff (its image_manager.go). Before release 1.32, the error does not follow."""

SOURCE: Final = re.compile(r"(?<!\d)(?:\d{1,3}(?:\.\d{1,3}){3}|\[[\da-f:]{2,45}\]):\d{1,5}->")
"""The source address of a connection in an error of Go's package net, with a port that differs in each attempt. The
parts have limits, because a registry of a tenant writes the text."""

CONTAINER_ID: Final = re.compile(r"\b[0-9a-f]{64}\b")
"""The ID of a container in an error of the runtime, which differs in each attempt."""

START_REASONS = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "PreCreateHookError",
        "PreStartHookError",
        "RunContainerError",
    }
)
"""Waiting reasons for a container that cannot be started (kubernetes pkg/kubelet/kuberuntime)."""

TERMINATED_START_REASONS = frozenset({"StartError", "ContainerCannotRun"})
"""Termination reasons for a container that never ran (containerd, docker); the kubelet alternates between these and
RunContainerError."""

CONTAINER_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
"""A name that the API server accepts for a container: a label of RFC 1123."""

MAX_READ: Final = 4096
"""Characters of such a text that are read."""

MAX_CAUSE: Final = 600
"""Characters of a text of the kubelet, so that the remedy after it fits into workload.MAX_PROBLEM_LENGTH."""


@dataclass(frozen=True)
class Failure:
    """A failure of a pod, with a reason for Degraded. `clears_in`: seconds until it may clear without an event."""

    reason: str
    message: str
    clears_in: float | None = None


@dataclass(frozen=True)
class Container:
    """A container of a pod."""

    role: str
    """Its type, for messages."""
    spec: Mapping[str, Any]
    status: Mapping[str, Any]
    own_container: OwnContainer | None
    """The fields that govern it; None if it is not part of the kind's pods."""
    once: bool = False
    """It must end before the others start, as init containers except sidecars do."""

    @property
    def name(self) -> str:
        """The name in its status, by which `spec` was found."""
        return self.status["name"]

    @property
    def title(self) -> str:
        """Its role and its name, for messages."""
        return f"{self.role} {texts.name(self.name)}"


def containers_of(pod: Object, rules: PodRules) -> Iterator[Container]:
    """The containers of a pod with a status, in the order in which they start.

    Ephemeral containers are left out: they are for debugging, and a pod is ready without them.
    """
    for part, statuses in (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")):
        specs = {spec["name"]: spec for spec in nested_list(pod, "spec", part)}
        for status in nested_list(pod, "status", statuses):
            spec = specs.get(status["name"], {})
            if part == "containers":
                yield Container("container", spec, status, rules.own_container(pod, status["name"]))
            elif spec.get("restartPolicy") == "Always":
                yield Container("sidecar container", spec, status, None)
            else:
                yield Container("init container", spec, status, None, once=True)


def failures(pods: Iterable[Object], now: datetime, rules: PodRules, known: Messages = NO_MESSAGES) -> list[Failure]:
    """One failure per failing container, in the order of the pods' names.

    `known`: the Events about the pods, for a kubelet that does not repeat why an image was not pulled.
    """
    found: list[Failure] = []
    for pod in sorted(pods, key=lambda pod: pod["metadata"]["name"]):
        if is_active(pod):
            explained = (_failure(pod, container, now, rules, known) for container in containers_of(pod, rules))
            found += [failure for failure in explained if failure is not None]
    return found


def logs(pod: Object, container: str, *, previous: bool = False) -> str:
    """The command that shows the log of a container."""
    meta = pod["metadata"]
    options = " --previous" if previous else ""
    # Only a forged status has a name that is not valid.
    of = f"-c {container}" if CONTAINER_NAME.fullmatch(container) else "--all-containers"
    return f"kubectl logs{options} -n {meta.get('namespace')} {meta['name']} {of}"


def not_ours(pod: Object, rules: PodRules) -> str:
    """The remedy for a container that is not part of the kind's pods."""
    running = any(
        "running" in nested_map(status, "state") and rules.own_container(pod, status["name"]) is not None
        for status in nested_list(pod, "status", "containerStatuses")
    )
    loss = f"; {rules.loss}" if running and rules.loss else ""
    remedy = f"correct what adds it to the pod, such as a mutating webhook. To replace the pod, delete it{loss}"
    return f"the container is not part of this {rules.kind}: {remedy}"


def image_problem(container: str, image: str, cause: str, length: int = MAX_CAUSE) -> str:
    """The sentence about an image that cannot be pulled. `container`: its role and its name. `length`: of the cause."""
    return f"the image {texts.name(image, MAX_IMAGE_LENGTH)} of {container} cannot be pulled: {stable(cause, length)}"


def text_of(state: Mapping[str, Any]) -> str:
    """What a state or a condition says: its message or, without one, its reason. At most MAX_READ characters."""
    return (state.get("message") or state.get("reason") or "")[:MAX_READ]


def stable(text: str, length: int = MAX_CAUSE) -> str:
    """The text of a kubelet or of a scheduler on one line, without what differs in each of its attempts."""
    # The message alternates between "<error>" and "Back-off …: <error>".
    text = text[:MAX_READ]
    same = CONTAINER_ID.sub("…", SOURCE.sub("", BACK_OFF.sub("", text, count=1) or text))
    return texts.clause(same, length)


def _failure(pod: Object, container: Container, now: datetime, rules: PodRules, known: Messages) -> Failure | None:
    """The failure of a container, if it has one."""
    waiting = nested_map(container.status, "state", "waiting")
    if waiting.get("reason") in IMAGE_REASONS:
        if rules.takes_back(pod, container.name, waiting):  # the plan reports it
            return None
        return Failure(c.IMAGE_UNAVAILABLE, _image_message(pod, container, waiting, rules, known))
    if waiting.get("reason") in START_REASONS:
        return Failure(c.PODS_CRASHING, _start_message(pod, container, waiting, rules))
    terminated = _last_termination(container)
    if terminated is None or rules.is_planned(pod, container.name, terminated):
        return None
    if terminated.get("reason") in TERMINATED_START_REASONS and not container.status.get("ready"):
        return Failure(c.PODS_CRASHING, _start_message(pod, container, terminated, rules))
    clears_in = _recovers_in(pod, container.status, now)
    if clears_in == 0:
        return None
    return Failure(c.PODS_CRASHING, _crash_message(pod, container, terminated, rules), clears_in)


def _last_termination(container: Container) -> Mapping[str, Any] | None:
    """The last unexpected termination of the container, or None."""
    last = nested_map(container.status, "lastState", "terminated")
    terminated = nested_map(container.status, "state", "terminated") or last
    if container.once:
        return terminated if terminated and terminated.get("exitCode") != 0 else None
    # Exit code 0 is unexpected too, unless the container has never been restarted. Its count can be reset.
    restarted = last or container.status.get("restartCount", 0) > 0
    return terminated if terminated and (terminated.get("exitCode") != 0 or restarted) else None


def _recovers_in(pod: Object, status: Mapping[str, Any], now: datetime) -> float | None:
    """Seconds until a restarted container counts as recovered: 0 if it does, None if it is not ready.

    Its pod must have been ready for RECOVERY_PERIOD. A pod can be not ready for another reason: then it counts that the
    container is ready, and has run for RECOVERY_PERIOD.
    """
    if not status.get("ready"):
        return None
    started = past_time(nested_map(status, "state", "running").get("startedAt"), now)
    if is_ready(pod):
        since = past_time(condition_of(pod, "Ready").get("lastTransitionTime"), now) or now
        if started is not None:  # it can have recovered before its pod became ready
            since = min(since, started + timedelta(seconds=RECOVERY_PERIOD))
    else:
        since = started or now
    return max(0.0, RECOVERY_PERIOD - (now - since).total_seconds())


def _image_message(
    pod: Object, container: Container, waiting: Mapping[str, Any], rules: PodRules, known: Messages
) -> str:
    # The image of the spec, because the status can have the one before.
    image = container.spec.get("image") or container.status.get("image", "")
    text = text_of(waiting)
    if image_errors.is_unexplained(waiting):
        text = image_errors.reported(image, known.get(pod["metadata"]["uid"], ())) or text
    problem = image_problem(container.title, image, text)
    return f"Pod {pod['metadata']['name']}: {problem}{_image_advice(pod, container, rules, error_of(text))}"


def _image_advice(pod: Object, container: Container, rules: PodRules, error: ImageError) -> str:
    """What follows the problem of an image."""
    own = container.own_container
    cause = f"; {error.cause}" if error.cause else ""
    if own is None:
        return f"{cause}; {not_ours(pod, rules)}"
    advice = rules.advice(error.remedy(own))
    return f"{cause}; {advice}" if advice else cause


def _start_message(pod: Object, container: Container, state: Mapping[str, Any], rules: PodRules) -> str:
    cause = text_of(state)
    if container.own_container is None:
        advice = not_ours(pod, rules)
    else:
        remedies = (remedy for error, remedy in container.own_container.start if error.search(cause))
        advice = rules.advice(next(remedies, NONE))
    end = f"; {advice}" if advice else ""
    return f"Pod {pod['metadata']['name']}: {container.title} cannot be started: {stable(cause)}{end}"


def _crash_message(pod: Object, container: Container, terminated: Mapping[str, Any], rules: PodRules) -> str:
    code, reason = terminated.get("exitCode", 0), terminated.get("reason", "Error")
    is_oom = reason == "OOMKilled"
    remedies = [] if is_oom else [f"see {logs(pod, container.name, previous=True)}"]
    if container.own_container is None:
        remedies.append(not_ours(pod, rules))
    elif is_oom:
        remedies.append(rules.advice(container.own_container.memory))
    meaning = "" if container.own_container is None or is_oom else container.own_container.exits.get(code, "")
    problem = f"{container.title} terminated with exit code {code} ({texts.name(reason)}){meaning and f': {meaning}'}"
    return f"Pod {pod['metadata']['name']}: {problem}; {'; '.join(remedies)}"
