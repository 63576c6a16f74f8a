"""Each mutant that needs a real control plane is detected by its case; tests/simulation has the others."""

from pathlib import Path

import pytest

from faults.campaigns.mutants import mutants
from faults.cases import all_cases
from faults.marks import params
from faults.session import Session
from simulation.campaigns import MUTANTS as SIMULATED

pytestmark = pytest.mark.filterwarnings("default::ResourceWarning")
CASES = all_cases()
MUTANTS = {name: mutant for name, mutant in mutants().items() if name not in SIMULATED}


@pytest.mark.parametrize("name", params({name: (CASES[each.case], each.gate) for name, each in MUTANTS.items()}))
def test_mutant_is_detected(name: str, faults: Session, tmp_path: Path) -> None:
    mutant = MUTANTS[name]
    faults.detect(mutant, CASES[mutant.case], tmp_path)
