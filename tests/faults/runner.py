"""Runs cases, several at once, and prints a line for each."""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from faults.case import Case, References
from faults.stage import PATIENCE, FailedError, Plane, Settings
from memcached_operator.kube.client import ApiError

LONGEST = 600
"""Characters of what is told of a failure."""


@dataclass(frozen=True)
class Result:
    """How a case went; `fault` is empty where it passed. `seconds` is how long it took."""

    name: str
    fault: str
    seconds: float


class Runner:
    """One run. `told` gets each result as soon as it is there."""

    def __init__(self, plane: Plane, settings: Settings, lanes: int, told: Callable[[Result], None]) -> None:
        self._plane = plane
        self._settings = settings
        self._lanes = asyncio.Semaphore(lanes)
        self._told = told
        self._count = 0
        self.references = References(plane, settings)

    async def run(self, cases: Sequence[Case], settings: Settings | None = None) -> list[Result]:
        """Run cases; those that must be alone come last, one by one."""
        used = settings or self._settings
        together = [self._in_turn(case, used) for case in cases if not case.alone]
        results = list(await asyncio.gather(*together))
        return results + [await self.one(case, used) for case in cases if case.alone]

    async def _in_turn(self, case: Case, settings: Settings) -> Result:
        async with self._lanes:
            return await self.one(case, settings)

    async def one(self, case: Case, settings: Settings) -> Result:
        """Run a case."""
        started = time.monotonic()
        fault = await self._fault(case, settings)
        result = Result(case.name, fault, time.monotonic() - started)
        self._told(result)
        return result

    async def _fault(self, case: Case, settings: Settings) -> str:
        used = replace(settings, relist=case.relist or settings.relist, retry=case.retry or settings.retry)
        self._count += 1
        namespace = f"{re.sub(r'[^a-z0-9]+', '-', case.name.lower())[:48].strip('-')}-{self._count}-{self._plane.token}"
        try:
            async with self._plane.stage(namespace, used) as stage, asyncio.timeout(case.limit * PATIENCE):
                try:
                    await case.play(stage, self.references)
                finally:
                    log = self._plane.directory / f"{namespace}.journal"
                    log.write_text("\n".join(map(str, stage.proxy.journal.entries)))
        except FailedError as error:
            return str(error)[:LONGEST]
        except TimeoutError:
            return f"it took longer than {case.limit:g} s"
        except ApiError as error:
            return f"the test's own request failed: {error}"[:LONGEST]
        except Exception as error:  # noqa: BLE001 - the outermost edge of one case: the others go on
            return f"the test itself failed: {error!r}"[:LONGEST]
        return ""
