"""A case: a name, and a function that runs in its own sandbox."""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace

from faults.esr import VICTIM, Reference, reference
from faults.sandbox import READY_TIMEOUT, Plane, Sandbox, Settings, wait_until
from faults.state import CHILDREN, SLOT_CHILDREN, is_ready
from faults.workloads import Workload
from memcached_operator.engine.reporting.writer import STATUS_PERIOD
from memcached_operator.kube.resource import STATEFULSETS, nested_list


@dataclass(frozen=True)
class Case:
    """One case. `run` raises FailedError if a check fails, and may return a note, such as what it measured.

    `gate`: it runs in every gate on the real control plane; the others run nightly. `alone`: no other case may run at
    the same time, because shared state changes. `sync_period`, `max_retry_delay`: seconds; None: the value of the run.
    `limit`: seconds.
    """

    name: str
    run: Callable[[Sandbox, "References"], Awaitable[str | None]]
    alone: bool = False
    gate: bool = False
    sync_period: float | None = None
    max_retry_delay: float | None = None
    limit: float = 240.0

    def settings(self, common: Settings) -> Settings:
        """The settings of the run, with those of this case."""
        return replace(
            common,
            sync_period=self.sync_period or common.sync_period,
            max_retry_delay=self.max_retry_delay or common.max_retry_delay,
        )


def namespace_of(name: str) -> str:
    """A new name of a namespace for a case of this name."""
    return f"{re.sub(r'[^a-z0-9]+', '-', name.lower())[:48].strip('-')}-{secrets.token_hex(4)}"


def in_gate(cases: Iterable[Case], *names: str) -> list[Case]:
    """The cases. Those with these names run in every gate on the real control plane. Raises LookupError."""
    found = list(cases)
    if unknown := {*names} - {case.name for case in found}:
        raise LookupError(f"no such cases: {', '.join(sorted(unknown))}")
    return [replace(case, gate=True) if case.name in names else case for case in found]


@dataclass
class References:
    """The final state of each workload without faults, measured once per process, when it is first needed.

    This always uses the unmodified sources, so that a mutant is compared with the correct operator. `known`: the states
    that have been measured, by the name of the workload.
    """

    plane: Plane
    settings: Settings
    known: dict[str, Reference] = field(default_factory=dict[str, Reference])

    async def of(self, workload: Workload) -> Reference:
        """The reference of a workload."""
        if workload.name not in self.known:
            namespace = f"reference-{len(self.known)}-{secrets.token_hex(4)}"
            async with self.plane.sandbox(namespace, self.settings) as sandbox:
                self.known[workload.name] = await measured(sandbox, workload)
        return self.known[workload.name]


async def measured(sandbox: Sandbox, workload: Workload) -> Reference:
    """The final state of a workload without faults, in a sandbox whose operator has not been started."""
    sandbox.operator.start()
    await prepare(sandbox, workload)
    await user_action(sandbox, workload)
    if workload.then is None:
        await wait_all_deleted(sandbox, workload)
    else:
        await sandbox.wait_ready(workload.resource, VICTIM)
        await wait_beside(sandbox, workload)
    return await reference(sandbox, workload.resource)


async def prepare(sandbox: Sandbox, workload: Workload, name: str = VICTIM) -> None:
    """Create an object with the first spec of a workload."""
    if workload.beside is not None:
        await sandbox.create_ready(workload.beside.resource, workload.beside.name, workload.beside.first)
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


async def user_action(sandbox: Sandbox, workload: Workload) -> None:
    """Perform the user's action: create, change or delete the object, or change the one that it names."""
    if (beside := workload.beside) is not None and beside.then is not None:
        await sandbox.change(beside.resource, beside.name, beside.first, beside.then)
    elif workload.then is None:
        await sandbox.delete(workload.resource, VICTIM)
    elif workload.first is None:
        await sandbox.create(workload.resource, VICTIM, workload.then)
    else:
        await sandbox.change(workload.resource, VICTIM, workload.first, workload.then)


async def wait_beside(sandbox: Sandbox, workload: Workload, seconds: float = READY_TIMEOUT) -> None:
    """Wait until the Memcached that a workload's MemcachedProxy names has its slots, and the proxy uses all of them."""
    if (beside := workload.beside) is None:
        return
    size = (beside.then or beside.first)["size"]

    async def poll() -> bool:
        served, proxy = await sandbox.get(beside.resource, beside.name), await sandbox.get(workload.resource, VICTIM)
        live = await sandbox.get(STATEFULSETS, beside.name) or {}
        used = [each["servers"] for each in nested_list(proxy or {}, "status", "caches")]
        return is_ready(served) and is_ready(proxy) and live["spec"]["replicas"] == size and used == [size]

    await wait_until(poll, seconds, f"{beside.resource.kind} {beside.name} has {size} slots, and proxies use them")


async def wait_all_deleted(sandbox: Sandbox, workload: Workload) -> None:
    """Wait until an object and its children are deleted."""
    for resource in (workload.resource, *CHILDREN):
        await sandbox.wait_deleted(resource, VICTIM)
    for resource, suffix in SLOT_CHILDREN:
        await sandbox.wait_deleted(resource, f"{VICTIM}{suffix}")
