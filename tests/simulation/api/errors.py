"""Errors of the API server (k8s.io/apimachinery, pkg/api/errors/errors.go)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from memcached_operator.kube.resource import Object, Resource


@dataclass(eq=False)  # not frozen: context managers assign __traceback__
class StatusError(Exception):
    """A request failed. `details`: as in a Status."""

    code: int
    reason: str
    message: str
    details: Object | None = None
    meta: Object = field(default_factory=dict[str, object])

    def status(self) -> Object:
        """The error as a Status."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.meta,
            "status": "Failure",
            "message": self.message,
            **({"reason": self.reason} if self.reason else {}),
            **({} if self.details is None else {"details": self.details}),
            "code": self.code,
        }


@dataclass(frozen=True)
class Cause:
    """What is wrong with a field."""

    reason: str
    message: str
    field: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def group_resource(resource: Resource) -> str:
    """The name of a resource in messages, such as `deployments.apps`."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _details(resource: Resource, name: str, kind: str = "") -> Object:
    named = {"name": name} if name else {}
    return {**named, **({"group": resource.group} if resource.group else {}), "kind": kind or resource.plural}


def not_found(resource: Resource, name: str) -> StatusError:
    """The object does not exist."""
    message = f'{group_resource(resource)} "{name}" not found'
    return StatusError(404, "NotFound", message, _details(resource, name))


def not_served() -> StatusError:
    """No such path in a group of Kubernetes. For other paths, see NotServedError."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


class NotServedError(Exception):
    """No such group, or no such path in the group of a custom resource: the response is a text, not a Status."""


def already_exists(resource: Resource, name: str, *, deleting: bool = False) -> StatusError:
    """An object of this name exists."""
    message = f'{group_resource(resource)} "{name}" already exists'
    text = f"object is being deleted: {message}" if deleting else message
    return StatusError(409, "AlreadyExists", text, _details(resource, name))


def conflict(resource: Resource, name: str, problem: str) -> StatusError:
    """The object is not the one that the request names."""
    message = f'Operation cannot be fulfilled on {group_resource(resource)} "{name}": {problem}'
    return StatusError(409, "Conflict", message, _details(resource, name))


def deletion_conflict(resource: Resource, name: str, problem: str) -> StatusError:
    """A precondition of a deletion does not hold. The details contain the kind (rest.BeforeDelete)."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = f'Operation cannot be fulfilled on {kind} "{name}": {problem}'
    return StatusError(409, "Conflict", message, _details(resource, name, resource.kind))


def modified(resource: Resource, name: str) -> StatusError:
    """The object has another resourceVersion."""
    problem = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, problem)


def forbidden(resource: Resource, name: str, problem: str, causes: Sequence[Cause] = ()) -> StatusError:
    """The user may not do this, or the object must not be changed so."""
    quoted = f' "{name}"' if name else ""
    details = _details(resource, name) | ({"causes": [_cause(each) for each in causes]} if causes else {})
    return StatusError(403, "Forbidden", f"{group_resource(resource)}{quoted} is forbidden: {problem}", details)


def invalid(resource: Resource, name: str, *causes: Cause, kind: str = "") -> StatusError:
    """Fields of the object are not valid. `kind`: by default that of the resource."""
    kind = kind or resource.kind
    qualified = f"{kind}.{resource.group}" if resource.group else kind
    texts = list(dict.fromkeys(map(str, causes)))
    problem = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _details(resource, name, kind) | {"causes": [_cause(each) for each in causes]}
    return StatusError(422, "Invalid", f'{qualified} "{name}" is invalid: {problem}', details)


def invalid_value(
    path: str, value: object, problem: str, order: Literal["deterministic"] | None = "deterministic"
) -> Cause:
    """A value that is not valid. `order`: of the keys of maps, by default alphabetical; None: as they are."""
    text = value if isinstance(value, int) else msgspec.json.encode(value, order=order).decode()
    return Cause("FieldValueInvalid", f"Invalid value: {text}: {problem}", path)


def bad_request(message: str) -> StatusError:
    """The request itself is wrong."""
    return StatusError(400, "BadRequest", message)


def unprocessable() -> StatusError:
    """A JSON patch cannot be applied; the API server does not report why."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def expired(message: str, meta: Object | None = None) -> StatusError:
    """The version of a watch or a list is older than the history."""
    return StatusError(410, "Expired", message, meta=meta or {})


def _cause(cause: Cause) -> Object:
    return {"reason": cause.reason, "message": cause.message, "field": cause.field}
