"""One round: a storm, and what comes before and after it, for the operator or for a client without logic."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from subprocess import PIPE
from typing import IO, Any

import msgspec

from bench import load, openloop
from bench.ground import LOGS, Ground
from bench.programs import Program, controller, running, wait
from bench.trail import CHILDREN, STATUS, counts, latencies, span, writes
from memcached_operator.kube.resource import Object

OPERATOR = "memcached-operator"
SETTLED = 1.5
"""Seconds without a write after which a client is done."""
STEADY = 5.0
"""Seconds for which nothing should be written."""
SINGLES, SINGLE_PERIOD = 50, 0.05
BYSTANDER_PERIOD = 0.1
LEASE_SEEN = 3.0
"""Seconds after which a standby has seen the leader's lease."""
LIMIT = 300.0
"""Seconds in which a storm must be over."""

Figures = dict[str, Any]
"""By name, with the unit: numbers, lists of seconds, and counts of requests."""


@dataclass
class Worker:
    """Who makes children: a process, how it is told of an object, and under which name it writes."""

    program: Program
    agent: str
    told: Callable[[Object], None]


@asynccontextmanager
async def operator(on: Ground, *options: str) -> AsyncGenerator[Worker]:
    """The operator as shipped; it is told by its watches."""
    with controller(on.plane.kubeconfig, LOGS / "controller.log", *options) as program:
        await wait(lambda: program.metric("leader_election_master_status") == 1, 60, "the operator leads")
        yield Worker(program, OPERATOR, lambda _: None)
        program.stop()


@asynccontextmanager
async def open_loop(on: Ground, requests: str) -> AsyncGenerator[Worker]:
    """The client without logic: `ours` or `plain` requests; it is told over a pipe."""
    command = [sys.executable, "-m", "bench.openloop", requests]
    environment = {"KUBECONFIG": str(on.plane.kubeconfig)}
    with running(command, LOGS / "open-loop.log", environment=environment, stdin=PIPE) as program:
        assert program.process.stdin is not None
        pipe: IO[bytes] = program.process.stdin

        def told(cr: Object) -> None:
            pipe.write(msgspec.json.encode(cr) + b"\n")
            pipe.flush()

        yield Worker(program, openloop.AGENT, told)
        pipe.close()
        program.process.wait(20)


async def storm(on: Ground, worker: Worker, count: int, busy: str) -> Figures:
    """Idle latencies, then a storm in a namespace with a bystander in another; figures of both."""
    idle, second = [await on.namespace(name) for name in ("idle", "second")]
    await load.singles(on.client, idle, range(1), 0, worker.told)
    await _made(on, worker, idle, 1)
    await on.quiet(SETTLED)
    before = worker.program.rss()
    await load.singles(on.client, idle, range(1, SINGLES + 1), SINGLE_PERIOD, worker.told)
    await _made(on, worker, idle, SINGLES + 1)
    used = worker.program.cpu()
    beside = asyncio.create_task(load.bystander(on.client, second, BYSTANDER_PERIOD, worker.told))
    try:
        await load.storm(on.client, busy, count, worker.told)
        await _made(on, worker, busy, count)
    finally:
        beside.cancel()
    await on.quiet(SETTLED, worker.agent)
    used = worker.program.cpu() - used
    made = on.trail.requests
    seconds = [request for request in made if request.namespace == second]
    mine = [request for request in on.trail.writes(worker.agent) if request.namespace == busy]
    posted = [request for request in made if request.namespace == busy and request.what == "create memcacheds"]
    alone = [request for request in made if request.namespace == idle and request.name != load.single(0)]
    others = sum(request.what == "create memcacheds" for request in seconds)
    return {
        "objects posted, s": span(posted, "create memcacheds", "create memcacheds"),
        "children accepted, s": span([*posted, *mine], "create memcacheds", *CHILDREN),
        "status current, s": span([*posted, *mine], "create memcacheds", STATUS),
        "single object idle, s": latencies(alone, "create memcacheds", *CHILDREN),
        "second object in the storm, s": latencies(seconds, "create memcacheds", *CHILDREN),
        "same namespace in the storm, s": latencies([*posted, *mine], "create memcacheds", *CHILDREN),
        "writes": dict(counts(mine)),
        "CPU, s": used,
        "CPU per object, ms": 1000 * used / (count + others),
        "RSS idle, MiB": before,
        "RSS after, MiB": worker.program.rss(),
    }


async def _made(on: Ground, worker: Worker, namespace: str, count: int) -> None:
    """Wait until the API server has accepted all children of so many objects, and the statuses."""
    wanted = dict.fromkeys((*CHILDREN, STATUS), count)

    def all_made() -> bool:
        worker.program.check()
        found = counts(on.trail.writes(worker.agent, namespace))
        return all(found[what] >= number for what, number in wanted.items())

    await wait(all_made, LIMIT, f"children and statuses of {count} objects", period=0.25)


async def steady(on: Ground, worker: Worker) -> int:
    """How many writes there are while nothing changes."""
    before = len(on.trail.writes(worker.agent))
    await asyncio.sleep(STEADY)
    return len(on.trail.writes(worker.agent)) - before


async def change(on: Ground, worker: Worker, namespace: str, count: int, size: int) -> Figures:
    """Change the spec of every object: the time until the last write, and the writes."""
    start = len(on.trail.read())
    used = worker.program.cpu()
    await load.resize(on.client, namespace, count, size)
    await on.quiet(SETTLED, worker.agent)
    since = on.trail.requests[start:]
    mine = writes(since, worker.agent, namespace)
    return {
        "all done, s": span(since, "patch memcacheds", *(request.what for request in mine)),
        "writes": dict(counts(mine)),
        "CPU per object, ms": 1000 * (worker.program.cpu() - used) / count,
    }


async def restart(on: Ground) -> Figures:
    """Start the operator where everything is as it should be: seconds until all is looked at, and writes."""
    objects = await on.objects()
    before, begun = len(on.trail.writes(OPERATOR)), time.monotonic()
    async with operator(on) as worker:
        await _looked_at(worker.program, objects)
        seconds = time.monotonic() - begun
        await on.quiet(SETTLED, OPERATOR)
        return {
            "current, s": seconds,
            "writes": len(on.trail.writes(OPERATOR)) - before,
            "CPU, s": worker.program.cpu(),
            "RSS, MiB": worker.program.rss(),
        }


async def takeover(on: Ground, number: int) -> float:
    """Seconds from a signal that ends the leader until the standby has looked at everything."""
    objects = await on.objects()
    async with operator(on) as leader:
        with controller(on.plane.kubeconfig, LOGS / "standby.log") as standby:
            await wait(lambda: standby.metric("process_start_time_seconds"), 60, "the standby is up")
            await asyncio.sleep(LEASE_SEEN)
            begun = time.monotonic()
            leader.program.stop(number)
            await _looked_at(standby, objects)
            taken = time.monotonic() - begun
            standby.stop()
    return taken


async def _looked_at(program: Program, objects: int) -> None:
    await wait(lambda: program.metric("controller_runtime_reconcile_total") >= objects, LIMIT, "all is looked at", 0.1)
