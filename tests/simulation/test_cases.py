"""Each fault of the campaigns, at each moment, in the simulation."""

import pytest

from simulation.campaigns import CASES
from simulation.cases import run_case


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    error = run_case(CASES[name]).error
    assert error is None, error
