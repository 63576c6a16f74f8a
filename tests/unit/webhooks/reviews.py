"""Builders of admission reviews and objects."""

from base64 import b64decode
from typing import Any

import msgspec

from memcached_webhooks.review import GroupVersionKind, ReviewRequest

DEFAULT = "docker.io/library/memcached:1.6.45"
MUTATE, VALIDATE = "/mutate-cache-example-com-v1-memcached", "/validate-cache-example-com-v1-memcached"


def memcached(spec: Any = None, **metadata: Any) -> dict[str, Any]:
    obj: dict[str, Any] = {"metadata": {"name": "cache", **metadata}}
    return obj if spec is None else {**obj, "spec": spec}


def request(obj: Any, old: Any = None, **changes: Any) -> ReviewRequest:
    fields: dict[str, Any] = {
        "uid": "u",
        "operation": "CREATE" if old is None else "UPDATE",
        "kind": GroupVersionKind("cache.example.com", "v1", "Memcached"),
        "name": "cache",
        "object": obj,
        "old_object": old,
    }
    fields |= changes
    fields |= {name: raw(fields[name]) for name in ("object", "old_object")}
    return ReviewRequest(**fields)


def raw(obj: Any) -> msgspec.Raw:
    """A value as JSON."""
    return msgspec.Raw(msgspec.json.encode(obj))


def review(obj: Any, old: Any = None, **changes: Any) -> dict[str, Any]:
    """An AdmissionReview that contains this request, as decoded JSON."""
    body = msgspec.json.decode(msgspec.json.encode(request(obj, old))) | changes
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body}


def patch_of(response: dict[str, Any]) -> Any:
    return msgspec.json.decode(b64decode(response["response"]["patch"]))
