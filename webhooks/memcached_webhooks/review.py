"""AdmissionReview in, AdmissionReview out: bytes to bytes, and nothing else happens."""

from base64 import b64encode
from collections.abc import Callable
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from memcached_api.field_errors import FieldError, cut, plain, quoted, sentence
from memcached_api.values import child

API_VERSION: Final = "admission.k8s.io/v1"

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"
CONNECT: Final = "CONNECT"

Patch = list[dict[str, Any]]

MAX_RESPONSE: Final = 2**16
"""Bytes of an answer, whatever the review was. What a review may bring into it is bounded by the constants below."""
MAX_REPORT: Final = 28_000
"""Bytes of the field errors that a denial reports; they stand in it twice, in the message and as causes."""
CAUSE: Final = 80
"""Bytes of a cause besides its field and its message."""
MAX_PATCH: Final = 45_000
"""Bytes of a patch, which becomes a third longer in base64."""

# Bounds of what a review says of itself, in characters. The API server keeps them: a UID is a UUID of 36, a group is a
# DNS subdomain, versions, kinds and subresources are DNS labels, and CONNECT is the longest operation. A name is a DNS
# subdomain too, but the API server checks that after admission: a longer one is denied with the rule that it breaks.
Uid = Annotated[str, Meta(max_length=128)]
Name = Annotated[str, Meta(max_length=1024)]
Subdomain = Annotated[str, Meta(max_length=253)]
Label = Annotated[str, Meta(max_length=63)]
Operation = Annotated[str, Meta(max_length=32)]


class BadReview(ValueError):  # noqa: N818 (it is the review that is bad)
    """The body is no AdmissionReview request this process could answer; the text says why."""


class GroupVersionKind(msgspec.Struct):
    group: Subdomain = ""
    version: Label = ""
    kind: Label = ""


NULL: Final = msgspec.Raw(b"null")


class Request(msgspec.Struct, rename="camel"):
    """What we need of an AdmissionRequest; the rest (who asks, options) is not even decoded."""

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
    request: Request | None = None


class Denial(NamedTuple):
    """Why a request is denied: the parts of a Kubernetes Status."""

    code: int
    reason: str
    message: str
    details: dict[str, Any]


class Response(NamedTuple):
    """What a review comes to; allowed if there is no refusal."""

    denial: Denial | None = None
    patch: Patch = []  # noqa: RUF012 (a NamedTuple's default; never changed)
    warnings: list[str] = []  # noqa: RUF012


ALLOWED: Final = Response()

Handler = Callable[[Request], Response]


def answer(body: bytes | bytearray, handler: Handler) -> tuple[bytes, Response]:
    """The response to a review, and the verdict in it. Raises BadReview when the body is no v1 AdmissionReview."""
    request = _request(body)
    result = handler(request)
    return msgspec.json.encode(_response(request.uid, result)), result


def unexpected(request: Request, group: str, kind: str) -> Denial:
    """The answer about an object of a kind this path does not judge: never allowed by mistake."""
    part = f"/{plain(request.sub_resource)}" if request.sub_resource else ""
    given = f"{plain(request.operation)} of {plain(request.kind.kind) or 'nothing'}{part}"
    given += f" of group {quoted(request.kind.group)}"
    wanted = f"{CREATE} and {UPDATE} of {kind} of group {quoted(group)}"
    message = f"this webhook judges {wanted}, not {given}: correct the rules of its configuration"
    return Denial(400, "BadRequest", message, {})


def invalid(request: Request, obj: Any, errors: list[FieldError]) -> Denial:
    """The errors in one Status, in the form in which the API server itself refuses an object: all that fit."""
    name = request.name or object_name(obj)
    format_value = cut(name)
    kind, group = request.kind.kind, request.kind.group
    reported = _fitting(errors)
    causes = [{"reason": error.kind, "message": error.detail, "field": error.field_text} for error in reported]
    named = {"name": name} if name == format_value else {}  # details are for programs: no name rather than a part of it
    details = {**named, "group": group, "kind": kind, "causes": causes}
    text = sentence(reported, len(errors) - len(reported))
    return Denial(422, "Invalid", f"{kind}.{group} {quoted(format_value)} is invalid: {text}", details)


def _fitting(errors: list[FieldError]) -> list[FieldError]:
    """The first of them, as many as fit into MAX_REPORT."""
    size = 0
    for count, error in enumerate(errors):
        size += len(msgspec.json.encode(str(error))) + CAUSE
        if size > MAX_REPORT:
            return errors[:count]
    return errors


def object_name(obj: Any) -> str:
    """The name in an object's metadata, or the prefix one is to be made from; empty if it has neither."""
    name = child(obj, "metadata", "name") or child(obj, "metadata", "generateName")
    return name if isinstance(name, str) else ""


UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What is raised for JSON that is malformed, too deep, or has numbers that nothing can hold."""

_DECODER: Final = msgspec.json.Decoder(Review)


def _request(body: bytes | bytearray) -> Request:
    try:
        review = _DECODER.decode(body)
    except UNREADABLE as error:
        raise BadReview(f"the body is no AdmissionReview: {error}") from error
    if review.api_version != API_VERSION or review.kind != "AdmissionReview":
        given = f"{quoted(review.kind)} of {quoted(review.api_version)}"
        raise BadReview(f"want an AdmissionReview of {API_VERSION}, got {given}")
    if review.request is None:
        raise BadReview("the AdmissionReview has no request")
    return review.request


def _response(uid: str, result: Response) -> dict[str, Any]:
    response: dict[str, Any] = {"uid": uid, "allowed": result.denial is None}
    if result.denial is not None:
        response["status"] = {"status": "Failure", **result.denial._asdict()}
    patch = msgspec.json.encode(result.patch) if result.patch else b""
    # A larger one is for an object beyond its bounds: schema and rules deny it, with the reason, also without defaults.
    if 0 < len(patch) <= MAX_PATCH:
        response["patchType"] = "JSONPatch"
        response["patch"] = b64encode(patch).decode()
    if result.warnings:
        response["warnings"] = result.warnings
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
