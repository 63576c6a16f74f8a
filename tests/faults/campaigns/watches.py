"""T4: lists and watches fail."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from faults.case import Case, References, act, prepare
from faults.esr import VICTIM, stable
from faults.faulty import FieldError, Refuse, Serve, Speak, event, status
from faults.rules import Rule
from faults.stage import Stage
from faults.workloads import BY_NAME, IMAGE
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.resource import SERVICES
from memcached_operator.memcached.controller import MEMCACHEDS

DURATION = 4.0
"""Seconds that a fault of the kind that lasts goes on."""
WHOLE_AGAIN = 15.0
"""Seconds from the end of the fault until all is as it should be, beside the time to the next re-list."""
WATCHED = {
    "memcacheds": "cache.example.com/v1",
    "appservices": "app.example.com/v1",
    "deployments": "apps/v1",
    "services": "v1",
    "pods": "v1",
}
"""What the operator watches, and the versions in which it does."""
DOOMED = "doomed"


@dataclass(frozen=True)
class Broken:
    """What happens to watches that are open (`said`, then closed or cut), to those that follow, and to lists."""

    said: bytes = b""
    cut: bool = False
    follow: FieldError | None = None
    lists: FieldError | None = None
    times: int | None = None


def refused(code: int, reason: str) -> Broken:
    """Lists and watches are answered with a code."""
    return Broken(follow=Refuse(code, reason), lists=Refuse(code, reason))


def told(code: int, reason: str) -> Broken:
    """Watches tell of an error by an event, as the API server does when it has begun to answer."""
    line = event("ERROR", status(code, reason, "injected by the test"))
    return Broken(line, follow=Speak(line), times=3)


GARBLED = b'{"type":"ADDED","object":{"kind"\n'
HALF = b'{"type":"MODIFIED","object":{"metadata":{"na'
FAULTS = {
    "500": refused(500, "InternalError"),
    "403": refused(403, "Forbidden"),
    "401": refused(401, "Unauthorized"),
    "404": refused(404, "NotFound"),
    "410": refused(410, "Expired"),
    "429": refused(429, "TooManyRequests"),
    "error-410": told(410, "Expired"),
    "error-500": told(500, "InternalError"),
    "error-504": told(504, "Timeout"),
    "error-429": told(429, "TooManyRequests"),
    "garbled-line": Broken(GARBLED, follow=Speak(GARBLED), times=3),
    "dropped": Broken(cut=True, follow=Speak(end="cut"), times=3),
    "closed-at-once": Broken(follow=Speak()),
    "cut-mid-line": Broken(HALF, cut=True, follow=Speak(HALF, end="cut"), times=3),
}
GATE = {
    "memcacheds": {"500", "410", "error-410", "garbled-line", "closed-at-once", "empty-list", "silent"},
    "deployments": {"410", "silent", "empty-list"},
}


async def broken(stage: Stage, references: References, resource: str, fault: Broken) -> None:
    """A fault that goes on for a while; meanwhile an object is changed, one deleted, and a child lost."""

    async def work() -> None:
        rules = [Rule(f"watch {resource}", fault.follow, times=fault.times)] if fault.follow else []
        if fault.lists:
            rules.append(Rule(f"list {resource}", fault.lists))
        armed = stage.proxy.arm(*rules)
        for stream in stage.proxy.open_watches(resource):
            await stream.interrupt(fault.said, cut=fault.cut)
        await busy(stage)
        await asyncio.sleep(DURATION)
        for each in armed:
            each.lift()

    await _meanwhile(stage, references, work)


async def silent(stage: Stage, references: References, resource: str) -> None:
    """A watch stays open and says nothing more: the next re-list must do."""

    async def work() -> None:
        stage.proxy.hold(resource)
        await busy(stage)

    await _meanwhile(stage, references, work)


async def slow(stage: Stage, references: References, resource: str) -> None:
    """Events trickle."""

    async def work() -> None:
        stage.proxy.pace = (200, 0.05)
        await busy(stage)
        await asyncio.sleep(DURATION)
        stage.proxy.pace = None

    await _meanwhile(stage, references, work)


async def empty(stage: Stage, references: References, resource: str) -> None:
    """A list says that there is nothing, once, and so does the one that follows a lost watch."""

    async def work() -> None:
        found: dict[str, object] = {"kind": "List", "apiVersion": WATCHED[resource], "metadata": {}, "items": []}
        pods = await stage.client.request("GET", f"/api/v1/namespaces/{stage.namespace}/pods")
        found["metadata"] = {"resourceVersion": pods["metadata"]["resourceVersion"]}
        (armed,) = stage.proxy.arm(Rule(f"list {resource}", Serve(json.dumps(found).encode()), times=2))
        for stream in stage.proxy.open_watches(resource):
            await stream.interrupt(event("ERROR", status(410, "Expired")))
        await busy(stage)
        await asyncio.wait_for(armed.over.wait(), 30)

    await _meanwhile(stage, references, work)


async def busy(stage: Stage) -> None:
    """What users do meanwhile: scale an object, delete one of its children, delete another object."""
    await act(stage, BY_NAME["scale-up"])
    await stage.delete(SERVICES, VICTIM)
    await stage.delete(MEMCACHEDS, DOOMED)


async def _meanwhile(stage: Stage, references: References, work: Callable[[], Awaitable[None]]) -> None:
    workload = BY_NAME["scale-up"]
    expected = await references.of(workload)
    stage.operator.start()
    await stage.watching()
    await stage.create(MEMCACHEDS, DOOMED, {"image": IMAGE})
    await stage.create(APPSERVICES, "app", {"image": IMAGE})
    await prepare(stage, workload)
    await stage.settled(MEMCACHEDS, DOOMED)
    await stage.settled(APPSERVICES, "app")
    await work()
    twice = replace(expected, created={**expected.created, "services": 2})
    await stable(stage, MEMCACHEDS, twice, WHOLE_AGAIN + stage.settings.relist)
    await stage.change(APPSERVICES, "app", {}, {"size": 2})
    await stage.settled(APPSERVICES, "app")
    for resource in (MEMCACHEDS, SERVICES):
        await stage.gone(resource, DOOMED)
    made = stage.proxy.journal.counts("create", DOOMED)
    stage.holds(made == {"deployments": 1, "services": 1}, f"children of what is deleted were made again: {made}")


def cases() -> list[Case]:
    """Each fault for each resource."""
    plays: dict[str, Callable[..., Awaitable[None]]] = {"silent": silent, "slow": slow, "empty-list": empty}
    plays |= {name: partial(broken, fault=fault) for name, fault in FAULTS.items()}
    return [
        Case(
            f"T4/{resource}/{name}",
            partial(play, resource=resource),
            gate=name in GATE.get(resource, ()),
        )
        for resource in WATCHED
        for name, play in plays.items()
    ]
