"""Lists and watches fail."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from faults.case import Case, References, in_gate, prepare, user_action
from faults.esr import VICTIM, check_stable
from faults.faulty import Fault, Reject, ServeList, ServeWatch, event, status
from faults.rules import Rule
from faults.sandbox import LONG_SYNC_PERIOD, Sandbox, wait_until_injected
from faults.workloads import BY_NAME, GUARDS_SCALED, IMAGE, Workload
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.resource import NETWORK_POLICIES, POD_DISRUPTION_BUDGETS, SERVICES, Resource
from memcached_operator.memcached.controller import MEMCACHEDS

DURATION = 4.0
"""Seconds for which a persistent fault is active."""
RECOVERY = 15.0
"""Seconds from the end of the fault until all is watched again, and from then until the state is correct."""
WATCHED = {
    "memcacheds": "cache.example.com/v1",
    "appservices": "app.example.com/v1",
    "deployments": "apps/v1",
    "services": "v1",
    "pods": "v1",
    "poddisruptionbudgets": "policy/v1",
    "networkpolicies": "networking.k8s.io/v1",
}
"""The resources that the operator watches, with their API versions."""
GUARDS = {resource.plural: resource for resource in (POD_DISRUPTION_BUDGETS, NETWORK_POLICIES)}
GUARD_FAULTS = ("silent", "empty-list", "error-410", "dropped")
"""The faults for GUARDS: one of each way to recover, because all watches share the code."""
DELETED = "doomed"
REPAIRED_BY_SYNC = ("silent", "empty-list")
"""Faults that the operator cannot notice: only the next sync shows what it has missed. It must recover from all others
without a sync, which would also hide a watch that is never reopened.
"""


@dataclass(frozen=True)
class WatchFault:
    """Open watches send `data` and are closed or cut; `follow` is injected into new watches, `lists` into lists."""

    data: bytes = b""
    cut: bool = False
    follow: Fault | None = None
    lists: Fault | None = None
    times: int | None = None


def rejected(code: int, reason: str) -> WatchFault:
    """Lists and watches fail with this code."""
    return WatchFault(follow=Reject(code, reason), lists=Reject(code, reason))


def error_event(code: int, reason: str) -> WatchFault:
    """Watches send an error event, as the API server does after it has started to respond."""
    line = event("ERROR", status(code, reason, "injected by the test"))
    return WatchFault(line, follow=ServeWatch(line), times=3)


GARBLED_LINE = b'{"type":"ADDED","object":{"kind"\n'
PARTIAL_LINE = b'{"type":"MODIFIED","object":{"metadata":{"na'
FAULTS = {
    "500": rejected(500, "InternalError"),
    "403": rejected(403, "Forbidden"),
    "401": rejected(401, "Unauthorized"),
    "404": rejected(404, "NotFound"),
    "410": rejected(410, "Expired"),
    "429": rejected(429, "TooManyRequests"),
    "error-410": error_event(410, "Expired"),
    "error-500": error_event(500, "InternalError"),
    "error-504": error_event(504, "Timeout"),
    "error-429": error_event(429, "TooManyRequests"),
    "garbled-line": WatchFault(GARBLED_LINE, follow=ServeWatch(GARBLED_LINE), times=3),
    "dropped": WatchFault(cut=True, follow=ServeWatch(end="cut"), times=3),
    "closed-immediately": WatchFault(follow=ServeWatch()),
    "cut-mid-line": WatchFault(PARTIAL_LINE, cut=True, follow=ServeWatch(PARTIAL_LINE, end="cut"), times=3),
}


@asynccontextmanager
async def active(sandbox: Sandbox, resource: str, fault: WatchFault) -> AsyncGenerator[None]:
    """Interrupt the watches of a resource, and let the next ones fail during the block."""
    rules = [Rule(f"watch {resource}", fault.follow, times=fault.times)] if fault.follow else []
    if fault.lists:
        rules.append(Rule(f"list {resource}", fault.lists))
    injected = sandbox.proxy.inject(*rules)
    for stream in sandbox.proxy.open_watches(resource):
        await stream.interrupt(fault.data, cut=fault.cut)
    yield
    for each in injected:
        each.stop()


async def broken(sandbox: Sandbox, references: References, resource: str, fault: WatchFault) -> None:
    """A fault is active for a while; meanwhile one object is changed, one is deleted, and a child is deleted."""

    async def work() -> None:
        async with active(sandbox, resource, fault):
            await user_changes(sandbox, resource)
            await asyncio.sleep(DURATION)

    await _run(sandbox, references, resource, work)


async def silent(sandbox: Sandbox, references: References, resource: str) -> None:
    """A watch stays open but sends no more events: the next sync detects the changes."""

    async def work() -> None:
        sandbox.proxy.hold(resource)
        await user_changes(sandbox, resource)

    await _run(sandbox, references, resource, work)


async def slow(sandbox: Sandbox, references: References, resource: str) -> None:
    """Events arrive in small pieces."""

    async def work() -> None:
        sandbox.proxy.pace = (200, 0.05)
        await user_changes(sandbox, resource)
        await asyncio.sleep(DURATION)
        sandbox.proxy.pace = None

    await _run(sandbox, references, resource, work)


async def empty(sandbox: Sandbox, references: References, resource: str) -> None:
    """A list is empty by mistake, and so is the list after an expired watch."""

    async def work() -> None:
        found: dict[str, object] = {"kind": "List", "apiVersion": WATCHED[resource], "metadata": {}, "items": []}
        pods = await sandbox.client.request("GET", f"/api/v1/namespaces/{sandbox.namespace}/pods")
        found["metadata"] = {"resourceVersion": pods["metadata"]["resourceVersion"]}
        (active,) = sandbox.proxy.inject(Rule(f"list {resource}", ServeList(json.dumps(found).encode()), times=2))
        for stream in sandbox.proxy.open_watches(resource):
            await stream.interrupt(event("ERROR", status(410, "Expired")))
        await user_changes(sandbox, resource)
        await wait_until_injected(active, 30)

    await _run(sandbox, references, resource, work)


def _stage(resource: str) -> tuple[Workload, Resource]:
    """The workload for a fault of this resource's watch, and the child that is deleted: a guard, or the Service."""
    return (GUARDS_SCALED, GUARDS[resource]) if resource in GUARDS else (BY_NAME["scale-up"], SERVICES)


async def user_changes(sandbox: Sandbox, resource: str) -> None:
    """User actions during the fault: scale an object, delete one of its children, delete another object."""
    workload, child = _stage(resource)
    await user_action(sandbox, workload)
    await sandbox.delete(child, VICTIM)
    await sandbox.delete(MEMCACHEDS, DELETED)


async def _run(sandbox: Sandbox, references: References, resource: str, work: Callable[[], Awaitable[None]]) -> None:
    workload, child = _stage(resource)
    expected = await references.of(workload)
    await sandbox.start()
    await sandbox.create(MEMCACHEDS, DELETED, workload.first or {})
    await sandbox.create(APPSERVICES, "app", {"image": IMAGE})
    await prepare(sandbox, workload)
    await sandbox.wait_ready(MEMCACHEDS, DELETED)
    await sandbox.wait_ready(APPSERVICES, "app")
    await work()
    await sandbox.wait_watching(RECOVERY)
    with_second_child = replace(expected, created={**expected.created, child.plural: 2})
    await check_stable(sandbox, MEMCACHEDS, with_second_child, RECOVERY + sandbox.settings.sync_time)
    await sandbox.change(APPSERVICES, "app", {}, {"size": 2})
    await sandbox.wait_ready(APPSERVICES, "app")
    for each in (MEMCACHEDS, SERVICES, child):
        await sandbox.wait_deleted(each, DELETED)
    created = sandbox.proxy.requests.counts("create", DELETED)
    sandbox.check(
        created == dict.fromkeys(expected.created, 1), f"children of a deleted object were created again: {created}"
    )


def cases() -> list[Case]:
    """Each fault for each resource; for GUARDS, GUARD_FAULTS."""
    runs: dict[str, Callable[..., Awaitable[None]]] = {"silent": silent, "slow": slow, "empty-list": empty}
    runs |= {name: partial(broken, fault=fault) for name, fault in FAULTS.items()}
    found = [
        Case(
            f"watch/{resource}/{name}",
            partial(run, resource=resource),
            sync_period=None if name in REPAIRED_BY_SYNC else LONG_SYNC_PERIOD,
        )
        for resource in WATCHED
        for name, run in runs.items()
        if resource not in GUARDS or name in GUARD_FAULTS
    ]
    return in_gate(found, "watch/memcacheds/garbled-line")
