"""A tenant floods one namespace. The operator, with the memory of its pod, keeps serving another one."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from faults.case import Case, References, in_gate
from faults.esr import VICTIM
from faults.process import Operator, supervised
from faults.sandbox import LONG_SYNC_PERIOD, ROLES, WATCHED, FailedError, Sandbox, grant, wait_until
from faults.workloads import cache, new_object
from memcached_api.conditions import SECRET_UNAVAILABLE
from memcached_operator.kube import resource as kinds
from memcached_operator.kube.resource import Key, Object, Resource, nested_list
from memcached_operator.memcached.controller import MEMCACHEDS
from support import cgroups, mounting

LIMIT: Final = 256
"""Memory limit of the operator in MiB, as in config/manager."""
GOAL: Final = 160
"""Memory in MiB that it may use at most."""
REACTION: Final = 2.0
"""Seconds in which an object of another namespace is reconciled. A busy machine may take four times as long."""
WRITERS: Final = 8
KIB: Final = 1024
OURS: Final = {"app.kubernetes.io/managed-by": "memcached-operator"}
"""What selects an object for the operator: anyone may set it."""


@dataclass
class Flooded:
    """An operator with little memory that watches a victim's namespace and a tenant's.

    `idle`, `peak`: MiB of memory. `slowest`: seconds until an object of the victim was reconciled. `restarted`: seconds
    from a restart until the victim's namespace was watched again.
    """

    sandbox: Sandbox
    tenant: str
    operator: Operator
    idle: int = 0
    peak: int = 0
    slowest: float = 0.0
    restarted: float = 0.0

    def __str__(self) -> str:
        return f"{self.idle} → {self.peak} MiB, reaction {self.slowest:.1f} s, restart {self.restarted:.0f} s"

    async def write(self, resource: Resource, bodies: "list[Callable[[], Object]]", writers: int = WRITERS) -> None:
        """Create the objects of a tenant, a few in parallel."""
        waiting = iter(bodies)

        async def writer() -> None:
            for body in waiting:
                await self.sandbox.client.request("POST", resource.path(self.tenant), body())

        await asyncio.gather(*(writer() for _ in range(writers)))

    async def watch(self, play: Awaitable[None]) -> None:
        """Carry out a play while the object of the victim changes, and change it a few times more."""
        work = asyncio.ensure_future(play)
        try:
            while not work.done():
                await self._react()
        finally:
            work.cancel()
        await work
        for _ in range(3):
            await self._react()

    async def _react(self) -> None:
        """Change the object of the victim, and record how long its Deployment takes to follow."""
        size = 3 - (await self._replicas() or 2)
        started = time.monotonic()
        await self.sandbox.merge(Key(MEMCACHEDS, self.sandbox.namespace, VICTIM), {"spec": {"size": size}})

        async def follows() -> bool:
            self.measure()
            return await self._replicas() == size

        await wait_until(follows, 4 * REACTION, f"the Deployment of the victim has {size} pods", poll=0.05)
        self.slowest = max(self.slowest, time.monotonic() - started)

    async def _replicas(self) -> int | None:
        live = await self.sandbox.get(kinds.DEPLOYMENTS, VICTIM)
        return None if live is None else live["spec"]["replicas"]

    def measure(self) -> None:
        """Record the most memory that the process has used, and check that it was little and that none has exited."""
        status = Path(f"/proc/{self.operator.pid}/status")
        with suppress(OSError):
            if match := re.search(r"VmHWM:\s+(\d+) kB", status.read_text()):
                self.peak = max(self.peak, int(match[1]) // KIB)
        self.sandbox.check(self.peak <= GOAL, f"the operator used more than {GOAL} MiB: {self}")
        self.sandbox.check(not self.operator.exits, f"the operator exited with {self.operator.exits}: {self}")

    async def restart(self) -> None:
        """Restart the operator, which lists everything, while the object of the victim changes."""
        starts, started = len(self.operator.starts), time.monotonic()
        self.operator.kill()

        async def is_watching(namespace: str) -> bool:
            self.measure()
            streams = self.sandbox.proxy.open_watches()
            watched = {each.call.resource for each in streams if each.call.namespace == namespace}
            return len(self.operator.starts) > starts and len(watched) == WATCHED

        await wait_until(partial(is_watching, self.sandbox.namespace), 60, "the victim's namespace is watched")
        self.restarted = time.monotonic() - started
        await self.watch(wait_until(partial(is_watching, self.tenant), 600, "the tenant's namespace is watched"))


Play = Callable[[Flooded], Awaitable[None]]


@asynccontextmanager
async def flooded(sandbox: Sandbox, references: References) -> AsyncGenerator[Flooded]:
    """An operator that watches both namespaces, and an object of the victim that is ready."""
    tenant, client = f"{sandbox.namespace}-tenant", sandbox.client
    await client.request("POST", "/api/v1/namespaces", {"metadata": {"name": tenant}})
    for role, rules in ROLES.items():
        await grant(client, tenant, role, rules, account=sandbox.namespace)
    try:
        with cgroups.memory_cgroup(f"floods-{sandbox.namespace}", LIMIT) as processes:
            environment = {**sandbox.settings.environment, "FAULTS_CGROUP": str(processes)}
            arguments = (*sandbox.settings.arguments, f"--watch-namespaces={sandbox.namespace},{tenant}")
            settings = replace(sandbox.settings, arguments=arguments, environment=environment)
            operator = references.plane.operator(sandbox.namespace, sandbox.address, settings, "flooded")
            async with supervised(operator):
                operator.start()
                await sandbox.wait_watching()
                await sandbox.create(MEMCACHEDS, VICTIM, cache(size=1))
                await sandbox.wait_ready(MEMCACHEDS, VICTIM)
                found = Flooded(sandbox, tenant, operator)
                found.measure()
                found.idle = found.peak
                yield found
    except OSError as error:
        raise FailedError(f"a cgroup with a memory limit is needed, which only root may create: {error}") from error
    finally:
        await client.request("DELETE", f"/api/v1/namespaces/{tenant}")


async def flood(sandbox: Sandbox, references: References, play: Play) -> str:
    """A play while the operator runs; then the operator is restarted."""
    async with flooded(sandbox, references) as found:
        await found.watch(play(found))
        await found.restart()
        await sandbox.wait_ready(MEMCACHEDS, VICTIM)
        found.measure()
        return str(found)


def config_map(name: str, data: str = "", **meta: Any) -> Object:
    """A ConfigMap with our label."""
    return {"metadata": {"name": name, "labels": OURS, **meta}, "data": {"a": data}}


async def huge(found: Flooded, number: int = 150, text: str = "x" * 1000 * KIB) -> None:
    """Many huge objects."""
    await found.write(kinds.CONFIG_MAPS, [partial(config_map, f"a{index}", text) for index in range(number)])


async def many(found: Flooded, number: int) -> None:
    """Very many tiny objects with the longest names."""
    await found.write(kinds.CONFIG_MAPS, [partial(config_map, f"{index:0253d}") for index in range(number)])


async def updates(found: Flooded, seconds: float = 20.0) -> None:
    """One object changes all the time."""
    client = found.sandbox.client
    key = Key(kinds.CONFIG_MAPS, found.tenant, "a")
    await client.request("POST", kinds.CONFIG_MAPS.path(found.tenant), config_map("a"))
    until = time.monotonic() + seconds

    async def writer(number: int) -> None:
        count = 0
        while time.monotonic() < until:
            count += 1
            await client.patch(key, {"data": {"a": f"{number} {count} " + "x" * 10 * KIB}})

    await asyncio.gather(*(writer(number) for number in range(WRITERS)))


async def pods(found: Flooded) -> None:
    """Pods with the labels of an object and long annotations."""
    body = new_object(MEMCACHEDS, found.tenant, "cache", cache(size=1))
    await found.sandbox.client.request("POST", MEMCACHEDS.path(found.tenant), body)
    labels = {**OURS, "app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": "cache"}
    spec = {"nodeSelector": {"example.com/node": "none"}, "containers": [{"name": "a", "image": "a"}]}

    def pod(index: int) -> Object:
        meta = {"name": f"a{index}", "labels": labels, "annotations": {"a": "x" * 250 * KIB}}
        return {"metadata": meta, "spec": spec}

    await found.write(kinds.PODS, [partial(pod, index) for index in range(400)])


async def children(found: Flooded) -> None:
    """Objects that claim to belong to an object, and are deleted as unwanted."""
    body = new_object(MEMCACHEDS, found.tenant, "cache", cache(size=1))
    cr = await found.sandbox.client.request("POST", MEMCACHEDS.path(found.tenant), body)
    owner = {
        "apiVersion": MEMCACHEDS.api_version,
        "kind": MEMCACHEDS.kind,
        "name": "cache",
        "uid": cr["metadata"]["uid"],
        "controller": True,
    }
    make = partial(config_map, data="x" * 200 * KIB, ownerReferences=[owner])
    await found.write(kinds.CONFIG_MAPS, [partial(make, f"a{index}") for index in range(300)])


def requirements(kib: int) -> list[Object]:
    """Requirements of a selector of this size, with many small values: decoded, they take 13 times as much memory."""
    return [{"key": "a", "operator": "In", "values": ["aa"] * 64}] * (3 * kib)


async def specs(found: Flooded, number: int = 20, terms: int = 12) -> None:
    """Objects of our own kind with specs of 21 KiB per term; paused, because the API server is busy with their pods."""
    selector = {"nodeSelectorTerms": [{"matchExpressions": requirements(20)}] * terms}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    spec = cache(size=1, podTemplate={"spec": {"affinity": affinity}}, rollout={"paused": True})
    make = partial(new_object, MEMCACHEDS, found.tenant, spec=spec)
    await found.write(MEMCACHEDS, [partial(make, name=f"a{index}") for index in range(number)], writers=1)


async def budgets(found: Flooded) -> None:
    """PodDisruptionBudgets with large selectors, which are listed for the plan of each object."""
    selector = {"matchExpressions": requirements(1000)}
    make = partial(
        new_object, kinds.POD_DISRUPTION_BUDGETS, found.tenant, spec={"maxUnavailable": 1, "selector": selector}
    )
    await found.write(kinds.POD_DISRUPTION_BUDGETS, [partial(make, name=f"a{index}") for index in range(7)])
    spec = cache(size=2, podDisruptionBudget={})
    make = partial(new_object, MEMCACHEDS, found.tenant, spec=spec)
    await found.write(MEMCACHEDS, [partial(make, name=f"a{index}") for index in range(16)])


async def events(found: Flooded) -> None:
    """Large Events of a pod that waits for its volumes."""
    client = found.sandbox.client
    spec = cache(size=1, identity="Stable", **mounting.NOWHERE)
    await client.request("POST", MEMCACHEDS.path(found.tenant), new_object(MEMCACHEDS, found.tenant, "cache", spec))
    key = Key(kinds.STATEFULSETS, found.tenant, "cache")
    await wait_until(lambda: client.get(key), 30, "the StatefulSet exists")
    await mounting.mount(client, key)
    (pod,) = await wait_until(lambda: mounting.mounting_pods(client, found.tenant), 30, "the pod exists")
    await mounting.report(client, pod, metadata={"name": "a", "namespace": found.tenant})  # the first one of a list
    for _ in range(49):
        await mounting.report(client, pod, message="unmounted volumes=[" * 64 * KIB)
    await mounting.set_waiting(client, pod)

    async def are_read() -> bool:
        live = await client.get(Key(MEMCACHEDS, found.tenant, "cache")) or {}
        return SECRET_UNAVAILABLE in [each["reason"] for each in nested_list(live, "status", "conditions")]

    await wait_until(are_read, 60, "the first Event is reported")


PLAYS: Final[dict[str, Play]] = {
    "huge": huge,
    "huge-as-json": partial(huge, number=40, text="<" * 1000 * KIB),
    "many": partial(many, number=20_000),
    "very-many": partial(many, number=100_000),
    "updates": updates,
    "pods": pods,
    "children": children,
    "events": events,
    "specs": specs,
    "budgets": budgets,
}


def cases() -> list[Case]:
    """One case per play. Their sync period is longer than the longest of them."""
    found = [
        Case(f"floods/{name}", partial(flood, play=play), alone=True, sync_period=4 * LONG_SYNC_PERIOD, limit=1800.0)
        for name, play in PLAYS.items()
    ]
    return in_gate(found, "floods/huge")
