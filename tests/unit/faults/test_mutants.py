"""Every mutant applies and is a working program; a case detects it only by a failed check of its own."""

import ast
import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import run
from types import SimpleNamespace
from typing import Any

import pytest

from faults.background import CrashedError
from faults.campaigns import mutants as module
from faults.campaigns.mutants import Mutant, apply_mutant, check_detected, check_imports, copy_sources, mutants
from faults.case import Case, References
from faults.cases import CAMPAIGNS, all_cases
from faults.edits import Edit, apply_edit
from faults.process import ROOT, ROOTS, Operator, supervised
from faults.sandbox import FailedError, Settings, TimedOutError, wait_until
from simulation.campaigns import MUTANTS as SIMULATED

MUTANTS = mutants()
RUFF = str(Path(sys.executable).with_name("ruff"))
Outcome = Callable[[Any], Awaitable[None]]
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


def test_mutant_is_applied_to_a_copy(tmp_path: Path) -> None:
    mutant = Mutant("", "", [Edit("MIN_DEFAULT_LIMIT", "128", "129"), Edit("MIN_DEFAULT_LIMIT", "MEBIBYTE", "1")])
    sources = apply_mutant(mutant, tmp_path)
    assert "MIN_DEFAULT_LIMIT: Final = 129 * 1\n" in (sources / "api/memcached_api/memcached/memory.py").read_text()
    assert "MIN_DEFAULT_LIMIT: Final = 128 * MEBIBYTE" in (ROOT / "api/memcached_api/memcached/memory.py").read_text()


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


def test_crash_at_import_is_reported(tmp_path: Path) -> None:
    sources = copy_sources(tmp_path)
    (sources / ROOTS[0] / "memcached_api/conditions.py").write_text("raise RuntimeError('no')\n")
    with pytest.raises(FailedError, match=r"cannot be imported.*RuntimeError: no"):
        check_imports(sources)


class Plane(SimpleNamespace):
    """A control plane that provides sandboxes which only have settings and a log."""

    @asynccontextmanager
    async def sandbox(self, name: str, settings: Settings) -> AsyncGenerator[Any]:
        """A sandbox whose operator only has a log."""
        yield SimpleNamespace(namespace=name, settings=settings, log=self.directory / f"{name}.operator.log")


def _detect(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    outcome: Outcome,
    *,
    limit: float = 240,
    **options: Any,
) -> str:
    """Check a mutant with these options, of which the case has this outcome."""

    def import_nothing(_: Path) -> None:
        return

    monkeypatch.setattr(module, "check_imports", import_nothing)

    async def case_run(sandbox: Any, _: Any) -> None:
        await outcome(sandbox)

    plane: Any = Plane(directory=tmp_path)
    references = References(plane, Settings())
    mutant = Mutant("a defect", "none/case", [Edit("PROPAGATION_DELAY", "2.0", "0.0")], **options)
    case = Case("none/case", case_run, limit=limit)
    return asyncio.run(check_detected(plane, references, Settings(), mutant, case))


async def _fail(_: Any) -> None:
    raise FailedError("the children differ")


async def _fail_itself(_: Any) -> None:
    raise CrashedError("port in use")


async def _time_out(_: Any) -> None:
    raise TimedOutError("timed out waiting until it is ready")


async def _pass(_: Any) -> None:
    return


async def _hang(_: Any) -> None:
    await asyncio.Event().wait()


async def _crash(sandbox: Any) -> None:
    sandbox.log.write_text("Traceback (most recent call last):\n")
    raise FailedError("the object is not ready")


async def _exit(sandbox: Any) -> None:
    """A process of the case exits with an error, without a traceback, and a check fails."""
    await _run_process(sandbox, "json.tool", "--no-such-option")


async def _end(sandbox: Any) -> None:
    """A process of the case exits without an error, and a check fails."""
    await _run_process(sandbox, "this")


async def _run_process(sandbox: Any, program: str, *arguments: str) -> None:
    process = Operator(arguments, {}, ROOT, sandbox.log, program)

    async def has_exited() -> bool:
        return bool(process.exits)

    async with supervised(process):
        process.start()
        await wait_until(has_exited, 30, "the process exits")
        await process.stop()
    raise FailedError("the object is not ready")


@pytest.mark.parametrize(
    ("outcome", "options", "note"),
    [
        (_fail, {}, "the children differ"),
        (_time_out, {"fails": "until it is ready"}, "timed out waiting until it is ready"),
        (_exit, {"exits": True, "fails": "is not ready"}, "the object is not ready"),
        (_crash, {"crashes": True, "fails": "is not ready"}, "the object is not ready"),
        (_end, {}, "the object is not ready"),
    ],
    ids=["a failed check", "an expected timeout", "an expected exit", "an expected crash", "an exit without an error"],
)
def test_defect_counts_as_detected_and_the_check_is_the_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, options: dict[str, Any], note: str
) -> None:
    assert _detect(tmp_path, monkeypatch, outcome, **options) == note


def test_mutant_whose_process_may_exit_names_the_failed_check() -> None:
    assert [name for name, each in MUTANTS.items() if (each.exits or each.crashes) and not each.fails] == []


@pytest.mark.parametrize(
    ("outcome", "options", "message"),
    [
        (_pass, {}, "none/case did not detect the mutant"),
        (_hang, {"limit": 0.1}, "did not end within 0.1 s"),
        (_crash, {}, "the mutant crashes, which does not count as detected: the object is not ready"),
        (_time_out, {}, "a timeout, which does not count as detected: timed out waiting until it is ready"),
        (_crash, {"exits": True}, "the mutant crashes, which does not count as detected"),
        (_exit, {}, r"a process exited with \[2.*\], which does not count as detected: the object is not ready"),
        (_fail_itself, {}, "the test itself failed, which does not count as detected: port in use"),
        (_fail, {"fails": "is ready"}, "want a failed check with 'is ready', got: the children differ"),
    ],
    ids=[
        "passes",
        "hangs",
        "crashes",
        "waits",
        "crashes-and-may-only-exit",
        "exits",
        "fails-itself",
        "another-check",
    ],
)
def test_anything_else_does_not_count(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    outcome: Outcome,
    options: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(FailedError, match=message):
        _detect(tmp_path, monkeypatch, outcome, **options)
