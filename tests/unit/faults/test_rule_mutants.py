"""T14: the objects that a fuzz case draws show the defect of each mutant of the rules that names it."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import run
from typing import Any

import pytest

from faults import limits
from faults.campaigns import fuzz
from faults.campaigns.mutants import Mutant, apply_mutant, mutants
from faults.process import ROOT, ROOTS
from memcached_api.registry import KINDS
from memcached_operator.kube.resource import Object
from support.reviewing import results

CASES = tuple(f"fuzz/{kind.plural}/" for kind in KINDS)
RULES = {name: mutant for name, mutant in mutants().items() if mutant.case.startswith(CASES)}


@pytest.mark.parametrize("mutant", RULES.values(), ids=RULES.keys())
def test_objects_of_the_case_show_the_defect(mutant: Mutant, tmp_path: Path) -> None:
    case = next(case for case in fuzz.cases() if case.name == mutant.case)
    parameters: Any = case.run
    kind, number, count = (parameters.keywords[name] for name in ("kind", "number", "count"))
    sources = apply_mutant(mutant, tmp_path)
    # Only the half at the limits of the rules: the other one takes seconds to draw.
    assert _differences(kind.plural, limits.objects(kind, number, count // 2), sources)


def _differences(plural: str, objects: Sequence[Object], sources: Path) -> list[Object]:
    """The objects for which these sources have other results."""
    roots = [*(str(sources / root) for root in ROOTS), str(ROOT / "tests")]
    found = run(
        [sys.executable, "-m", "support.reviewing", plural],
        input="\n".join(map(json.dumps, objects)),
        env={"PYTHONPATH": os.pathsep.join(roots)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    expected = results(plural, objects)
    return [obj for obj, one, other in zip(objects, found, expected, strict=True) if one != other]
