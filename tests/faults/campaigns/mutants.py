"""Mutants of the operator. The case that a mutant names must detect it, and pass without it."""

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock

import msgspec

from faults.background import CrashedError, FailedError, TimedOutError
from faults.case import Case, References, namespace_of
from faults.edits import Edit, apply_edit
from faults.process import ROOT, ROOTS, recorded_exits
from faults.sandbox import TIMEOUT_FACTOR, Plane, Settings
from support import programs

MUTANTS = ROOT / "tests/faults/mutants.yaml"
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

    `gate`: it runs in every gate on the real control plane. `exits`: a process exits with an error, because of the
    defect or of the fault. `crashes`: the defect is that a process fails with a traceback, which may end it. `fails`:
    part of the message of the check that must fail; required if that check waits for a state, and with `exits`.
    `simulated`: the same in the simulation, if another check fails first there, because it has no admission policies.
    """

    about: str
    case: str
    edits: list[Edit]
    gate: bool = False
    exits: bool = False
    crashes: bool = False
    fails: str = ""
    simulated: str = ""


def mutants() -> dict[str, Mutant]:
    """All mutants, by name."""
    return msgspec.yaml.decode(MUTANTS.read_text(), type=dict[str, Mutant])


def copy_sources(target: Path, sources: Path = ROOT) -> Path:
    """Copy the sources; returns the target."""
    for root in ROOTS:
        shutil.copytree(sources / root, target / root)
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
    done = programs.run(command, env=environment)
    if done.returncode:
        raise FailedError(f"the mutant cannot be imported: {done.stderr.strip().rpartition(chr(10))[2]}")


async def check_detected(plane: Plane, references: References, settings: Settings, mutant: Mutant, case: Case) -> str:
    """Run the case of a mutant: a check of it must fail. Returns that failure.

    What does not show that the case checks what the mutant breaks does not count: a process that cannot be imported,
    that crashes or that exits, a failure of the test's own work, the time limit of the whole case, and a state that is
    not reached in time unless the mutant names it.
    """
    sources = await asyncio.to_thread(apply_mutant, mutant, plane.directory / "sources", settings.sources)
    await asyncio.to_thread(check_imports, sources)
    name = namespace_of(f"mutant-{case.name}")
    try:
        async with (
            plane.sandbox(name, case.settings(replace(settings, sources=sources))) as sandbox,
            asyncio.timeout(case.limit * TIMEOUT_FACTOR),
        ):
            await case.run(sandbox, references)
    except FailedError as error:
        logs = list(plane.directory.glob(f"{name}*.log"))
        log = "\n".join(each.read_text(errors="replace") for each in logs)
        check_counts(mutant, error, log, [code for each in logs for code in recorded_exits(each)])
        return str(error)
    except TimeoutError:
        raise FailedError(f"{case.name} did not end within {case.limit:g} s with the mutant") from None
    raise FailedError(f"{case.name} did not detect the mutant")


def check_counts(mutant: Mutant, error: FailedError, log: str, exits: Sequence[int]) -> None:
    """Raise FailedError unless the failed check shows that the case detects the mutant.

    It must be the one that the mutant names, or one that does not wait. `log`, `exits`: of the processes of the case,
    which must not have crashed or exited, unless the mutant says so.
    """
    if isinstance(error, CrashedError):
        raise FailedError(f"the test itself failed, which does not count as detected: {error}")
    if mutant.fails not in str(error):
        raise FailedError(f"want a failed check with {mutant.fails!r}, got: {error}")
    if isinstance(error, TimedOutError) and not mutant.fails:
        raise FailedError(f"a timeout, which does not count as detected: {error}")
    if mutant.crashes:
        return
    if any(text in log for text in CRASHES):
        raise FailedError(f"the mutant crashes, which does not count as detected: {error}")
    codes = [code for code in exits if code]
    if codes and not mutant.exits:
        raise FailedError(f"a process exited with {codes}, which does not count as detected: {error}")
