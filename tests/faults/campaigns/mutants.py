"""T14: mutants of the operator. Each must be caught by the case that it names."""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from faults.case import Case, References
from faults.process import ROOT, ROOTS
from faults.stage import PATIENCE, FailedError, Stage

MUTANTS = ROOT / "tests/faults/mutants.yaml"


class Edit(msgspec.Struct, forbid_unknown_fields=True):
    """A text that occurs exactly once in a file, and what replaces it. Applied to a copy of the sources only."""

    file: str
    old: str
    new: str


class Mutant(msgspec.Struct, forbid_unknown_fields=True):
    """What is wrong with it, the name of the case that must catch it, and the edits that make it."""

    about: str
    case: str
    edits: list[Edit]


def mutants() -> dict[str, Mutant]:
    """All of them, by name."""
    return msgspec.yaml.decode(MUTANTS.read_text(), type=dict[str, Mutant])


def copied(target: Path) -> Path:
    """A copy of the sources."""
    for root in ROOTS:
        shutil.copytree(ROOT / root, target / root, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def mutated(mutant: Mutant, target: Path) -> Path:
    """A copy of the sources with the edits applied. Raises FailedError where one does not apply."""
    copied(target)
    for edit in mutant.edits:
        path = target / edit.file
        path.write_text(edited(path.read_text(), edit))
    return target


def edited(text: str, edit: Edit) -> str:
    """The text of a file with an edit applied. Raises FailedError where the old text does not occur exactly once."""
    if (count := text.count(edit.old)) != 1:
        raise FailedError(f"{edit.file}: want one occurrence, found {count}, of\n{edit.old}")
    return text.replace(edit.old, edit.new)


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
        Case(f"T14/{name}", partial(caught, mutant=mutant, case=named[mutant.case]), limit=600)
        for name, mutant in mutants().items()
    ]
