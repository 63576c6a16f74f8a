"""T14: mutants of the operator. Each must be caught by the case that its patch names."""

import asyncio
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from faults.case import Case, References
from faults.process import ROOMS, ROOT
from faults.stage import PATIENCE, FailedError, Stage

PATCHES = ROOT / "tests/faults/mutants"
"""Each begins with what is wrong with the mutant and the name of the case that catches it; applied to a copy only."""


@dataclass(frozen=True)
class Mutant:
    """A patch."""

    name: str
    about: str
    case: str
    path: Path


def mutants() -> list[Mutant]:
    """All of them."""
    found: list[Mutant] = []
    for path in sorted(PATCHES.glob("*.patch")):
        head = re.match(r"(?P<about>.+)\nCase: (?P<case>.+)\n", path.read_text())
        assert head is not None, f"{path} does not say what it is"
        found.append(Mutant(path.stem, head["about"], head["case"], path))
    return found


def copied(target: Path) -> Path:
    """A copy of the sources."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, target / room, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def mutated(mutant: Mutant, target: Path) -> Path:
    """A copy of the sources with the patch applied. Raises FailedError where it does not apply."""
    copied(target)
    done = subprocess.run(["git", "apply", mutant.path], cwd=target, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FailedError(f"{mutant.path.name} does not apply: {done.stderr.strip()}")
    return target


async def caught(stage: Stage, references: References, mutant: Mutant, case: Case) -> None:
    """The case fails where the mutant plays."""
    plane = references.plane
    sources = await asyncio.to_thread(mutated, mutant, plane.directory / f"{stage.namespace}.sources")
    settings = replace(stage.settings, sources=sources, relist=case.relist or stage.settings.relist)
    try:
        async with plane.stage(f"{stage.namespace}-m", settings) as other, asyncio.timeout(case.limit * PATIENCE):
            await case.play(other, references)
    except (FailedError, TimeoutError):
        return
    raise FailedError(f"{case.name} did not notice")


def cases(others: Sequence[Case]) -> list[Case]:
    """One per mutant."""
    named = {case.name: case for case in others}
    return [
        Case(f"T14/{mutant.name}", partial(caught, mutant=mutant, case=named[mutant.case]), limit=600)
        for mutant in mutants()
    ]
