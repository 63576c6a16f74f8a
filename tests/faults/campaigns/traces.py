"""Traces: what the operator writes for each action of a user, compared with the simulation."""

import asyncio
from functools import partial

from faults.calls import RequestLog
from faults.case import Case, References, in_gate, measured
from faults.sandbox import Sandbox
from faults.workloads import BY_NAME, GUARDS_CHANGED, GUARDS_OFF, GUARDS_ON, GUARDS_SCALED, PORT, Workload
from simulation.processes import simulated_writes

WORKLOADS = {
    each.name: each for each in (*BY_NAME.values(), PORT, GUARDS_ON, GUARDS_CHANGED, GUARDS_OFF, GUARDS_SCALED)
}


def writes_of(requests: RequestLog) -> list[str]:
    """Verb, resource, name and code of each write, each once, without Events and statuses.

    Times decide in how many steps some of it is written, and in which order.
    """
    entries = [each for each in requests.writes() if each.call.resource != "events" and each.call.sub != "status"]
    return sorted({f"{each.call.what} {each.call.name} {each.code}" for each in entries})


async def run(sandbox: Sandbox, _: References, workload: Workload) -> None:
    """Run a workload without faults, and compare what was written."""
    await measured(sandbox, workload)
    found, expected = writes_of(sandbox.proxy.requests), await asyncio.to_thread(simulated_writes, workload.name)
    sandbox.check(found == expected, f"the operator wrote {found}, in the simulation {expected}")


def cases() -> list[Case]:
    """One case per workload."""
    found = [Case(f"traces/{name}", partial(run, workload=each)) for name, each in WORKLOADS.items()]
    return in_gate(
        found,
        "traces/create",
        "traces/image",
        "traces/memory",
        "traces/scale-up",
        "traces/ports-to-none",
        "traces/ports-back",
        "traces/guards-changed",
        "traces/stable-create",
        "traces/stable-image",
        "traces/stable-scale-down",
    )
