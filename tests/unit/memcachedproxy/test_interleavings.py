"""All interleavings of two requests for a key that moves, through pods of two phases that run at the same time.

tests/integration/scaling/test_interleavings.py has those of three,
those with a concurrent read, and those with a server that does not respond.
"""

from typing import Final

import pytest

from support.scaling.exploration import explore
from support.scaling.model import Rules

MUTANTS: Final = {
    "delete before storing": Rules(deletes_first=True),
    "no prepare": Rules(pairs=(("plain old", "move"),)),
    "no finish": Rules(pairs=(("move", "plain new"),)),
    "back from move": Rules(pairs=(("move", "plain old"),)),
}


def test_no_read_returns_a_value_that_was_replaced() -> None:
    outcome = explore(Rules(), 2, readers=False, failures=0)
    assert outcome.wrong[:1] == []
    assert outcome.runs > 3_000
    assert explore(Rules(), 1, readers=True, failures=0).wrong[:1] == []


@pytest.mark.parametrize("rules", MUTANTS.values(), ids=MUTANTS)
def test_protocol_without_one_of_its_rules_returns_such_values(rules: Rules) -> None:
    assert explore(rules, 2, readers=False, failures=0).wrong


def test_error_of_the_other_place_must_be_an_error_of_the_request() -> None:
    assert explore(Rules(), 1, readers=True, failures=1).wrong[:1] == []
    assert explore(Rules(ignores_errors=True), 1, readers=True, failures=1).wrong
