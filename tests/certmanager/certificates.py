"""Certificates of cert-manager: issued, renewed, and the content of their Secrets."""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from integration.control_plane import ControlPlane, until
from memcached_operator.kube.resource import SECRETS, Key, Object, Resource, nested_list
from support.waiting import READY

GROUP = "cert-manager.io"
CERTIFICATES = Resource(GROUP, "v1", "Certificate", "certificates")
ISSUERS = Resource(GROUP, "v1", "Issuer", "issuers")


def is_ready(obj: Object | None) -> bool:
    """Whether a Certificate or an Issuer is ready."""
    return _condition(obj or {}, "Ready") == "True"


def revision(plane: ControlPlane, key: Key) -> int:
    """The number of times that a Certificate has been issued, as soon as it is ready and not being issued."""
    found: Object = {}

    def issued() -> bool:
        found.update(plane.get(key) or {})
        return is_ready(found) and _condition(found, "Issuing") != "True"

    try:
        until(issued, READY)
    except AssertionError as error:
        raise AssertionError(f"{key} is not issued: {found.get('status')}") from error
    return found["status"]["revision"]


def renew(plane: ControlPlane, key: Key) -> None:
    """Issue a Certificate again, as `cmctl renew` does, and wait until its Secret has the new content."""
    before = revision(plane, key)
    obj = plane.must_get(key)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    wanted = {
        "type": "Issuing",
        "status": "True",
        "reason": "ManuallyTriggered",
        "message": "",
        "lastTransitionTime": now,
    }
    others = [each for each in obj["status"]["conditions"] if each["type"] != "Issuing"]
    obj["status"]["conditions"] = [*others, wanted]
    path = key.resource.path(key.namespace, key.name, "status")
    plane.call(lambda client: client.request("PUT", path, obj))
    until(lambda: revision(plane, key) > before, READY)


def content(plane: ControlPlane, namespace: str, secret: str) -> dict[str, bytes]:
    """The decoded content of a Secret."""
    data: Mapping[str, Any] = plane.must_get(Key(SECRETS, namespace, secret))["data"]
    return {name: base64.b64decode(text) for name, text in data.items()}


def _condition(obj: Object, name: str) -> str:
    found = [each["status"] for each in nested_list(obj, "status", "conditions") if each["type"] == name]
    return found[0] if found else ""
