"""What admission does with an object of any kind: fills in defaults, and judges. Pure and idempotent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memcached_api.field_errors import InvalidSpec
from memcached_api.kinds import Kind
from memcached_api.values import child, is_object
from memcached_webhooks.review import (
    ALLOWED,
    CONNECT,
    CREATE,
    DELETE,
    UNREADABLE,
    UPDATE,
    BadReview,
    Handler,
    Patch,
    Request,
    Response,
    invalid,
    unexpected,
)

Spec = Mapping[str, Any]

_Judge = Callable[[Request, Any, Any], Response]
"""A verdict on a request, its object and its old object; the latter is None on CREATE."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What a kind says of itself.

    `defaults`: the fields to write into a spec, given it and the old object's, which is None on CREATE.
    `warnings`: sentences about a valid object that is created (the old one is None) or changed.
    """

    kind: Kind[Any]
    defaults: Callable[[Spec, Spec | None], dict[str, Any]]
    warnings: Callable[[Any, Any], list[str]]

    def handlers(self) -> dict[str, Handler]:
        """The function for each path."""
        return {
            path_of("mutate", self.kind): self._guarded(self._patched),
            path_of("validate", self.kind): self._guarded(self._validate),
        }

    def _guarded(self, handler: _Judge) -> Handler:
        """Common to both: other kinds are refused; deletions, objects being deleted and status writes pass."""
        wanted = (self.kind.group, self.kind.name)

        def guarded(request: Request) -> Response:
            if (request.kind.group, request.kind.kind) != wanted:
                return Response(unexpected(request, *wanted))
            if request.operation in (DELETE, CONNECT) or request.sub_resource == "status":
                return ALLOWED
            if request.operation not in (CREATE, UPDATE) or request.sub_resource:
                return Response(unexpected(request, *wanted))
            try:
                obj, old = self.kind.read(request.object), self.kind.read(request.old_object)
            except InvalidSpec as error:
                return Response(invalid(request, None, error.errors))
            except UNREADABLE as error:
                raise BadReview(f"the object cannot be read: {error}") from error
            if child(obj, "metadata", "deletionTimestamp") is not None:
                return ALLOWED  # only finalizers are left to change, and a refusal would keep the object for ever
            return handler(request, obj, old)

        return guarded

    def _patched(self, request: Request, obj: Any, old: Any) -> Response:
        """Allowed, with a JSON patch that writes every default the object lacks."""
        return Response(patch=self._patch(obj, None if request.operation == CREATE else child(old, "spec") or {}))

    def _patch(self, obj: Any, before: Any) -> Patch:
        spec = child(obj, "spec")
        if not is_object(obj) or (spec is not None and not is_object(spec)):
            return []  # validation tells what is wrong
        if before is not None and not is_object(before):
            before = {}
        missing = self.defaults(spec or {}, before)
        if spec is None:
            return [{"op": "add", "path": "/spec", "value": missing}]
        return [{"op": "add", "path": f"/spec/{field}", "value": value} for field, value in missing.items()]

    def _validate(self, request: Request, obj: Any, old: Any) -> Response:
        """Refused with all its errors at once, but for those the old object had; else allowed, with warnings."""
        found = self.kind.validate(obj)
        if not found:
            return Response(warnings=self.warnings(obj, old))
        before = self.kind.validate(old) if request.operation == UPDATE else []
        new = [error for error in found if error not in before]
        return Response(invalid(request, obj, new)) if new else ALLOWED


def path_of(verb: str, kind: Kind[Any]) -> str:
    """The path of a kind's webhook, as controller-runtime makes it: `/mutate-cache-example-com-v1-memcached`."""
    return f"/{verb}-{kind.group.replace('.', '-')}-{kind.versions[0]}-{kind.name.lower()}"
