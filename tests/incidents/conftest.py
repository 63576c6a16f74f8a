"""The environment of the incidents."""

import pytest

from support import pods


@pytest.fixture(scope="session", autouse=True)
def operator() -> None:
    """The deployed operator."""
    pods.use_operator()
