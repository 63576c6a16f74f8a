"""Runs cases, several in parallel, and reports each result."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from faults.case import Case, References
from faults.sandbox import TIMEOUT_FACTOR, FailedError, Plane, Settings
from memcached_operator.kube.client import ApiError

MAX_ERROR = 600
"""Maximum length of an error message, in characters."""


@dataclass(frozen=True)
class Result:
    """The result of a case: `error` is empty if it passed. `seconds`: its duration."""

    name: str
    error: str
    seconds: float


class Runner:
    """One run. `on_result` is called with each result immediately."""

    def __init__(self, plane: Plane, settings: Settings, parallel: int, on_result: Callable[[Result], None]) -> None:
        self._plane = plane
        self._settings = settings
        self._slots = asyncio.Semaphore(parallel)
        self._on_result = on_result
        self._count = 0
        self.references = References(plane, settings)

    async def run(self, cases: Sequence[Case], settings: Settings | None = None) -> list[Result]:
        """Run cases. Those with `alone` run last, one after the other."""
        used = settings or self._settings
        parallel = [self._in_slot(case, used) for case in cases if not case.alone]
        results = list(await asyncio.gather(*parallel))
        return results + [await self.run_case(case, used) for case in cases if case.alone]

    async def _in_slot(self, case: Case, settings: Settings) -> Result:
        async with self._slots:
            return await self.run_case(case, settings)

    async def run_case(self, case: Case, settings: Settings) -> Result:
        """Run one case."""
        started = time.monotonic()
        error = await self._error_of(case, settings)
        result = Result(case.name, error, time.monotonic() - started)
        self._on_result(result)
        return result

    async def _error_of(self, case: Case, settings: Settings) -> str:
        used = replace(
            settings,
            sync_period=case.sync_period or settings.sync_period,
            max_retry_delay=case.max_retry_delay or settings.max_retry_delay,
        )
        self._count += 1
        namespace = f"{re.sub(r'[^a-z0-9]+', '-', case.name.lower())[:48].strip('-')}-{self._count}-{self._plane.token}"
        try:
            async with self._plane.sandbox(namespace, used) as sandbox, asyncio.timeout(case.limit * TIMEOUT_FACTOR):
                try:
                    await case.run(sandbox, self.references)
                finally:
                    log = self._plane.directory / f"{namespace}.requests"
                    log.write_text("\n".join(map(str, sandbox.proxy.requests.entries)))
        except FailedError as error:
            return str(error)[:MAX_ERROR]
        except TimeoutError:
            return f"timed out after {case.limit:g} s"
        except ApiError as error:
            return f"the test's own request failed: {error}"[:MAX_ERROR]
        except Exception as error:  # noqa: BLE001 - the outermost level of one case: the others continue
            return f"the test itself failed: {error!r}"[:MAX_ERROR]
        return ""
