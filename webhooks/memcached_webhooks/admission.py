"""Admission of objects of any kind: sets defaults and validates. Pure and idempotent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memcached_api.kind import Kind
from memcached_api.validation.field_errors import SpecDecodeError
from memcached_api.values import is_object, nested_field
from memcached_webhooks.patches import merge_operations
from memcached_webhooks.review import (
    ALLOWED,
    CONNECT,
    CREATE,
    DECODE_ERRORS,
    DELETE,
    UPDATE,
    Handler,
    InvalidReviewError,
    ReviewRequest,
    ReviewResponse,
    bad_request,
    invalid,
)
from memcached_webhooks.stored import Spec, Stored
from memcached_webhooks.warnings import kept_warning

MAX_KEPT_ERRORS = 10
"""Warnings about errors of the old object; the API server drops warnings beyond 4 KiB."""

_ObjectHandler = Callable[[ReviewRequest, Any, Any], ReviewResponse]
"""Returns the response to a request, its object and its old object, which is None on CREATE."""


def _no_defaults(_: Spec, __: Stored | None) -> dict[str, Any]:
    return {}


def _no_removals(_: Mapping[str, Any], __: Spec) -> list[str]:
    return []


def _no_warnings(_: Any, __: Any) -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class Admission:
    """The admission of one kind.

    `defaults`: returns the fields to set in a spec, by their paths (`rollout/maxSurge`), from the spec and the old
    object, which is None on CREATE. Those of the types need none: the API server sets them. `warnings`: returns
    warnings about a valid object that is created (the old one is None) or changed. `removals`: returns warnings about
    the fields that `defaults` sets in an update, from these fields and the old spec.
    """

    kind: Kind[Any]
    defaults: Callable[[Spec, Stored | None], dict[str, Any]] = _no_defaults
    warnings: Callable[[Any, Any], list[str]] = _no_warnings
    removals: Callable[[Mapping[str, Any], Spec], list[str]] = _no_removals

    def handlers(self) -> dict[str, Handler]:
        """The handler for each path."""
        return {
            path_of("mutate", self.kind): self._filtered(self._mutate),
            path_of("validate", self.kind): self._filtered(self._validate),
        }

    def _filtered(self, handler: _ObjectHandler) -> Handler:
        """A handler that denies other kinds, and allows deletions, objects being deleted and status writes."""
        group_kind = (self.kind.group, self.kind.name)

        def filtered(request: ReviewRequest) -> ReviewResponse:
            if (request.kind.group, request.kind.kind) != group_kind:
                return ReviewResponse(bad_request(request, *group_kind))
            if request.operation in (DELETE, CONNECT) or request.sub_resource == "status":
                return ALLOWED
            if request.operation not in (CREATE, UPDATE) or request.sub_resource:
                return ReviewResponse(bad_request(request, *group_kind))
            try:
                obj, old = self.kind.decode_object(request.object), self.kind.decode_object(request.old_object)
            except SpecDecodeError as error:
                return ReviewResponse(invalid(request, None, error.errors))
            except DECODE_ERRORS as error:
                raise InvalidReviewError(f"the object cannot be read: {error}") from error
            if nested_field(obj, "metadata", "deletionTimestamp") is not None:
                return ALLOWED  # only finalizers can change, and a denial would block the deletion
            return handler(request, obj, old)

        return filtered

    def _mutate(self, request: ReviewRequest, obj: Any, old: Any) -> ReviewResponse:
        """Allow, with a JSON patch that sets every missing default, and warnings about those that an update removed."""
        spec = nested_field(obj, "spec")
        if not is_object(obj) or (spec is not None and not is_object(spec)):
            return ALLOWED  # the validating webhook reports the error
        stored = None if request.operation == CREATE else _stored(request, old)
        fields = self.defaults(spec or {}, stored)
        warnings = [] if stored is None else self.removals(fields, stored.spec)
        return ReviewResponse(patch=merge_operations(spec, fields), warnings=warnings)

    def _validate(self, request: ReviewRequest, obj: Any, old: Any) -> ReviewResponse:
        """Deny with all errors, except those of the old object; otherwise allow, with warnings.

        An error of the old object is a warning.
        """
        errors = self.kind.validate(obj)
        update = request.operation == UPDATE
        before = self.kind.validate(old) if errors and update else []
        changes = self.kind.validate_change(obj, old) if update else []
        new = [*changes, *(error for error in errors if error not in before)]
        if new:
            return ReviewResponse(invalid(request, obj, new))
        kept = [kept_warning(error) for error in errors[:MAX_KEPT_ERRORS]]
        return ReviewResponse(warnings=[*kept, *self._effects(obj, old)])

    def _effects(self, obj: Any, old: Any) -> list[str]:
        """The warnings of the kind; none if the object or the old one has errors, such as a memory without a sensible
        amount, with which its effects cannot be computed.
        """
        try:
            return self.warnings(obj, old)
        except ValueError:  # also SpecDecodeError
            return []


def _stored(request: ReviewRequest, old: Any) -> Stored:
    """The stored object of an update, with an empty spec if it has no valid one."""
    spec = nested_field(old, "spec")
    return Stored(spec if is_object(spec) else {}, request.old_object)


def path_of(verb: str, kind: Kind[Any]) -> str:
    """The path of a kind's webhook, as in controller-runtime: `/mutate-cache-example-com-v1-memcached`."""
    return f"/{verb}-{kind.group.replace('.', '-')}-{kind.versions[0]}-{kind.name.lower()}"
