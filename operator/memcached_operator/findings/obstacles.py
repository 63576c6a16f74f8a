"""Names what the pods that are not ready wait for, although none of their containers fails."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from memcached_api.remedies import Remedy
from memcached_operator.findings.failures import Container, containers_of, failures, logs, stable, text_of
from memcached_operator.findings.rollout import PROGRESS_DEADLINE
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube import texts
from memcached_operator.kube.resource import Object, nested_list, nested_map
from memcached_operator.kube.times import past_time, time_of
from memcached_operator.world.pods import condition_of, has_completed, is_deleted, is_ready, is_unreported

START_PERIOD: Final = timedelta(seconds=60)
"""The time that a pod may take for a step of its start or its deletion before the step is reported: what is normal must
not cost a write of the status."""

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


def obstacles(pods: Iterable[Object], now: datetime, rules: PodRules) -> list[Obstacle]:
    """One obstacle per pod that has one, in the order of the pods' names, then the last failure of a whole pod.

    Pods that no node takes for the same reason share one.
    """
    known = sorted(pods, key=_name)
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


def _obstacle(pod: Object, now: datetime, rules: PodRules) -> Obstacle | None:
    if is_deleted(pod):
        return None if is_ready(pod) else _being_deleted(pod, now)
    if has_completed(pod) or is_ready(pod):
        return None
    if failures([pod], now, rules):
        return None
    steps = (step(pod, now, rules) for step in STEPS)
    return next((obstacle for obstacle in steps if obstacle is not None), None)


def _unscheduled(pod: Object, now: datetime, rules: PodRules) -> Obstacle | None:
    """A pod that the scheduler cannot place on a node, or must not."""
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled.get("status") != "False":
        return None
    if scheduled.get("reason") != "SchedulingGated":
        text = stable(PREEMPTION.sub("", text_of(scheduled)))
        return Obstacle(f"cannot be scheduled: {text}{_scheduling_remedy(text, rules)}", pod=_name(pod))
    gates = _names(gate["name"] for gate in nested_list(pod, "spec", "schedulingGates"))
    remedy = f"They are not part of this {rules.kind}: the controller that adds them must remove them"
    message = f"pod {_name(pod)} waits for its scheduling gates {gates}. {remedy}"
    return Obstacle(message, _left(pod["metadata"].get("creationTimestamp"), now))


def _scheduling_remedy(text: str, rules: PodRules) -> str:
    """What a user can do about a message of the scheduler, as sentences after it; empty if none is known."""
    end, remedies = "" if text.endswith(".") else ".", list[Remedy]()
    for part, remedy in rules.scheduling.items():
        if part in text:
            remedies.append(remedy)
            text = text.replace(part, "")
    advice = rules.advice(*remedies)
    return f"{end} {advice[:1].upper()}{advice[1:]}" if advice else ""


def _initializing(pod: Object, now: datetime, rules: PodRules) -> Obstacle | None:
    """A pod with an init container that does not end, or a sidecar container that does not become started."""
    for container in containers_of(pod, rules):
        running = nested_map(container.status, "state").get("running")
        initialized = container.status.get("ready" if container.once else "started")
        if container.role != "container" and running is not None and not initialized:
            message = f"pod {_name(pod)} waits for {_title(container, rules)}; see {logs(pod, container.name)}"
            return Obstacle(message, _left(running.get("startedAt"), now))
    return None


def _starting(pod: Object, now: datetime, rules: PodRules) -> Obstacle | None:
    """A pod with a container that is not created yet."""
    states = [(container, nested_map(container.status, "state")) for container in containers_of(pod, rules)]
    waiting = [container for container, state in states if not state.keys() & {"running", "terminated"}]
    if states and not waiting:
        return None
    scheduled, started = (condition_of(pod, name) for name in ("PodScheduled", "PodReadyToStartContainers"))
    if scheduled.get("status") != "True":
        return None
    meta = pod["metadata"]
    see = f"see the Events in kubectl describe pod -n {meta.get('namespace')} {meta['name']}"
    if started.get("status") == "True" and waiting:
        message = f"pod {meta['name']} waits for the image of {_title(waiting[0], rules)}; {see}"
        return Obstacle(message, _left(started.get("lastTransitionTime"), now))
    accepted = condition_of(pod, "Ready")  # only a kubelet adds it
    cause = (
        f"its volumes or its network are not ready; {see}" if accepted else f"its node {_node(pod)} has not accepted it"
    )
    return Obstacle(f"pod {meta['name']} has not started: {cause}", _left(scheduled.get("lastTransitionTime"), now))


def _unready(pod: Object, now: datetime, rules: PodRules) -> Obstacle | None:
    """A pod with a container of another client that runs, but is not ready.

    The kind's own containers are left out: memcached is restarted then, and the rollout says what the agent waits for.
    """
    for container in containers_of(pod, rules):
        if container.own_container is None and not container.once and not container.status.get("ready"):
            message = f"pod {_name(pod)} waits until {_title(container, rules)}, is ready"
            return Obstacle(f"{message}; see {logs(pod, container.name)}", _left(_since(pod, "Ready"), now))
    return None


def _gated(pod: Object, now: datetime, rules: PodRules) -> Obstacle | None:
    """A pod whose readiness gates are not met. No kind has one."""
    gates = [gate["conditionType"] for gate in nested_list(pod, "spec", "readinessGates")]
    unmet = [(gate, condition_of(pod, gate)) for gate in gates if condition_of(pod, gate).get("status") != "True"]
    if not unmet:
        return None
    gate, condition = unmet[0]
    state = stable(text_of(condition) or condition.get("status") or "not set")
    remedy = f"It is not part of this {rules.kind}: correct the controller that sets this condition of the pod"
    message = f"pod {_name(pod)} waits for its readiness gate {_names([gate])} ({state}). {remedy}"
    return Obstacle(message, _left(_since(pod, "ContainersReady"), now))


def _unreported(pod: Object, now: datetime, rules: PodRules) -> Obstacle | None:  # noqa: ARG001 - one of STEPS
    """A pod whose node has stopped to report: the node lifecycle controller then changes only the condition Ready."""
    if not is_unreported(pod):
        return None
    return Obstacle(f"pod {_name(pod)} is not ready, because its node {_node(pod)} does not report its state")


STEPS: Final[tuple[Callable[[Object, datetime, PodRules], Obstacle | None], ...]] = (
    _unscheduled,
    _initializing,
    _starting,
    _unready,
    _gated,
    _unreported,
)
"""The steps until a pod is ready, in their order."""


def blocked_by(obj: Object) -> str:
    """The finalizers that block the deletion of an object, as a clause; empty without one.

    Those of the garbage collector are left out: it only waits for the dependents.
    """
    meta = obj["metadata"]
    finalizers = [name for name in meta.get("finalizers") or () if name not in COLLECTOR_FINALIZERS]
    if not finalizers or not meta.get("deletionTimestamp"):
        return ""
    if len(finalizers) == 1:
        return f"its finalizer {_names(finalizers)} blocks it"
    return f"its finalizers {_names(finalizers)} block it"


def _being_deleted(pod: Object, now: datetime) -> Obstacle | None:
    """A pod that still exists long after the end of its grace period."""
    meta = pod["metadata"]
    end = time_of(meta["deletionTimestamp"])
    if end is None:
        return None
    cause = blocked_by(pod)
    if not cause:
        command = f"kubectl delete pod --force --wait=false -n {meta.get('namespace')} {meta['name']}"
        cause = f"its node {_node(pod)} does not confirm it. Only if that node is switched off, run {command}"
    disruption = condition_of(pod, "DisruptionTarget").get("message") or nested_map(pod, "status").get("message")
    reason = f" ({stable(disruption)})" if disruption else ""
    left = (end - now + START_PERIOD).total_seconds()  # not end + …, which overflows in the year 9999
    return Obstacle(f"pod {meta['name']} is still being deleted{reason}: {cause}", max(0.0, left))


def _failed(pods: Iterable[Object], now: datetime) -> Obstacle | None:
    """The last pod that a node has evicted or rejected. Its name is left out, because the next one has another."""
    failed = [(at, pod["status"]) for pod in pods if (at := _failed_at(pod, now)) is not None]
    if not failed:
        return None
    _, status = max(failed, key=lambda entry: entry[0])
    text = f": {stable(status['message'])}" if status.get("message") else ""
    return Obstacle(f"a pod failed with the reason {texts.name(status['reason'])}{text}")


def _failed_at(pod: Object, now: datetime) -> datetime | None:
    """The time at which a pod failed as a whole, if that was a short time ago."""
    status = nested_map(pod, "status")
    if status.get("phase") != "Failed" or not status.get("reason"):
        return None
    texts = [condition.get("lastTransitionTime") for condition in nested_list(pod, "status", "conditions")]
    times = [past_time(text, now) for text in (*texts, pod["metadata"].get("creationTimestamp"))]
    at = max((time for time in times if time is not None), default=None)
    return at if at is not None and now - at < PROGRESS_DEADLINE else None


def _title(container: Container, rules: PodRules) -> str:
    return container.title if container.own_container else f"{container.title}, which is not part of this {rules.kind}"


def _names(names: Iterable[str]) -> str:
    listed = [texts.name(name, MAX_NAME) for name in names]
    more = [f"{len(listed) - MAX_NAMES} more"] if len(listed) > MAX_NAMES else []
    return " and ".join([", ".join(listed[:MAX_NAMES]), *more])


def _since(pod: Object, condition: str) -> Any:
    return condition_of(pod, condition).get("lastTransitionTime")


def _left(since: Any, now: datetime) -> float:
    """Seconds until a step has taken START_PERIOD."""
    begun = past_time(since, now) or now
    return max(0.0, (START_PERIOD - (now - begun)).total_seconds())


def _node(pod: Object) -> str:
    return texts.name(nested_map(pod, "spec").get("nodeName", ""), MAX_NAME)


def _name(pod: Object) -> str:
    return pod["metadata"]["name"]
