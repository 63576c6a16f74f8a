"""What must hold after every fault: the state that a run without faults ends in, by the same steps; and rest."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from faults.calls import Entry, busiest
from faults.stage import PATIENCE, FailedError, Stage, until
from faults.state import difference, loosened, settled, state_of
from memcached_operator.kube.resource import Key, Object, Resource
from memcached_operator.status.conditions import PROGRESS_PERIOD

JITTER = 1.1
"""The period between two readings of everything is at most so much longer than told."""
LONGEST_PATIENCE = 2.0
"""Seconds by which a quiet period is longer than a re-list: what the re-list finds must have been acted on."""
LONGEST_QUIET = 12.0
"""Seconds; where everything is read more seldom, the quiet period does not wait for it."""
RATE, SPAN = 5, 2.0
"""Requests per second that a fault may cause at most, counted over so many seconds."""
VICTIM, BYSTANDER = "cache", "bystander"


@dataclass(frozen=True)
class Reference:
    """How a run without faults ends: the masked state, and how often each child was made and deleted."""

    state: Object
    created: Mapping[str, int] = field(default_factory=dict[str, int])
    deleted: Mapping[str, int] = field(default_factory=dict[str, int])


async def reference(stage: Stage, resource: Resource, name: str = VICTIM) -> Reference:
    """What there is now, once nothing changes any more."""
    await quiet(stage)
    state = await state_of(stage.client, resource, stage.namespace, name)
    journal = stage.proxy.journal
    return Reference(state, journal.counts("create", name), journal.counts("delete", name))


async def reached(
    stage: Stage, resource: Resource, expected: Reference, seconds: float, name: str = VICTIM, *, loose: bool = False
) -> None:
    """Wait until an object is in the expected state; a loose comparison leaves out generations and field managers."""
    like = loosened if loose else _as_it_is
    last = "nothing was looked at"

    async def look() -> bool:
        nonlocal last
        obj = await stage.get(resource, name)
        if expected.state[resource.plural] is not None and not settled(obj):
            last = f"it is not settled: {_told(obj)}"
            return False
        found = await state_of(stage.client, resource, stage.namespace, name)
        last = difference(like(found), like(expected.state))
        return not last

    try:
        await until(look, seconds, "")
    except FailedError as error:
        raise FailedError(f"not as without the fault within {seconds:g} s: {last}") from error


async def stable(
    stage: Stage,
    resource: Resource,
    expected: Reference,
    seconds: float,
    name: str = VICTIM,
    *,
    loose: bool = False,
    allowed_exits: int = 0,
) -> None:
    """The whole criterion, once the fault is over: state, counts, rest, exits."""
    await reached(stage, resource, expected, seconds, name, loose=loose)
    await quiet(stage)
    await reached(stage, resource, expected, 1, name, loose=loose)
    journal = stage.proxy.journal
    for verb, wanted in (("create", expected.created), ("delete", expected.deleted)):
        found = journal.counts(verb, name)
        stage.holds(found == wanted, f"{verb}s of children: {dict(found)} instead of {dict(wanted)}")
    calm(stage, allowed_exits)


async def quiet(stage: Stage) -> None:
    """Nothing may be written for as long as it takes to read everything once more."""
    await asyncio.sleep(PATIENCE * LONGEST_PATIENCE / 2)
    since = time.monotonic()
    await asyncio.sleep(min(max(stage.settings.relist, PROGRESS_PERIOD), LONGEST_QUIET) * JITTER + LONGEST_PATIENCE)
    written = stage.proxy.journal.writes(since)
    stage.holds(not written, f"writes in the quiet period: {'; '.join(map(str, written))}")


def calm(stage: Stage, allowed_exits: int = 0) -> None:
    """No exit, no traceback, no panic, and no storm of requests against what is refused."""
    operator = stage.operator
    exits = operator.exits
    stage.holds(len(exits) <= allowed_exits and 0 not in exits, f"the operator ended with exit codes {exits}")
    text = operator.text()
    stage.holds("Traceback" not in text, f"the log has a traceback: {text[text.find('Traceback') :][:2000]}")
    stage.holds("unexpected error" not in text, "the log tells of an unexpected error")
    within_rate([entry for entry in stage.proxy.journal.entries if entry.struck])


def within_rate(entries: list[Entry]) -> None:
    """At most RATE requests per second."""
    most = busiest(entries, SPAN)
    if most > RATE * SPAN:
        raise FailedError(f"{most} requests within {SPAN:g} s while the fault went on, the limit is {RATE * SPAN:g}")


async def beside(
    stage: Stage, resource: Resource, spec: Mapping[str, Any], work: Callable[[], Awaitable[Any]], seconds: float
) -> None:
    """Do something while an object that has nothing to do with it is made, and is there in the usual time."""

    async def bystander() -> None:
        await stage.create(resource, BYSTANDER, spec)
        await stage.settled(resource, BYSTANDER, seconds)

    await asyncio.gather(work(), bystander())


def _as_it_is(state: Object) -> Object:
    return state


def _told(obj: Object | None) -> str:
    if obj is None:
        return "there is none"
    told = {each["type"]: f"{each['status']} {each['message']}" for each in obj.get("status", {}).get("conditions", [])}
    return f"generation {obj['metadata']['generation']}, {told}"


async def present(stage: Stage, resource: Resource, name: str) -> bool:
    """Whether there is such an object."""
    return await stage.client.get(Key(resource, stage.namespace, name)) is not None
