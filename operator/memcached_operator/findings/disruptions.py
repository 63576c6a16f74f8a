"""Pods that Kubernetes itself stops, and explains: evictions, preemption, taints, the shutdown of a node.

The reasons are those of a pod's status (kubernetes pkg/kubelet/eviction, preemption, nodeshutdown) and of its condition
DisruptionTarget.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from memcached_api.remedies import NONE, Remedy
from memcached_operator.findings.failures import stable
from memcached_operator.findings.obstacles import MAX_NAME
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube import texts
from memcached_operator.kube.times import past_time
from memcached_operator.world.pod import NOT_REPORTED, Condition, Pod, times_of_conditions

STOPPED: Final = frozenset({"Evicted", "NodeLost", "NodeShutdown", "Preempting", "Shutdown", "Terminated"})
"""Reasons of the status of a failed pod that a node has stopped. A node that rejects a new pod sets others."""

TARGETS: Final = frozenset(
    {
        "DeletionByPodGC",
        "DeletionByTaintManager",
        "EvictionByEvictionAPI",
        "PreemptionByScheduler",
        "TerminationByKubelet",
    }
)
"""Reasons of the condition DisruptionTarget (kubernetes pkg/apis/core/types.go)."""

REASONS: Final = STOPPED | TARGETS
OTHER: Final = "Other"
"""The values of the label `reason` of the counter: REASONS, and OTHER for any other one."""

WINDOW: Final = timedelta(minutes=30)
MIN_REPEATED: Final = 3
"""Disruptions are repeated if at least MIN_REPEATED pods of an object have the same reason within WINDOW."""

RECENT: Final = timedelta(minutes=10)
"""The age up to which a disruption is reported by an Event. The API server keeps Events for an hour by default, so that
the name of the Event prevents a second one after a restart of this process."""

MAX_REASON: Final = 100
"""Characters of a reason that are read. Anyone who can write statuses of pods can write it."""

MAX_MESSAGE: Final = 1000
"""Characters of a message that are read. It is kept for WINDOW."""


@dataclass(frozen=True)
class Disruption:
    """A pod that Kubernetes has stopped, and when. `message`: of the kubelet or of a controller; may be empty."""

    pod: str
    uid: str
    node: str
    reason: str
    message: str
    at: datetime

    @property
    def label(self) -> str:
        """The value of the label of the counter."""
        return self.reason if self.reason in REASONS else OTHER


class Notice(NamedTuple):
    """A sentence for the status, and the seconds until it ends."""

    message: str
    ends_in: float


def disruption(pod: Pod, now: datetime) -> Disruption | None:
    """The disruption of a pod; None without one.

    The condition alone does not suffice: an eviction or a preemption may not happen in the end.
    """
    target = pod.condition("DisruptionTarget")
    has_failed = pod.status.phase == "Failed"
    is_target = target.is_true and (has_failed or pod.is_deleted)
    is_stopped = has_failed and pod.status.reason in STOPPED
    if not (is_target or is_stopped):
        return None
    cause = pod.status if is_stopped else target
    return Disruption(
        pod.name,
        pod.metadata.uid,
        pod.spec.node_name,
        (cause.reason or OTHER)[:MAX_REASON],
        (cause.message or target.message)[:MAX_MESSAGE].strip(" ."),
        _time(pod, target, now),
    )


def _time(pod: Pod, target: Condition, now: datetime) -> datetime:
    is_known = target is not NOT_REPORTED
    said = (target.last_transition_time, pod.metadata.creation_timestamp) if is_known else times_of_conditions(pod)
    times = (past_time(text, now) for text in said)
    return max((time for time in times if time is not None), default=now)


def sentence(found: Disruption, loss: str, others: int = 0) -> str:
    """The message of an Event. `loss`: what is lost with the pod. `others`: pods without an Event before."""
    where = f" on node {texts.name(found.node, MAX_NAME)}" if found.node else ""
    cause = f": {stable(found.message)}" if found.message else ""
    more = f". Before, it stopped {others} more" if others else ""
    end = f"; {loss}" if loss else ""
    return f"Kubernetes stopped pod {found.pod}{where} ({texts.name(found.reason)}){cause}{end}{more}"


def notice(disruptions: Iterable[Disruption], now: datetime, rules: PodRules) -> Notice | None:
    """The notice about repeated disruptions with a known remedy, of the last ones with the same reason; else None."""
    by_reason: dict[str, list[Disruption]] = {}
    for each in sorted(disruptions, key=lambda each: each.at, reverse=True):
        if each.at + WINDOW > now:
            by_reason.setdefault(each.reason, []).append(each)
    for reason, found in by_reason.items():
        last = found[0]
        advice = rules.advice(_remedy(f"{reason}: {last.message}", rules))
        if len(found) < MIN_REPEATED or not advice:
            continue
        cause = f": {stable(last.message)}" if last.message else ""
        start = f"Kubernetes stopped {MIN_REPEATED} or more pods within {WINDOW.seconds // 60} minutes"
        text = f"{start} ({texts.name(reason)}){cause}. {advice[0].upper()}{advice[1:]}"
        return Notice(text, (found[MIN_REPEATED - 1].at + WINDOW - now).total_seconds())
    return None


def _remedy(text: str, rules: PodRules) -> Remedy:
    return next((remedy for part, remedy in rules.disruptions.items() if part in text), NONE)
