"""The interface between a kind and the reconciler: its resources and two pure functions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memcached_operator.kube.resource import Key, Object, Resource


class InvalidSpecError(Exception):
    """The spec is invalid; the message names field, value and remedy."""


@dataclass(frozen=True)
class Problem:
    """A problem that prevents the desired state: a condition reason, and a message with the remedy."""

    reason: str
    message: str


@dataclass(frozen=True)
class Snapshot:
    """The observed state that the functions of a kind may read."""

    children: Mapping[Key, Object] = field(default_factory=dict[Key, Object])
    pods: tuple[Object, ...] = ()
    problems: tuple[Problem, ...] = ()

    def child(self, resource: Resource) -> Object | None:
        """The only child of a resource type, or None."""
        return next((obj for key, obj in self.children.items() if key.resource == resource), None)


@dataclass(frozen=True)
class DesiredStatus:
    """The desired status. `requeue_after`: seconds until it may change without an event; None if it cannot."""

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
