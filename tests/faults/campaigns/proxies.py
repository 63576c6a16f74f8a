"""Faults while a MemcachedProxy follows the slots of its Memcached."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from aiohttp import web

from faults.background import while_running
from faults.campaigns import drift, leaders
from faults.campaigns.drift import Child
from faults.campaigns.watches import DURATION, FAULTS, WatchFault, active
from faults.case import Case, References, prepare, user_action, wait_beside
from faults.election import start_election, unchanged
from faults.esr import VICTIM, check_operator, check_quiet, check_stable, wait_for_state
from faults.faulty import Exchange, Kill
from faults.routes import Routes, routes_of, template_routes
from faults.rules import Rule
from faults.sandbox import LONG_SYNC_PERIOD, READY_TIMEOUT, Sandbox, wait_until_injected
from faults.workloads import FRONT, PROXY_GROW, PROXY_SHRINK, SERVED, Workload
from memcached_api import conditions as c
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, STATEFULSETS, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES
from support.lists import listed

RECOVERY = 40.0
"""Seconds until both objects have settled."""
DELAY = 5.0
"""Seconds for which events are held back: several times as long as a change of the slots takes."""
PAUSED: Object = {"rollout": {"paused": True}}
RUNNING: Object = {"rollout": {"paused": False}}


async def slots_kept(sandbox: Sandbox, references: References) -> None:
    """The rollout of the proxies is paused: their Memcached keeps the slots that they use, and says so."""
    expected = await references.of(PROXY_SHRINK)
    await sandbox.start()
    await prepare(sandbox, PROXY_SHRINK)
    await sandbox.change(MEMCACHEDPROXIES, VICTIM, FRONT, {**FRONT, **PAUSED})
    await user_action(sandbox, PROXY_SHRINK)
    await asyncio.sleep(DELAY)
    await check_quiet(sandbox)
    live = await sandbox.get(STATEFULSETS, SERVED) or {}
    sandbox.check(live["spec"]["replicas"] == 4, "a slot that proxies use was removed")
    reason = (await sandbox.condition(MEMCACHEDS, SERVED, c.PROGRESSING))["reason"]
    sandbox.check(reason == c.WAITING_FOR_PROXIES, f"Progressing has the reason {reason}")
    await sandbox.change(MEMCACHEDPROXIES, VICTIM, {**FRONT, **PAUSED}, FRONT)
    await wait_beside(sandbox, PROXY_SHRINK, RECOVERY)
    await check_stable(sandbox, MEMCACHEDPROXIES, expected, RECOVERY, loose=True)


async def slots_not_ready(sandbox: Sandbox, references: References) -> None:
    """No event reports that the pod of a new slot is ready: the proxies do not use it."""
    expected = await references.of(PROXY_GROW)
    await sandbox.start()
    await prepare(sandbox, PROXY_GROW)
    sandbox.proxy.hold("statefulsets", "pods")
    await user_action(sandbox, PROXY_GROW)
    await asyncio.sleep(DELAY)
    used = template_routes(await sandbox.get(DEPLOYMENTS, VICTIM) or {})
    sandbox.check(used == Routes(SERVED, 3), f"the proxies use a slot that is not ready: {used}")
    sandbox.proxy.release()
    await wait_beside(sandbox, PROXY_GROW, RECOVERY)
    await check_stable(sandbox, MEMCACHEDPROXIES, expected, RECOVERY)


async def status_unseen(sandbox: Sandbox, references: References) -> None:
    """No event reports what the operator writes into the Memcached's status. The proxies follow it nevertheless."""
    expected = await references.of(PROXY_GROW)
    await sandbox.start()
    await prepare(sandbox, PROXY_GROW)

    async def hold(exchange: Exchange) -> web.StreamResponse:
        sandbox.proxy.hold(MEMCACHEDS.plural)
        return await exchange.forward()

    (active,) = sandbox.proxy.inject(Rule("patch statefulsets", hold, times=1, name=SERVED))
    await user_action(sandbox, PROXY_GROW)
    await wait_until_injected(active, READY_TIMEOUT)
    await wait_beside(sandbox, PROXY_GROW, RECOVERY)
    sandbox.proxy.release()
    await check_stable(sandbox, MEMCACHEDPROXIES, expected, RECOVERY)


async def watch_fails(
    sandbox: Sandbox, references: References, workload: Workload, resource: str, fault: WatchFault
) -> None:
    """Watches fail for a while, in which the size of the Memcached changes."""
    expected = await references.of(workload)
    await sandbox.start()
    await prepare(sandbox, workload)
    async with active(sandbox, resource, fault):
        await user_action(sandbox, workload)
        await asyncio.sleep(DURATION)
    await sandbox.wait_watching(RECOVERY)
    await wait_beside(sandbox, workload, RECOVERY)
    await check_stable(sandbox, workload.resource, expected, RECOVERY)


class Seen(NamedTuple):
    """A version of an object, as a watch reports it."""

    version: int
    what: str
    key: Key
    obj: Object


@dataclass
class Record:
    """Everything that happens to the pods, to the slots and to the routes of a sandbox."""

    sandbox: Sandbox
    seen: list[Seen] = field(default_factory=list[Seen])

    async def watch(self, resource: Resource) -> None:
        """Record all versions of the objects of a resource, until cancelled. Raises ApiError if some may be missing."""
        client, namespace = self.sandbox.client, self.sandbox.namespace
        found, version = await listed(client, resource, namespace)
        self.seen += [self._seen("ADDED", resource, obj) for obj in found]
        while True:
            async for what, obj in client.watch(resource, namespace, "", version):
                version = obj["metadata"]["resourceVersion"]
                if what != "BOOKMARK":
                    self.seen.append(self._seen(what, resource, obj))

    def _seen(self, what: str, resource: Resource, obj: Object) -> Seen:
        key = Key(resource, self.sandbox.namespace, obj["metadata"]["name"])
        return Seen(int(obj["metadata"]["resourceVersion"]), what, key, obj)

    def check_slots(self) -> None:
        """Check that no slot was removed while a pod used it, even one that was being deleted."""
        pods: dict[Key, Routes] = {}
        replicas: dict[Key, int] = {}
        for each in sorted(self.seen, key=lambda each: each.version):
            if each.key.resource == PODS:
                pods.pop(each.key, None)
                if each.what != "DELETED" and (routes := routes_of(each.obj)) is not None:
                    pods[each.key] = routes
            if each.key.resource == STATEFULSETS:
                kept = each.obj["spec"]["replicas"]
                if kept < replicas.get(each.key, 0):
                    used = max((of.slots for of in pods.values() if of.cache == each.key.name), default=0)
                    self.sandbox.check(used <= kept, f"{kept} slots are kept, but a pod uses {used}")
                replicas[each.key] = kept

    def template_changes(self) -> int:
        """How often the routes of the proxies' pod template changed."""
        versions = sorted(
            (each for each in self.seen if each.key.resource == DEPLOYMENTS), key=lambda each: each.version
        )
        found = [template_routes(each.obj) for each in versions if each.key.name == VICTIM]
        return sum(one != other for one, other in pairwise(found))


@asynccontextmanager
async def recorded(sandbox: Sandbox) -> AsyncGenerator[Record]:
    """Record what happens during the block."""
    record = Record(sandbox)
    watches = {f"watching {each}": record.watch(each) for each in (PODS, STATEFULSETS, DEPLOYMENTS)}
    async with while_running(watches):
        yield record


async def leader_killed(sandbox: Sandbox, references: References, workload: Workload, what: str) -> None:
    """The leader is killed at a write of a change of the ring, and stays down. The other candidate continues."""
    expected = await references.of(workload)
    name = SERVED if what.endswith("statefulsets") else VICTIM
    settings = {"one": unchanged, "two": unchanged}
    async with start_election(sandbox, references.plane, settings) as election, recorded(sandbox) as record:
        one, two = election.candidates.values()
        one.operator.start()
        await election.wait_for_leader(READY_TIMEOUT)
        two.operator.start()
        await prepare(sandbox, workload)
        (active,) = one.proxy.inject(Rule(what, Kill("during"), times=1, name=name))
        await user_action(sandbox, workload)
        await wait_until_injected(active, READY_TIMEOUT)
        await one.operator.stop()
        await election.wait_for_leader(by=two)
        await wait_beside(sandbox, workload, RECOVERY)
        await wait_for_state(sandbox, workload.resource, expected, RECOVERY, loose=True)
        await leaders.check_quiet(election)
        errors = election.writes_without_lease()
        sandbox.check(not errors, "; ".join(errors[:2]))
        record.check_slots()
        changes = record.template_changes()
        sandbox.check(changes <= 2, f"the pod template got other routes {changes} times, want one or two")
        check_operator(sandbox)


KILLED = {
    "from-3-to-4-slots/announced": (PROXY_GROW, "patch memcachedproxies/status"),
    "from-3-to-4-slots/applied": (PROXY_GROW, "apply deployments"),
    "from-4-to-3-slots/applied": (PROXY_SHRINK, "apply deployments"),
    "from-4-to-3-slots/removed": (PROXY_SHRINK, "patch statefulsets"),
}
"""The workload and the write at which the leader is killed."""
WATCH_FAULT = "error-410"
CHILD = Child(MEMCACHEDPROXIES, DEPLOYMENTS, drift.OTHER_TEMPLATE, "MemcachedProxy")
DRIFTS = (
    "deleted",
    "orphaned",
    "adopted",
    "field-changed",
    "label-changed",
    "finalizer",
)
"""What another client does with the Deployment of the proxies; all children share the code."""


def cases() -> list[Case]:
    """Slots that are kept and that are not ready, failing watches, changes of the Deployment, and killed leaders."""
    found = [
        Case("drift/proxies/slots-kept", slots_kept, sync_period=LONG_SYNC_PERIOD),
        Case("stale/proxies/slots-not-ready", slots_not_ready, sync_period=LONG_SYNC_PERIOD),
        Case("stale/proxies/status-unseen", status_unseen, sync_period=LONG_SYNC_PERIOD),
    ]
    found += [
        Case(
            f"watch/proxies/{resource.plural}/{WATCH_FAULT}",
            partial(watch_fails, workload=PROXY_GROW, resource=resource.plural, fault=FAULTS[WATCH_FAULT]),
            sync_period=LONG_SYNC_PERIOD,
        )
        for resource in (MEMCACHEDPROXIES, MEMCACHEDS)
    ]
    found += [
        Case(
            f"drift/{CHILD.name}/{name}",
            partial(drift.DRIFTS[name], child=CHILD),
            sync_period=LONG_SYNC_PERIOD,
        )
        for name in DRIFTS
    ]
    return found + [
        Case(f"election/{name}", partial(leader_killed, workload=workload, what=what), limit=360)
        for name, (workload, what) in KILLED.items()
    ]
