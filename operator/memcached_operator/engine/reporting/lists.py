"""What the status says while resources cannot be listed."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from memcached_api import conditions as c
from memcached_operator.engine.kind import DesiredStatus, Outcome, ReconciledKind
from memcached_operator.engine.reporting.conditions import Condition, conditions_of, ready
from memcached_operator.findings.finding import Problem
from memcached_operator.kube import texts
from memcached_operator.kube.resource import PODS, Resource, nested_map
from memcached_operator.world.knowledge import Knowledge, Known, State, known_in
from memcached_operator.world.snapshot import Snapshot

MAX_LENGTH: Final = 500
"""Characters of an error message of the API server."""

FORBIDDEN: Final = 403


def failure(resource: Resource, namespace: str, known: Knowledge) -> str:
    """That a resource cannot be listed in a namespace, the cause, and the remedy if there is one."""
    cause = texts.clause(known.error, MAX_LENGTH)
    remedy = ". Restore the operator's roles: install its release again" if known.code == FORBIDDEN else ""
    return f"{resource.plural} in namespace {namespace} cannot be listed: {cause}{remedy}"


def required(kind: ReconciledKind) -> list[Resource]:
    """The resources without which no plan can be made: a plan would create again what exists."""
    return [*(resource for resource in kind.owns if resource not in kind.optional), PODS]


def is_ready_to_plan(kind: ReconciledKind, namespace: str, known: Known) -> bool:
    """Whether all that a plan needs has been listed."""
    return all(known_in(namespace, each, known).state is State.LISTED for each in required(kind))


def problems(kind: ReconciledKind, namespace: str, known: Known) -> Iterator[Problem]:
    """A problem for each such resource whose lists have failed for some time, and for the kind itself."""
    for resource in (*required(kind), kind.resource):
        knowledge = known_in(namespace, resource, known)
        if knowledge.lasts:
            listed = knowledge.state is State.LISTED
            effect = f"Changes of {resource.plural} may not be noticed" if listed else "Nothing is changed"
            reason = c.APPLY_FAILED if knowledge.is_permanent else c.ROLLING_OUT
            yield Problem(reason, f"{effect}: {failure(resource, namespace, knowledge)}", blocks=False)


def kept_status(snapshot: Snapshot, outcome: Outcome, _: datetime) -> DesiredStatus:
    """The last status, in which the conditions say what is wrong: the status of `outcome` for a kind without a plan."""
    status = nested_map(snapshot.cr, "status")
    before = {each["type"]: each for each in conditions_of(status)}
    unknown = _condition(c.AVAILABLE, c.FALSE, c.MINIMUM_REPLICAS_UNAVAILABLE, "It is not known whether pods run")
    available = before.get(c.AVAILABLE, unknown)
    lasting = [each.message for each in outcome.problems if each.reason == c.APPLY_FAILED]
    message = "; ".join(lasting or [each.message for each in outcome.problems])
    if lasting:
        progressing = _condition(c.PROGRESSING, c.FALSE, c.STALLED, "See the Degraded condition")
        degraded = _condition(c.DEGRADED, c.TRUE, c.APPLY_FAILED, message)
    else:
        progressing = _condition(c.PROGRESSING, c.TRUE, c.ROLLING_OUT, message)
        degraded = _condition(c.DEGRADED, c.FALSE, c.AS_EXPECTED, message)
        # What has failed before has not ended as far as is known.
        if before.get(c.DEGRADED, degraded)["status"] == c.TRUE:
            degraded = before[c.DEGRADED]
    observed = (available, progressing, degraded)
    return DesiredStatus({**status, "conditions": [*observed, ready(*observed)]})


def _condition(type_: str, status: str, reason: str, message: str) -> Condition:
    return {"type": type_, "status": status, "reason": reason, "message": message}
