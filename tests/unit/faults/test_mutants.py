"""Every mutant applies and is a working program, and names a case that the gate runs without the defect."""

import ast
import sys
from pathlib import Path
from subprocess import run

import pytest

from faults.campaigns.mutants import mutants
from faults.cases import CAMPAIGNS, all_cases
from faults.edits import apply_edit
from faults.process import ROOT, ROOTS
from simulation.campaigns import MUTANTS as SIMULATED

MUTANTS = mutants()
RUFF = str(Path(sys.executable).with_name("ruff"))
WITHOUT = {"soak", "tenants", "traces", "permissions", "port"}
"""Campaigns without a mutant in the gate."""


def test_every_edit_applies_and_names_only_what_exists(tmp_path: Path) -> None:
    for name, mutant in MUTANTS.items():
        for number, edit in enumerate(mutant.edits):
            path, text = apply_edit(edit, [ROOT / root for root in ROOTS])
            assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(path.read_text())), name
            (tmp_path / f"{name}-{number}.py").write_text(text)
    # F821: an undefined name would crash the mutant, and every case would "detect" it.
    found = run([RUFF, "check", "--isolated", "--select", "F821,E9", str(tmp_path)], capture_output=True, check=False)
    assert found.returncode == 0, found.stdout.decode()


@pytest.mark.parametrize("campaign", sorted(CAMPAIGNS.keys() - WITHOUT))
def test_gate_has_a_mutant_of_every_campaign(campaign: str) -> None:
    found = [each for name, each in MUTANTS.items() if each.gate or name in SIMULATED]
    assert any(mutant.case.partition("/")[0] == campaign for mutant in found)


def test_mutants_name_cases_and_the_gate_runs_them_without_the_defect() -> None:
    cases = all_cases()
    assert {mutant.case for mutant in MUTANTS.values()} <= cases.keys()
    assert [name for name, each in MUTANTS.items() if each.gate and not cases[each.case].gate] == []
    assert [name for name, each in MUTANTS.items() if each.gate and name in SIMULATED] == []


def test_every_case_is_of_a_campaign() -> None:
    assert {name.partition("/")[0] for name in all_cases()} == CAMPAIGNS.keys()


def test_mutant_whose_process_may_exit_names_the_failed_check() -> None:
    assert [name for name, each in MUTANTS.items() if (each.exits or each.crashes) and not each.fails] == []
