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


def trail(path: Path, *lines: str) -> Trail:
    """A trail that starts before these lines, and after an earlier one."""
    path.write_text(line("create", "memcacheds", "before", "00.000000", "00.100000"))
    found = Trail(path)
    with path.open("a") as log:
        log.writelines(lines)
    return found


def test_times_are_of_the_requests_since_the_start(tmp_path: Path) -> None:
    requests = trail(tmp_path / "log", *LOG).read()
    assert counts(requests) == {CREATE: 2, "create deployments": 2, "create services": 1}
    assert span(requests, CREATE, *CHILDREN) == pytest.approx(2.5), "from the first request to the last response"
    assert span(requests, CREATE, "patch memcacheds/status") == 0
    assert latencies(requests, CREATE, *CHILDREN) == [pytest.approx(1.5)], "of the object with all children"


def test_partial_line_is_read_when_it_is_complete(tmp_path: Path) -> None:
    found = trail(tmp_path / "log", LOG[0], LOG[0][:50])
    assert len(found.read()) == 1
    with (tmp_path / "log").open("a") as log:
        log.write(LOG[0][50:])
    assert len(found.read()) == 2


WRITES: dict[str, tuple[dict[str, Any], int, int]] = {
    "by the operator": ({}, 1, 0),
    "rejected": ({"responseStatus": {"code": 409}}, 0, 1),
    "by another client": ({"userAgent": "kubectl"}, 0, 0),
    "a read": ({"verb": "list"}, 0, 0),
    "a lease": ({"objectRef": {"resource": "leases", "namespace": "test"}}, 0, 0),
    "in another namespace": ({"objectRef": {"resource": "services", "namespace": "other"}}, 0, 0),
}


@pytest.mark.parametrize(("more", "written", "denied"), WRITES.values(), ids=WRITES.keys())
def test_writes_and_rejected_writes(tmp_path: Path, more: dict[str, Any], written: int, denied: int) -> None:
    request = json.loads(line("create", "services", "a", "01.000000", "01.100000")) | more
    found = trail(tmp_path / "log", f"{json.dumps(request)}\n")
    assert len(found.writes("memcached-operator", "test")) == written
    assert len(rejected(found.read(), "memcached-operator", "test")) == denied
