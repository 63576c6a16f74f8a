"""AdmissionReview in, AdmissionReview out: bytes to bytes, and nothing else happens."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from memcached_api.faults import Fault, sentence
from memcached_api.values import child

API_VERSION: Final = "admission.k8s.io/v1"

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"
CONNECT: Final = "CONNECT"

Patch = list[dict[str, Any]]


class BadReview(ValueError):  # noqa: N818 (it is the review that is bad)
    """The body is no AdmissionReview request this process could answer; the text says why."""


class GroupVersionKind(msgspec.Struct):
    group: str = ""
    version: str = ""
    kind: str = ""


class Request(msgspec.Struct, rename="camel"):
    """What we need of an AdmissionRequest; the rest (who asks, options) is not even decoded."""

    uid: str
    operation: str
    kind: GroupVersionKind
    sub_resource: str = ""
    name: str = ""
    object: Any = None
    old_object: Any = None


class Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: Request | None = None


class Refusal(NamedTuple):
    """Why a request is denied: the parts of a Kubernetes Status."""

    code: int
    reason: str
    message: str
    details: dict[str, Any]


class Verdict(NamedTuple):
    """What a review comes to; allowed if there is no refusal."""

    refusal: Refusal | None = None
    patch: Patch = []  # noqa: RUF012 (a NamedTuple's default; never changed)
    warnings: list[str] = []  # noqa: RUF012


ALLOWED: Final = Verdict()

Judge = Callable[[Request], Verdict]


def answer(body: bytes | bytearray, judge: Judge) -> tuple[bytes, Verdict]:
    """The response to a review, and the verdict in it. Raises BadReview when the body is no v1 AdmissionReview."""
    request = _request(body)
    verdict = judge(request)
    return msgspec.json.encode(_response(request.uid, verdict)), verdict


def misdirected(request: Request, group: str, kind: str) -> Refusal:
    """The answer about an object of a kind this path does not judge: never allowed by mistake."""
    part = f"/{request.sub_resource}" if request.sub_resource else ""
    given = f"{request.operation} of {request.kind.kind or 'nothing'}{part} of group {request.kind.group!r}"
    wanted = f"{CREATE} and {UPDATE} of {kind} of group {group!r}"
    message = f"this webhook judges {wanted}, not {given}: correct the rules of its configuration"
    return Refusal(400, "BadRequest", message, {})


def invalid(request: Request, faults: list[Fault]) -> Refusal:
    """All faults in one Status, in the form in which the API server itself refuses an object."""
    name = request.name or object_name(request.object)
    kind, group = request.kind.kind, request.kind.group
    causes = [{"reason": fault.kind, "message": fault.detail, "field": fault.field} for fault in faults]
    details = {"name": name, "group": group, "kind": kind, "causes": causes}
    return Refusal(422, "Invalid", f'{kind}.{group} "{name}" is invalid: {sentence(faults)}', details)


def object_name(obj: Any) -> str:
    """The name in an object's metadata, or the prefix one is to be made from; empty if it has neither."""
    name = child(obj, "metadata", "name") or child(obj, "metadata", "generateName")
    return name if isinstance(name, str) else ""


_DECODER: Final = msgspec.json.Decoder(Review)


def _request(body: bytes | bytearray) -> Request:
    try:
        review = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReview(f"the body is no AdmissionReview: {error}") from error
    if review.api_version != API_VERSION or review.kind != "AdmissionReview":
        raise BadReview(f"want an AdmissionReview of {API_VERSION}, got {review.kind!r} of {review.api_version!r}")
    if review.request is None:
        raise BadReview("the AdmissionReview has no request")
    return review.request


def _response(uid: str, verdict: Verdict) -> dict[str, Any]:
    response: dict[str, Any] = {"uid": uid, "allowed": verdict.refusal is None}
    if verdict.refusal is not None:
        response["status"] = {"status": "Failure", **verdict.refusal._asdict()}
    if verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = b64encode(msgspec.json.encode(verdict.patch)).decode()
    if verdict.warnings:
        response["warnings"] = verdict.warnings
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
