"""Computes the conditions of an object that runs as a workload."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from memcached_api import conditions as c
from memcached_operator.engine.kind import Outcome
from memcached_operator.engine.reporting.conditions import Condition, ready, truncate
from memcached_operator.findings import creation, disruptions, strays
from memcached_operator.findings.failures import failures
from memcached_operator.findings.finding import Problem
from memcached_operator.findings.obstacles import obstacles
from memcached_operator.findings.rollout import PROGRESS_DEADLINE, Rollout
from memcached_operator.findings.rules import PodRules
from memcached_operator.findings.volumes import claims, mounts
from memcached_operator.kube import labels
from memcached_operator.parts.workloads.statefulset import started
from memcached_operator.world.pod import running_pod_names
from memcached_operator.world.snapshot import Snapshot

MAX_PROBLEMS, MAX_PROBLEM_LENGTH = 3, 1300
"""Maximum problems in a message, and characters of each: together they fit conditions.MAX_MESSAGE_LENGTH."""

TRANSIENT_REASONS = (
    *(c.WAITING_FOR_DELETION, c.WAITING_FOR_MEMCACHED, c.WAITING_FOR_PROXIES, c.MOVE_STUCK, c.MOVING_KEYS),
    c.ROLLING_OUT,
)
"""Reasons of transient problems, which are reported as Progressing."""


@dataclass(frozen=True)
class WorkloadState:
    """The observed state for a status. `requeue_after`: seconds until it may change without an event, or None."""

    rollout: Rollout
    nodes: list[str]
    conditions: list[Condition]
    requeue_after: float | None


def workload_state(
    rollout: Rollout, snapshot: Snapshot, outcome: Outcome, now: datetime, *, rules: PodRules, resume: str
) -> WorkloadState:
    """Compute the state of a workload from its rollout, its pods and the problems of applying the children.

    `resume`: the remedy for a pause.
    """
    failed = failures(snapshot.pods, now, rules, snapshot.messages)
    failed += mounts.failures(snapshot.pods, snapshot.messages, now, rules)
    met = obstacles((*snapshot.pods, *snapshot.ended), now, rules)
    hint = _some([obstacle.message for obstacle in met if not obstacle.after])
    uncreated = creation.problems(snapshot, rules)
    uncreated += claims.problems(snapshot.pods, snapshot.messages, now, rules)
    problems = [problem for problem in outcome.problems if problem.reason not in TRANSIENT_REASONS]
    transient = [problem for problem in outcome.problems if problem.reason in TRANSIENT_REASONS]
    pod_problems = (Problem(failure.reason, failure.message) for failure in failed)
    nodes = running_pod_names(snapshot.pods)
    rollout = _with_known_pods(rollout, len(nodes), snapshot, now)
    explained = any(problem.blocks for problem in problems)
    cause = hint or ("" if uncreated else _delayed_by(rollout, len(nodes), snapshot, explained=explained))
    late = list(_late(rollout, cause))
    degraded = _by_severity([*problems, *uncreated, *strays.problems(snapshot, rules), *pod_problems, *late])
    stalled = any(problem.blocks for problem in (*problems, *uncreated, *late))
    repeated = disruptions.notice(snapshot.disruptions, now, rules)
    notices = (*outcome.notices, *strays.notices(snapshot, rules), *(each.message for each in outcome.interventions))
    notices = notices if repeated is None else (*notices, repeated.message)
    observed = (
        _available(rollout, hint, taken=_is_taken(rollout, snapshot, problems)),
        _progressing(rollout, transient, resume, hint, stalled=stalled),
        _degraded(degraded, notices, _without_memcached(transient) or _unhealthy(rollout, hint)),
    )
    conditions = [*observed, _ready(*observed, transient), *_stalled(degraded)]
    generation = snapshot.cr["metadata"].get("generation", 0)
    delays = (
        rollout.requeue_after,
        None if repeated is None else repeated.ends_in,
        *(failure.clears_in for failure in failed),
        *(each.after or None for each in met),
    )
    return WorkloadState(
        rollout=rollout,
        nodes=nodes,
        conditions=[{**condition, "observedGeneration": generation} for condition in conditions],
        requeue_after=min((delay for delay in delays if delay is not None), default=None),
    )


def _with_known_pods(rollout: Rollout, known: int, snapshot: Snapshot, now: datetime) -> Rollout:
    """The rollout, which is complete only when its running pods are known, within the deadline.

    Pods and workloads are watched separately, and `nodes` must be correct when the rollout is complete. Not all pods
    are kept if there are very many with the same labels.
    """
    if not rollout.complete or known == rollout.size:
        return rollout
    left = (started(snapshot, now) + PROGRESS_DEADLINE - now).total_seconds()
    return replace(rollout, complete=False, deadline_exceeded=left <= 0, requeue_after=left if left > 0 else None)


def _late(rollout: Rollout, cause: str) -> Iterator[Problem]:
    """The problem that the rollout has made no progress for too long. `cause`: empty if another problem says it."""
    if rollout.deadline_exceeded:
        message = f"The rollout exceeded its progress deadline: {_updated(rollout)}"
        yield Problem(c.PROGRESS_DEADLINE_EXCEEDED, f"{message}; {cause}" if cause else message)


def _delayed_by(rollout: Rollout, known: int, snapshot: Snapshot, *, explained: bool) -> str:
    """What delays a rollout, and the command that shows more; empty if all pods are ready and a problem explains it."""
    meta = snapshot.cr["metadata"]
    name, namespace = meta["name"], f"-n {meta['namespace']}"
    if slots := creation.missing_slots(snapshot):
        return f"pod {slots[0]} does not exist; see kubectl describe statefulset {namespace} {name}"
    pods = [pod for pod in snapshot.pods if pod.is_active]
    if waiting := sorted(pod.name for pod in pods if not pod.is_ready):
        return f"pod {waiting[0]} is not ready; see kubectl describe pod {namespace} {waiting[0]}"
    if not pods:
        return f"no pods exist; see kubectl describe {rollout.workload.lower()} {namespace} {name}"
    if known != rollout.size:
        return f"the operator knows {known} running pods; see kubectl get pods {namespace} -l {labels.INSTANCE}={name}"
    return (
        "" if explained else f"all pods are ready; see kubectl describe {rollout.workload.lower()} {namespace} {name}"
    )


def _is_taken(rollout: Rollout, snapshot: Snapshot, problems: Iterable[Problem]) -> bool:
    """Whether an object of another owner has the name of the workload."""
    place = rollout.workload, snapshot.cr["metadata"]["name"]
    return place in [(key.resource.kind, key.name) for problem in problems for key in problem.objects]


def _available(rollout: Rollout, hint: str, *, taken: bool) -> Condition:
    message = _count(rollout)
    if not rollout.exists:
        message = f"The {rollout.workload} does not exist yet"
        if taken:
            message = f"The {rollout.workload} of this name is not managed by this object; see the Degraded condition"
    if rollout.available:
        return _condition(c.AVAILABLE, c.TRUE, c.MINIMUM_REPLICAS_AVAILABLE, message)
    message = f"{message}; {hint}" if hint else message
    return _condition(c.AVAILABLE, c.FALSE, c.MINIMUM_REPLICAS_UNAVAILABLE, message)


def _count(rollout: Rollout) -> str:
    """The number of pods that serve clients."""
    state = "are ready" if rollout.serving is None else "serve clients"
    return f"{min(rollout.usable, rollout.size)} of {rollout.size} pods {state}"


def _updated(rollout: Rollout) -> str:
    """The number of pods with the latest template, of the desired number; then that of others which still exist."""
    updated, others = min(rollout.updated, rollout.size), rollout.replicas - rollout.size
    message = f"{updated} of {rollout.size} pods are updated"
    if updated < rollout.size or others <= 0 or not rollout.current:
        return message
    return f"{message}; {others} more {'pod is' if others == 1 else 'pods are'} not deleted yet"


def _progressing(rollout: Rollout, transient: list[Problem], resume: str, hint: str, *, stalled: bool) -> Condition:
    unserved = [problem for problem in transient if problem.reason == c.WAITING_FOR_MEMCACHED]
    if rollout.paused or stalled:
        # A Memcached that serves again ends neither of them.
        transient = [problem for problem in transient if problem not in unserved]
    if transient:
        return _condition(c.PROGRESSING, c.TRUE, transient[0].reason, _join(transient))
    texts = [problem.message for problem in unserved]
    if rollout.paused:
        message = f"The rollout is paused: {_updated(rollout)}; to continue, {resume}"
        return _condition(c.PROGRESSING, c.TRUE, c.PAUSED, _some([message, *texts]))
    if stalled:
        message = "The rollout is stalled; see the Degraded condition"
        return _condition(c.PROGRESSING, c.FALSE, c.STALLED, _some([message, *texts]))
    if rollout.complete:
        message = f"{rollout.size} of {rollout.size} pods are updated and ready"
        return _condition(c.PROGRESSING, c.FALSE, c.ROLLOUT_COMPLETE, message)
    if not rollout.exists:
        return _condition(c.PROGRESSING, c.TRUE, c.ROLLING_OUT, f"The {rollout.workload} is being created")
    message = "; ".join(filter(None, [_updated(rollout), *rollout.doing, hint]))
    return _condition(c.PROGRESSING, c.TRUE, c.ROLLING_OUT, message)


def _ready(
    available: Condition, progressing: Condition, degraded: Condition, transient: Iterable[Problem]
) -> Condition:
    """Ready. Pods of a paused rollout that have no Memcached are not ready for clients. Keys that move do not prevent
    it: a user decides how long they do.
    """
    unserved = [problem for problem in transient if problem.reason == c.WAITING_FOR_MEMCACHED]
    if unserved and progressing["reason"] == c.PAUSED:
        progressing = _condition(c.PROGRESSING, c.TRUE, c.WAITING_FOR_MEMCACHED, _join(unserved))
    if progressing["reason"] == c.MOVING_KEYS and not any(problem.blocks for problem in transient):
        progressing = _condition(c.PROGRESSING, c.FALSE, c.ROLLOUT_COMPLETE, progressing["message"])
    return ready(available, progressing, degraded)


def _without_memcached(transient: Iterable[Problem]) -> str:
    """That requests fail although all pods run; empty if that is not known."""
    causes = (problem.message for problem in transient if problem.reason == c.WAITING_FOR_MEMCACHED)
    return next((f"No component has failed, but {truncate(text, MAX_PROBLEM_LENGTH)}" for text in causes), "")


def _unhealthy(rollout: Rollout, hint: str) -> str:
    """Why not all components count as healthy, although no problem is known; empty if they do."""
    if rollout.complete or (rollout.paused and rollout.usable >= rollout.size and not hint):
        return ""
    state = "the rollout is not complete" if rollout.usable >= rollout.size else _count(rollout)
    if not rollout.exists:
        state = f"the {rollout.workload} does not exist yet"
    return f"No component has failed, but {state}{'; ' if hint else ''}{hint}"


def _degraded(problems: list[Problem], notices: Iterable[str], unhealthy: str) -> Condition:
    """Degraded, from all problems, the most severe first. `unhealthy`: what is not healthy without a problem."""
    message = ". ".join([_join(problems) if problems else unhealthy or "All components are healthy", *notices])
    status, reason = (c.TRUE, problems[0].reason) if problems else (c.FALSE, c.AS_EXPECTED)
    return _condition(c.DEGRADED, status, reason, message)


def _stalled(problems: list[Problem]) -> Iterable[Condition]:
    """Stalled, if a problem does not end without a change by a user. Tools such as Flux wait while it is absent."""
    if lasting := [problem for problem in problems if problem.reason in c.STALLING]:
        yield _condition(c.STALLED, c.TRUE, lasting[0].reason, _join(lasting))


def _by_severity(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: c.rank(problem.reason))


def _join(problems: list[Problem]) -> str:
    return problems[0].message if len(problems) == 1 else _some([problem.message for problem in problems])


def _some(messages: list[str]) -> str:
    """The first messages, and the number of others; empty without one."""
    more = [f"and {len(messages) - MAX_PROBLEMS} more"] if len(messages) > MAX_PROBLEMS else []
    return "; ".join([*(truncate(message, MAX_PROBLEM_LENGTH) for message in messages[:MAX_PROBLEMS]), *more])


def _condition(type_: str, status: str, reason: str, message: str) -> Condition:
    return {"type": type_, "status": status, "reason": reason, "message": message}
