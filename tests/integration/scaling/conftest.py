"""Fixtures of the tests of a change of the number of servers."""

from pathlib import Path

import pytest

from cluster.public import releases
from support.memcacheds import memcached_root


@pytest.fixture(scope="session")
def root() -> Path:
    """The root directory of the newest release: earlier ones of the tests have no proxy, or an unsuitable one."""
    return memcached_root(releases.VERSIONS[-1])
