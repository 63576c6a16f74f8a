"""Values of JSON, as the API server reads them."""

from typing import Any

import pytest

from memcached_api.values import is_integer

INTEGERS: list[tuple[Any, bool]] = [
    (2**63 - 1, True),
    (2**63, False),
    (-(2**63), True),
    (-(2**63) - 1, False),
    (2.0**53 - 1, True),
    (2.0**53, False),
    (1 - 2.0**53, True),
    (-(2.0**53), False),
    (3.0, True),
    (3.5, False),
    (True, False),
    ("3", False),
    (None, False),
]


@pytest.mark.parametrize(("value", "expected"), INTEGERS)
def test_integers_that_the_api_server_accepts(value: Any, expected: bool) -> None:
    assert is_integer(value) is expected
