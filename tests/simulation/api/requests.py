"""Requests, replies, and the parts of a path."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from memcached_operator.kube.resource import Key, Object
from simulation.api.errors import NotServedError, StatusError, bad_request, not_found, not_served
from simulation.api.kinds import BY_PATH, NAMESPACES, Kind

JSON: Final = "application/json"
_BUILT_IN: Final = frozenset((each[0], each[1]) for each, kind in BY_PATH.items() if not kind.custom)
HEADERS: Final = {"Content-Type": JSON}


class Request(NamedTuple):
    """A request of a client. `user`: empty for an administrator, whose permissions are not checked."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    content_type: str = JSON
    body: bytes = b""
    user: str = ""

    def json(self) -> Any:
        """The decoded body. Raises StatusError."""
        try:
            return msgspec.json.decode(self.body)
        except msgspec.MsgspecError as error:
            raise bad_request(f"couldn't get version/kind; json parse error: {error}") from error


class Reply(NamedTuple):
    """A response. An error is a Status."""

    status: int
    body: bytes
    headers: Mapping[str, str] = HEADERS


class Target(NamedTuple):
    """What a request is about. `name` is empty for all objects, and `namespace` for those of all namespaces."""

    kind: Kind
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> Key:
        """The key of the object."""
        return Key(self.kind.resource, self.namespace, self.name)


def target_of(path: str) -> Target:
    """The target of a path. Raises NotServedError or StatusError for one that is not served."""
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        parts.insert(1, "")
    group, version, *rest = parts[1:] if len(parts) > 2 else ("", "", "")
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    kind = BY_PATH.get((group, version, plural))
    if kind is None or len(rest) > 3 or (kind.namespaced and name and not namespace):
        raise not_served() if (group, version) in _BUILT_IN else NotServedError
    if subresource and subresource not in kind.subresources:
        raise not_found(kind.resource, name) if kind.custom else not_served()
    return Target(kind, namespace, name, subresource)


def namespace_key(name: str) -> Key:
    """The key of a namespace."""
    return Key(NAMESPACES, "", name)


NOT_SERVED: Final = Reply(404, b"404 page not found\n", {"Content-Type": "text/plain; charset=utf-8"})


def failed(error: StatusError) -> Reply:
    """The response to a request that failed."""
    return Reply(error.code, msgspec.json.encode(error.status()))


def ok(obj: Object, status: int = 200) -> Reply:
    """A response with an object."""
    return Reply(status, msgspec.json.encode(obj))
