"""Every mutant applies and is a working program; a case detects it only by a failed check of its own."""

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

from faults.background import CrashedError
from faults.campaigns.mutants import Mutant, check_counts, mutants
from faults.cases import CAMPAIGNS, all_cases
from faults.edits import apply_edit
from faults.process import ROOT, ROOTS
from faults.sandbox import FailedError, TimedOutError
from simulation.campaigns import MUTANTS as SIMULATED
from support import programs

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
    found = programs.run([RUFF, "check", "--isolated", "--select", "F821,E9", str(tmp_path)])
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


FAILED, TIMED_OUT = FailedError("it is not ready"), TimedOutError("timed out waiting until it is ready")
CRASH = "Traceback (most recent call last):\n"
Seen = tuple[FailedError, str, tuple[int, ...]]


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({}, (FAILED, "", (0,))),
        ({"fails": "until it is ready"}, (TIMED_OUT, "", ())),
        ({"fails": "is not ready", "exits": True}, (FAILED, "", (2,))),
        ({"fails": "is not ready", "crashes": True}, (FAILED, CRASH, (1,))),
    ],
    ids=["a failed check", "an expected timeout", "an expected exit", "an expected crash"],
)
def test_defect_counts_as_detected(options: dict[str, Any], seen: Seen) -> None:
    check_counts(Mutant("a defect", "none/case", [], **options), *seen)


@pytest.mark.parametrize(
    ("options", "seen", "message"),
    [
        ({}, (CrashedError("port in use"), "", ()), "the test itself failed"),
        ({"fails": "is ready"}, (FAILED, "", ()), "want a failed check with 'is ready', got: it is not ready"),
        ({}, (TIMED_OUT, "", ()), "a timeout"),
        ({}, (FAILED, CRASH, ()), "the mutant crashes"),
        ({"exits": True}, (FAILED, CRASH, (1,)), "the mutant crashes"),
        ({}, (FAILED, "", (0, 2)), r"a process exited with \[2\]"),
    ],
    ids=["the test fails", "another check", "a timeout", "a crash", "a crash of what may exit", "an exit"],
)
def test_anything_else_does_not_count(options: dict[str, Any], seen: Seen, message: str) -> None:
    with pytest.raises(FailedError, match=message):
        check_counts(Mutant("a defect", "none/case", [], **options), *seen)


def test_mutant_whose_process_may_exit_names_the_failed_check() -> None:
    assert [name for name, each in MUTANTS.items() if (each.exits or each.crashes) and not each.fails] == []
