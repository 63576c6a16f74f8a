"""Real memcached processes of all tested releases, at the limits of `spec.cache` (`make test-corners`).

They need root, a memory control group and, on first use, debootstrap. tests/integration/test_corners.py compares the
webhook and the API server for the same specs.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.public import releases
from corners import machine, memory, report, server, starts, table
from corners.disk import denied, volume
from corners.disk.denied import DISK, HEADERS
from corners.options import DENIED_ITEMS
from corners.starts import Start
from corners.table import NO_AUTOMOVE

BATCH = 64
"""Servers that run at the same time; together they use less than 500 MiB."""


@pytest.fixture(scope="module", params=releases.VERSIONS)
def version(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each tested release of memcached, in a network of its own."""
    machine.require()
    server.raise_open_files()
    releases.ensure(request.param)  # which cannot be downloaded from the new network
    with machine.private_network():
        yield request.param


def started() -> dict[str, Start]:
    """Each spec that admission accepts, and each denied option, by its name.

    A warm restart needs a file system in memory for each server: the tests of memory start these.
    """
    entries = [entry for entry in table.entries() if not entry.spec.get("cache", {}).get("warmRestart")]
    accepted = {entry.name: Start(entry.spec) for entry in entries if not table.errors(entry)}
    rejected = {
        f"option {item!r}": Start({"cache": {"memory": "2Mi", "extraArgs": [item]}}, outcomes)
        for item, outcomes in DENIED_ITEMS.items()
    }
    return accepted | rejected | {"items too large for the buffers of a disk": Start(TOO_LARGE, (64,))}


TOO_LARGE = {"identity": "Stable", "cache": {**DISK["cache"], "memory": "4Gi", "maxItemSize": "64.5Mi"}}
STARTS = [*started().items()]


@pytest.mark.parametrize("first", range(0, len(STARTS), BATCH))
def test_memcached_starts_or_exits_as_expected(version: str, first: int) -> None:
    with volume.directory(releases.ensure(version)) as root:
        assert starts.problems(version, root, dict(STARTS[first : first + BATCH])) == {}


@pytest.mark.parametrize("case", [*memory.cases()], ids=lambda case: case.name)
def test_full_cache_stays_within_the_minimum_limit(version: str, case: memory.Case) -> None:
    found = memory.measure(case, version, releases.ensure(version))
    report.keep(found)
    assert not found.problem


def _filled(version: str, objects: int = HEADERS - 1, **fields: Any) -> denied.Stats:
    spec = {**DISK, "cache": {**DISK["cache"], **fields}}
    return denied.filled(spec, releases.ensure(version), objects)


def test_disk_is_filled_although_memory_is_full(version: str) -> None:
    found = _filled(version, 2 * HEADERS)
    assert found["store_no_memory"] == 0


def test_disk_without_evictions_rejects_items_although_it_has_space(version: str) -> None:
    found = _filled(version, evictions=False)
    assert found["store_no_memory"] > 0
    assert found["extstore_pages_free"] > 0


def test_disk_without_automove_has_no_more_memory_for_headers(version: str) -> None:
    found = _filled(version, extraArgs=[NO_AUTOMOVE])
    assert HEADERS - 1 <= found["extstore_objects_used"] <= HEADERS
    assert found["extstore_pages_free"] > 0
    assert found["evictions"] > 0
