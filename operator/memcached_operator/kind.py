"""What a kind must say of itself for the engine to run it: its resources and two pure functions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memcached_operator.kube.resource import Key, Object, Resource


class InvalidSpecError(Exception):
    """The object cannot be carried out as it stands; the message names field, value and remedy."""


@dataclass(frozen=True)
class Problem:
    """Something that keeps the children from being as desired: a reason of a condition, and what to do."""

    reason: str
    message: str


@dataclass(frozen=True)
class Snapshot:
    """Everything a decision about one object may look at."""

    children: Mapping[Key, Object] = field(default_factory=dict[Key, Object])
    pods: tuple[Object, ...] = ()
    problems: tuple[Problem, ...] = ()

    def child(self, resource: Resource) -> Object | None:
        """The one child of a resource, or None."""
        return next((obj for key, obj in self.children.items() if key.resource == resource), None)


@dataclass(frozen=True)
class DesiredStatus:
    """The status an object should have, and in how many seconds it may change by time alone (None: it does not)."""

    status: dict[str, Any]
    requeue_after: float | None = None


@dataclass(frozen=True)
class Kind:
    """One kind of custom resource.

    `desired` raises InvalidSpecError. `app_name` is the value of `app.kubernetes.io/name` on its children.
    """

    resource: Resource
    app_name: str
    owns: tuple[Resource, ...]
    desired: Callable[[Object, Snapshot], list[Object]]
    status: Callable[[Object, Snapshot, datetime], DesiredStatus]
