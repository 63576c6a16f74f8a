"""The environment of the tests with the deployed operator and real pods."""

import pytest

from support import pods


@pytest.fixture(scope="session", autouse=True)
def operator() -> None:
    """The deployed operator."""
    pods.use_operator()
