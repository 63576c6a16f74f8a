"""What is measured, in which order: each part of the bench is one function of a control plane."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from bench import admission, load, rounds
from bench.ground import Ground, ground, only_garbage_collector, room
from bench.rounds import OPERATOR, SETTLED, Figures
from bench.trail import STATUS, counts, span, writes
from integration.control_plane import ControlPlane
from memcached_operator.kube.resource import nested_map
from memcached_operator.memcached.controller import MEMCACHEDS

GROWN = 5
"""The large storm is so many times the usual one."""
AVAILABLE = 400.0
"""Seconds in which all objects must be available, with all controllers."""

Say = Callable[[str], None]
Part = Callable[[ControlPlane, int, Say], Coroutine[Any, Any, dict[str, Any]]]


async def one_round(plane: ControlPlane, count: int, say: Say) -> dict[str, Any]:
    """Each client in turn: the open-loop ones, then the operator with all that concerns it alone."""
    result: dict[str, Any] = {}
    async with ground(plane) as on:
        with only_garbage_collector(on):
            for requests in ("ours", "plain"):
                say(f"open loop, {requests}")
                async with rounds.open_loop(on, requests) as worker:
                    result[requests] = await rounds.storm(on, worker, count, await on.namespace("storm"))
                await on.sweep()
            say("operator")
            result |= await _operator(on, count, say)
            await on.sweep()
    return result


async def _operator(on: Ground, count: int, say: Say) -> dict[str, Any]:
    busy = await on.namespace("storm")
    result: dict[str, Any] = {}
    async with rounds.operator(on) as worker:
        result["operator"] = await rounds.storm(on, worker, count, busy)
        say("steady state")
        result["steady writes"] = await rounds.steady(on, worker)
        say("a change of all objects")
        result["first change"] = await rounds.change(on, worker, busy, count, 2)
        result["second change"] = await rounds.change(on, worker, busy, count, 3)
    say("restart")
    result["restart"] = await rounds.restart(on)
    return result


async def growth(plane: ControlPlane, count: int, say: Say) -> dict[str, Any]:
    """A storm of GROWN times as many, then restart and takeover with all of them."""
    async with ground(plane) as on:
        with only_garbage_collector(on):
            say(f"storm of {GROWN * count}")
            async with rounds.operator(on) as worker:
                result: dict[str, Any] = {
                    "operator": await rounds.storm(on, worker, GROWN * count, await on.namespace("storm"))
                }
            say("restart and takeover")
            result["restart"] = await rounds.restart(on)
            result["takeover"] = {
                "after SIGTERM, s": await rounds.takeover(on, signal.SIGTERM),
                "after SIGKILL, s": await rounds.takeover(on, signal.SIGKILL),
            }
    return result


async def cluster(plane: ControlPlane, count: int, say: Say) -> dict[str, Any]:
    """A storm with all controllers and pretended nodes, until all objects are Available."""
    async with ground(plane) as on:
        room(on, 2 * count)
        busy = await on.namespace("storm")
        async with rounds.operator(on) as worker:
            used = worker.program.cpu()
            await load.storm(on.client, busy, count, worker.told)
            await asyncio.wait_for(_all_available(on, busy, count, say), AVAILABLE)
            await on.quiet(2 * SETTLED, OPERATOR)
            made = on.trail.requests
            figures: Figures = {
                "all available, s": span(
                    [request for request in made if request.namespace == busy], "create memcacheds", STATUS
                ),
                "writes": dict(counts(writes(made, OPERATOR, busy))),
                "reads": dict(
                    counts(r for r in made if r.agent.startswith(OPERATOR) and r.verb in ("get", "list", "watch"))
                ),
                "CPU per object, ms": 1000 * (worker.program.cpu() - used) / count,
                "RSS, MiB": worker.program.rss(),
                "steady writes": await rounds.steady(on, worker),
            }
            say("a change of all objects")
            figures["scale"] = await rounds.change(on, worker, busy, count, 2)
        return {"operator": figures}


async def _all_available(on: Ground, namespace: str, count: int, say: Say) -> None:
    told = 0
    while (found := await _available(on, namespace)) < count:
        if found >= told + count // 5:
            say(f"{found} of {count} available")
            told = found
        await asyncio.sleep(2)


async def _available(on: Ground, namespace: str) -> int:
    answer = await on.client.request("GET", MEMCACHEDS.path(namespace))
    states = [nested_map(item, "status").get("conditions") or () for item in answer["items"]]
    return sum(any(each["type"] == "Available" and each["status"] == "True" for each in state) for state in states)


async def reviews(plane: ControlPlane, count: int, say: Say) -> dict[str, Any]:
    """Admission alone, then in a storm of objects that are all reviewed, with the operator at work."""
    async with admission.admission() as there:
        say("idle, then 100 reviews per object")
        result = await admission.costs(there, 100 * count)
        async with ground(plane) as on:
            with only_garbage_collector(on):
                say("storm")
                async with rounds.operator(on):
                    result |= await admission.in_storm(on, there, count)
    return result
