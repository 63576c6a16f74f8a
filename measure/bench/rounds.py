"""One round: a storm and the measurements before and after it, for the operator or for the baseline client."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from subprocess import PIPE
from typing import IO, Any

import msgspec

from bench import load, openloop
from bench.environment import LOGS, Environment
from bench.programs import Program, controller, running, wait_until
from bench.trail import AUTOSCALED, CHANGE, CHILD_WRITES, STATUS, counts, latencies, rejected, span, writes
from memcached_operator.kube.resource import Object

OPERATOR_NAME, OPERATOR = "operator", "memcached-operator"
"""The operator among the contestants, and its user agent."""
IDLE_AFTER = 1.5
"""Seconds without a write after which a client is considered idle."""
STEADY = 5.0
"""Seconds for which nothing should be written."""
SINGLES, SINGLE_PERIOD = 50, 0.05
BYSTANDER_PERIOD = 0.1
AUTOSCALER_PERIOD = 1.0
"""Minimum seconds between two changes of one object by an autoscaler."""
LEASE_READ = 3.0
"""Seconds after which a standby has read the leader's Lease."""
LIMIT = 300.0
"""Maximum duration of a storm, in seconds."""

Figures = dict[str, Any]
"""By name and unit: numbers, lists of seconds, and numbers of requests."""


@dataclass
class Worker:
    """A process that creates children, its user agent, and a function that passes it each new or changed object.

    `spec`: the name of the spec of the objects that it gets.
    """

    program: Program
    agent: str
    notify: Callable[[Object], None]
    spec: str

    def reconciles(self) -> float:
        """The reconciles so far; 0 of a client that makes none."""
        return self.program.metric("controller_runtime_reconcile_total") if self.agent == OPERATOR else 0


def contestant(env: Environment, name: str, spec: str) -> AbstractAsyncContextManager[Worker]:
    """The operator, or the baseline client of this name."""
    return operator(env, spec) if name == OPERATOR_NAME else open_loop(env, name, spec)


@asynccontextmanager
async def operator(env: Environment, spec: str = load.MINIMAL, sources: Sequence[str] = ()) -> AsyncGenerator[Worker]:
    """The operator as in the image; it learns of objects from its watches. `sources`: as for `programs.running`."""
    with controller(env.plane.kubeconfig, LOGS / "controller.log", sources=sources) as program:
        await wait_until(lambda: program.metric("leader_election_master_status") == 1, 60, "the operator leads")
        yield Worker(program, OPERATOR, lambda _: None, spec)
        program.stop()


@asynccontextmanager
async def open_loop(env: Environment, profile: str, spec: str) -> AsyncGenerator[Worker]:
    """The baseline client with one of its profiles; it receives objects through a pipe."""
    command = [sys.executable, "-m", "bench.openloop", profile, spec]
    environment = {"KUBECONFIG": str(env.plane.kubeconfig)}
    with running(command, LOGS / "open-loop.log", environment=environment, stdin=PIPE) as program:
        assert program.process.stdin is not None
        pipe: IO[bytes] = program.process.stdin

        def notify(cr: Object) -> None:
            pipe.write(msgspec.json.encode(cr) + b"\n")
            pipe.flush()

        yield Worker(program, openloop.AGENT, notify, spec)
        pipe.close()
        program.process.wait(20)


async def storm(env: Environment, worker: Worker, count: int, busy: str) -> Figures:
    """Latencies when idle, then a storm in one namespace and single objects in another."""
    idle, second = [await env.namespace(name) for name in ("idle", "second")]
    await load.singles(env.client, idle, range(1), 0, worker.notify, worker.spec)
    await wait_created(env, worker, idle, 1)
    await env.wait_quiet(IDLE_AFTER)
    before = worker.program.rss()
    await load.singles(env.client, idle, range(1, SINGLES + 1), SINGLE_PERIOD, worker.notify, worker.spec)
    await wait_created(env, worker, idle, SINGLES + 1)
    used, reconciled = worker.program.cpu(), worker.reconciles()
    bystander = asyncio.create_task(load.bystander(env.client, second, BYSTANDER_PERIOD, worker.notify, worker.spec))
    try:
        await load.storm(env.client, busy, count, worker.notify, worker.spec)
        await wait_created(env, worker, busy, count)
    finally:
        bystander.cancel()
    await env.wait_quiet(IDLE_AFTER, worker.agent)
    used, reconciled = worker.program.cpu() - used, worker.reconciles() - reconciled
    requests = env.trail.requests
    seconds = [request for request in requests if request.namespace == second]
    own_writes = [request for request in env.trail.writes(worker.agent) if request.namespace == busy]
    posted = [request for request in requests if request.namespace == busy and request.what == "create memcacheds"]
    singles = [request for request in requests if request.namespace == idle and request.name != load.single(0)]
    others = sum(request.what == "create memcacheds" for request in seconds)
    creates = load.CREATES[worker.spec]
    return {
        "objects posted, s": span(posted, "create memcacheds", "create memcacheds"),
        "children accepted, s": span([*posted, *own_writes], "create memcacheds", *creates),
        "status current, s": span([*posted, *own_writes], "create memcacheds", STATUS),
        "single object idle, s": latencies(singles, "create memcacheds", *creates),
        "second object in the storm, s": latencies(seconds, "create memcacheds", *creates),
        "same namespace in the storm, s": latencies([*posted, *own_writes], "create memcacheds", *creates),
        "writes": dict(counts(own_writes)),
        "CPU, s": used,
        "CPU per object, ms": 1000 * used / (count + others),
        "reconciles per object": reconciled / (count + others),
        "RSS idle, MiB": before,
        "RSS after, MiB": worker.program.rss(),
    }


async def wait_created(env: Environment, worker: Worker, namespace: str, count: int) -> None:
    """Wait until the API server has accepted all children and statuses of `count` objects."""
    await _wait_writes(env, worker, namespace, dict.fromkeys((*load.CREATES[worker.spec], STATUS), count))


async def _wait_writes(
    env: Environment, worker: Worker, namespace: str, wanted: Mapping[str, int], start: int = 0
) -> None:
    """Wait until the API server has accepted these numbers of writes, since the request with number `start`."""

    def all_accepted() -> bool:
        worker.program.check()
        found = counts(writes(env.trail.read()[start:], worker.agent, namespace))
        return all(found[what] >= number for what, number in wanted.items())

    await wait_until(all_accepted, LIMIT, f"the API server has accepted {dict(wanted)}", period=0.25)


async def steady(env: Environment, worker: Worker) -> int:
    """Number of writes while nothing changes."""
    before = len(env.trail.writes(worker.agent))
    await asyncio.sleep(STEADY)
    return len(env.trail.writes(worker.agent)) - before


async def change(env: Environment, worker: Worker, namespace: str, count: int, fields: Object) -> Figures:
    """Change fields of every object's spec; returns the times from the first change to the last writes, and counts."""
    start = len(env.trail.read())
    used, reconciled = worker.program.cpu(), worker.reconciles()
    await load.change(env.client, namespace, count, fields, worker.notify)
    await _wait_writes(env, worker, namespace, {STATUS: count}, start)
    await env.wait_quiet(IDLE_AFTER, worker.agent)
    since = env.trail.requests[start:]
    changes = [request for request in since if request.namespace == namespace and request.what == CHANGE]
    own_writes = writes(since, worker.agent, namespace)
    return {
        "objects changed, s": span(changes, CHANGE, CHANGE),
        "children accepted, s": span([*changes, *own_writes], CHANGE, *CHILD_WRITES),
        "status current, s": span([*changes, *own_writes], CHANGE, STATUS),
        "all done, s": span([*changes, *own_writes], CHANGE, *(request.what for request in own_writes)),
        "writes": dict(counts(own_writes)),
        "CPU per object, ms": 1000 * (worker.program.cpu() - used) / count,
        "reconciles per object": (worker.reconciles() - reconciled) / count,
    }


async def autoscale(env: Environment, worker: Worker, namespace: str, count: int, times: int) -> Figures:
    """Scale every object again and again, as autoscalers do; returns the number of changes, and the writes.

    The next change follows after AUTOSCALER_PERIOD, but not before all statuses are current: if the operator reconciled
    several changes at once, the number of writes per change would depend on the speed of the machine.
    """
    start = len(env.trail.read())
    used, started = worker.program.cpu(), time.monotonic()
    for number in range(1, times + 1):
        await asyncio.gather(load.scale(env.client, namespace, count, 1 + number), asyncio.sleep(AUTOSCALER_PERIOD))
        await _wait_writes(env, worker, namespace, dict.fromkeys(("patch deployments", STATUS), number * count), start)
    seconds = time.monotonic() - started
    await env.wait_quiet(IDLE_AFTER, worker.agent)
    since = env.trail.requests[start:]
    changes = [request for request in since if request.namespace == namespace and request.what == AUTOSCALED]
    return {
        "changes": len(changes),
        "period, s": seconds / times,
        "writes": dict(counts(writes(since, worker.agent, namespace))),
        "rejected": len(rejected(since, worker.agent, namespace)),
        "CPU per change, ms": 1000 * (worker.program.cpu() - used) / len(changes),
    }


async def restart(env: Environment) -> Figures:
    """Start the operator when everything is current; returns the seconds until everything is reconciled, and writes."""
    objects = await env.objects()
    before, started = len(env.trail.writes(OPERATOR)), time.monotonic()
    async with operator(env) as worker:
        await wait_reconciled(worker.program, objects)
        seconds = time.monotonic() - started
        await env.wait_quiet(IDLE_AFTER, OPERATOR)
        return {
            "current, s": seconds,
            "writes": len(env.trail.writes(OPERATOR)) - before,
            "CPU, s": worker.program.cpu(),
            "RSS, MiB": worker.program.rss(),
        }


async def takeover(env: Environment, number: int) -> float:
    """Seconds from a signal to the leader until the standby has reconciled all objects."""
    objects = await env.objects()
    async with operator(env) as leader:
        with controller(env.plane.kubeconfig, LOGS / "standby.log") as standby:
            await wait_until(lambda: standby.metric("process_start_time_seconds"), 60, "the standby runs")
            await asyncio.sleep(LEASE_READ)
            started = time.monotonic()
            leader.program.stop(number)
            await wait_reconciled(standby, objects)
            taken = time.monotonic() - started
            standby.stop()
    return taken


async def wait_reconciled(program: Program, reconciles: int) -> None:
    """Wait until a process has made so many reconciles."""
    await wait_until(
        lambda: program.metric("controller_runtime_reconcile_total") >= reconciles,
        LIMIT,
        "all objects are reconciled",
        0.1,
    )
