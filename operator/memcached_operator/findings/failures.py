"""Finds containers that fail, and explains each: what the kubelet reports, whose container it is, and a remedy."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from memcached_api import conditions as c
from memcached_api.image import MAX_LENGTH as MAX_IMAGE_LENGTH
from memcached_api.remedies import NONE
from memcached_operator.findings import image_errors
from memcached_operator.findings.image_errors import ImageError, error_of
from memcached_operator.findings.rules import OwnContainer, PodRules
from memcached_operator.kube import texts
from memcached_operator.kube.times import past_time
from memcached_operator.world.pod import Container as Spec
from memcached_operator.world.pod import ContainerStatus, Explained, Pod, Terminated, by_name
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
    spec: Spec
    status: ContainerStatus
    own_container: OwnContainer | None
    """The fields that govern it; None if it is not part of the kind's pods."""
    once: bool = False
    """It must end before the others start, as init containers except sidecars do."""

    @property
    def name(self) -> str:
        """The name in its status, by which `spec` was found."""
        return self.status.name

    @property
    def title(self) -> str:
        """Its role and its name, for messages."""
        return f"{self.role} {texts.name(self.name)}"


def containers_of(pod: Pod, rules: PodRules) -> Iterator[Container]:
    """The containers of a pod with a status, in the order in which they start.

    Ephemeral containers are left out: they are for debugging, and a pod is ready without them.
    """
    for spec, status in pod.init_containers:
        is_sidecar = spec.restart_policy == "Always"
        role, own = "sidecar container" if is_sidecar else "init container", rules.init_containers.get(status.name)
        yield Container(role, spec, status, own, not is_sidecar)
    for spec, status in pod.containers:
        yield Container("container", spec, status, rules.own_container(pod, status.name))


def failures(pods: Iterable[Pod], now: datetime, rules: PodRules, known: Messages = NO_MESSAGES) -> list[Failure]:
    """One failure per failing container, in the order of the pods' names.

    `known`: the Events about the pods, for a kubelet that does not repeat why an image was not pulled.
    """
    found: list[Failure] = []
    for pod in by_name(pods):
        if pod.is_active:
            explained = (_failure(pod, container, now, rules, known) for container in containers_of(pod, rules))
            found += [failure for failure in explained if failure is not None]
    return found


def logs(pod: Pod, container: str, *, previous: bool = False) -> str:
    """The command that shows the log of a container."""
    options = " --previous" if previous else ""
    # Only a forged status has a name that is not valid.
    of = f"-c {container}" if CONTAINER_NAME.fullmatch(container) else "--all-containers"
    return f"kubectl logs{options} -n {pod.metadata.namespace} {pod.name} {of}"


def not_ours(pod: Pod, rules: PodRules) -> str:
    """The remedy for a container that is not part of the kind's pods."""
    running = any(
        status.state.running is not None and rules.own_container(pod, status.name) is not None
        for status in pod.status.container_statuses
    )
    loss = f"; {rules.loss}" if running and rules.loss else ""
    remedy = f"correct what adds it to the pod, such as a mutating webhook. To replace the pod, delete it{loss}"
    return f"the container is not part of this {rules.kind}: {remedy}"


def image_problem(container: str, image: str, cause: str, length: int = MAX_CAUSE) -> str:
    """The sentence about an image that cannot be pulled. `container`: its role and its name. `length`: of the cause."""
    return f"the image {texts.name(image, MAX_IMAGE_LENGTH)} of {container} cannot be pulled: {stable(cause, length)}"


def text_of(state: Explained) -> str:
    """What a state or a condition says: its message or, without one, its reason. At most MAX_READ characters."""
    return (state.message or state.reason)[:MAX_READ]


def stable(text: str, length: int = MAX_CAUSE) -> str:
    """The text of a kubelet or of a scheduler on one line, without what differs in each of its attempts."""
    # The message alternates between "<error>" and "Back-off …: <error>".
    text = text[:MAX_READ]
    same = CONTAINER_ID.sub("…", SOURCE.sub("", BACK_OFF.sub("", text, count=1) or text))
    return texts.clause(same, length)


def _failure(pod: Pod, container: Container, now: datetime, rules: PodRules, known: Messages) -> Failure | None:
    """The failure of a container, if it has one."""
    waiting = container.status.waiting
    if waiting.reason in IMAGE_REASONS:
        if rules.takes_back(pod, container.name, waiting):  # the plan reports it
            return None
        return Failure(c.IMAGE_UNAVAILABLE, _image_message(pod, container, waiting, rules, known))
    if waiting.reason in START_REASONS:
        return Failure(c.PODS_CRASHING, _start_message(pod, container, waiting, rules))
    terminated = _last_termination(container)
    if terminated is None or rules.is_planned(pod, container.name, terminated):
        return None
    if terminated.reason in TERMINATED_START_REASONS and not container.status.ready:
        return Failure(c.PODS_CRASHING, _start_message(pod, container, terminated, rules))
    clears_in = _recovers_in(pod, container.status, now)
    if clears_in == 0:
        return None
    reason = c.PODS_CRASHING if container.own_container is None else container.own_container.reason
    return Failure(reason, _crash_message(pod, container, terminated, rules), clears_in)


def _last_termination(container: Container) -> Terminated | None:
    """The last unexpected termination of the container, or None."""
    last = container.status.last_state.terminated
    terminated = container.status.state.terminated or last
    if container.once:
        return terminated if terminated and terminated.exit_code != 0 else None
    # Exit code 0 is unexpected too, unless the container has never been restarted. Its count can be reset.
    restarted = last or container.status.restart_count > 0
    return terminated if terminated and (terminated.exit_code != 0 or restarted) else None


def _recovers_in(pod: Pod, status: ContainerStatus, now: datetime) -> float | None:
    """Seconds until a restarted container counts as recovered: 0 if it does, None if it is not ready.

    Its pod must have been ready for RECOVERY_PERIOD. A pod can be not ready for another reason: then it counts that the
    container is ready, and has run for RECOVERY_PERIOD.
    """
    if not status.ready:
        return None
    started = None if status.state.running is None else past_time(status.state.running.started_at, now)
    if pod.is_ready:
        since = past_time(pod.condition("Ready").last_transition_time, now) or now
        if started is not None:  # it can have recovered before its pod became ready
            since = min(since, started + timedelta(seconds=RECOVERY_PERIOD))
    else:
        since = started or now
    return max(0.0, RECOVERY_PERIOD - (now - since).total_seconds())


def _image_message(pod: Pod, container: Container, waiting: Explained, rules: PodRules, known: Messages) -> str:
    # The image of the spec, because the status can have the one before.
    image = container.spec.image or container.status.image
    text = text_of(waiting)
    if image_errors.is_unexplained(waiting):
        text = image_errors.reported(image, known.get(pod.metadata.uid, ())) or text
    problem = image_problem(container.title, image, text)
    return f"Pod {pod.name}: {problem}{_image_advice(pod, container, rules, error_of(text))}"


def _image_advice(pod: Pod, container: Container, rules: PodRules, error: ImageError) -> str:
    """What follows the problem of an image."""
    own = container.own_container
    cause = f"; {error.cause}" if error.cause else ""
    if own is None:
        return f"{cause}; {not_ours(pod, rules)}"
    advice = rules.advice(error.remedy(own))
    return f"{cause}; {advice}" if advice else cause


def _start_message(pod: Pod, container: Container, state: Explained, rules: PodRules) -> str:
    cause = text_of(state)
    if container.own_container is None:
        advice = not_ours(pod, rules)
    else:
        remedies = (remedy for error, remedy in container.own_container.start if error.search(cause))
        advice = rules.advice(next(remedies, NONE))
    end = f"; {advice}" if advice else ""
    return f"Pod {pod.name}: {container.title} cannot be started: {stable(cause)}{end}"


def _last_line(message: str) -> str:
    """The end of a termination message, which can be the last lines of a log; empty without one."""
    lines = message[-MAX_READ:].rstrip().splitlines()
    return texts.clause(lines[-1], MAX_CAUSE) if lines else ""


def _crash_message(pod: Pod, container: Container, terminated: Terminated, rules: PodRules) -> str:
    code, reason = terminated.exit_code, terminated.reason or "Error"
    is_oom = reason == "OOMKilled"
    remedies = [] if is_oom else [f"see {logs(pod, container.name, previous=True)}"]
    if container.own_container is None:
        remedies.append(not_ours(pod, rules))
    elif is_oom:
        remedies.append(rules.advice(container.own_container.memory))
    meaning = "" if container.own_container is None or is_oom else container.own_container.exits.get(code, "")
    said = _last_line(terminated.message) if meaning else ""
    details = "".join(f": {text}" for text in (meaning, said) if text)
    problem = f"{container.title} terminated with exit code {code} ({texts.name(reason)}){details}"
    return f"Pod {pod.name}: {problem}; {'; '.join(remedies)}"
