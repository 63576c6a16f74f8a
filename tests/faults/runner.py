"""Runs cases, several in parallel, and reports each result."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from faults.case import Case, References
from faults.sandbox import TIMEOUT_FACTOR, FailedError, Plane, Settings
from faults.sources import digest
from memcached_operator.kube.client import ApiError

MAX_TEXT = 600
"""Maximum length of an error message or a note, in characters."""
INTERRUPTED = "interrupted"
"""Error of a case that was cancelled, as by Ctrl-C."""


@dataclass(frozen=True)
class Result:
    """One attempt of a case: `error` is empty if it passed, `note` is what it found. `seconds`: its duration.

    `sources`: the digest of the product's sources that it used (faults.sources).
    """

    name: str
    error: str
    seconds: float
    note: str = ""
    sources: str = ""


class Runner:
    """One run. `on_result` is called with each result immediately. A case runs once, also if others need its result."""

    def __init__(self, plane: Plane, settings: Settings, parallel: int, on_result: Callable[[Result], None]) -> None:
        self._plane = plane
        self._settings = settings
        self._slots = asyncio.Semaphore(parallel)
        sources = digest(settings.sources)

        def with_sources(result: Result) -> None:
            on_result(replace(result, sources=sources))

        self._on_result = with_sources
        self._count = 0
        self._started: dict[str, asyncio.Task[Result]] = {}
        self.references = References(plane, settings, self._error_of)

    async def run(self, cases: Sequence[Case]) -> list[Result]:
        """Run cases. Those with `alone` run last, one after the other."""
        try:
            results = list(await asyncio.gather(*(self._in_slot(case) for case in cases if not case.alone)))
            return results + [await self.result_of(case) for case in cases if case.alone]
        finally:
            for task in self._started.values():
                task.cancel()
            await asyncio.gather(*self._started.values(), return_exceptions=True)

    async def _in_slot(self, case: Case) -> Result:
        async with self._slots:
            return await self.result_of(case)

    async def _error_of(self, case: Case) -> str:
        return (await self.result_of(case)).error

    async def result_of(self, case: Case) -> Result:
        """The result of a case, which starts now unless it has already been started."""
        task = self._started.get(case.name)
        if task is None:
            task = self._started[case.name] = asyncio.create_task(self._run_case(case))
        return await asyncio.shield(task)

    async def _run_case(self, case: Case) -> Result:
        started = time.monotonic()
        try:
            error, note = await self._outcome(case)
        except asyncio.CancelledError:
            self._on_result(Result(case.name, INTERRUPTED, time.monotonic() - started))
            raise
        result = Result(case.name, error[:MAX_TEXT], time.monotonic() - started, note[:MAX_TEXT])
        self._on_result(result)
        return result

    async def _outcome(self, case: Case) -> tuple[str, str]:
        """The error and the note of one attempt."""
        settings = case.settings(self._settings)
        self._count += 1
        namespace = f"{re.sub(r'[^a-z0-9]+', '-', case.name.lower())[:48].strip('-')}-{self._count}-{self._plane.token}"
        try:
            async with (
                self._plane.sandbox(namespace, settings) as sandbox,
                asyncio.timeout(case.limit * TIMEOUT_FACTOR),
            ):
                return "", await case.run(sandbox, self.references) or ""
        except FailedError as error:
            # Without a message, too: an empty error means that the case passed.
            return str(error) or repr(error), ""
        except TimeoutError:
            return f"timed out after {case.limit:g} s", ""
        except ApiError as error:
            return f"the test's own request failed: {error}", ""
        except Exception as error:  # noqa: BLE001 - the outermost level of one case: the others continue
            return f"the test itself failed: {error!r}", ""
