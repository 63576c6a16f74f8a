"""All interleavings of three requests for a key that moves, and those of two and a read with a step that fails."""

from collections.abc import Sequence
from typing import Final

import pytest

from support.scaling.exploration import WRITES, explore
from support.scaling.model import Operation, Rules

BASIC: Final[tuple[Operation, ...]] = ("store", "remove", "add", "change")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("writes", "operations", "readers", "failures", "runs"),
    [
        (2, WRITES, True, 0, 40_000),
        (3, WRITES, False, 0, 100_000),
        (2, WRITES, True, 1, 300_000),
        (3, BASIC, False, 1, 250_000),
    ],
)
def test_no_read_returns_a_value_that_was_replaced(
    writes: int, operations: Sequence[Operation], readers: bool, failures: int, runs: int
) -> None:
    outcome = explore(Rules(), writes, operations=operations, readers=readers, failures=failures)
    assert outcome.wrong[:1] == []
    assert outcome.runs > runs
