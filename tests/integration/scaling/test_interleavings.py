"""All interleavings of three requests for a key that moves, and those of two and a read with a step that fails."""

import pytest

from support.scaling.exploration import explore
from support.scaling.model import Rules


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("writes", "readers", "failures", "runs"),
    [(2, True, 0, 40_000), (3, False, 0, 100_000), (2, True, 1, 300_000), (3, False, 1, 1_000_000)],
)
def test_no_read_returns_a_value_that_was_replaced(writes: int, readers: bool, failures: int, runs: int) -> None:
    outcome = explore(Rules(), writes, readers=readers, failures=failures)
    assert outcome.wrong[:1] == []
    assert outcome.runs > runs
