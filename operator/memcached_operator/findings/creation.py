"""Explains why pods of a workload are not created or not deleted, from what the cluster reports.

A Deployment has conditions with the API server's error message. They are not updated while the Deployment is paused, or
when the message changes. A StatefulSet has no such condition. Both have Events with the latest message, but not if
another owner's pod has the name of a slot.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NotRequired, TypedDict

from memcached_api import conditions as c
from memcached_api.annotations import ORIGIN_ANNOTATION
from memcached_api.remedies import NONE, Action, Direction, Remedy
from memcached_operator.findings.creation_remedies import EXCEEDED, remedy
from memcached_operator.findings.finding import Problem
from memcached_operator.findings.rollout import counted
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube import texts
from memcached_operator.kube.labels import own_labels
from memcached_operator.kube.resource import (
    DEPLOYMENTS,
    STATEFULSETS,
    Key,
    Object,
    Resource,
    controller_of,
    nested_map,
)
from memcached_operator.kube.times import time_of
from memcached_operator.world.pod import Pod
from memcached_operator.world.snapshot import Snapshot

RETRY_PERIOD: Final = 60.0
"""Seconds for which pods must be missing before the workload's controller is made to try again, and minimum seconds
between two reads of the cause for one object."""

MAX_PERIOD: Final = 300.0
"""The same after a long time."""

RECENT: Final = 1000.0 + 300.0 + MAX_PERIOD
"""Seconds after its last occurrence for which an Event counts. A controller tries again after at most 1000 s (client-go
util/workqueue), and its spam filter allows an Event of an object at least every 300 s (client-go tools/record)."""

MAX_SIZE: Final = 1000
"""Slots of one object that are considered."""

MAX_LENGTH: Final = 4096
MAX_TEXT: Final = 1000
"""Characters of a message that are read, and reported. Anyone who can create Events can write it."""

MAX_DIGITS: Final = 10
"""Digits of the number of a slot that are read: it is at most 2^31."""

NAME: Final = r"([-.a-z0-9]{1,253})"

OF_SLOT: Final = re.compile(rf"(?i:(creat|delet)e) Pod {NAME} in StatefulSet {NAME} failed error: (.+)", re.DOTALL)
"""The message of an Event of a StatefulSet (kubernetes pkg/controller/statefulset/stateful_pod_control.go)."""

OF_REPLICA_SET: Final = re.compile(r"Error (creat|delet)ing: (.+)", re.DOTALL)
"""The message of an Event of a ReplicaSet (kubernetes pkg/controller/controller_utils.go)."""

CREATE, DELETE = "creat", "delet"
"""The verbs of these messages, without their endings."""

REASONS: Final = {CREATE: "FailedCreate", DELETE: "FailedDelete"}
"""The reasons of these Events, and of the condition of a Deployment."""

DELETE_REMEDY: Final[Remedy] = (Action("correct the policy or the webhook that rejects the deletion"),)
KEEP_REMEDY: Final[Remedy] = (
    *DELETE_REMEDY,
    Action("raise spec.size again to keep the pods", ("spec.size",), Direction.UP),
)
"""The remedies if pods cannot be deleted, and if that is because of a lower size."""

HASH: Final = "-[a-z0-9]{1,10}"
"""The end of the name of a ReplicaSet, after the name of its Deployment."""

NEVER: Final = datetime.min.replace(tzinfo=UTC)


class _Condition(TypedDict):
    """A condition of a workload."""

    type: str
    status: str
    reason: NotRequired[str]
    message: NotRequired[str]
    lastUpdateTime: NotRequired[str]


_ANY: Final = PodRules("")
"""The rules if only the cluster's words matter."""


def is_rejected(snapshot: Snapshot) -> bool:
    """Whether the workload lacks pods, or has pods that it must delete."""
    resource, live = workload(snapshot)
    if live is None:
        return False
    found = missing_slots(snapshot) or kept_slots(snapshot)
    return bool(found) or _lacks_pods(live, resource) or _keeps_pods(live, resource)


def is_observed(resource: Resource, live: Object) -> bool:
    """Whether the controller of a workload has seen its latest spec. It does not store that if it gives up before."""
    return counted(resource.kind, live).current or bool(_failed_replica_sets(live))


def subject(text: str) -> tuple[str, str] | None:
    """The verb and the pod that an Event with this message is about; None if it is about something else.

    The pod of a ReplicaSet has another name in each attempt, so it is left out.
    """
    if match := OF_SLOT.search(text):
        return match[1].lower(), match[2]
    return (match[1], "") if (match := OF_REPLICA_SET.search(text)) else None


def missing_slots(snapshot: Snapshot) -> list[str]:
    """The names of the pods of a StatefulSet that do not exist, the first slot first."""
    live = snapshot.child(STATEFULSETS)
    if live is None:
        return []
    name, start = live["metadata"]["name"], nested_map(live, "spec", "ordinals").get("start", 0)
    existing = {pod.name for pod in (*snapshot.pods, *snapshot.ended)}
    slots = (f"{name}-{slot}" for slot in range(start, start + min(live["spec"].get("replicas", 1), MAX_SIZE)))
    return [slot for slot in slots if slot not in existing]


def kept_slots(snapshot: Snapshot) -> list[str]:
    """The names of the pods that a StatefulSet must delete, but has not: above its size, or ended.

    None while one of its pods is being deleted: then its controller may wait.
    """
    live, pods = snapshot.child(STATEFULSETS), (*snapshot.pods, *snapshot.ended)
    if live is None or any(pod.is_deleted for pod in pods):
        return []
    end = nested_map(live, "spec", "ordinals").get("start", 0) + live["spec"].get("replicas", 1)
    surplus = [pod for pod in snapshot.pods if _ordinal(pod, live) >= end]
    return sorted(pod.name for pod in (*surplus, *snapshot.ended))


def _ordinal(pod: Pod, live: Object) -> int:
    """The number of the slot of a pod; -1 without one."""
    name, _, number = pod.name.rpartition("-")
    return int(number) if name == _name(live) and number.isdecimal() and len(number) < MAX_DIGITS else -1


def creation_failure(snapshot: Snapshot) -> str:
    """The reason why pods of the workload cannot be created, in the cluster's words; empty if none is known."""
    return "; ".join(problem.message for problem in _uncreated(snapshot))


def problems(snapshot: Snapshot, rules: PodRules = _ANY) -> list[Problem]:
    """The problems that prevent pods of the workload from being created or deleted."""
    return [*_uncreated(snapshot, rules), *_undeletable(snapshot, rules)]


def _uncreated(snapshot: Snapshot, rules: PodRules = _ANY) -> list[Problem]:
    """The problems that prevent pods from being created."""
    slots = missing_slots(snapshot)
    pods = [pod for pod in snapshot.taken if _name(pod) in slots]
    found = [problem for pod in pods if (problem := _taken(pod, snapshot, rules.loss)) is not None]
    if failure := _of_slots(snapshot, slots, CREATE) or _of_deployment(snapshot, CREATE):
        surge = rules.surge if _has_all_pods(snapshot) and EXCEEDED.search(failure) else NONE
        advice = rules.advice(surge, remedy(failure))
        text = f"Pods cannot be created: {texts.clause(failure, MAX_TEXT)}"
        found.append(Problem(c.APPLY_FAILED, f"{text}; {advice}" if advice else text))
    return found


def _undeletable(snapshot: Snapshot, rules: PodRules) -> list[Problem]:
    """The problem that prevents pods from being deleted. Others are created nevertheless."""
    failure = _of_slots(snapshot, kept_slots(snapshot), DELETE) or _of_deployment(snapshot, DELETE)
    if not failure:
        return []
    advice = rules.advice(KEEP_REMEDY if _is_scaled_down(snapshot) else DELETE_REMEDY)
    return [Problem(c.APPLY_FAILED, f"Pods cannot be deleted: {texts.clause(failure, MAX_TEXT)}; {advice}")]


def obstacle(pod: Object, uid: str) -> Object | None:
    """What is used of a pod with the name of a missing slot; None if it is no obstacle.

    It is none if it belongs to the StatefulSet with this uid, or if it is being deleted. `released`: the operator has
    made it, and it has no controller any more.
    """
    controller = controller_of(pod)
    if pod["metadata"].get("deletionTimestamp") or (controller is not None and controller["uid"] == uid):
        return None
    meta = {name: pod["metadata"][name] for name in ("name", "namespace")}
    meta["labels"] = own_labels(nested_map(pod, "metadata", "labels"))
    owner = {} if controller is None else {name: controller[name] for name in ("kind", "name")}
    released = controller is None and ORIGIN_ANNOTATION in nested_map(pod, "metadata", "annotations")
    return {"metadata": meta, "owner": owner, "released": released}


def _taken(pod: Object, snapshot: Snapshot, loss: str) -> Problem | None:
    """The problem that a pod which the StatefulSet does not control has the name of a slot."""
    if pod["released"]:
        return _released(pod, snapshot, loss)
    owner = " ".join(texts.name(str(text)) for text in pod["owner"].values())
    belongs = f"belongs to {owner}" if owner else "is not managed by this operator"
    remedy = f"The pod is not modified. Delete it: {_command('delete', pod, '--wait=false')}"
    return Problem(c.CONFLICT, f"Pod {_name(pod)} has the name of a slot, and {belongs}. {remedy}")


def _released(pod: Object, snapshot: Snapshot, loss: str) -> Problem | None:
    """The problem that a pod of the operator lacks labels. None if it has all: then the StatefulSet adopts it."""
    selector = nested_map(snapshot.child(STATEFULSETS) or {}, "spec", "selector", "matchLabels")
    labels = pod["metadata"]["labels"]
    lacking = [f"{name}={value}" for name, value in own_labels(selector).items() if labels.get(name) != value]
    if not lacking:
        return None
    problem = f"Pod {_name(pod)} has the name of a slot, but lacks labels with which the StatefulSet selects it"
    restore = f"Restore them: {_command('label', pod, '--overwrite')} {' '.join(lacking)}"
    delete = f"Or delete it: {_command('delete', pod, '--wait=false')}{'; ' if loss else ''}{loss}"
    return Problem(c.CONFLICT, f"{problem}. The pod is not modified. {restore}. {delete}")


def _command(verb: str, pod: Object, option: str) -> str:
    """The kubectl command for a pod."""
    return f"kubectl {verb} pod {option} -n {pod['metadata']['namespace']} {_name(pod)}"


def workload(snapshot: Snapshot) -> tuple[Resource, Object | None]:
    """The workload that Kubernetes has, and its resource."""
    live = snapshot.child(STATEFULSETS)
    return (DEPLOYMENTS, snapshot.child(DEPLOYMENTS)) if live is None else (STATEFULSETS, live)


def is_about(name: str, workload: Key) -> bool:
    """Whether an object of an Event is the workload, or a ReplicaSet of it."""
    end = "" if workload.resource == STATEFULSETS else HASH
    return re.fullmatch(re.escape(workload.name) + end, name) is not None


def _of_slots(snapshot: Snapshot, slots: Sequence[str], verb: str) -> str:
    """The last error message about one of these slots; empty without one."""
    matches = _matches(snapshot, OF_SLOT)
    return _latest((seen, match[4]) for seen, match in matches if match[1].lower() == verb and match[2] in slots)


def _of_deployment(snapshot: Snapshot, verb: str) -> str:
    """The last error message about the pods of a Deployment; empty if it does not lack any, or keeps any."""
    live = snapshot.child(DEPLOYMENTS)
    if live is None or not (_lacks_pods(live, DEPLOYMENTS) if verb == CREATE else _keeps_pods(live, DEPLOYMENTS)):
        return ""
    said = [(seen, match[2]) for seen, match in _matches(snapshot, OF_REPLICA_SET) if match[1] == verb]
    failures = _failures(live) if verb == CREATE else _undeleted(live)
    said += [(time_of(each.get("lastUpdateTime")) or NEVER, _unprefixed(each.get("message", ""))) for each in failures]
    # Each attempt has another name: the message must not change while the cause does not.
    generated = rf'"({re.escape(live["metadata"]["name"])}{HASH}-)[a-z0-9]{{5}}"'
    return re.sub(generated, r'"\1…"', _latest(said)[:MAX_LENGTH])


def _unprefixed(text: str) -> str:
    """The message of a condition without what the Events do not have, so that both have the same text."""
    return text.removeprefix("unable to delete pods: ")


def _lacks_pods(live: Object, resource: Resource) -> bool:
    """Whether a Deployment cannot create pods, as far as its status shows that.

    While it is paused, its condition is not updated, and it lacks pods only if there are fewer than desired.
    """
    if resource != DEPLOYMENTS:
        return False
    if live["spec"].get("paused"):
        return nested_map(live, "status").get("replicas", 0) < live["spec"].get("replicas", 1)
    return bool(_failures(live))


def _keeps_pods(live: Object, resource: Resource) -> bool:
    """Whether a Deployment cannot delete pods, as far as its status shows that.

    While it is paused, its condition is not updated. Pods above its size can then be those of a rollout, unless all
    have the same template.
    """
    if resource != DEPLOYMENTS:
        return False
    rollout = counted(DEPLOYMENTS.kind, live)
    if rollout.paused:
        return rollout.current and rollout.updated == rollout.replicas > rollout.size
    return bool(_undeleted(live))


def _is_scaled_down(snapshot: Snapshot) -> bool:
    """Whether the workload has too many pods, and not those of a rollout."""
    resource, live = workload(snapshot)
    rollout = counted(resource.kind, live)
    return rollout.replicas > rollout.size and (resource == STATEFULSETS or rollout.updated == rollout.replicas)


def _has_all_pods(snapshot: Snapshot) -> bool:
    """Whether a Deployment has its desired number of pods, so that one more is created only for a rollout."""
    live = snapshot.child(DEPLOYMENTS)
    return live is not None and counted(DEPLOYMENTS.kind, live).replicas >= live["spec"].get("replicas", 1)


def _failures(live: Object) -> list[_Condition]:
    """The conditions that pods or their ReplicaSet cannot be created."""
    failing = [each for each in _replica_failures(live) if each.get("reason") != REASONS[DELETE]]
    return [*failing, *_failed_replica_sets(live)]


def _undeleted(live: Object) -> list[_Condition]:
    """The conditions that pods cannot be deleted."""
    return [each for each in _replica_failures(live) if each.get("reason") == REASONS[DELETE]]


def _replica_failures(live: Object) -> list[_Condition]:
    """The conditions that pods cannot be created or deleted (kubernetes pkg/controller/replicaset)."""
    conditions: Sequence[_Condition] = nested_map(live, "status").get("conditions") or ()
    return [each for each in conditions if (each["type"], each["status"]) == ("ReplicaFailure", "True")]


def _failed_replica_sets(live: Object) -> list[_Condition]:
    """The condition that a ReplicaSet cannot be created (kubernetes pkg/controller/deployment/sync.go).

    The controller does not count the spec as observed then, and gives up after 15 tries. The condition stays after a
    return to a ReplicaSet that exists.
    """
    rollout = counted(DEPLOYMENTS.kind, live)
    conditions: Sequence[_Condition] = nested_map(live, "status").get("conditions") or ()
    failed = [each for each in conditions if each.get("reason") == "ReplicaSetCreateError"]
    return failed if rollout.updated < rollout.size else []


def _matches(snapshot: Snapshot, pattern: re.Pattern[str]) -> Iterator[tuple[datetime, re.Match[str]]]:
    _, live = workload(snapshot)
    for seen, text in snapshot.messages.get(live["metadata"].get("uid", ""), ()) if live else ():
        if match := pattern.search(text):
            yield seen, match


def _latest(texts: Iterable[tuple[datetime, str]]) -> str:
    return max(texts, default=(NEVER, ""))[1]


def _name(obj: Object) -> str:
    return obj["metadata"]["name"]
