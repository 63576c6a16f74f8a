"""What a request to the API server asks for, and the journal of all of them."""

import hashlib
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple
from urllib.parse import parse_qs

import msgspec

WRITES = ("create", "update", "apply", "migration_patch", "patch", "delete")
"""Verbs that change something; it is a JSON patch, `apply` a server-side apply, `patch` a merge patch."""

PATCHES = {"application/apply-patch+yaml": "apply", "application/json-patch+json": "migration_patch"}
VERBS = {"POST": "create", "PUT": "update", "DELETE": "delete"}


class Call(NamedTuple):
    """One request, in the API's terms. Where it is about no resource, `resource` is empty."""

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
        """Whether this is such a call, by patterns as of file names."""
        return fnmatchcase(self.what, what) and fnmatchcase(self.name, name)


class _Meta(msgspec.Struct):
    name: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Named(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


def metadata(body: bytes) -> tuple[str, str]:
    """Name and resourceVersion of an object in JSON; empty where it is none."""
    try:
        found = msgspec.json.decode(body, type=_Named).metadata
    except msgspec.MsgspecError:
        return "", ""
    return found.name, found.resource_version


def call_of(method: str, path: str, query: str, content_type: str, body: bytes) -> Call:
    """Read a request."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    resource, name, sub = [*rest, "", "", ""][:3]
    if method == "GET":
        verb = "watch" if "watch" in parse_qs(query) else "get" if name or not resource else "list"
    elif method == "PATCH":
        verb = PATCHES.get(content_type, "patch")
    else:
        verb = VERBS.get(method, method.lower())
    if verb == "create" and not name:
        name = metadata(body)[0]
    return Call(verb, resource, sub, namespace, name)


@dataclass
class Entry:
    """One request and its answers: `code` is what the operator was told, `committed` what the API server said.

    Either is 0 where there was none. `at` is in seconds of the monotonic clock.
    """

    call: Call
    digest: str
    at: float = field(default_factory=time.monotonic)
    code: int = 0
    committed: int = 0
    version: str = ""
    struck: bool = False

    def __str__(self) -> str:
        struck = " (struck)" if self.struck else ""
        return f"{self.at:.3f} {self.call.what} {self.call.name} {self.digest} {self.code}/{self.committed}{struck}"


class Journal:
    """Every request, in the order it came."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def note(self, call: Call, body: bytes) -> Entry:
        """Note a request; its answers are filled in later."""
        entry = Entry(call, hashlib.sha256(body).hexdigest()[:8] if body else "-")
        self.entries.append(entry)
        return entry

    def since(self, at: float) -> list[Entry]:
        """What was asked from a moment on."""
        return [entry for entry in self.entries if entry.at >= at]

    def writes(self, since: float = 0.0) -> list[Entry]:
        """Writes, Leases apart."""
        return [each for each in self.since(since) if each.call.verb in WRITES and each.call.resource != "leases"]

    def counts(self, verb: str, name: str) -> "Counter[str]":
        """How many writes of one verb about objects of a name the API server carried out, by resource."""
        done = (each.call for each in self.entries if 200 <= each.committed < 300)
        return Counter(call.resource for call in done if (call.verb, call.name) == (verb, name) and not call.sub)


def busiest(entries: Iterable[Entry], seconds: float) -> int:
    """The greatest number of requests within any span of so many seconds."""
    times = [entry.at for entry in entries]
    return max((sum(at <= other < at + seconds for other in times) for at in times), default=0)
