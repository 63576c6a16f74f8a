"""A case runs once per run, also if others need its result, and every kind of failure is a result."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from faults.campaigns.mutants import copy_sources
from faults.case import Case, References
from faults.process import ROOTS
from faults.runner import INTERRUPTED, Result, Runner
from faults.sandbox import FailedError, Sandbox, Settings
from faults.sources import digest


class Plane(SimpleNamespace):
    """A control plane whose sandboxes only have a record of requests."""

    @asynccontextmanager
    async def sandbox(self, name: str, settings: Settings) -> AsyncGenerator[Any]:
        """A sandbox that has sent no requests."""
        yield SimpleNamespace(settings=settings, proxy=SimpleNamespace(requests=SimpleNamespace(entries=[])))


def _run(
    tmp_path: Path,
    *cases: Case,
    parallel: int = 2,
    found: list[Result] | None = None,
    settings: Settings = Settings(),  # noqa: B008 - frozen
) -> list[Result]:
    """The results in the order in which they were reported; also appended to `found`."""
    plane: Any = Plane(directory=tmp_path, token="t")
    found = [] if found is None else found
    results = asyncio.run(Runner(plane, settings, parallel, found.append).run(cases))
    assert {result.name for result in results} == {case.name for case in cases}
    return found


async def _note(_: Sandbox, __: References) -> str:
    return "seen"


async def _failing(_: Sandbox, __: References, error: Exception) -> None:
    raise error


async def _interrupting(_: Sandbox, __: References) -> None:
    signal.raise_signal(signal.SIGINT)
    await asyncio.Event().wait()


async def _hanging(_: Sandbox, __: References) -> None:
    await asyncio.Event().wait()


def test_result_has_the_note_and_the_digest_of_the_sources_of_the_run(tmp_path: Path) -> None:
    sources = copy_sources(tmp_path / "sources")
    (sources / ROOTS[0] / "new.py").touch()
    (result,) = _run(tmp_path, Case("one", _note), settings=Settings(sources=sources))
    assert (result.error, result.note) == ("", "seen")
    assert result.sources == digest(sources) != digest()


@pytest.mark.parametrize(
    ("case", "error"),
    [
        (Case("one", partial(_failing, error=FailedError("the check"))), "the check"),
        (Case("one", partial(_failing, error=FailedError(""))), "FailedError('')"),
        (Case("one", partial(_failing, error=KeyError("x"))), "the test itself failed: KeyError('x')"),
        (Case("one", _hanging, limit=0.05), "timed out after 0.05 s"),
    ],
)
def test_failure_is_the_error_of_the_result(tmp_path: Path, case: Case, error: str) -> None:
    assert [result.error for result in _run(tmp_path, case)] == [error]


def test_cases_in_progress_are_kept_as_interrupted(tmp_path: Path) -> None:
    found: list[Result] = []
    with pytest.raises(KeyboardInterrupt):
        _run(tmp_path, Case("done", _note), Case("two", _hanging), Case("three", _interrupting), found=found)
    assert {result.name: result.error for result in found} == {"done": "", "two": INTERRUPTED, "three": INTERRUPTED}


@pytest.mark.parametrize("parallel", [1, 2])
def test_case_runs_once_even_if_another_case_needs_its_result(tmp_path: Path, parallel: int) -> None:
    ran: list[str] = []

    async def record(_: Sandbox, __: References) -> None:
        ran.append("case")
        await asyncio.sleep(0)

    case = Case("case", record)

    async def needs(_: Sandbox, references: References) -> str:
        return f"error: {await references.error_of(case)!r}"

    results = _run(tmp_path, Case("first", needs), case, Case("last", needs, alone=True), parallel=parallel)
    assert ran == ["case"]
    assert {result.name: result.note for result in results} == {"first": "error: ''", "case": "", "last": "error: ''"}
