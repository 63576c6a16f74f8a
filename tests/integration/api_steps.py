"""Requests of the scripts for the simulated API server."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from memcached_operator.kube.client import FIELD_MANAGER
from memcached_operator.kube.resource import Object, Resource

NAMESPACE: Final = "fidelity"
JSON, MERGE, PATCH = "application/json", "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
OPERATOR, USER = FIELD_MANAGER, "test-user"

NOTHING: Final[Object] = {}

Seen = Sequence[Any]
"""The replies to the earlier steps of a script."""
Content = Any | Callable[[Seen], Any]
"""A value, or a function of the earlier replies."""


@dataclass(frozen=True)
class Step:
    """A request. `method` WATCH: the events since a version. `body`, `query`: see Content."""

    method: str
    path: str
    body: Content = None
    content_type: str = JSON
    query: Mapping[str, str] | Callable[[Seen], Mapping[str, str]] = field(default_factory=dict[str, str])
    user: str = ""

    def by(self, user: str) -> "Step":
        """The same request of a user."""
        return replace(self, user=user)


def create(resource: Resource, body: Content, manager: str = USER, **query: str) -> Step:
    """A creation by POST."""
    return Step("POST", resource.path(NAMESPACE), body, query={"fieldManager": manager, **query})


def get(resource: Resource, name: str, subresource: str = "") -> Step:
    """A read of one object."""
    return Step("GET", resource.path(NAMESPACE, name, subresource))


def listed(resource: Resource, **query: Any) -> Step:
    """A list of a namespace."""
    return Step("GET", resource.path(NAMESPACE), query=query)


def put(resource: Resource, name: str, body: Content, subresource: str = "", manager: str = USER) -> Step:
    """A replacement."""
    return Step("PUT", resource.path(NAMESPACE, name, subresource), body, query={"fieldManager": manager})


def patch(
    resource: Resource,
    name: str,
    body: Content,
    content_type: str = MERGE,
    subresource: str = "",
    manager: str = USER,
    **query: str,
) -> Step:
    """A patch. `content_type`: its type."""
    path = resource.path(NAMESPACE, name, subresource)
    return Step("PATCH", path, body, content_type, {"fieldManager": manager, **query})


def applied(
    resource: Resource, name: str, body: Content, manager: str = OPERATOR, *, force: bool = True, **query: str
) -> Step:
    """A server-side apply."""
    options = {"force": "true", **query} if force else query
    return patch(resource, name, body, APPLY, manager=manager, **options)


def delete(resource: Resource, name: str = "", body: Content = None, **query: str) -> Step:
    """A deletion of one object, or of all in the namespace."""
    return Step("DELETE", resource.path(NAMESPACE, name), body, query=query)


def changed(obj: Object, *path: str, value: Any) -> Object:
    """A copy of an object with another value; None removes the field."""
    name, *rest = path
    if rest:
        return {**obj, name: changed(obj.get(name) or {}, *rest, value=value)}
    copy = {**obj, name: value}
    return copy if value is not None else {each: found for each, found in obj.items() if each != name}


def options(index: int, propagation: str = "Background", *, version: int | None = None) -> Content:
    """DeleteOptions with the uid in the reply `index`, and with the resourceVersion in the reply `version`."""

    def built(seen: Seen) -> Object:
        conditions = {"uid": seen[index]["metadata"]["uid"]}
        if version is not None:
            conditions["resourceVersion"] = seen[version]["metadata"]["resourceVersion"]
        kind = {"kind": "DeleteOptions", "apiVersion": "v1"}
        return {**kind, "propagationPolicy": propagation, "preconditions": conditions}

    return built
