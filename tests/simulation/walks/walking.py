"""Runs a walk: its steps, the end of all faults, and the checks."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from faults.background import FailedError, TimedOutError
from faults.calls import Entry
from faults.esr import JITTER as JITTER_OF_SYNC
from faults.esr import MAX_QUIET, SYNC_MARGIN, check_rate
from faults.sandbox import Settings, wait_until
from memcached_operator.engine.reporting.conditions import PROGRESS_PERIOD, ROLLOUT_PERIOD
from memcached_operator.engine.runtime.leader_election import LEASE_DURATION, RETRY_PERIOD
from memcached_operator.engine.runtime.queue import JITTER
from memcached_operator.engine.writes.reverts import AGAIN, PERIOD
from memcached_operator.kube.client import WATCH_IDLE_TIMEOUT
from memcached_operator.kube.resource import PODS
from memcached_operator.world.live import MAX_RECHECK
from memcached_operator.world.reflector import MISSING_PERIOD
from simulation import clock
from simulation.operator import logged
from simulation.walks.actions import THEIRS, Delete, Drift, Pause, Put, Refer, Release, Replace, Scale
from simulation.walks.disturbances import Compact, Empty, Hold, Inject, Interrupt, Pass, Unlisted
from simulation.walks.invariants import problem_of
from simulation.walks.proxies import slot_violations
from simulation.walks.records import violations
from simulation.walks.references import RESOURCES, measure
from simulation.walks.specs import NAME, OWNERS, PAUSED, PLAIN, Spec, is_proxy, key_of_owner
from simulation.walks.strategies import Step, Walk
from simulation.walks.updates import NAME as UPDATED
from simulation.walks.updates import SETTLED, Change, Hasty, Replaced, Updated, replaced
from simulation.walks.world import World, is_deleted, world_of
from support.nodes import Nodes

POLL: Final = 1.0
PATIENCE: Final = 30
"""Periods in which pods may still change."""
QUIET_ATTEMPTS: Final = 3
"""Periods of which one must be without writes: the report of a reverted change ends after a while, with a write."""


def limit(walk: Walk) -> float:
    """Seconds until everything is settled, at the latest, after the faults have ended: what is documented for each.

    The last retry of an object, or of a list or a watch, and what a step makes necessary.
    """
    found = [RETRY_AFTER, walk.max_retry_delay * (1 + JITTER), MISSING_PERIOD * (1 + JITTER), ROLLOUT_PERIOD, SLACK]
    found += {_seconds_after(step) for step in walk.steps}
    if has_proxies(walk):
        found.append(SLOW)
    if is_updating(walk):
        found.append(SETTLED)
    if any(isinstance(step, WATCH_STEPS) for step in walk.steps):
        found.append(MAX_RECHECK)  # the end of a deletion may be missed
    return sum(found)


def _seconds_after(step: Step) -> float:
    """The time for which a fault has an effect after its end: that of a timeout, or of a backoff and its report."""
    match step:
        case Inject(fault="hanging" | "silent", what=what):
            return WATCH_IDLE_TIMEOUT if what.startswith("watch") else REQUEST_SECONDS
        case Unlisted():
            return REQUEST_SECONDS
        case Drift():
            return PERIOD + AGAIN
        case _:
            return 0.0


WATCH_STEPS: Final = (Inject, Interrupt, Hold, Pass, Compact, Empty, Unlisted)
SLOW: Final = 150.0
"""Seconds in which slow pods are replaced: those of slots one after the other, then those of proxies."""
RETRY_AFTER: Final = 7.0
"""Seconds of the rejections with Retry-After."""
SLACK: Final = 10.0
"""Seconds for the reactions themselves, and for a blocked child, which is checked every 10 s."""
REQUEST_SECONDS: Final = 30.0
"""Until a request of the operator times out."""


def has_proxies(walk: Walk) -> bool:
    """Whether a walk has MemcachedProxies. Its pods start and stop as slowly as in a cluster."""
    return any(isinstance(step, Put) and is_proxy(step.name) for step in walk.steps)


def is_updating(walk: Walk) -> bool:
    """Whether the pods of a walk are updated in place."""
    return any(isinstance(step, Put) and isinstance(step.spec, Updated) for step in walk.steps)


def run_walk(walk: Walk) -> list[str]:
    """Run a walk; return the trace of all requests. Raises AssertionError, with what does not hold."""
    measure(wanted_after(walk))
    with logged():
        problem, trace = clock.run(_run(walk), walk.seed)
    assert not problem, "\n".join([problem, *map(str, walk.steps), *trace[-LAST:]])
    return trace


LAST: Final = 60
"""Requests of a walk that fails that are shown."""


ENDLESS: Final = 200_000.0
"""Seconds after which something waits in vain: more than all steps and checks of a walk."""


async def _run(walk: Walk) -> tuple[str, list[str]]:
    settings = Settings(walk.sync_period, walk.max_retry_delay)
    async with world_of(walk.seed, settings, walk.operators) as world:
        if is_updating(walk):
            world.run_containers(Nodes())
        elif has_proxies(walk):
            world.run_containers()
        try:
            async with asyncio.timeout(ENDLESS):
                problem = await _problem(walk, world)
        except FailedError as error:
            problem = str(error)
        return problem, trace_of(world)


async def _problem(walk: Walk, world: World) -> str:
    for step in walk.steps:
        await step(world)
    await _end(world, resolved=walk.resolved)
    if problem := await _unsettled(world, limit(walk)):
        return problem
    world.release_events()
    return await _unquiet(world) or next(chain(violations(world), slot_violations(world)), "")


async def _end(world: World, *, resolved: bool) -> None:
    """End all faults. `resolved`: other clients remove what blocks children."""
    await world.end_faults()
    if world.elects:
        await asyncio.sleep(LEASE_DURATION + RETRY_PERIOD)  # until then, a change can have no operator that sees it
    for key, _ in world.objects():
        owner = world.get(key_of_owner(key.name[:NAME])) if key.name[:NAME] in OWNERS else None
        is_kept = key.resource in RESOURCES and owner is not None and not is_deleted(owner)
        if not is_kept:
            await world.release(key)
        if key.name == THEIRS:
            await world.delete(key)
    if resolved:
        await Release(foreign=True)(world)
    await world.end_users()


async def _unsettled(world: World, seconds: float) -> str:
    """What is still wrong after the limit."""

    async def poll() -> bool:
        return not problem_of(world)

    try:
        await wait_until(poll, seconds, "everything is settled", POLL)
    except TimedOutError as error:
        return f"{problem_of(world)} ({error})"
    return ""


async def _unquiet(world: World) -> str:
    """What is written although nothing changes, or changes without a cause."""
    written, loop, attempts = "", asyncio.get_running_loop(), 0
    for _ in range(PATIENCE):
        await asyncio.sleep(SYNC_MARGIN / 2)
        since = loop.time()
        await asyncio.sleep(
            min(max(world.settings.sync_time, PROGRESS_PERIOD), MAX_QUIET) * JITTER_OF_SYNC + SYNC_MARGIN
        )
        if any(each.at >= since for each in world.history if each.key.resource == PODS):
            continue  # a slow pod is still replaced
        written = "; ".join(map(str, world.election.writes(since)))
        if not written:
            for each in world.candidates:
                check_rate(_unprompted_reads(each.proxy.requests.since(since)))
            return problem_of(world)
        attempts += 1
        if attempts == QUIET_ATTEMPTS:
            return f"writes without changes: {written}"
    return "pods change without an end"


def _unprompted_reads(entries: Sequence[Entry]) -> list[Entry]:
    """The reads of objects that no list has caused: after a list, each object that it may affect is reconciled."""
    lists = [each.at for each in entries if each.call.verb == "list"]
    reads = [each for each in entries if each.call.verb == "get" and each.call.resource != "leases"]
    return [each for each in reads if not any(0 <= each.at - at < AFTER_LIST for at in lists)]


AFTER_LIST: Final = 1.0
"""Seconds for which a list causes reads."""


def trace_of(world: World) -> list[str]:
    """All requests of all operators."""
    return [f"{each.name} {entry}" for each in world.candidates for entry in each.proxy.requests.entries]


def wanted_after(walk: Walk) -> dict[str, Spec]:
    """The specs of the objects that exist at the end."""
    wanted: dict[str, Spec] = {}
    for step in walk.steps:
        match step:
            case Put(name, spec) | Replace(name, spec):
                wanted[name] = spec
            case Scale(name, size) if name in wanted:
                wanted[name] = replace(wanted[name], size=size)
            case Refer(name, reference) if name in wanted:
                wanted[name] = replace(wanted[name], reference=reference)
            case Pause(name, paused) if name in wanted:
                wanted[name] = replace(wanted[name], option=PAUSED if paused else PLAIN)
            case Change():
                wanted[UPDATED] = step.of(wanted[UPDATED])
            case Hasty(image):
                wanted[UPDATED] = replaced(replace(wanted[UPDATED], image=image))
            case Replaced():
                wanted[UPDATED] = replaced(wanted[UPDATED])
            case Delete(name):
                wanted.pop(name, None)
            case _:
                pass
    return wanted
