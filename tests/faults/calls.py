"""Requests to the API server in the terms of its API, and the log of all of them."""

import hashlib
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple
from urllib.parse import parse_qs

import msgspec

WRITES = ("create", "update", "apply", "migrate", "patch", "delete")
"""Verbs that change something: `migrate` is a JSON patch, except of the number of pods, `apply` a server-side apply,
`patch` any other patch."""

PATCHES = {"application/apply-patch+yaml": "apply", "application/json-patch+json": "migrate"}
SCALED = b'"/spec/replicas"'
"""What a JSON patch of the number of pods contains."""
VERBS = {"POST": "create", "PUT": "update", "DELETE": "delete"}


class Call(NamedTuple):
    """One request, in the API's terms. `resource` is empty if the path names none."""

    verb: str
    resource: str
    sub: str
    namespace: str
    name: str

    @property
    def what(self) -> str:
        """Verb and resource, such as `create deployments` or `patch memcacheds/status`."""
        return f"{self.verb} {self.resource}" + (f"/{self.sub}" if self.sub else "")

    def matches(self, what: str, name: str = "*") -> bool:
        """Whether `what` and the name match these shell-style patterns."""
        return fnmatchcase(self.what, what) and fnmatchcase(self.name, name)


class _Meta(msgspec.Struct):
    name: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Named(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


def metadata(body: bytes) -> tuple[str, str]:
    """Name and resourceVersion of an object in JSON; empty if the body is no object."""
    try:
        found = msgspec.json.decode(body, type=_Named).metadata
    except msgspec.MsgspecError:
        return "", ""
    return found.name, found.resource_version


def call_of(method: str, path: str, query: str, content_type: str, body: bytes) -> Call:
    """Parse a request."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    resource, name, sub = [*rest, "", "", ""][:3]
    if method == "GET":
        verb = "watch" if "watch" in parse_qs(query) else "get" if name or not resource else "list"
    elif method == "PATCH":
        verb = "patch" if SCALED in body else PATCHES.get(content_type, "patch")
    else:
        verb = VERBS.get(method, method.lower())
    if verb == "create" and not name:
        name = metadata(body)[0]
    return Call(verb, resource, sub, namespace, name)


@dataclass
class Entry:
    """One request and its responses: `code` is what the operator received, `committed` what the API server returned.

    Either is 0 without a response. `at` is in seconds of the monotonic clock. `injected`: a rule injected a fault.
    """

    call: Call
    digest: str
    at: float = field(default_factory=lambda: time.monotonic())
    code: int = 0
    committed: int = 0
    version: str = ""
    injected: bool = False

    def __str__(self) -> str:
        injected = " (fault injected)" if self.injected else ""
        return f"{self.at:.3f} {self.call.what} {self.call.name} {self.digest} {self.code}/{self.committed}{injected}"


class RequestLog:
    """Every request, in order of arrival."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, call: Call, body: bytes) -> Entry:
        """Add a request; its responses are set later."""
        entry = Entry(call, hashlib.sha256(body).hexdigest()[:8] if body else "-")
        self.entries.append(entry)
        return entry

    def since(self, at: float) -> list[Entry]:
        """Requests that arrived at `at` or later."""
        return [entry for entry in self.entries if entry.at >= at]

    def writes(self, since: float = 0.0) -> list[Entry]:
        """Writes, without those of Leases."""
        return [each for each in self.since(since) if each.call.verb in WRITES and each.call.resource != "leases"]

    def counts(self, verb: str, name: str) -> "Counter[str]":
        """Successful requests with this verb for objects of this name, counted by resource."""
        done = (each.call for each in self.entries if 200 <= each.committed < 300)
        return Counter(call.resource for call in done if (call.verb, call.name) == (verb, name) and not call.sub)


def max_requests(entries: Iterable[Entry], seconds: float) -> int:
    """The greatest number of requests within any period of this length."""
    times = [entry.at for entry in entries]
    return max((sum(at <= other < at + seconds for other in times) for at in times), default=0)
