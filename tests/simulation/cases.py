"""Runs cases of the campaigns in the simulation."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from faults.case import Case, References, measured
from faults.esr import Reference
from faults.interception import Interception
from faults.sandbox import FailedError, Settings
from faults.workloads import Workload
from simulation import clock
from simulation.operator import logged
from simulation.plane import SimulatedPlane

NAMESPACE: Final = "simulated"
SETTINGS: Final = Settings(sync_period=10.0)
"""`check_quiet` lasts as long as with a shorter period, in which there would be more lists for the same checks."""
REFERENCES: Final[dict[str, Reference]] = {}
"""The states of workloads without faults that have been measured in this process, by name."""


class _UnknownError(Exception):
    """A case needs the state of a workload without faults, which has not been measured yet."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload.name)
        self.workload = workload


class _Known(References):
    """The states that have been measured, each in a simulation of its own: so a case does not depend on the others."""

    async def of(self, workload: Workload) -> Reference:
        found = REFERENCES.get(workload.name)
        if found is None:
            raise _UnknownError(workload)
        return found


@dataclass(frozen=True)
class Outcome:
    """A case that has run. `error`: of the check that failed. `requests`: of the sandbox's operator.

    `log`, `exits`: of all operators. `seconds`: of virtual time.
    """

    error: FailedError | None
    requests: Interception
    log: str
    exits: tuple[int, ...]
    seconds: float


def measure(workload: Workload) -> Interception:
    """The requests of the operator for a workload without faults."""
    with logged():
        return clock.run(_measure(workload))[1]


def reference_of(workload: Workload) -> Reference:
    """The state of a workload without faults, measured once per process."""
    if workload.name not in REFERENCES:
        with logged():
            REFERENCES[workload.name] = clock.run(_measure(workload))[0]
    return REFERENCES[workload.name]


def run_case(case: Case, seed: int = 0, measured: Callable[[Workload], Reference] = reference_of) -> Outcome:
    """Run a case. `measured`: returns the state of a workload without faults, with unchanged sources."""
    while True:
        try:
            with logged():
                return clock.run(_run(case, seed), seed)
        except _UnknownError as error:
            REFERENCES[error.workload.name] = measured(error.workload)


async def _run(case: Case, seed: int) -> Outcome:
    plane, error = SimulatedPlane(seed), None
    references = _Known(plane, SETTINGS)
    try:
        async with plane.sandbox(NAMESPACE, case.settings(SETTINGS)) as sandbox, asyncio.timeout(case.limit):
            await case.run(sandbox, references)
    except FailedError as failed:
        error = failed
    except TimeoutError:
        error = FailedError(f"timed out after {case.limit:g} s")
    log = "\n".join(each.log_text() for each in plane.operators)
    exits = tuple(code for each in plane.operators for code in each.exits)
    return Outcome(error, plane.relays[0], log, exits, asyncio.get_running_loop().time())


async def _measure(workload: Workload) -> tuple[Reference, Interception]:
    async with SimulatedPlane().sandbox(NAMESPACE, SETTINGS) as sandbox:
        return await measured(sandbox, workload), sandbox.proxy
