"""Each mutant whose case runs in the simulation is detected there."""

from pathlib import Path

import pytest
from msgspec import structs

from faults import background
from faults.campaigns.mutants import apply_mutant, check_counts
from faults.sandbox import FailedError
from simulation.campaigns import MUTANTS
from simulation.processes import outcome


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_detected(name: str, tmp_path: Path) -> None:
    mutant = MUTANTS[name]
    found = outcome(mutant.case, apply_mutant(mutant, tmp_path))
    assert found.kind, f"{mutant.case} did not detect the mutant"
    error: FailedError = getattr(background, found.kind)(found.message)
    check_counts(structs.replace(mutant, fails=mutant.simulated or mutant.fails), error, found.log, found.exits)
