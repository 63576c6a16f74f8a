"""Requests as the API server counts and times them, from its audit log."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
CHANGE, AUTOSCALED = "patch memcacheds", "patch memcacheds/scale"
STATUS = "patch memcacheds/status"
CHILDREN = ("deployments", "statefulsets", "services", "configmaps", "poddisruptionbudgets", "networkpolicies")
CHILD_WRITES = tuple(f"{verb} {plural}" for verb in sorted(WRITES) for plural in CHILDREN)


class _Target(msgspec.Struct):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Response(msgspec.Struct):
    code: int = 0


class _Line(msgspec.Struct, rename="camel"):
    verb: str
    request_received_timestamp: datetime
    stage_timestamp: datetime
    user_agent: str = ""
    object_ref: _Target = msgspec.field(default_factory=_Target)
    response_status: _Response = msgspec.field(default_factory=_Response)


class Request(NamedTuple):
    """One completed request; times in seconds."""

    what: str
    verb: str
    agent: str
    namespace: str
    name: str
    code: int
    started: float
    ended: float


class Trail:
    """The requests of an audit log from now on; each `read` adds the new ones."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size
        self._decoder = msgspec.json.Decoder(_Line)
        self.requests: list[Request] = []

    def read(self) -> list[Request]:
        """All requests so far."""
        with self._path.open("rb") as log:
            log.seek(self._offset)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                self.requests.append(_request(self._decoder.decode(line)))
        return self.requests

    def writes(self, agent: str, namespace: str = "") -> list[Request]:
        """Successful writes of one client so far."""
        return writes(self.read(), agent, namespace)


def writes(requests: Iterable[Request], agent: str, namespace: str = "") -> list[Request]:
    """Successful writes of one client, or of all, Leases and Events apart; of one namespace, or of all."""
    return [request for request in _attempts(requests, agent, namespace) if request.code < 400]


def rejected(requests: Iterable[Request], agent: str, namespace: str = "") -> list[Request]:
    """Writes that the API server rejected, like `writes`."""
    return [request for request in _attempts(requests, agent, namespace) if request.code >= 400]


def _attempts(requests: Iterable[Request], agent: str, namespace: str) -> list[Request]:
    return [
        request
        for request in requests
        if request.verb in WRITES
        and request.agent.startswith(agent)
        and namespace in ("", request.namespace)
        and not request.what.endswith((" leases", " events"))
    ]


def _request(line: _Line) -> Request:
    target = line.object_ref
    sub = f"/{target.subresource}" if target.subresource else ""
    return Request(
        what=f"{line.verb} {target.resource}{sub}",
        verb=line.verb,
        agent=line.user_agent,
        namespace=target.namespace,
        name=target.name,
        code=line.response_status.code,
        started=line.request_received_timestamp.timestamp(),
        ended=line.stage_timestamp.timestamp(),
    )


def counts(requests: Iterable[Request]) -> "Counter[str]":
    """Number of requests by verb and resource."""
    return Counter(request.what for request in requests)


def span(requests: Iterable[Request], first: str, *last: str) -> float:
    """Seconds from the first arrival of `first` to the end of the last one of `last`; 0 if there is none."""
    known = list(requests)
    started = [request.started for request in known if request.what == first]
    ended = [request.ended for request in known if request.what in last]
    return max(ended) - min(started) if started and ended else 0.0


def latencies(requests: Iterable[Request], first: str, *last: str) -> list[float]:
    """The span for each object with all requests of `last`."""
    started: dict[tuple[str, str], float] = {}
    ended: dict[tuple[str, str], dict[str, float]] = {}
    for request in requests:
        key = (request.namespace, request.name)
        if request.what == first:
            started[key] = request.started
        elif request.what in last:
            ended.setdefault(key, {})[request.what] = request.ended
    return [
        max(found.values()) - started[key] for key, found in ended.items() if key in started and len(found) == len(last)
    ]
