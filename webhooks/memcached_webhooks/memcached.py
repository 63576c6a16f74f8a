"""What admission does with a Memcached: fills in defaults, and judges. Pure and idempotent."""

from typing import Any, Final

from memcached_api.memcached import DEFAULT_CONTAINER_PORT, DEFAULT_SIZE, GROUP, KIND, faults
from memcached_api.values import child, is_object
from memcached_webhooks.review import (
    ALLOWED,
    CONNECT,
    CREATE,
    DELETE,
    UPDATE,
    Judge,
    Patch,
    Request,
    Verdict,
    invalid,
    misdirected,
)
from memcached_webhooks.warnings import warnings

MUTATE: Final = "/mutate-cache-example-com-v1-memcached"
VALIDATE: Final = "/validate-cache-example-com-v1-memcached"


def judges(default_image: str) -> dict[str, Judge]:
    """The function for each path. `default_image`: what an object without `spec.image` is pinned to."""
    return {
        MUTATE: _guarded(lambda request: Verdict(patch=defaults(request, default_image))),
        VALIDATE: _guarded(lambda request: verdict(request, default_image)),
    }


def _guarded(judge: Judge) -> Judge:
    """What both have in common: other kinds are refused; deletions, objects being deleted and status writes pass."""

    def guarded(request: Request) -> Verdict:
        if (request.kind.group, request.kind.kind) != (GROUP, KIND):
            return Verdict(misdirected(request, GROUP, KIND))
        if request.operation in (DELETE, CONNECT) or request.sub_resource == "status":
            return ALLOWED
        if request.operation not in (CREATE, UPDATE) or request.sub_resource:
            return Verdict(misdirected(request, GROUP, KIND))
        if child(request.object, "metadata", "deletionTimestamp") is not None:
            return ALLOWED  # only finalizers are left to change, and a refusal would keep the object for ever
        return judge(request)

    return guarded


def defaults(request: Request, default_image: str) -> Patch:
    """JSON patch that writes every default the object lacks; a null counts as lacking.

    The image is pinned once, when the object is created: an update without one keeps the old object's, and where that
    has none (it came in while admission was away) the controller goes on with the image that it chose.
    """
    spec = child(request.object, "spec")
    if not is_object(request.object) or (spec is not None and not is_object(spec)):
        return []  # validation tells what is wrong
    image = default_image if request.operation == CREATE else child(request.old_object, "spec", "image")
    wanted: dict[str, Any] = {"size": DEFAULT_SIZE, "containerPort": DEFAULT_CONTAINER_PORT}
    if isinstance(image, str):
        wanted["image"] = image
    missing = {field: value for field, value in wanted.items() if child(spec, field) is None}
    if spec is None:
        return [{"op": "add", "path": "/spec", "value": missing}]
    return [{"op": "add", "path": f"/spec/{field}", "value": value} for field, value in missing.items()]


def verdict(request: Request, default_image: str) -> Verdict:
    """Refused with all its faults at once, but for those the old object had already; else allowed, with warnings."""
    found = faults(request.object)
    if not found:
        return Verdict(warnings=warnings(request.object, request.old_object, default_image))
    before = faults(request.old_object) if request.operation == UPDATE else []
    new = [fault for fault in found if fault not in before]
    return Verdict(invalid(request, new)) if new else ALLOWED
