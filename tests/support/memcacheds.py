"""The memcached programs of tests that start them on this machine."""

import os
from pathlib import Path

import pytest

from corners import machine, programs


def memcached_root(version: str) -> Path:
    """The root directory of a release. Skips the test if this machine cannot run it; CI is expected to, and fails."""
    skip_unless_possible()
    return programs.ensure(version)


def skip_unless_possible() -> None:
    """Skip the test if this machine cannot run memcached in a directory and a memory group of its own."""
    if obstacle := machine.obstacle():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(obstacle)
