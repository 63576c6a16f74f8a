"""The operator reads stale state, or is down during changes."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec

from faults.campaigns.drift import FOREIGN, wait_for_reason, wait_rolled_out
from faults.case import Case, References, in_gate, prepare, user_action, wait_beside
from faults.esr import VICTIM, Reference, check_operator, check_quiet, check_stable, wait_for_state
from faults.faulty import ServeList
from faults.rules import Rule
from faults.sandbox import LONG_SYNC_PERIOD, Sandbox, wait_until
from faults.workloads import BY_NAME, IMAGE, OTHER_IMAGE, PORTS, SLOTS, Workload, cache
from memcached_api import conditions as c
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.engine.reporting.conditions import PROGRESS_PERIOD
from memcached_operator.kube import labels
from memcached_operator.kube import resource as kinds
from memcached_operator.kube.resource import Object, Resource, controller_of
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES

DELAY = 3.0
"""Seconds for which events are held back."""
RECOVERY = 30.0
CHILDREN: tuple[Resource, ...] = (kinds.DEPLOYMENTS, kinds.STATEFULSETS, kinds.SERVICES, kinds.CONFIG_MAPS, kinds.PODS)


async def stale_list(
    sandbox: Sandbox, references: References, workload: Workload, resources: tuple[Resource, ...]
) -> None:
    """The operator starts with lists from before a change; the watches report everything since then."""
    expected = await references.of(workload)
    await sandbox.start()
    await prepare(sandbox, workload)
    await sandbox.operator.stop()
    bodies: dict[str, bytes] = {}
    for resource in resources:
        ours = resource in (MEMCACHEDS, APPSERVICES, MEMCACHEDPROXIES)
        params = {} if ours else {"labelSelector": labels.SELECTOR}
        found = await sandbox.client.request("GET", resource.path(sandbox.namespace), params=params)
        bodies[resource.plural] = msgspec.json.encode(found)
    await user_action(sandbox, workload)
    # Once at startup and once at the next sync: a list can be stale at any time.
    sandbox.proxy.inject(*(Rule(f"list {plural}", ServeList(body), times=2) for plural, body in bodies.items()))
    await sandbox.start()
    if workload.then is None:
        await _check_deleted(sandbox, workload.resource)
    else:
        await wait_beside(sandbox, workload, RECOVERY)
        await check_stable(sandbox, workload.resource, expected, RECOVERY)


async def late_events(
    sandbox: Sandbox, references: References, workload: Workload, resources: tuple[Resource, ...]
) -> None:
    """Events of some resources are late, all others are not."""
    expected = await references.of(workload)
    await sandbox.start()
    await prepare(sandbox, workload)
    sandbox.proxy.hold(*(resource.plural for resource in resources))
    await user_action(sandbox, workload)
    await asyncio.sleep(DELAY)
    sandbox.proxy.release()
    if workload.then is None:
        await _check_deleted(sandbox, workload.resource)
    else:
        await wait_beside(sandbox, workload, RECOVERY)
        await check_stable(sandbox, workload.resource, expected, RECOVERY)


async def recreated(
    sandbox: Sandbox, references: References, workload: Workload, delayed: tuple[Resource, ...]
) -> None:
    """An object is deleted and created again with the same name, while no event arrives."""
    resource, spec = workload.resource, workload.then or {}
    await sandbox.start()
    await sandbox.create_ready(resource, VICTIM, spec)
    expected = await references.of(workload)
    sandbox.proxy.hold(*(each.plural for each in delayed))
    await sandbox.delete(resource, VICTIM)
    await sandbox.create(resource, VICTIM, spec)
    await asyncio.sleep(DELAY)
    sandbox.proxy.release()
    await wait_for_state(sandbox, resource, expected, RECOVERY, loose=True)
    await check_quiet(sandbox)
    await _check_owner(sandbox, resource, kinds.STATEFULSETS if "identity" in spec else kinds.DEPLOYMENTS)
    check_operator(sandbox)


PROXIES = ("proxy-grow", "proxy-shrink")
"""The workloads in which a MemcachedProxy follows a Memcached."""
RECREATED = {"memcacheds": BY_NAME["create"], "appservices": BY_NAME["ports-back"], "slots": BY_NAME["stable-create"]}
SPECS: dict[str, tuple[Mapping[str, Any], ...]] = {
    "Memcached": tuple(cache(containerPort=port) for port in (11212, 11213, 11214)),
    "AppService": tuple(cache(ports=[{"port": port}]) for port in (80, 81, 82)),
}
FOREIGN_SERVICES: dict[str, Object] = {
    "headless": {
        **FOREIGN["Service"],
        "spec": {"clusterIP": "None", "selector": {"app": "foreign"}, "ports": [{"name": "foreign", "port": 9}]},
    },
    "with-address": FOREIGN["Service"],
}
"""Services of another owner. The Service of a Memcached is headless, that of an AppService has an address: the API
server would apply the child to one of these, and rejects it for the other."""


async def foreign_child(sandbox: Sandbox, _: References, resource: Resource, foreign: Object) -> None:
    """Another owner's object replaces a child while its events are held back: the operator does not modify it."""
    first, other, last = SPECS[resource.kind]
    await sandbox.start()
    await sandbox.create_ready(resource, VICTIM, first)
    # The first change transfers the ownership of the fields.
    await sandbox.change(resource, VICTIM, first, other)
    await sandbox.wait_ready(resource, VICTIM)
    sandbox.proxy.hold("services")
    await sandbox.delete(kinds.SERVICES, VICTIM)
    await sandbox.wait_deleted(kinds.SERVICES, VICTIM)
    created = await sandbox.client.request("POST", kinds.SERVICES.path(sandbox.namespace), foreign)
    since = time.monotonic()
    await sandbox.change(resource, VICTIM, other, last)

    async def written_to_service() -> bool:
        return any(each.call.matches("* services", VICTIM) for each in sandbox.proxy.requests.writes(since))

    await wait_until(written_to_service, RECOVERY, "the operator writes the Service")
    sandbox.proxy.release()
    await wait_for_reason(sandbox, resource, c.CONFLICT)
    await wait_rolled_out(sandbox, resource)
    await wait_for_reason(sandbox, resource, c.MINIMUM_REPLICAS_AVAILABLE)
    # The end of the rollout is in the messages, too, after PROGRESS_PERIOD.
    await asyncio.sleep(PROGRESS_PERIOD)
    await check_quiet(sandbox)
    live = await sandbox.get(kinds.SERVICES, VICTIM)
    sandbox.check(live and live["spec"] == created["spec"], "another owner's Service was changed")
    denied = [str(each) for each in sandbox.proxy.requests.writes(since) if each.code == 403]
    sandbox.check(not denied, f"only the admission policies prevented the change of another owner's object: {denied}")
    check_operator(sandbox)


async def _check_owner(sandbox: Sandbox, resource: Resource, workload: Resource) -> None:
    owner = await sandbox.get(resource, VICTIM)
    for each in (workload, kinds.SERVICES):
        child = await sandbox.get(each, VICTIM)
        uid = owner["metadata"]["uid"] if owner else ""
        sandbox.check(child and (controller_of(child) or {}).get("uid") == uid, f"the {each.kind} has another owner")


async def _check_deleted(sandbox: Sandbox, resource: Resource) -> None:
    for each in (resource, kinds.DEPLOYMENTS, kinds.SERVICES):
        await sandbox.wait_deleted(each, VICTIM)
    await check_quiet(sandbox)
    for each in (kinds.DEPLOYMENTS, kinds.SERVICES):
        await sandbox.wait_deleted(each, VICTIM)
    created = sandbox.proxy.requests.counts("create", VICTIM)
    sandbox.check(created == {"deployments": 1, "services": 1}, f"children were created again: {dict(created)}")
    check_operator(sandbox)


async def spec_changes(
    sandbox: Sandbox, references: References, resource: Resource, specs: tuple[Mapping[str, Any], ...], how: str
) -> None:
    """A spec gets several values while the operator is down or receives no events; only the last one counts."""
    first, last = specs[0], specs[-1]
    expected = await references.of(Workload(f"to-{sorted(last.items())}-{resource.plural}", resource, None, last, ()))
    await sandbox.start()
    await sandbox.create_ready(resource, VICTIM, first)
    await check_quiet(sandbox)
    writes = len(sandbox.proxy.requests.writes())
    await _stop_events(sandbox, how, resource)
    for old, new in pairwise(specs):
        await sandbox.change(resource, VICTIM, old, new)
    await _resume_events(sandbox, how)
    await wait_for_state(sandbox, resource, expected, RECOVERY, loose=True)
    await check_quiet(sandbox)
    written = sandbox.proxy.requests.writes()[writes:]
    if first == last and how == "down":
        # The generation has changed, so the status must be updated; nothing else may be written.
        others = [str(each) for each in written if each.call.sub != "status"]
        sandbox.check(not others and len(written) <= 1, f"writes without a change of the spec: {others}")
    check_operator(sandbox)


async def created_and_deleted(sandbox: Sandbox, _: References, resource: Resource, how: str) -> None:
    """An object is created and deleted while the operator is down or receives no events: it creates no children."""
    await sandbox.start()
    await _stop_events(sandbox, how, resource)
    await sandbox.create(resource, VICTIM, {"image": IMAGE})
    await sandbox.delete(resource, VICTIM)
    await _resume_events(sandbox, how)
    await sandbox.wait_watching()
    await check_quiet(sandbox)
    written = sandbox.proxy.requests.writes()
    # A delayed event can be outdated when it arrives: children that are created then are deleted with their owner.
    allowed = 0 if how == "down" else 3
    sandbox.check(len(written) <= allowed, f"writes for a deleted object: {written}")
    for each in (kinds.DEPLOYMENTS, kinds.SERVICES):
        await sandbox.wait_deleted(each, VICTIM)
    check_operator(sandbox)


async def deleted_and_created(sandbox: Sandbox, references: References, resource: Resource, how: str) -> None:
    """An object is deleted and created again with another spec while the operator is down or receives no events."""
    first, last = cache(size=1), cache(size=2)
    expected: Reference = await references.of(Workload(f"again-{resource.plural}", resource, None, last, ()))
    await sandbox.start()
    await sandbox.create_ready(resource, VICTIM, first)
    await _stop_events(sandbox, how, resource)
    await sandbox.delete(resource, VICTIM)
    await sandbox.create(resource, VICTIM, last)
    await _resume_events(sandbox, how)
    await wait_for_state(sandbox, resource, expected, RECOVERY, loose=True)
    await check_quiet(sandbox)
    check_operator(sandbox)


async def _stop_events(sandbox: Sandbox, how: str, resource: Resource) -> None:
    if how == "down":
        await sandbox.operator.stop()
    else:
        sandbox.proxy.hold(resource.plural)


async def _resume_events(sandbox: Sandbox, how: str) -> None:
    if how == "down":
        await sandbox.start()
    else:
        await asyncio.sleep(DELAY)
        sandbox.proxy.release()


def stale() -> list[Case]:
    """Stale lists and late events."""
    found: list[Case] = []
    for name in ("scale-up", "memory", "ports-to-none", "ports-back", "delete", "stable-scale-down", *PROXIES):
        workload = BY_NAME[name]
        named = (workload.beside.resource,) if workload.beside else ()
        own = (workload.resource, *named)
        sets = {"own": own, "children": CHILDREN, "all": (*own, *CHILDREN)}
        if named:
            sets = {"all": (*own, *CHILDREN)}
        for which, resources in sets.items():
            runs: dict[str, Callable[..., Awaitable[None]]] = {"stale-list": stale_list, "late-events": late_events}
            found += [
                Case(
                    f"stale/{how}/{name}/{which}",
                    partial(run, workload=workload, resources=resources),
                    sync_period=LONG_SYNC_PERIOD if how == "late-events" else None,
                )
                for how, run in runs.items()
            ]
    for resource in (MEMCACHEDS, APPSERVICES):
        for name, foreign in FOREIGN_SERVICES.items():
            run_foreign = partial(foreign_child, resource=resource, foreign=foreign)
            found.append(
                Case(f"stale/foreign-child/{resource.plural}/{name}", run_foreign, sync_period=LONG_SYNC_PERIOD)
            )
    for name, creation in RECREATED.items():
        resource = creation.resource
        sets = {"own": (resource,), "children": CHILDREN, "all": (resource, *CHILDREN)}
        found += [
            Case(f"stale/recreated/{name}/{which}", partial(recreated, workload=creation, delayed=delayed))
            for which, delayed in sets.items()
        ]
    return found


FIELDS: dict[str, tuple[Resource, tuple[Mapping[str, Any], ...]]] = {
    "size": (MEMCACHEDS, (cache(size=1), cache(size=3), cache(size=2))),
    "memory": (MEMCACHEDS, (cache(), cache(cache={"memory": "128Mi"}), cache(cache={"memory": "256Mi"}))),
    "image": (MEMCACHEDS, (cache(), {"image": OTHER_IMAGE}, {"image": "example.com/app:3"})),
    "port": (MEMCACHEDS, (cache(), cache(containerPort=11212), cache(containerPort=11213))),
    "stable-size": (MEMCACHEDS, (cache(size=1, **SLOTS), cache(size=3, **SLOTS), cache(size=2, **SLOTS))),
    "app-size": (APPSERVICES, (cache(size=1), cache(size=3), cache(size=2))),
    "app-ports": (APPSERVICES, (cache(**PORTS), cache(), cache(ports=[{"port": 81, "name": "http"}]))),
    "app-envs": (APPSERVICES, (cache(), cache(envs=[{"name": "A", "value": "1"}]), cache(envs=[{"name": "B"}]))),
}


def missed() -> list[Case]:
    """The spec changes while the operator is down or receives no events."""
    found: list[Case] = []
    for how in ("down", "no-events"):
        for name, (resource, (one, two, three)) in FIELDS.items():
            for route, specs in (("aba", (one, two, one)), ("abc", (one, two, three))):
                run = partial(spec_changes, resource=resource, specs=specs, how=how)
                found.append(
                    Case(
                        f"missed/{route}/{name}/{how}",
                        run,
                        sync_period=LONG_SYNC_PERIOD if how == "no-events" else None,
                    )
                )
        for resource in (MEMCACHEDS, APPSERVICES):
            run = partial(created_and_deleted, resource=resource, how=how)
            found.append(
                Case(
                    f"missed/create-delete/{resource.plural}/{how}",
                    run,
                    sync_period=LONG_SYNC_PERIOD if how == "no-events" else None,
                )
            )
            found.append(
                Case(
                    f"missed/delete-create/{resource.plural}/{how}",
                    partial(deleted_and_created, resource=resource, how=how),
                )
            )
    return found


def cases() -> list[Case]:
    """All cases of stale and missed."""
    return in_gate([*stale(), *missed()], "stale/stale-list/scale-up/children", "missed/aba/memory/down")
