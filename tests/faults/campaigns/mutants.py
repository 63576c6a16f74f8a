"""T14: mutants of the operator. The case that a mutant names must detect it, and pass without it in the same run."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock

import msgspec

from faults.background import CrashedError, FailedError, TimedOutError
from faults.case import Case, References
from faults.edits import Edit, EditError, apply_edit
from faults.process import ROOT, ROOTS, recorded_exits
from faults.sandbox import TIMEOUT_FACTOR, Sandbox

MUTANTS = ROOT / "tests/faults/mutants.yaml"
LIMIT = 600.0
"""Seconds for one mutant: its case runs twice."""
CRASHES = ("Traceback", "internal error while handling")
"""Texts in a log that show that the mutant itself is broken."""
_PARSING = Lock()
"""`ast` of Python 3.11 sometimes raises SystemError if threads use it at the same time."""
IMPORT_ALL = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    for found in pkgutil.walk_packages([name], f"{name.rpartition('/')[2]}."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
"""


class Mutant(msgspec.Struct, forbid_unknown_fields=True):
    """The defect, the name of the case that must detect it, and the edits that create it.

    `exits`: a process exits with an error, because of the defect
    or of the fault. `crashes`: the defect is that a process fails with a traceback, which may end it. `fails`: part of
    the message of the check that must fail; required if that check waits for a state, and with `exits`.
    """

    about: str
    case: str
    edits: list[Edit]
    exits: bool = False
    crashes: bool = False
    fails: str = ""


def mutants() -> dict[str, Mutant]:
    """All mutants, by name."""
    return msgspec.yaml.decode(MUTANTS.read_text(), type=dict[str, Mutant])


def copy_sources(target: Path, sources: Path = ROOT) -> Path:
    """Copy the sources; returns the target."""
    for root in ROOTS:
        shutil.copytree(sources / root, target / root, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def apply_mutant(mutant: Mutant, target: Path, sources: Path = ROOT) -> Path:
    """Copy the sources and apply the edits. Raises EditError if an edit does not apply."""
    copy_sources(target, sources)
    for edit in mutant.edits:
        with _PARSING:
            path, text = apply_edit(edit, [target / root for root in ROOTS])
        path.write_text(text)
    return target


def check_imports(sources: Path) -> None:
    """Import every module of these sources in another process. Raises FailedError if that fails."""
    packages = [str(path.parent) for root in ROOTS for path in sources.glob(f"{root}/*/__init__.py")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(sources / root) for root in ROOTS)}
    command = [sys.executable, "-c", IMPORT_ALL, *packages]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FailedError(f"the mutant cannot be imported: {done.stderr.strip().rpartition(chr(10))[2]}")


async def check_detected(sandbox: Sandbox, references: References, mutant: Mutant, case: Case) -> str:
    """Run the case without and with the mutant: a check of it must fail, only with the mutant. Returns that failure.

    What does not show that the case checks what the mutant breaks does not count: a process that cannot be imported,
    that crashes or that exits, a failure of the test's own work, the time limit of the whole case, and a state that is
    not reached in time unless the mutant names it.
    """
    error = await references.error_of(case)
    if error:
        raise FailedError(f"{case.name} fails without the mutant: {error}")
    plane = references.plane
    name = f"{sandbox.namespace}-m"
    try:
        target = plane.directory / f"{name}.sources"
        sources = await asyncio.to_thread(apply_mutant, mutant, target, sandbox.settings.sources)
    except EditError as error:
        raise FailedError(str(error)) from error
    await asyncio.to_thread(check_imports, sources)
    settings = case.settings(replace(sandbox.settings, sources=sources))
    try:
        async with plane.sandbox(name, settings) as other, asyncio.timeout(case.limit * TIMEOUT_FACTOR):
            await case.run(other, references)
    except FailedError as error:
        _check_counts(mutant, error)
        _check_alive(mutant, name, plane.directory, error)
        return str(error)
    except TimeoutError:
        raise FailedError(f"{case.name} did not end within {case.limit:g} s with the mutant") from None
    raise FailedError(f"{case.name} did not detect the mutant")


def _check_counts(mutant: Mutant, error: FailedError) -> None:
    """Raise FailedError unless the failed check is the one that the mutant names, or one that does not wait."""
    if isinstance(error, CrashedError):
        raise FailedError(f"the test itself failed, which does not count as detected: {error}")
    if mutant.fails not in str(error):
        raise FailedError(f"want a failed check with {mutant.fails!r}, got: {error}")
    if isinstance(error, TimedOutError) and not mutant.fails:
        raise FailedError(f"a timeout, which does not count as detected: {error}")


def _check_alive(mutant: Mutant, name: str, directory: Path, error: FailedError) -> None:
    """Raise FailedError if a process of the case has crashed or exited, unless the mutant says so."""
    if mutant.crashes:
        return
    logs = list(directory.glob(f"{name}*.log"))
    if any(text in log.read_text(errors="replace") for text in CRASHES for log in logs):
        raise FailedError(f"the mutant crashes, which does not count as detected: {error}")
    codes = [code for log in logs for code in recorded_exits(log) if code]
    if codes and not mutant.exits:
        raise FailedError(f"a process exited with {codes}, which does not count as detected: {error}")


def cases(all_cases: Sequence[Case]) -> list[Case]:
    """One case per mutant."""
    by_name = {case.name: case for case in all_cases}
    found: list[Case] = []
    for name, mutant in mutants().items():
        case = by_name[mutant.case]
        run = partial(check_detected, mutant=mutant, case=case)
        found.append(Case(f"T14/{name}", run, alone=case.alone, limit=LIMIT))
    return found
