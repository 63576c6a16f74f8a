"""Real memcached processes of all tested releases, at the limits of `spec.cache` (`make test-corners`).

They need root, a memory control group and, on first use, debootstrap. tests/integration/test_corners.py compares the
webhook and the API server for the same specs.
"""

from collections.abc import Iterator

import pytest

from cluster.public import releases
from corners import machine, memory, report, server, starts, table
from corners.options import DENIED_ITEMS
from corners.starts import Start

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
    denied = {
        f"option {item!r}": Start({"cache": {"memory": "2Mi", "extraArgs": [item]}}, outcomes)
        for item, outcomes in DENIED_ITEMS.items()
    }
    return accepted | denied


STARTS = [*started().items()]


@pytest.mark.parametrize("first", range(0, len(STARTS), BATCH))
def test_memcached_starts_or_exits_as_expected(version: str, first: int) -> None:
    assert starts.problems(version, releases.ensure(version), dict(STARTS[first : first + BATCH])) == {}


@pytest.mark.parametrize("case", [*memory.cases()], ids=lambda case: case.name)
def test_full_cache_stays_within_the_minimum_limit(version: str, case: memory.Case) -> None:
    found = memory.measure(case, version, releases.ensure(version))
    report.keep(found)
    assert not found.problem
