"""A leader with very many objects: memory, start, resync, and a failure of nodes that changes many pods at once."""

import time
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from bench import load, rounds
from bench.environment import LOGS, Environment, open_environment
from bench.programs import controller
from bench.rounds import IDLE_AFTER, OPERATOR, Figures, Worker
from bench.scenarios import Report
from integration.control_plane import ControlPlane, without_controllers
from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.kube.client import MERGE_PATCH, ApiClient
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, Key, Resource

STEPS: Final = (0.05, 0.25, 0.5, 1.0)
"""The parts of all objects after which the memory is read."""
AFFECTED: Final = 0.25
"""The part of the objects whose pods fail at once."""
SYNC: Final = 60
"""Seconds between two resyncs, in the measurement of one; 600 by default."""
NAMESPACE: Final = 1000
"""Objects in one namespace."""
HASH: Final = "bench"
"""The hash of a pod template."""
SERVICE_ACCOUNTS: Final = Resource("", "v1", "ServiceAccount", "serviceaccounts")


async def measure(plane: ControlPlane, count: int, report: Report) -> Figures:
    """The figures of `count` objects, 1,000 in each namespace. No controller runs but the operator."""
    with without_controllers(plane):
        async with open_environment(plane) as env:
            async with rounds.operator(env) as worker:
                namespaces, figures = await _grow(env, worker, count, report)
                figures |= await _failure(env, worker, namespaces[: int(AFFECTED * len(namespaces))], report)
            report("start")
            figures |= {f"start: {name}": value for name, value in (await rounds.restart(env)).items()}
            report("resync")
            figures |= await _resync(env)
    return figures


async def _grow(env: Environment, worker: Worker, count: int, report: Report) -> tuple[list[str], Figures]:
    """Create the objects; the namespaces, and the memory after each of STEPS."""
    namespaces, figures = list[str](), dict[str, Any]()
    for step in STEPS:
        while len(namespaces) < step * count / NAMESPACE:
            namespaces.append(await env.namespace("scale"))
            await load.storm(env.client, namespaces[-1], NAMESPACE, worker.notify)
            await rounds.wait_created(env, worker, namespaces[-1], NAMESPACE)
        await env.wait_quiet(IDLE_AFTER, OPERATOR)
        objects = len(namespaces) * NAMESPACE
        figures[f"RSS with {objects:,} objects, MiB"] = worker.program.rss()
        report(f"{objects:,} objects: {worker.program.rss():.0f} MiB")
    return namespaces, figures


async def _resync(env: Environment) -> Figures:
    """The CPU of a resync, after a start."""
    objects = await env.objects()
    with controller(env.plane.kubeconfig, LOGS / "controller.log", f"--sync-period={SYNC}") as program:
        await rounds.wait_reconciled(program, objects)
        used = program.cpu()
        await rounds.wait_reconciled(program, 2 * objects)
        return {"resync: CPU, s": program.cpu() - used, "resync: RSS, MiB": program.rss()}


async def _failure(env: Environment, worker: Worker, namespaces: list[str], report: Report) -> Figures:
    """Give each object of these namespaces a ready pod, then let all of them fail at once."""
    report(f"{len(namespaces) * NAMESPACE:,} pods")
    client = env.client
    places = [f"{namespace}/{name}" for namespace in namespaces for name in load.names(NAMESPACE)]
    for namespace in namespaces:
        account = {"metadata": {"name": "default"}}
        await client.request("POST", SERVICE_ACCOUNTS.path(namespace), account)
    await load.by_clients(partial(_create_pod, client), places)
    await load.by_clients(partial(_set_ready, client, ready=1), places)
    await env.wait_quiet(IDLE_AFTER, OPERATOR)
    used, started = worker.program.cpu(), time.monotonic()
    await load.by_clients(partial(_set_ready, client, ready=0), places)
    posted = time.monotonic() - started
    await env.wait_quiet(IDLE_AFTER, OPERATOR)
    return {
        "failure of nodes: posted, s": posted,
        "failure of nodes: current, s": time.monotonic() - started - IDLE_AFTER,
        "failure of nodes: CPU, s": worker.program.cpu() - used,
        "failure of nodes: RSS, MiB": worker.program.rss(),
    }


async def _create_pod(client: ApiClient, place: str) -> None:
    """Create the pod of an object as a ReplicaSet does."""
    namespace, name = place.split("/")
    live = await client.get(Key(DEPLOYMENTS, namespace, name)) or {}
    template = live["spec"]["template"]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{name}-{HASH}", "uid": live["metadata"]["uid"]}
    meta = {
        "name": f"{name}-{HASH}-00000",
        "labels": {**template["metadata"]["labels"], "pod-template-hash": HASH},
        "ownerReferences": [{**owner, "controller": True}],
    }
    await client.request("POST", PODS.path(namespace), {"metadata": meta, "spec": template["spec"]})


async def _set_ready(client: ApiClient, place: str, *, ready: int) -> None:
    """Report, as kubelet and controller do, that the pod of an object is ready or not."""
    namespace, name = place.split("/")
    state = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "lastTransitionTime": timestamp(datetime.now(UTC)),
    }
    pod = PODS.path(namespace, f"{name}-{HASH}-00000", "status")
    await client.request("PATCH", pod, {"status": {"phase": "Running", "conditions": [state]}}, MERGE_PATCH)
    counts = dict.fromkeys(("readyReplicas", "availableReplicas"), ready) | {"unavailableReplicas": 1 - ready}
    status = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, **counts}
    await client.request("PATCH", DEPLOYMENTS.path(namespace, name, "status"), {"status": status}, MERGE_PATCH)
