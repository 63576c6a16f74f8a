"""The three conditions of an object that runs as a Deployment, from what is observed of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memcached_api import conditions as c
from memcached_operator.kind import Problem, Snapshot
from memcached_operator.kube.resource import DEPLOYMENTS, Object
from memcached_operator.status.conditions import cut
from memcached_operator.workloads.pods import failures, live_names, unschedulable
from memcached_operator.workloads.rollout import Rollout, rollout_of

SHOWN, SHOWN_CHARACTERS = 3, 1300
"""A message names so many problems, each cut at so many characters: together they fit conditions.MESSAGE_LIMIT."""

SEVERITY = (
    c.INVALID_SPEC,
    c.CONFLICT,
    c.APPLY_FAILED,
    c.IMAGE_UNAVAILABLE,
    c.PODS_CRASHING,
    c.PROGRESS_DEADLINE_EXCEEDED,
)
"""Reasons of Degraded; of several that hold, the first gives the reason and all give the message."""


PASSING = (c.WAITING_FOR_DELETION, c.ROLLING_OUT)
"""Reasons of Progressing: troubles that pass by themselves."""


@dataclass(frozen=True)
class Workload:
    """What statuses are made of; `requeue_after` seconds it may change by time alone (None: it does not)."""

    rollout: Rollout
    nodes: list[str]
    conditions: list[dict[str, Any]]
    requeue_after: float | None


def workload_of(cr: Object, snapshot: Snapshot, now: datetime, pull_secrets: str) -> Workload:
    """Read an object's Deployment and pods, and what hindered applying them.

    `pull_secrets`: the field that names Secrets for pulling the image, for the remedy of one that cannot be pulled.
    """
    rollout = rollout_of(snapshot.child(DEPLOYMENTS))
    failed = failures(snapshot.pods, now, pull_secrets)
    problems = [problem for problem in snapshot.problems if problem.reason not in PASSING]
    waiting = [problem for problem in snapshot.problems if problem.reason in PASSING]
    reasons = [*problems, *(Problem(failure.reason, failure.message) for failure in failed), *_of_rollout(rollout)]
    nodes = live_names(snapshot.pods)
    # Pods come by another watch than their Deployment: it is over when both say so, and `nodes` is right then.
    complete = rollout.complete and len(nodes) == rollout.size
    conditions = [
        _available(rollout, unschedulable(snapshot.pods)),
        _progressing(rollout, waiting, stalled=bool(problems) or rollout.deadline_exceeded, complete=complete),
        _degraded(reasons),
    ]
    generation = cr["metadata"].get("generation", 0)
    return Workload(
        rollout=rollout,
        nodes=nodes,
        conditions=[condition | {"observedGeneration": generation} for condition in conditions],
        requeue_after=min((failure.clears_in for failure in failed if failure.clears_in is not None), default=None),
    )


def _of_rollout(rollout: Rollout) -> Iterable[Problem]:
    if rollout.replica_failure:
        yield Problem(c.APPLY_FAILED, f"the pods are refused: {rollout.replica_failure}")
    if rollout.deadline_exceeded:
        message = f"the roll-out made no progress in time: {rollout.updated} of {rollout.size} pods are updated"
        yield Problem(c.PROGRESS_DEADLINE_EXCEEDED, f"{message}; see kubectl describe pods")


def _available(rollout: Rollout, hint: str) -> dict[str, Any]:
    message = f"{min(rollout.ready, rollout.size)} of {rollout.size} pods are ready"
    if not rollout.exists:
        message = "there is no Deployment yet"
    if rollout.available:
        return _condition(c.AVAILABLE, c.TRUE, c.MINIMUM_REPLICAS_AVAILABLE, message)
    message = f"{message}; {hint}" if hint else message
    return _condition(c.AVAILABLE, c.FALSE, c.MINIMUM_REPLICAS_UNAVAILABLE, message)


def _progressing(rollout: Rollout, waiting: list[Problem], *, stalled: bool, complete: bool) -> dict[str, Any]:
    if waiting:
        return _condition(c.PROGRESSING, c.TRUE, waiting[0].reason, _joined(waiting))
    if stalled:
        return _condition(c.PROGRESSING, c.FALSE, c.STALLED, "nothing moves until what Degraded tells of is mended")
    if complete:
        message = f"{rollout.size} of {rollout.size} pods are updated and ready"
        return _condition(c.PROGRESSING, c.FALSE, c.ROLLOUT_COMPLETE, message)
    if not rollout.exists:
        return _condition(c.PROGRESSING, c.TRUE, c.ROLLING_OUT, "the Deployment is being created")
    updated = rollout.updated if rollout.current else 0
    return _condition(c.PROGRESSING, c.TRUE, c.ROLLING_OUT, f"{updated} of {rollout.size} pods updated")


def _degraded(reasons: list[Problem]) -> dict[str, Any]:
    if not reasons:
        return _condition(c.DEGRADED, c.FALSE, c.AS_EXPECTED, "nothing is wrong")
    ordered = sorted(reasons, key=lambda problem: SEVERITY.index(problem.reason))
    return _condition(c.DEGRADED, c.TRUE, ordered[0].reason, _joined(ordered))


def _joined(problems: list[Problem]) -> str:
    more = [f"and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
    if len(problems) == 1:
        return problems[0].message
    return "; ".join([*(cut(problem.message, SHOWN_CHARACTERS) for problem in problems[:SHOWN]), *more])


def _condition(kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}
