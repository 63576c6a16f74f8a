"""Decodes AdmissionReview requests and encodes AdmissionReview responses. No I/O."""

from base64 import b64encode
from collections.abc import Callable
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from memcached_api.validation.field_errors import FieldError, aggregate, quote, quote_if_needed, truncate
from memcached_api.values import nested_field

API_VERSION: Final = "admission.k8s.io/v1"

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"
CONNECT: Final = "CONNECT"

Patch = list[dict[str, Any]]

MAX_RESPONSE_SIZE: Final = 2**16
"""Maximum bytes of a response. The constants below limit the parts that depend on the request."""
MAX_ERRORS_SIZE: Final = 28_000
"""Bytes of the field errors in a denial, which contains them twice: in the message and as causes."""
CAUSE_OVERHEAD: Final = 80
"""Bytes of a cause besides its field and its message."""
MAX_PATCH_SIZE: Final = 45_000
"""Bytes of a patch before base64 encoding, which makes it a third longer."""

# Maximum lengths of the fields of a request, in characters. Requests of the API server do not exceed them: a UID is a
# UUID of 36, a group is a DNS subdomain, versions, kinds and subresources are DNS labels, and CONNECT is the longest
# operation. A name is a DNS subdomain too, but the API server checks it after admission; the rule for names denies a
# longer one.
Uid = Annotated[str, Meta(max_length=128)]
Name = Annotated[str, Meta(max_length=1024)]
Subdomain = Annotated[str, Meta(max_length=253)]
Label = Annotated[str, Meta(max_length=63)]
Operation = Annotated[str, Meta(max_length=32)]


class InvalidReviewError(ValueError):
    """The body is not a valid AdmissionReview request; the message contains the cause."""


class GroupVersionKind(msgspec.Struct):
    group: Subdomain = ""
    version: Label = ""
    kind: Label = ""


NULL: Final = msgspec.Raw(b"null")


class ReviewRequest(msgspec.Struct, rename="camel"):
    """The fields of an AdmissionRequest that are used; others, such as userInfo and options, are not decoded."""

    uid: Uid
    operation: Operation
    kind: GroupVersionKind
    sub_resource: Label = ""
    name: Name = ""
    object: msgspec.Raw = NULL
    old_object: msgspec.Raw = NULL


class Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: ReviewRequest | None = None


class Denial(NamedTuple):
    """A denial: the fields of a Kubernetes Status."""

    code: int
    reason: str
    message: str
    details: dict[str, Any]


class ReviewResponse(NamedTuple):
    """The response to a request: allowed unless it has a denial."""

    denial: Denial | None = None
    patch: Patch = []  # noqa: RUF012 (a NamedTuple's default; never changed)
    warnings: list[str] = []  # noqa: RUF012


ALLOWED: Final = ReviewResponse()

Handler = Callable[[ReviewRequest], ReviewResponse]


class Reviewed(NamedTuple):
    """The response to a review: encoded, and its content."""

    encoded: bytes
    response: ReviewResponse


def handle_review(body: bytes | bytearray, handler: Handler) -> Reviewed:
    """The response to a review. Raises InvalidReviewError if the body is not a v1 review."""
    request = _request(body)
    result = handler(request)
    return Reviewed(msgspec.json.encode(_response(request.uid, result)), result)


def bad_request(request: ReviewRequest, group: str, kind: str) -> Denial:
    """The denial of a request that this path does not handle."""
    part = f"/{quote_if_needed(request.sub_resource)}" if request.sub_resource else ""
    received = f"{quote_if_needed(request.operation)} of {quote_if_needed(request.kind.kind) or 'nothing'}{part}"
    received += f" of group {quote(request.kind.group)}"
    expected = f"{CREATE} and {UPDATE} of {kind} of group {quote(group)}"
    message = f"this webhook handles {expected}, not {received}; correct the rules of the webhook configuration"
    return Denial(400, "BadRequest", message, {})


def invalid(request: ReviewRequest, obj: Any, errors: list[FieldError]) -> Denial:
    """A denial with as many errors as fit, in the format of the API server's own validation errors."""
    name = request.name or object_name(obj)
    short_name = truncate(name)
    kind, group = request.kind.kind, request.kind.group
    reported = _fitting(errors)
    causes = [{"reason": error.type, "message": error.body, "field": error.field_text} for error in reported]
    named = {"name": name} if name == short_name else {}  # programs read the details: omit a truncated name
    details = {**named, "group": group, "kind": kind, "causes": causes}
    text = aggregate(reported, len(errors) - len(reported))
    return Denial(422, "Invalid", f"{kind}.{group} {quote(short_name)} is invalid: {text}", details)


def _fitting(errors: list[FieldError]) -> list[FieldError]:
    """The first errors, as many as fit into MAX_ERRORS_SIZE."""
    size = 0
    for count, error in enumerate(errors):
        size += len(msgspec.json.encode(str(error))) + CAUSE_OVERHEAD
        if size > MAX_ERRORS_SIZE:
            return errors[:count]
    return errors


def object_name(obj: Any) -> str:
    """The `name` of an object, otherwise its `generateName`; empty if it has neither."""
    name = nested_field(obj, "metadata", "name") or nested_field(obj, "metadata", "generateName")
    return name if isinstance(name, str) else ""


DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors for JSON that is malformed, nested too deeply, or has numbers out of range."""

_DECODER: Final = msgspec.json.Decoder(Review)


def _request(body: bytes | bytearray) -> ReviewRequest:
    try:
        review = _DECODER.decode(body)
    except DECODE_ERRORS as error:
        raise InvalidReviewError(f"the body is not a valid AdmissionReview: {error}") from error
    if review.api_version != API_VERSION or review.kind != "AdmissionReview":
        received = f"{quote(review.kind)} of {quote(review.api_version)}"
        raise InvalidReviewError(f"expected an AdmissionReview of {API_VERSION}, got {received}")
    if review.request is None:
        raise InvalidReviewError("the AdmissionReview has no request")
    return review.request


def _response(uid: str, result: ReviewResponse) -> dict[str, Any]:
    response: dict[str, Any] = {"uid": uid, "allowed": result.denial is None}
    if result.denial is not None:
        response["status"] = {"status": "Failure", **result.denial._asdict()}
    patch = msgspec.json.encode(result.patch) if result.patch else b""
    # Only an invalid object needs a larger patch. The schema and the rules deny it even without defaults.
    if 0 < len(patch) <= MAX_PATCH_SIZE:
        response["patchType"] = "JSONPatch"
        response["patch"] = b64encode(patch).decode()
    if result.warnings:
        response["warnings"] = result.warnings
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
