"""The interface between a kind and the engine: a snapshot goes in; a plan and a status come out."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from memcached_api import conditions as c
from memcached_api.kind import Checked
from memcached_api.validation.field_errors import FieldError, summary
from memcached_operator.findings.finding import Intervention, Problem
from memcached_operator.kube.resource import Object
from memcached_operator.world.kind import WatchedKind
from memcached_operator.world.pod import Pod
from memcached_operator.world.snapshot import Listed, Snapshot

Spec = TypeVar("Spec", bound=msgspec.Struct)
Check = Callable[[Object], Checked[Spec]]
"""Checks the spec of a stored object. Without a spec, its children stay as they are."""

MAX_ERRORS_LENGTH, MAX_KEPT_LENGTH = 4096, 1000
"""Maximum characters of the errors in a problem, which has the whole message of Degraded, and in a notice."""

CHECKED_SPECS, CHECKED_BYTES = 1024, 2**20
"""Maximum number, and bytes as JSON, of the specs of one kind whose result is kept. A result of small values takes up
to 13 times as much again."""


def once_per_spec(check: Check[Spec]) -> Check[Spec]:
    """The same check, which keeps the results of the last specs: a reconcile needs it twice, and most reconciles of an
    object find its spec unchanged. `check` must depend only on the name and the spec of an object.
    """
    results: OrderedDict[bytes, Checked[Spec]] = OrderedDict()
    size = 0

    def checked(cr: Object) -> Checked[Spec]:
        nonlocal size
        # Not a dict as the key: 1, 1.0 and true are equal in Python.
        encoded = msgspec.json.encode((cr["metadata"]["name"], cr.get("spec")))
        if encoded not in results:
            name, spec = msgspec.json.decode(encoded)
            results[encoded] = check({"metadata": {"name": name}, "spec": spec})
            size += len(encoded)
        results.move_to_end(encoded)
        result = results[encoded]
        while len(results) > CHECKED_SPECS or size > CHECKED_BYTES:
            size -= len(results.popitem(last=False)[0])
        return result

    return checked


@dataclass(frozen=True)
class PodStep:
    """One write to a pod, only to this version of it."""

    pod: Pod
    """The pod as the plan has seen it."""
    patch: Object | None = None
    """A strategic merge patch; None deletes the pod."""
    subresource: str = ""
    """The subresource that the patch is for, such as `resize`; empty for the pod itself."""
    remedy: str = ""
    """What a user can do if the API server rejects the write."""
    denied_remedy: str = ""
    """What a user can do if admission denies the write."""
    capacity_remedy: str = ""
    """What a user can do if admission denies it because the node of the pod is too small."""

    @property
    def verb(self) -> str:
        """The effect on the pod, for messages: `Pod a-0 cannot be deleted`."""
        return "deleted" if self.patch is None else "resized" if self.subresource else "updated"


@dataclass(frozen=True)
class PodUpdate:
    """The state of an update of pods that the operator makes itself."""

    complete: bool
    """All pods are updated."""
    step: PodStep | None = None
    """The next write, made when the children have been applied."""
    doing: Mapping[str, str] = field(default_factory=dict[str, str])
    """What happens to pods now, such as `is being resized`, by their names."""
    replaces: bool = False
    """The end of a pause replaces pods, and what they keep in memory is lost. False without a pause."""


@dataclass(frozen=True)
class Plan:
    """The desired children, and the problems that are known before they are applied."""

    children: tuple[Object, ...] | None
    """The desired children; None leaves all existing ones unchanged."""
    problems: tuple[Problem, ...] = ()
    """The problems that are known before the children are applied."""
    notices: tuple[str, ...] = ()
    """Sentences for the status that are not problems."""
    requeue_after: float | None = None
    """Seconds until the plan may change without an event; None if it cannot."""
    requeue_if_applied: float | None = None
    """The same, unless a child cannot be applied: then the back-off decides when it is tried again."""
    update: PodUpdate | None = None
    """The update of the pods; None if their workload updates them, or nothing does now."""
    interventions: tuple[Intervention, ...] = ()
    """What other clients did to children."""
    needs_users: bool = False
    """The plan depends on the pods that name the object, such as because it removes what they may use. They are listed
    before it is applied."""
    versioned: bool = False
    """The workload and the status are written only to the versions that the plan has seen: they are a state that
    another leader may have changed."""


def invalid(errors: Sequence[FieldError]) -> Plan:
    """The plan for a spec from which no sound children can be built."""
    return Plan(None, (Problem(c.INVALID_SPEC, summary(errors, MAX_ERRORS_LENGTH)),))


def kept_violations(errors: Sequence[FieldError]) -> tuple[str, ...]:
    """The notice about the violations with which an object is reconciled: it was stored before these rules existed."""
    if not errors:
        return ()
    return (f"The spec is applied, although it violates a newer rule: {summary(errors, MAX_KEPT_LENGTH)}",)


@dataclass(frozen=True)
class Outcome:
    """The result of a plan."""

    problems: tuple[Problem, ...] = ()
    """The problems of the plan, and those of applying it."""
    notices: tuple[str, ...] = ()
    """The notices of the plan."""
    update: PodUpdate | None = None
    """The update of the plan."""
    interventions: tuple[Intervention, ...] = ()
    """The last interventions of other clients."""


@dataclass(frozen=True)
class DesiredStatus:
    """The desired status of a custom resource."""

    status: dict[str, Any]
    """The complete status, without the times of its conditions."""
    requeue_after: float | None = None
    """Seconds until the status may change without an event; None if it cannot."""


@dataclass(frozen=True, kw_only=True)
class ReconciledKind(WatchedKind):
    """The description of one kind of custom resource, from which the engine reconciles its objects."""

    plan: Callable[[Snapshot, datetime], Plan]
    """Compute the plan from a snapshot and the current time. A pure function."""
    status: Callable[[Snapshot, Outcome, datetime], DesiredStatus]
    """Compute the status from the same snapshot, the result of the plan and the current time. A pure function."""
    loss: str = ""
    """What is lost with a pod, as a clause; empty if nothing is."""
    updates_pods: bool = False
    """Its plans contain steps that change and delete pods."""
    listed: Listed[Any] | None = None
    """The pods that its status must know."""
    needs_budgets: Callable[[Object], bool] = lambda _: False
    """Whether the plan of an object must know the PodDisruptionBudgets of other owners in its namespace. They are then
    listed before it is made. A pure function."""
    counts: Callable[[Object, Object | None], tuple[int, ...]] = lambda _cr, _live: ()
    """Numbers of an object with its workload, or None, whose sums over all objects are metrics. A pure function."""
    waiting_since: Callable[[Object, Object | None], int | None] = lambda _cr, _live: None
    """The Unix time from which a change waits, by an object with its workload, or None. A metric has one value for each
    object that waits. A pure function."""
    restart: Callable[[Object], str] | None = None
    """The remedy for users who want to replace the pods of an object with `spec.rollout.restartedAt`, and what that
    costs. None if the kind has no such field."""
    template_remedy: Callable[[Object], str] | None = None
    """The remedy if a policy requires a label or an annotation of the pod template, and what that costs, as a clause.
    None if the spec has no field for it."""
