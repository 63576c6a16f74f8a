"""The result of applying the children of one object."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from memcached_api import conditions as c
from memcached_operator.kind import Problem
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Key
from memcached_operator.status.reports import Report, of_created

API_MISSING = (404, 405)
"""Response codes of a write while its API is not served, or while its CRD is being deleted."""

API_PERIOD = 10.0
"""Seconds until such a write is repeated. Usually the watch has reported the missing API before."""

NAMESPACE_PERIOD = 10.0
"""Seconds until a terminating namespace is checked again: namespaces are not watched."""


@dataclass
class Result:
    """The result of applying the children: problems for the status, errors, and when to requeue.

    `tolerant`: report transient errors as Progressing. `wrote`: at least one child was created or changed. `created`:
    those that were created. `rollouts`: the reports of workloads with a new pod template.
    """

    tolerant: bool = True
    wrote: bool = False
    created: list[Key] = field(default_factory=list[Key])
    rollouts: list[Report] = field(default_factory=list[Report])
    problems: list[Problem] = field(default_factory=list[Problem])
    errors: list[ApiError] = field(default_factory=list[ApiError])
    requeue_after: float | None = None

    @property
    def reports(self) -> list[Report]:
        """What Events report: at most one for all created children, and one per new pod template."""
        return [of_created(self.created)] * bool(self.created) + self.rollouts

    def block(self, problem: Problem, seconds: float) -> None:
        """Add a problem that prevents applying a child, and requeue after at most `seconds`."""
        self.problems.append(problem)
        self.requeue(seconds)

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
                self.block(Problem(c.WAITING_FOR_DELETION, "The namespace is being deleted"), NAMESPACE_PERIOD)
                return
            self.fail(error, f"{key.resource.kind} {key.name} cannot be applied: {error.message}")

    def fail(self, error: ApiError, message: str) -> None:
        """Record an error, with the message of the problem that it is."""
        self.errors.append(error)
        transient = self.tolerant and not error.permanent
        self.problems.append(Problem(c.ROLLING_OUT if transient else c.APPLY_FAILED, message))

    def requeue(self, seconds: float) -> None:
        """Requeue after at most `seconds`."""
        self.requeue_after = seconds if self.requeue_after is None else min(self.requeue_after, seconds)
