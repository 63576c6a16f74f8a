"""The memcached programs of tests that start them on this machine."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from cluster.public import releases
from corners import machine, server
from corners.server import Server

RELEASES: Final = (
    *(pytest.param(version, marks=pytest.mark.nightly) for version in releases.GATE[:-1]),
    releases.GATE[-1],
)
"""The oldest and the newest tested release of memcached, as parameters. The gate has the newest one only."""


def memcached_root(version: str) -> Path:
    """The root directory of a release. Skips the test if this machine cannot run it."""
    skip_unless_possible()
    return releases.ensure(version)


def skip_unless_possible() -> None:
    """Skip the test if this machine cannot run memcached in a directory and a memory group of its own.

    As root, it is expected to, and the test fails.
    """
    if obstacle := machine.obstacle():
        (pytest.fail if os.geteuid() == 0 else pytest.skip)(obstacle)


@contextmanager
def memcached(root: Path, port: int, *options: str) -> Generator[Server]:
    """A memcached with 64 MiB on this port of loopback, during the block."""
    words = [releases.PROGRAM, "-l", "127.0.0.1", "-p", str(port), "-t", "2", "-m", "64", *options]
    with server.started(root, words, port) as found:
        assert found.problem() == ""
        yield found
