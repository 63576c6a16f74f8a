"""The result of applying the children of one object."""

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from memcached_api import conditions as c
from memcached_operator.engine.reporting.reports import Report, of_created
from memcached_operator.findings.creation_remedies import CHANGE_POLICY, LACKS_METADATA
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, STATEFULSETS, Key

API_MISSING = (404, 405)
"""Response codes of a write while its API is not served, or while its CRD is being deleted."""

INVALID = 422
"""Response code for an object that violates a rule of the API server, such as that a field is immutable."""

IMMUTABLE = ("field is immutable", "may not change once set", "updates to statefulset spec for fields other than")
"""Parts of the error messages about such a field. The last one is that of StatefulSets up to Kubernetes 1.36."""

NEW_TRAFFIC = "spec.trafficDistribution: Unsupported value"
"""Part of the error message of Kubernetes 1.31 to 1.33 about the values `PreferSameZone` and `PreferSameNode`."""

API_PERIOD = 10.0
"""Seconds until such a write is repeated. Usually the watch has reported the missing API before."""

CONFLICT_PERIOD = 10.0
"""Seconds until a conflicting object is checked again: it may not be watched."""

MAX_COPIES = 10
"""Copies of children in a message. The next ones follow when these are deleted."""

MAX_SEARCHED = 4096
"""Characters of an error message in which a policy's cause is searched: the expression backtracks in longer ones."""

OF_TEMPLATE: Final = re.compile(r"\bspec[./]template\b")
"""The pod template in a policy's message, such as of a rule for pods that Kyverno applies to workloads."""

NAMESPACE_PERIOD = 10.0
"""Seconds until a terminating namespace is checked again: namespaces are not watched."""


@dataclass
class Result:
    """The result of applying the children."""

    tolerant: bool = True
    """Report transient errors as Progressing."""
    template_remedy: Callable[[], str] | None = None
    """The remedy if a policy requires metadata of the pod template, as a clause; None without a field for it."""
    terminating: bool = False
    """A child cannot be created, because its namespace is being deleted."""
    wrote: bool = False
    """At least one child was created, changed or deleted."""
    created: list[Key] = field(default_factory=list[Key])
    """The children that were created."""
    rollouts: list[Report] = field(default_factory=list[Report])
    """The reports of workloads with a new pod template."""
    copies: dict[Key, str] = field(default_factory=dict[Key, str])
    """The objects that other clients created as copies of children, and how each differs."""
    problems: list[Problem] = field(default_factory=list[Problem])
    """The problems for the status."""
    errors: list[ApiError] = field(default_factory=list[ApiError])
    """The errors of the API server, which decide about the retry."""
    requeue_after: float | None = None
    """Seconds until the next reconcile, even without an event; None if it needs none."""
    only_read: bool = False
    """It has only found out whether the last write to a pod was made. The next reconcile follows at once: it makes the
    next attempt, whose backoff goes on, and writes the status, which must not change in between."""

    def reports(self, *, is_new: bool) -> list[Report]:
        """What Events report: at most one for all created children, and one per new pod template.

        `is_new`: no status has been written for the object. Then nothing reports that its children were created: the
        first change of its conditions reports whether they work.
        """
        return [of_created(self.created)] * bool(self.created and not is_new) + self.rollouts

    def block(self, problem: Problem, seconds: float) -> None:
        """Add a problem that prevents applying a child, and requeue after at most `seconds`."""
        self.problems.append(problem)
        self.requeue(seconds)

    def conflict(self, key: Key, message: str, kind: str, *, is_copy: bool, rivals: str = "") -> None:
        """Add the problem that another object has the name of a child. `kind`: that of the owner of the child.

        `rivals`: that owner and the other one, if this operator reconciles both: it would create the object again.
        """
        self.requeue(CONFLICT_PERIOD)
        if is_copy:
            self.copies[key] = message
            return
        remedy = f"Delete or rename it, or use another name for this {kind}"
        if rivals:
            remedy = f"This operator creates it for only one of the two. Use another name for {rivals}"
        served = ", and clients that use its name reach what it selects" if key.resource == SERVICES else ""
        text = f"{message}. The object is not modified{served}. {remedy}"
        self.problems.append(Problem(c.CONFLICT, text, objects=(key,)))

    def end(self, kind: str) -> None:
        """Add one problem for all copies."""
        if not self.copies:
            return
        keys = list(self.copies)[:MAX_COPIES]
        names = " ".join(f"{key.resource.kind.lower()}/{key.name}" for key in keys)
        what = "; ".join(self.copies[key] for key in keys)
        remedy = (
            f"To have them created again, run kubectl delete -n {keys[0].namespace} --cascade=orphan --wait=false "
            f"{names}. This keeps the pods as they are. Or use another name for this {kind}"
        )
        cause = "Objects with the labels of this operator, as from a backup, are not modified, because they differ"
        self.problems.append(Problem(c.CONFLICT, f"{cause}: {what}. {remedy}", objects=tuple(self.copies)))

    @contextmanager
    def record_errors(self, key: Key, *, optional: bool = False) -> Generator[None]:
        """Record an ApiError of the block as a problem instead of raising it, so that the status reports it.

        `optional`: the child's API may be missing, which is no problem.
        """
        try:
            yield
        except ApiError as error:
            if optional and error.code in API_MISSING:
                self.requeue(API_PERIOD)
                return
            if error.namespace_terminating:
                self.terminating = True
                self.block(Problem(c.WAITING_FOR_DELETION, "The namespace is being deleted"), NAMESPACE_PERIOD)
                return
            self.fail(error, f"{key.resource.kind} {key.name} cannot be applied: {error}{self._remedy(key, error)}")

    def fail(self, error: ApiError, message: str) -> None:
        """Record an error, with the message of the problem that it is."""
        self.errors.append(error)
        transient = self.tolerant and not error.permanent
        self.problems.append(Problem(c.ROLLING_OUT if transient else c.APPLY_FAILED, message))

    def requeue(self, seconds: float) -> None:
        """Requeue after at most `seconds`."""
        self.requeue_after = seconds if self.requeue_after is None else min(self.requeue_after, seconds)

    def _remedy(self, key: Key, error: ApiError) -> str:
        """The remedy for an error that does not end by itself, as a sentence after it; empty without one."""
        text = error.message[:MAX_SEARCHED]
        if not LACKS_METADATA.search(text):
            return _remedy(key, error)
        if key.resource in (DEPLOYMENTS, STATEFULSETS) and OF_TEMPLATE.search(text):
            remedy = self.template_remedy() if self.template_remedy else CHANGE_POLICY.text
            return f". {remedy[0].upper()}{remedy[1:]}"
        return f". Add what it requires to spec.inheritedMetadata, or {CHANGE_POLICY.text}"


def _remedy(key: Key, error: ApiError) -> str:
    """The remedy for a value that this API server is too old for, or for a field that it does not let anyone change,
    such as in a restored object."""
    if error.code == INVALID and key.resource == SERVICES and NEW_TRAFFIC in error.message:
        return (
            ". Upgrade the cluster to Kubernetes 1.34 or later, or set spec.service.trafficDistribution to PreferClose"
        )
    child = f"{key.resource.kind.lower()}/{key.name}"
    command = f"kubectl delete -n {key.namespace} --cascade=orphan --wait=false {child}"
    if error.code != INVALID or not any(text in error.message for text in IMMUTABLE):
        return ""
    if key.resource == SERVICES:
        return f". Run {command}. The controller creates it again; until then, its name cannot be resolved"
    if key.resource == STATEFULSETS:
        return f". Run {command}, which keeps the pods as they are. The controller creates it again"
    return ""
