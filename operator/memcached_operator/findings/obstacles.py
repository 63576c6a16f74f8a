"""Names what the pods that are not ready wait for, although none of their containers fails."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from memcached_api.remedies import Remedy
from memcached_operator.findings.failures import Container, containers_of, failures, logs, stable, text_of
from memcached_operator.findings.rollout import PROGRESS_DEADLINE
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube import texts
from memcached_operator.kube.resource import Object
from memcached_operator.kube.times import past_time, time_of
from memcached_operator.world.pod import NOT_REPORTED, Pod, by_name, times_of_conditions

START_PERIOD: Final = timedelta(seconds=60)
"""The time that a pod may take for a step of its start or its deletion before the step is reported: what is normal must
not cost a write of the status."""

CLAIM_PERIOD: Final = timedelta(seconds=15)
"""The same for the claims of a pod: a new one is bound within some seconds, also after the claim of the pod that it
replaces is deleted."""

UNCREATED_CLAIM: Final = "ephemeral volume controller to create|was not created for pod"
CLAIMS: Final = re.compile(
    rf"{UNCREATED_CLAIM}|unbound immediate PersistentVolumeClaims|persistentvolumeclaim \S{{1,300}} is being deleted"
)
"""The scheduler's messages while a claim is not created, or one of another owner has its name, and all about claims
that are not created or not bound (kubernetes pkg/scheduler/framework/plugins/volumebinding,
component-helpers/storage/ephemeral)."""

MAX_NAMES: Final = 3
"""Maximum names of gates or finalizers in a message."""

MAX_NAME: Final = 317
"""Characters of such a name: the API server allows a prefix of 253 and a name of 63."""


COLLECTOR_FINALIZERS: Final = frozenset({"foregroundDeletion", "orphan"})

PREEMPTION: Final = re.compile(r" (?:no new claims to deallocate, )?preemption: .*", re.DOTALL)
"""The end of the scheduler's message: that no other pod gives way (kubernetes pkg/scheduler/framework/preemption)."""


@dataclass(frozen=True)
class Obstacle:
    """What a pod waits for, as a clause. `after`: seconds until it is reported; 0: now.

    `pod`: if the clause can be that of several pods, the name of the pod, which it lacks.
    """

    message: str
    after: float = 0.0
    pod: str = ""


def obstacles(pods: Iterable[Pod], now: datetime, rules: PodRules) -> list[Obstacle]:
    """One obstacle per pod that has one, in the order of the pods' names, then the last failure of a whole pod.

    Pods that no node takes for the same reason share one.
    """
    known = by_name(pods)
    found = [_obstacle(pod, now, rules) for pod in known]
    return list(_shared([each for each in (*found, _failed(known, now)) if each is not None]))


def _shared(found: Iterable[Obstacle]) -> Iterator[Obstacle]:
    """The obstacles, in the order of the first pod of each."""
    groups: dict[tuple[str, bool], list[Obstacle]] = {}
    for each in found:
        groups.setdefault((each.message, bool(each.pod)), []).append(each)
    for (message, is_of_pods), group in groups.items():
        names = [each.pod for each in group]
        title = f"{'pod' if len(names) == 1 else 'pods'} {_names(names)} " if is_of_pods else ""
        yield Obstacle(f"{title}{message}", group[0].after)


def _obstacle(pod: Pod, now: datetime, rules: PodRules) -> Obstacle | None:
    if pod.is_deleted:
        return None if pod.is_ready else _being_deleted(pod, now)
    if pod.has_completed or pod.is_ready:
        return None
    if failures([pod], now, rules):
        return None
    steps = (step(pod, now, rules) for step in STEPS)
    return next((obstacle for obstacle in steps if obstacle is not None), None)


def _unscheduled(pod: Pod, now: datetime, rules: PodRules) -> Obstacle | None:
    """A pod that the scheduler cannot place on a node, or must not."""
    scheduled = pod.condition("PodScheduled")
    if scheduled.status != "False":
        return None
    if scheduled.reason != "SchedulingGated":
        text = stable(PREEMPTION.sub("", text_of(scheduled)))
        # A new claim takes some seconds, which is normal.
        after = _left(scheduled.last_transition_time, now, CLAIM_PERIOD) if CLAIMS.search(text) else 0.0
        return Obstacle(f"cannot be scheduled: {text}{_scheduling_remedy(text, rules)}", after, pod.name)
    gates = _names(gate["name"] for gate in pod.spec.scheduling_gates)
    remedy = f"They are not part of this {rules.kind}: the controller that adds them must remove them"
    message = f"pod {pod.name} waits for its scheduling gates {gates}. {remedy}"
    return Obstacle(message, _left(pod.metadata.creation_timestamp, now))


def _scheduling_remedy(text: str, rules: PodRules) -> str:
    """What a user can do about a message of the scheduler, as sentences after it; empty if none is known."""
    end, remedies = "" if text.endswith(".") else ".", list[Remedy]()
    for part, remedy in rules.scheduling.items():
        if part in text:
            remedies.append(remedy)
            text = text.replace(part, "")
    advice = rules.advice(*remedies)
    return f"{end} {advice[:1].upper()}{advice[1:]}" if advice else ""


def _initializing(pod: Pod, now: datetime, rules: PodRules) -> Obstacle | None:
    """A pod with an init container that does not end, or a sidecar container that does not become started."""
    for container in containers_of(pod, rules):
        running = container.status.state.running
        initialized = container.status.ready if container.once else container.status.started
        if container.role != "container" and running is not None and not initialized:
            message = f"pod {pod.name} waits for {_title(container, rules)}; see {logs(pod, container.name)}"
            return Obstacle(message, _left(running.started_at, now))
    return None


def _starting(pod: Pod, now: datetime, rules: PodRules) -> Obstacle | None:
    """A pod with a container that is not created yet."""
    containers = [*containers_of(pod, rules)]
    waiting = [each for each in containers if not (each.status.state.running or each.status.state.terminated)]
    if containers and not waiting:
        return None
    scheduled, started = pod.condition("PodScheduled"), pod.condition("PodReadyToStartContainers")
    if not scheduled.is_true:
        return None
    see = f"see the Events in kubectl describe pod -n {pod.metadata.namespace} {pod.name}"
    if started.is_true and waiting:
        message = f"pod {pod.name} waits for the image of {_title(waiting[0], rules)}; {see}"
        return Obstacle(message, _left(started.last_transition_time, now))
    accepted = pod.condition("Ready") is not NOT_REPORTED  # only a kubelet adds it
    cause = (
        f"its volumes or its network are not ready; {see}" if accepted else f"its node {_node(pod)} has not accepted it"
    )
    return Obstacle(f"pod {pod.name} has not started: {cause}", _left(scheduled.last_transition_time, now))


def _unready(pod: Pod, now: datetime, rules: PodRules) -> Obstacle | None:
    """A pod with a container of another client that runs, but is not ready.

    The kind's own containers are left out: memcached is restarted then, and the rollout says what the agent waits for.
    """
    for container in containers_of(pod, rules):
        if container.own_container is None and not container.once and not container.status.ready:
            message = f"pod {pod.name} waits until {_title(container, rules)}, is ready"
            return Obstacle(
                f"{message}; see {logs(pod, container.name)}", _left(pod.condition("Ready").last_transition_time, now)
            )
    return None


def _gated(pod: Pod, now: datetime, rules: PodRules) -> Obstacle | None:
    """A pod whose readiness gates are not met. No kind has one."""
    gates = [gate["conditionType"] for gate in pod.spec.readiness_gates]
    unmet = [(gate, pod.condition(gate)) for gate in gates if not pod.condition(gate).is_true]
    if not unmet:
        return None
    gate, condition = unmet[0]
    state = stable(text_of(condition) or condition.status or "not set")
    remedy = f"It is not part of this {rules.kind}: correct the controller that sets this condition of the pod"
    message = f"pod {pod.name} waits for its readiness gate {_names([gate])} ({state}). {remedy}"
    return Obstacle(message, _left(pod.condition("ContainersReady").last_transition_time, now))


def _unreported(pod: Pod, now: datetime, rules: PodRules) -> Obstacle | None:  # noqa: ARG001 - one of STEPS
    """A pod whose node has stopped to report: the node lifecycle controller then changes only the condition Ready."""
    if not pod.is_unreported:
        return None
    return Obstacle(f"pod {pod.name} is not ready, because its node {_node(pod)} does not report its state")


STEPS: Final[tuple[Callable[[Pod, datetime, PodRules], Obstacle | None], ...]] = (
    _unscheduled,
    _initializing,
    _starting,
    _unready,
    _gated,
    _unreported,
)
"""The steps until a pod is ready, in their order."""


def blocked_by(obj: Object) -> str:
    """The finalizers that block the deletion of an object, as a clause; empty without one."""
    meta = obj["metadata"]
    return _blocked_by(meta.get("finalizers") or ()) if meta.get("deletionTimestamp") else ""


def _blocked_by(names: Iterable[str]) -> str:
    """The same. Those of the garbage collector are left out: it only waits for the dependents."""
    finalizers = [name for name in names if name not in COLLECTOR_FINALIZERS]
    if not finalizers:
        return ""
    if len(finalizers) == 1:
        return f"its finalizer {_names(finalizers)} blocks it"
    return f"its finalizers {_names(finalizers)} block it"


def _being_deleted(pod: Pod, now: datetime) -> Obstacle | None:
    """A pod that still exists long after the end of its grace period."""
    end = time_of(pod.metadata.deletion_timestamp)
    if end is None:
        return None
    cause = _blocked_by(pod.metadata.finalizers)
    if not cause:
        command = f"kubectl delete pod --force --wait=false -n {pod.metadata.namespace} {pod.name}"
        cause = f"its node {_node(pod)} does not confirm it. Only if that node is switched off, run {command}"
    disruption = pod.condition("DisruptionTarget").message or pod.status.message
    reason = f" ({stable(disruption)})" if disruption else ""
    left = (end - now + START_PERIOD).total_seconds()  # not end + …, which overflows in the year 9999
    return Obstacle(f"pod {pod.name} is still being deleted{reason}: {cause}", max(0.0, left))


def _failed(pods: Iterable[Pod], now: datetime) -> Obstacle | None:
    """The last pod that a node has evicted or rejected. Its name is left out, because the next one has another."""
    failed = [(at, pod.status) for pod in pods if (at := _failed_at(pod, now)) is not None]
    if not failed:
        return None
    _, status = max(failed, key=lambda entry: entry[0])
    text = f": {stable(status.message)}" if status.message else ""
    return Obstacle(f"a pod failed with the reason {texts.name(status.reason)}{text}")


def _failed_at(pod: Pod, now: datetime) -> datetime | None:
    """The time at which a pod failed as a whole, if that was a short time ago."""
    if pod.status.phase != "Failed" or not pod.status.reason:
        return None
    times = [past_time(text, now) for text in times_of_conditions(pod)]
    at = max((time for time in times if time is not None), default=None)
    return at if at is not None and now - at < PROGRESS_DEADLINE else None


def _title(container: Container, rules: PodRules) -> str:
    return container.title if container.own_container else f"{container.title}, which is not part of this {rules.kind}"


def _names(names: Iterable[str]) -> str:
    listed = [texts.name(name, MAX_NAME) for name in names]
    more = [f"{len(listed) - MAX_NAMES} more"] if len(listed) > MAX_NAMES else []
    return " and ".join([", ".join(listed[:MAX_NAMES]), *more])


def _left(since: str | None, now: datetime, period: timedelta = START_PERIOD) -> float:
    """Seconds until a step has taken this time."""
    begun = past_time(since, now) or now
    return max(0.0, (period - (now - begun)).total_seconds())


def _node(pod: Pod) -> str:
    return texts.name(pod.spec.node_name, MAX_NAME)
