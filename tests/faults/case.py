"""What a case is: a name, and what happens on its stage."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from faults.esr import VICTIM, Reference, reference
from faults.stage import Plane, Settings, Stage
from faults.state import CHILDREN
from faults.workloads import Workload
from memcached_operator.status.writer import STATUS_PERIOD


@dataclass(frozen=True)
class Case:
    """One case. `play` raises FailedError where what must hold does not.

    `gate`: it is part of `make test-faults-gate`. `alone`: no other case may run at the same time, because it changes
    what all share. `relist` and `retry` are seconds; None for those of the run.
    """

    name: str
    play: Callable[[Stage, "References"], Awaitable[None]]
    gate: bool = False
    alone: bool = False
    relist: float | None = None
    retry: float | None = None
    limit: float = 240.0


@dataclass
class References:
    """How each workload ends without faults; found out once in a run, by whoever asks first.

    The sources are always those of the tree: a mutant is measured against the operator as it should be.
    """

    plane: Plane
    settings: Settings
    _found: "dict[str, asyncio.Task[Reference]]" = field(default_factory=dict[str, "asyncio.Task[Reference]"])
    _count: int = 0

    async def of(self, workload: Workload) -> Reference:
        """The reference of a workload."""
        known = self._found.get(workload.name)
        # One that could not be found out, on a machine too busy, is tried again.
        if known is None or (known.done() and known.exception() is not None):
            self._found[workload.name] = asyncio.create_task(self._find_out(workload))
        return await asyncio.shield(self._found[workload.name])

    async def _find_out(self, workload: Workload) -> Reference:
        self._count += 1
        namespace = f"reference-{self._count}-{self.plane.token}"
        async with self.plane.stage(namespace, self.settings) as stage:
            stage.operator.start()
            await prepare(stage, workload)
            await act(stage, workload)
            if workload.then is None:
                await gone(stage, workload)
            else:
                await stage.settled(workload.resource, VICTIM)
            return await reference(stage, workload.resource)


async def prepare(stage: Stage, workload: Workload, name: str = VICTIM) -> None:
    """Bring an object to the first spec of a workload."""
    spec = workload.before or workload.first
    if spec is None:
        return
    await stage.create(workload.resource, name, spec)
    await stage.settled(workload.resource, name)
    if workload.before is not None and workload.first is not None:
        await asyncio.sleep(STATUS_PERIOD)
        await stage.change(workload.resource, name, workload.before, workload.first)
        await stage.settled(workload.resource, name)
    # No object gets more than one status patch per second: after a pause, the next change is answered at once.
    await asyncio.sleep(STATUS_PERIOD)


async def act(stage: Stage, workload: Workload, name: str = VICTIM) -> None:
    """What the user does."""
    if workload.then is None:
        await stage.delete(workload.resource, name)
    elif workload.first is None:
        await stage.create(workload.resource, name, workload.then)
    else:
        await stage.change(workload.resource, name, workload.first, workload.then)


async def gone(stage: Stage, workload: Workload, name: str = VICTIM) -> None:
    """Wait until an object and its children are gone."""
    for resource in (workload.resource, *CHILDREN):
        await stage.gone(resource, name)
