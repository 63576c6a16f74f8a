"""A case: a name, and a function that runs in its own sandbox."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from typing import Any

from faults.esr import VICTIM, Reference, reference
from faults.sandbox import Plane, Sandbox, Settings
from faults.state import CHILDREN, SLOT_CHILDREN
from faults.workloads import Workload
from memcached_operator.status.writer import STATUS_PERIOD


@dataclass(frozen=True)
class Case:
    """One case. `run` raises FailedError if a check fails, and may return a note for the results.

    `alone`: no other case may run at the same time, because shared state changes. `sync_period`, `max_retry_delay`:
    seconds; None: the value of the run. `limit`: seconds.
    """

    name: str
    run: Callable[[Sandbox, "References"], Awaitable[str | None]]
    alone: bool = False
    sync_period: float | None = None
    max_retry_delay: float | None = None
    limit: float = 240.0

    @property
    def script(self) -> str:
        """The functions that the case runs. Cases with the same ones differ only in their parameters."""
        return " ".join(_functions(self.run))

    def settings(self, common: Settings) -> Settings:
        """The settings of the run, with those of this case."""
        return replace(
            common,
            sync_period=self.sync_period or common.sync_period,
            max_retry_delay=self.max_retry_delay or common.max_retry_delay,
        )


def _functions(value: Any) -> list[str]:
    """The names of a function and of the functions in its bound arguments, at any depth."""
    if isinstance(value, partial):
        bound = (*value.args, *value.keywords.values())  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return [*_functions(value.func), *(name for each in bound for name in _functions(each))]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if is_dataclass(value) and not isinstance(value, type):
        return [name for each in fields(value) for name in _functions(getattr(value, each.name))]
    name = getattr(value, "__qualname__", "")
    return [f"{value.__module__}.{name}"] if name and not isinstance(value, type) else []


@dataclass
class References:
    """The final state of each workload without faults, measured once per run, when it is first needed.

    This always uses the unmodified sources, so that a mutant is compared with the correct operator. `error_of`: the
    error of a case with the unmodified sources, empty if it passes; each case runs once per run.
    """

    plane: Plane
    settings: Settings
    error_of: Callable[[Case], Awaitable[str]]
    _tasks: "dict[str, asyncio.Task[Reference]]" = field(default_factory=dict[str, "asyncio.Task[Reference]"])
    _count: int = 0

    async def of(self, workload: Workload) -> Reference:
        """The reference of a workload."""
        known = self._tasks.get(workload.name)
        # A failed measurement (on a busy machine) is repeated.
        if known is None or (known.done() and known.exception() is not None):
            self._tasks[workload.name] = asyncio.create_task(self._measure(workload))
        return await asyncio.shield(self._tasks[workload.name])

    async def _measure(self, workload: Workload) -> Reference:
        self._count += 1
        namespace = f"reference-{self._count}-{self.plane.token}"
        async with self.plane.sandbox(namespace, self.settings) as sandbox:
            sandbox.operator.start()
            await prepare(sandbox, workload)
            await user_action(sandbox, workload)
            if workload.then is None:
                await wait_all_deleted(sandbox, workload)
            else:
                await sandbox.wait_ready(workload.resource, VICTIM)
            return await reference(sandbox, workload.resource)


async def prepare(sandbox: Sandbox, workload: Workload, name: str = VICTIM) -> None:
    """Create an object with the first spec of a workload."""
    spec = workload.before or workload.first
    if spec is None:
        return
    await sandbox.create_ready(workload.resource, name, spec)
    if workload.before is not None and workload.first is not None:
        await asyncio.sleep(STATUS_PERIOD)
        await sandbox.change(workload.resource, name, workload.before, workload.first)
        await sandbox.wait_ready(workload.resource, name)
    # Each object gets at most one status patch per second: after this pause, the next change is processed immediately.
    await asyncio.sleep(STATUS_PERIOD)


async def user_action(sandbox: Sandbox, workload: Workload, name: str = VICTIM) -> None:
    """Perform the user's action: create, change or delete the object."""
    if workload.then is None:
        await sandbox.delete(workload.resource, name)
    elif workload.first is None:
        await sandbox.create(workload.resource, name, workload.then)
    else:
        await sandbox.change(workload.resource, name, workload.first, workload.then)


async def wait_all_deleted(sandbox: Sandbox, workload: Workload, name: str = VICTIM) -> None:
    """Wait until an object and its children are deleted."""
    for resource in (workload.resource, *CHILDREN):
        await sandbox.wait_deleted(resource, name)
    for resource, suffix in SLOT_CHILDREN:
        await sandbox.wait_deleted(resource, f"{name}{suffix}")
