"""How the benchmark reads an audit log."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.trail import Trail, counts, latencies, rejected, span

CREATE = "create memcacheds"
CHILDREN = ("create deployments", "create services")


def line(verb: str, resource: str, name: str, received: str, ended: str) -> str:
    """An audit event as the API server writes it. `received`, `ended`: seconds of the same minute."""
    request: dict[str, Any] = {
        "verb": verb,
        "userAgent": "memcached-operator",
        "objectRef": {"resource": resource, "namespace": "test", "name": name, "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        "requestReceivedTimestamp": f"2026-01-01T00:00:{received}Z",
        "stageTimestamp": f"2026-01-01T00:00:{ended}Z",
    }
    return json.dumps(request) + "\n"


LOG = [
    line("create", "memcacheds", "a", "01.000000", "01.100000"),
    line("create", "memcacheds", "b", "01.500000", "01.600000"),
    line("create", "deployments", "a", "02.000000", "02.250000"),
    line("create", "services", "a", "02.250000", "02.500000"),
    line("create", "deployments", "b", "03.000000", "03.500000"),
]


@pytest.fixture
def trail(tmp_path: Path) -> Trail:
    """A trail that starts after the first line of a log."""
    log = tmp_path / "audit.log"
    log.write_text(line("create", "memcacheds", "before", "00.000000", "00.100000"))
    found = Trail(log)
    with log.open("a") as more:
        more.writelines(LOG)
    return found


def test_earlier_events_are_ignored(trail: Trail) -> None:
    assert counts(trail.read()) == {CREATE: 2, "create deployments": 2, "create services": 1}
    assert len(trail.read()) == len(LOG)


def test_span_is_from_the_first_request_to_the_last_response(trail: Trail) -> None:
    assert span(trail.read(), CREATE, *CHILDREN) == pytest.approx(2.5)
    assert span(trail.read(), CREATE, "patch memcacheds/status") == 0


def test_latency_requires_all_children(trail: Trail) -> None:
    assert latencies(trail.read(), CREATE, *CHILDREN) == [pytest.approx(1.5)]


WRITES: dict[str, tuple[dict[str, Any], int]] = {
    "by the operator": ({}, 1),
    "rejected": ({"responseStatus": {"code": 409}}, 0),
    "by another client": ({"userAgent": "kubectl"}, 0),
    "a read": ({"verb": "list"}, 0),
    "a lease": ({"objectRef": {"resource": "leases", "namespace": "test"}}, 0),
    "in another namespace": ({"objectRef": {"resource": "services", "namespace": "other"}}, 0),
}


@pytest.mark.parametrize(("more", "expected"), WRITES.values(), ids=WRITES.keys())
def test_writes(tmp_path: Path, more: dict[str, Any], expected: int) -> None:
    log = tmp_path / "audit.log"
    log.touch()
    trail = Trail(log)
    request = json.loads(line("create", "services", "a", "01.000000", "01.100000")) | more
    log.write_text(json.dumps(request) + "\n")
    assert len(trail.writes("memcached-operator", "test")) == expected


def test_partial_line_is_read_when_it_is_complete(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.touch()
    trail, complete = Trail(log), LOG[0]
    log.write_text(complete + complete[:50])
    assert len(trail.read()) == 1
    log.write_text(complete + complete)
    assert len(trail.read()) == 2


def test_rejected_writes(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.touch()
    trail = Trail(log)
    request = json.loads(LOG[2])
    conflict = request | {"verb": "patch", "responseStatus": {"code": 409}}
    log.write_text(f"{json.dumps(request)}\n{json.dumps(conflict)}\n{json.dumps(conflict | {'verb': 'get'})}\n")
    assert [found.verb for found in rejected(trail.read(), "memcached-operator", "test")] == ["patch"]
