"""Every mutant of T14 still applies to the sources, and the result is valid Python."""

import ast

import pytest

from faults.__main__ import all_cases
from faults.campaigns.mutants import Edit, Mutant, edited, mutants
from faults.process import ROOT
from faults.sandbox import FailedError

MUTANTS = mutants()


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS.keys())
def test_every_edit_applies_and_the_result_is_valid_python(mutant: Mutant) -> None:
    for edit in mutant.edits:
        text = (ROOT / edit.file).read_text()
        changed = edited(text, edit)
        assert changed != text
        ast.parse(changed)


def test_every_mutant_names_a_case() -> None:
    assert {mutant.case for mutant in MUTANTS.values()} <= {case.name for case in all_cases()}


@pytest.mark.parametrize("text", ["", "a\na\n"], ids=["missing", "twice"])
def test_edit_that_does_not_apply_fails(text: str) -> None:
    with pytest.raises(FailedError, match="want one occurrence"):
        edited(text, Edit("file.py", "a\n", "b\n"))
