"""T5 and T6: the operator sees old states, or was away while much happened."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec

from faults.campaigns.drift import FOREIGN, rolled_out, told
from faults.case import Case, References, act, prepare
from faults.esr import VICTIM, Reference, calm, quiet, reached, stable
from faults.faulty import Serve
from faults.rules import Rule
from faults.stage import Stage, until
from faults.workloads import BY_NAME, IMAGE, OTHER_IMAGE, PORTS, Workload, cache
from memcached_api import conditions as c
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube import labels
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, SERVICES, Object, Resource, controller_of
from memcached_operator.memcached.controller import MEMCACHEDS

LONG = 600.0
"""Seconds between readings of everything, where a reading would mend what a case is about."""
AWHILE = 3.0
"""Seconds that news is held back."""
RECOVERY = 30.0
CHILDREN: tuple[Resource, ...] = (DEPLOYMENTS, SERVICES, PODS)


async def old_list(stage: Stage, references: References, workload: Workload, resources: tuple[Resource, ...]) -> None:
    """A start on lists from before the change; the watches tell of everything since."""
    expected = await references.of(workload)
    stage.operator.start()
    await stage.watching()
    await prepare(stage, workload)
    await stage.operator.away()
    bodies: dict[str, bytes] = {}
    for resource in resources:
        ours = resource in (MEMCACHEDS, APPSERVICES)
        params = {} if ours else {"labelSelector": labels.SELECTOR}
        found = await stage.client.request("GET", resource.path(stage.namespace), params=params)
        bodies[resource.plural] = msgspec.json.encode(found)
    await act(stage, workload)
    # Once at the start, and once when everything is read again: an old list may come at any time.
    stage.proxy.arm(*(Rule(f"list {plural}", Serve(body), times=2) for plural, body in bodies.items()))
    stage.operator.start()
    await stage.watching()
    if workload.then is None:
        await _gone_for_good(stage, workload.resource)
    else:
        await stable(stage, workload.resource, expected, RECOVERY)


async def held(stage: Stage, references: References, workload: Workload, resources: tuple[Resource, ...]) -> None:
    """Events of some resources come late, while all others pass."""
    expected = await references.of(workload)
    stage.operator.start()
    await stage.watching()
    await prepare(stage, workload)
    stage.proxy.hold(*(resource.plural for resource in resources))
    await act(stage, workload)
    await asyncio.sleep(AWHILE)
    stage.proxy.release()
    if workload.then is None:
        await _gone_for_good(stage, workload.resource)
    else:
        await stable(stage, workload.resource, expected, RECOVERY)


async def another(stage: Stage, references: References, resource: Resource, kept: tuple[Resource, ...]) -> None:
    """An object is deleted and made again under its name, while the watches say nothing of it."""
    workload = BY_NAME["create"] if resource == MEMCACHEDS else BY_NAME["ports-back"]
    spec = workload.then or {}
    stage.operator.start()
    await stage.watching()
    await stage.create(resource, VICTIM, spec)
    await stage.settled(resource, VICTIM)
    expected = await references.of(workload)
    stage.proxy.hold(*(each.plural for each in kept))
    await stage.delete(resource, VICTIM)
    await stage.create(resource, VICTIM, spec)
    await asyncio.sleep(AWHILE)
    stage.proxy.release()
    await reached(stage, resource, expected, RECOVERY, loose=True)
    await quiet(stage)
    await _owned(stage, resource)
    calm(stage)


ROUTE: dict[str, tuple[Mapping[str, Any], ...]] = {
    "Memcached": tuple(cache(containerPort=port) for port in (11212, 11213, 11214)),
    "AppService": tuple(cache(ports=[{"port": port}]) for port in (80, 81, 82)),
}
HEADLESS: Object = {
    **FOREIGN["Service"],
    "spec": {"clusterIP": "None", "selector": {"app": "theirs"}, "ports": [{"name": "theirs", "port": 9}]},
}


async def foreign_child(stage: Stage, references: References, resource: Resource) -> None:
    """A child is replaced by somebody else's of the same name, behind held watches: it is left alone."""
    first, other, last = ROUTE[resource.kind]
    stage.operator.start()
    await stage.watching()
    await stage.create(resource, VICTIM, first)
    await stage.settled(resource, VICTIM)
    # The fields are handed over with the first change.
    await stage.change(resource, VICTIM, first, other)
    await stage.settled(resource, VICTIM)
    stage.proxy.hold("services")
    await stage.delete(SERVICES, VICTIM)
    await stage.gone(SERVICES, VICTIM)
    theirs = await stage.client.request("POST", SERVICES.path(stage.namespace), HEADLESS)
    since = time.monotonic()
    await stage.change(resource, VICTIM, other, last)

    async def tried() -> bool:
        return any(each.call.matches("* services", VICTIM) for each in stage.proxy.journal.writes(since))

    await until(tried, RECOVERY, "the change reaches the Service")
    stage.proxy.release()
    await told(stage, resource, c.CONFLICT)
    await rolled_out(stage, resource)
    await told(stage, resource, c.MINIMUM_REPLICAS_AVAILABLE)
    await quiet(stage)
    live = await stage.get(SERVICES, VICTIM)
    stage.holds(live and live["spec"] == theirs["spec"], "somebody else's Service was changed")
    calm(stage)


async def _owned(stage: Stage, resource: Resource) -> None:
    owner = await stage.get(resource, VICTIM)
    for each in (DEPLOYMENTS, SERVICES):
        child = await stage.get(each, VICTIM)
        uid = owner["metadata"]["uid"] if owner else ""
        stage.holds(child and (controller_of(child) or {}).get("uid") == uid, f"the {each.kind} is another's")


async def _gone_for_good(stage: Stage, resource: Resource) -> None:
    for each in (resource, DEPLOYMENTS, SERVICES):
        await stage.gone(each, VICTIM)
    await quiet(stage)
    for each in (DEPLOYMENTS, SERVICES):
        await stage.gone(each, VICTIM)
    made = stage.proxy.journal.counts("create", VICTIM)
    stage.holds(made == {"deployments": 1, "services": 1}, f"children were made again: {dict(made)}")
    calm(stage)


async def back_and_forth(
    stage: Stage, references: References, resource: Resource, specs: tuple[Mapping[str, Any], ...], how: str
) -> None:
    """A spec goes through several values while the operator is away or sees nothing; only the last one counts."""
    first, last = specs[0], specs[-1]
    expected = await references.of(Workload(f"to-{sorted(last.items())}-{resource.plural}", resource, None, last, ()))
    stage.operator.start()
    await stage.watching()
    await stage.create(resource, VICTIM, first)
    await stage.settled(resource, VICTIM)
    await quiet(stage)
    writes = len(stage.proxy.journal.writes())
    await _unseen(stage, how, resource)
    for old, new in pairwise(specs):
        await stage.change(resource, VICTIM, old, new)
    await _seen(stage, how)
    await reached(stage, resource, expected, RECOVERY, loose=True)
    await quiet(stage)
    written = stage.proxy.journal.writes()[writes:]
    if first == last and how == "away":
        # The generation is another, and a status must say so; nothing else may be written.
        others = [str(each) for each in written if each.call.sub != "status"]
        stage.holds(not others and len(written) <= 1, f"writes for what is as it was: {others}")
    calm(stage)


async def come_and_gone(stage: Stage, _: References, resource: Resource, how: str) -> None:
    """An object is made and deleted while nobody looks: nothing may be made for it."""
    stage.operator.start()
    await stage.watching()
    await _unseen(stage, how, resource)
    await stage.create(resource, VICTIM, {"image": IMAGE})
    await stage.delete(resource, VICTIM)
    await _seen(stage, how)
    await stage.watching()
    await quiet(stage)
    written = stage.proxy.journal.writes()
    # Behind a held watch the first event is old when it comes: what is made then goes with its owner.
    allowed = 0 if how == "away" else 3
    stage.holds(len(written) <= allowed, f"writes for what is gone: {written}")
    for each in (DEPLOYMENTS, SERVICES):
        await stage.gone(each, VICTIM)
    calm(stage)


async def gone_and_come(stage: Stage, references: References, resource: Resource, how: str) -> None:
    """An object is deleted and made again with another spec while nobody looks."""
    first, last = cache(size=1), cache(size=2)
    expected: Reference = await references.of(Workload(f"again-{resource.plural}", resource, None, last, ()))
    stage.operator.start()
    await stage.watching()
    await stage.create(resource, VICTIM, first)
    await stage.settled(resource, VICTIM)
    await _unseen(stage, how, resource)
    await stage.delete(resource, VICTIM)
    await stage.create(resource, VICTIM, last)
    await _seen(stage, how)
    await reached(stage, resource, expected, RECOVERY, loose=True)
    await quiet(stage)
    calm(stage)


async def _unseen(stage: Stage, how: str, resource: Resource) -> None:
    if how == "away":
        await stage.operator.away()
    else:
        stage.proxy.hold(resource.plural)


async def _seen(stage: Stage, how: str) -> None:
    if how == "away":
        stage.operator.start()
        await stage.watching()
    else:
        await asyncio.sleep(AWHILE)
        stage.proxy.release()


def t5() -> list[Case]:
    """T5: old news."""
    found: list[Case] = []
    for name in ("scale-up", "memory", "ports-to-none", "ports-back", "delete"):
        workload = BY_NAME[name]
        sets = {"own": (workload.resource,), "children": CHILDREN, "all": (workload.resource, *CHILDREN)}
        for which, resources in sets.items():
            plays: dict[str, Callable[..., Awaitable[None]]] = {"old-list": old_list, "held": held}
            found += [
                Case(
                    f"T5/{how}/{name}/{which}",
                    partial(play, workload=workload, resources=resources),
                    gate=which == "children" and name in ("scale-up", "ports-to-none"),
                    relist=LONG if how == "held" else None,
                )
                for how, play in plays.items()
            ]
    for resource in (MEMCACHEDS, APPSERVICES):
        sets = {"own": (resource,), "children": CHILDREN, "all": (resource, *CHILDREN)}
        foreign = partial(foreign_child, resource=resource)
        found.append(Case(f"T5/foreign-child/{resource.plural}", foreign, relist=LONG))
        found += [
            Case(f"T5/another/{resource.plural}/{which}", partial(another, resource=resource, kept=kept))
            for which, kept in sets.items()
        ]
    return found


FIELDS: dict[str, tuple[Resource, tuple[Mapping[str, Any], ...]]] = {
    "size": (MEMCACHEDS, (cache(size=1), cache(size=3), cache(size=2))),
    "memory": (MEMCACHEDS, (cache(), cache(cache={"memory": "128Mi"}), cache(cache={"memory": "256Mi"}))),
    "image": (MEMCACHEDS, (cache(), {"image": OTHER_IMAGE}, {"image": "example.com/app:3"})),
    "port": (MEMCACHEDS, (cache(), cache(containerPort=11212), cache(containerPort=11213))),
    "app-size": (APPSERVICES, (cache(size=1), cache(size=3), cache(size=2))),
    "app-ports": (APPSERVICES, (cache(**PORTS), cache(), cache(ports=[{"port": 81, "name": "http"}]))),
    "app-envs": (APPSERVICES, (cache(), cache(envs=[{"name": "A", "value": "1"}]), cache(envs=[{"name": "B"}]))),
}


def t6() -> list[Case]:
    """T6: intent changes while nobody looks."""
    found: list[Case] = []
    for how in ("away", "held"):
        for name, (resource, (one, two, three)) in FIELDS.items():
            for route, specs in (("aba", (one, two, one)), ("abc", (one, two, three))):
                play = partial(back_and_forth, resource=resource, specs=specs, how=how)
                gate = name == "memory" and how == "away"
                found.append(Case(f"T6/{route}/{name}/{how}", play, gate=gate, relist=LONG if how == "held" else None))
        for resource in (MEMCACHEDS, APPSERVICES):
            kept = partial(come_and_gone, resource=resource, how=how)
            found.append(
                Case(f"T6/create-delete/{resource.plural}/{how}", kept, relist=LONG if how == "held" else None)
            )
            found.append(
                Case(f"T6/delete-create/{resource.plural}/{how}", partial(gone_and_come, resource=resource, how=how))
            )
    return found


def cases() -> list[Case]:
    """All of them."""
    return [*t5(), *t6()]
