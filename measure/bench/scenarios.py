"""The parts of the benchmark and their order: each part is one function of a control plane."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from bench import admission, load, rounds
from bench.environment import Environment, add_nodes, only_garbage_collector, open_environment
from bench.rounds import IDLE_AFTER, OPERATOR, OPERATOR_NAME, Figures, Worker
from bench.trail import STATUS, counts, span, writes
from integration.control_plane import ControlPlane
from memcached_operator.kube.resource import nested_map
from memcached_operator.memcached.controller import MEMCACHEDS

CONTESTANTS = ("ours", "children first", "plain", OPERATOR_NAME)
SCALING = ("ours", "children first", OPERATOR_NAME)
"""The contestants of the scale wave: the smallest valid Deployment is scaled with the same request."""
OTHER_IMAGES = ("docker.io/library/memcached:1.6.46", "docker.io/library/memcached:1.6.47")
AUTOSCALED_TIMES = 60
GROWTH = 5
"""Size of the large storm, as a multiple of the normal one."""
AVAILABLE = 400.0
"""Maximum number of seconds until all objects are available, with all controllers."""

Report = Callable[[str], None]
Part = Callable[[ControlPlane, int, Report], Coroutine[Any, Any, dict[str, Any]]]


def rotated(number: int) -> tuple[str, ...]:
    """The contestants in the order of a round, so that none has the same place in every round."""
    first = number % len(CONTESTANTS)
    return (*CONTESTANTS[first:], *CONTESTANTS[:first])


async def one_round(
    plane: ControlPlane, count: int, report: Report, order: Sequence[str] = CONTESTANTS
) -> dict[str, Any]:
    """Measure each client in turn, and the operator with its own additional measurements."""
    result: dict[str, Any] = {"order": list(order), "scale wave": {}}
    async with open_environment(plane) as env:
        with only_garbage_collector(env):
            for name in order:
                async with rounds.contestant(env, name, load.MINIMAL) as worker:
                    namespace = await _storm_and_wave(env, worker, name, count, report, result)
                    if name == OPERATOR_NAME:
                        result |= await _changes(env, worker, namespace, count, report)
                if name == OPERATOR_NAME:
                    report("restart")
                    result["restart"] = await rounds.restart(env)
                await env.clean_up()
    return result


async def with_spec(plane: ControlPlane, count: int, report: Report, spec: str) -> dict[str, Any]:
    """A storm and a scale wave of objects with one of `load.SPECS`, for the operator and the same requests."""
    result: dict[str, Any] = {"scale wave": {}}
    async with open_environment(plane) as env:
        with only_garbage_collector(env):
            for name in ("ours", OPERATOR_NAME):
                async with rounds.contestant(env, name, spec) as worker:
                    await _storm_and_wave(env, worker, name, count, report, result)
                    if name == OPERATOR_NAME:
                        result["steady writes"] = await rounds.steady(env, worker)
                await env.clean_up()
    return result


async def _storm_and_wave(
    env: Environment, worker: Worker, name: str, count: int, report: Report, result: dict[str, Any]
) -> str:
    """Add a client's figures to `result`; returns the namespace of its objects."""
    report(f"{name}: storm")
    namespace = await env.namespace("storm")
    result[name] = await rounds.storm(env, worker, count, namespace)
    if name in SCALING:
        report(f"{name}: scale wave")
        result["scale wave"][name] = await rounds.change(env, worker, namespace, count, {"size": 2})
    return namespace


async def _changes(env: Environment, worker: Worker, namespace: str, count: int, report: Report) -> dict[str, Any]:
    report("steady state")
    steady = await rounds.steady(env, worker)
    report("changes of all images")
    first, second = [await rounds.change(env, worker, namespace, count, {"image": image}) for image in OTHER_IMAGES]
    return {"steady writes": steady, "first change": first, "second change": second}


async def autoscaler(plane: ControlPlane, count: int, report: Report) -> dict[str, Any]:
    """Scale a tenth of the objects every second, AUTOSCALED_TIMES times."""
    count //= 10
    async with open_environment(plane) as env:
        with only_garbage_collector(env):
            namespace = await env.namespace("scaled")
            async with rounds.operator(env) as worker:
                await load.storm(env.client, namespace, count, worker.notify)
                await rounds.wait_created(env, worker, namespace, count)
                await env.wait_quiet(IDLE_AFTER, OPERATOR)
                report(f"{count} objects, {AUTOSCALED_TIMES} changes each")
                return await rounds.autoscale(env, worker, namespace, count, AUTOSCALED_TIMES)


async def growth(plane: ControlPlane, count: int, report: Report) -> dict[str, Any]:
    """A storm with GROWN times as many objects, then restart and takeover."""
    async with open_environment(plane) as env:
        with only_garbage_collector(env):
            report(f"storm of {GROWTH * count}")
            async with rounds.operator(env) as worker:
                result: dict[str, Any] = {
                    "operator": await rounds.storm(env, worker, GROWTH * count, await env.namespace("storm"))
                }
            report("restart and takeover")
            result["restart"] = await rounds.restart(env)
            result["takeover"] = {
                "after SIGTERM, s": await rounds.takeover(env, signal.SIGTERM),
                "after SIGKILL, s": await rounds.takeover(env, signal.SIGKILL),
            }
    return result


async def cluster(plane: ControlPlane, count: int, report: Report) -> dict[str, Any]:
    """A storm with all controllers and simulated nodes, until all objects are Available."""
    async with open_environment(plane) as env:
        add_nodes(env, 2 * count)
        namespace = await env.namespace("storm")
        async with rounds.operator(env) as worker:
            used = worker.program.cpu()
            await load.storm(env.client, namespace, count, worker.notify)
            await asyncio.wait_for(_all_available(env, namespace, count, report), AVAILABLE)
            await env.wait_quiet(2 * IDLE_AFTER, OPERATOR)
            requests = env.trail.requests
            figures: Figures = {
                "all available, s": span(
                    [request for request in requests if request.namespace == namespace], "create memcacheds", STATUS
                ),
                "writes": dict(counts(writes(requests, OPERATOR, namespace))),
                "reads": dict(
                    counts(r for r in requests if r.agent.startswith(OPERATOR) and r.verb in ("get", "list", "watch"))
                ),
                "CPU per object, ms": 1000 * (worker.program.cpu() - used) / count,
                "RSS, MiB": worker.program.rss(),
                "steady writes": await rounds.steady(env, worker),
            }
            report("a change of all objects")
            figures["scale"] = await rounds.change(env, worker, namespace, count, {"size": 2})
        return {"operator": figures}


async def _all_available(env: Environment, namespace: str, count: int, report: Report) -> None:
    reported = 0
    while (found := await _available(env, namespace)) < count:
        if found >= reported + count // 5:
            report(f"{found} of {count} available")
            reported = found
        await asyncio.sleep(2)


async def _available(env: Environment, namespace: str) -> int:
    response = await env.client.request("GET", MEMCACHEDS.path(namespace))
    states = [nested_map(item, "status").get("conditions") or () for item in response["items"]]
    return sum(any(each["type"] == "Available" and each["status"] == "True" for each in state) for state in states)


async def reviews(plane: ControlPlane, count: int, report: Report) -> dict[str, Any]:
    """Admission without other load, then in a storm of reviewed objects, with the operator running."""
    async with admission.admission() as admission_process:
        report("idle, then 100 reviews per object")
        result = await admission.costs(admission_process, 100 * count)
        async with open_environment(plane) as env:
            with only_garbage_collector(env):
                report("storm")
                async with rounds.operator(env):
                    result |= await admission.in_storm(env, admission_process, count)
    return result
