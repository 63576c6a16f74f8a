"""T14: mutants of the operator. The case that a mutant names must detect it."""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from faults.case import Case, References
from faults.process import ROOT, ROOTS
from faults.sandbox import TIMEOUT_FACTOR, FailedError, Sandbox

MUTANTS = ROOT / "tests/faults/mutants.yaml"


class Edit(msgspec.Struct, forbid_unknown_fields=True):
    """Replace a text that occurs exactly once in a file. Applied to a copy of the sources only."""

    file: str
    old: str
    new: str


class Mutant(msgspec.Struct, forbid_unknown_fields=True):
    """The defect, the name of the case that must detect it, and the edits that create it."""

    about: str
    case: str
    edits: list[Edit]


def mutants() -> dict[str, Mutant]:
    """All mutants, by name."""
    return msgspec.yaml.decode(MUTANTS.read_text(), type=dict[str, Mutant])


def copy_sources(target: Path) -> Path:
    """Copy the sources; returns the target."""
    for root in ROOTS:
        shutil.copytree(ROOT / root, target / root, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def apply_mutant(mutant: Mutant, target: Path) -> Path:
    """Copy the sources and apply the edits. Raises FailedError if an edit does not apply."""
    copy_sources(target)
    for edit in mutant.edits:
        path = target / edit.file
        path.write_text(edited(path.read_text(), edit))
    return target


def edited(text: str, edit: Edit) -> str:
    """The text after an edit. Raises FailedError unless the old text occurs exactly once."""
    if (count := text.count(edit.old)) != 1:
        raise FailedError(f"{edit.file}: want one occurrence, found {count}, of\n{edit.old}")
    return text.replace(edit.old, edit.new)


async def check_detected(sandbox: Sandbox, references: References, mutant: Mutant, case: Case) -> None:
    """Run the case with the mutant: it must fail."""
    plane = references.plane
    sources = await asyncio.to_thread(apply_mutant, mutant, plane.directory / f"{sandbox.namespace}.sources")
    settings = replace(sandbox.settings, sources=sources, sync_period=case.sync_period or sandbox.settings.sync_period)
    try:
        async with (
            plane.sandbox(f"{sandbox.namespace}-m", settings) as other,
            asyncio.timeout(case.limit * TIMEOUT_FACTOR),
        ):
            await case.run(other, references)
    except (FailedError, TimeoutError):
        return
    raise FailedError(f"{case.name} did not detect the mutant")


def cases(all_cases: Sequence[Case]) -> list[Case]:
    """One case per mutant."""
    by_name = {case.name: case for case in all_cases}
    return [
        Case(f"T14/{name}", partial(check_detected, mutant=mutant, case=by_name[mutant.case]), limit=600)
        for name, mutant in mutants().items()
    ]
