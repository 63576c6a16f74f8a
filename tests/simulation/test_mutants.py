"""Each mutant whose case runs in the simulation is detected there."""

from pathlib import Path

import pytest
from msgspec import structs

from faults import background
from faults.campaigns.mutants import apply_mutant, check_counts
from faults.sandbox import FailedError
from simulation.campaigns import CASES, MUTANTS
from simulation.cases import REFERENCES, run_case
from simulation.processes import as_arguments, outcome


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_detected(name: str, tmp_path: Path) -> None:
    mutant = MUTANTS[name]
    run_case(CASES[mutant.case])  # measures the states of its workloads
    references = {name: as_arguments(each) for name, each in REFERENCES.items()}
    found = outcome(mutant.case, apply_mutant(mutant, tmp_path), references)
    assert found.kind, f"{mutant.case} did not detect the mutant"
    error: FailedError = getattr(background, found.kind)(found.message)
    check_counts(structs.replace(mutant, fails=mutant.simulated or mutant.fails), error, found.log, found.exits)
