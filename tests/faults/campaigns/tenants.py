"""A tenant makes the operator work, with the rights of `edit` in one namespace.

Another tenant's objects, small and large ones, are reconciled in time, and the Lease is kept.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any, Final

from faults.calls import Entry
from faults.campaigns.floods import KIB, OURS, WRITERS, Flooded, flooded
from faults.case import Case, References
from faults.esr import VICTIM
from faults.sandbox import LONG_SYNC_PERIOD, TIMEOUT_FACTOR, Sandbox, wait_until
from faults.workloads import cache, new_object
from memcached_operator.app import LEASE_NAME
from memcached_operator.kube import resource as kinds
from memcached_operator.kube.client import MERGE_PATCH
from memcached_operator.kube.resource import Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from support.cpu import cpu_time

MAX_READS: Final = 2.0
"""Reads of single objects in the tenant's namespace, per second, while finalizers keep children."""
GOALS: Final = {VICTIM: 2.0, "b70": 5.0, "b600": 5.0}
"""Seconds in which an object of the other tenant is reconciled: a small one, and one of 70 KB and of 600 KB. For this,
the API server handles at least REQUESTS requests of the same size, one after the other."""
REQUESTS: Final = 4
MAX_GAP: Final = 3.0
"""Seconds between two renewals of the Lease, besides the API server's share. It is renewed every 2 s."""
SECONDS: Final = 20.0
"""Seconds of each play."""
IN_FLIGHT, OF_ONE_OBJECT = 32, 2
"""Changes of the tenant that wait for a response, and those of one object: the API server repeats a patch that another
one has overtaken, so many at once are a load of their own."""
BUDGETS, REQUIREMENTS = 13, 500
EVERYTHING: Final[Object] = {"matchExpressions": []}
"""The selector of all objects. As a merge patch, {} would change nothing."""


@dataclass(frozen=True)
class Play:
    """What the tenant creates, and its n-th change. `rate`: changes per second, if the API server responds in time.

    `end`: removes what would remain. `max_reads`: per second. `in_flight`: changes that wait for a response.
    """

    prepare: Callable[[Flooded], Awaitable[None]]
    change: Callable[[Flooded, int], Awaitable[Any]]
    rate: float
    end: "Callable[[Flooded], Awaitable[None]] | None" = None
    max_reads: float = float("inf")
    in_flight: int = IN_FLIGHT


@dataclass
class Times:
    """Seconds until changes of the other tenant's objects were made, by their names, and between renewals of the Lease.

    `api`: seconds of the user's patches of these objects, which are the API server's share. `cpu`: part of a processor
    that the operator used. `reads`: of single objects in the tenant's namespace, per second. `attacks`: changes of the
    tenant, per second.
    """

    found: Flooded
    changes: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    gaps: list[float] = field(default_factory=list[float])
    api: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    cpu: float = 0.0
    reads: float = 0.0
    attacks: float = 0.0

    def __str__(self) -> str:
        texts = [f"{name} {_range(times)}, API {_range(self.api[name])}" for name, times in self.changes.items()]
        texts += [f"gaps of the Lease up to {max(self.gaps):.1f} s", f"CPU {self.cpu:.0%}", f"{self.found.peak} MiB"]
        return "; ".join([*texts, f"{self.reads:.1f} reads/s", f"{self.attacks:.1f} changes/s"])

    async def measure(self, seconds: float) -> None:
        """Change the objects of the other tenant all the time, and observe the Lease."""
        started, before = time.monotonic(), cpu_time(self.found.operator.pid)
        until = started + seconds
        async with asyncio.TaskGroup() as group:
            for name in GOALS:
                group.create_task(self._change(name, until))
            group.create_task(self._renewals(until))
        took = time.monotonic() - started
        self.cpu = (cpu_time(self.found.operator.pid) - before) / took
        self.reads = len(_reads(self.found, started)) / took

    async def _change(self, name: str, until: float) -> None:
        times, patches = self.changes.setdefault(name, []), self.api.setdefault(name, [])
        sandbox = self.found.sandbox
        sizes = count(1)
        path = kinds.DEPLOYMENTS.path(sandbox.namespace, name, "scale")  # small, whatever the size of the Deployment
        while time.monotonic() < until:
            size, started = 1 + next(sizes) % 2, time.monotonic()
            await sandbox.merge(Key(MEMCACHEDS, sandbox.namespace, name), {"spec": {"size": size}})
            patches.append(time.monotonic() - started)

            async def follows(size: int = size) -> bool:
                return (await sandbox.client.request("GET", path))["spec"]["replicas"] == size

            await wait_until(follows, 90, f"the Deployment of {name} has {size} pods", poll=0.02)
            times.append(time.monotonic() - started)
            self.found.measure()
            await asyncio.sleep(0.2)

    async def _renewals(self, until: float) -> None:
        last: datetime | None = None
        while time.monotonic() < until:
            lease = await self.found.sandbox.get(kinds.LEASES, LEASE_NAME) or {}
            renewed = datetime.fromisoformat(lease["spec"]["renewTime"])
            if last is not None and renewed != last:
                self.gaps.append((renewed - last).total_seconds())
            last = renewed
            await asyncio.sleep(0.1)

    def check(self, max_reads: float) -> None:
        """Check the goals."""
        check = self.found.sandbox.check
        for name, goal in GOALS.items():
            limit = goal * TIMEOUT_FACTOR + REQUESTS * max(self.api[name])
            check(max(self.changes[name]) <= limit, f"{name} took more than {limit:.1f} s: {self}")
        limit = MAX_GAP * TIMEOUT_FACTOR + max(self.api[VICTIM])
        check(max(self.gaps) <= limit, f"the Lease was renewed late: {self}")
        check(not self.found.operator.exits, f"the operator exited: {self}")
        check(self.reads <= max_reads, f"too many reads: {self}")


def _reads(found: Flooded, since: float) -> list[Entry]:
    """The operator's reads of single objects in the tenant's namespace."""
    entries = found.sandbox.proxy.requests.since(since)
    return [each for each in entries if (each.call.verb, each.call.namespace) == ("get", found.tenant)]


def _range(times: list[float]) -> str:
    """Median and worst, and the number."""
    return f"{statistics.median(times):.2f} ({max(times):.2f}) s"


async def run(sandbox: Sandbox, references: References, play: Play, seconds: float = SECONDS) -> str:
    """A play beside another tenant's changes."""
    elected = replace(sandbox.settings, arguments=(*sandbox.settings.arguments, "--leader-elect"))
    async with flooded(replace(sandbox, settings=elected), references) as found:
        await _create_large(found)
        await play.prepare(found)
        await _wait_settled(found)
        times = Times(found)
        attack = asyncio.create_task(_attack(found, play, times))
        try:
            await times.measure(seconds)
        finally:
            attack.cancel()
            await asyncio.gather(attack, return_exceptions=True)
            if play.end is not None:
                await play.end(found)
        times.check(play.max_reads)
        return str(times)


async def _create_large(found: Flooded) -> None:
    """The large objects of the other tenant. They are paused, because the API server would be busy with their pods."""
    for name, terms in (("b70", 3), ("b600", 26)):
        await found.sandbox.create(MEMCACHEDS, name, large(terms))
        await wait_until(partial(found.sandbox.get, kinds.DEPLOYMENTS, name), 30, f"the Deployment of {name} exists")


def large(terms: int, **more: Any) -> Any:
    """A spec with 23 KB per term."""
    expression = {"key": "a", "operator": "In", "values": ["x" * 63] * 16}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [expression] * 22}] * terms}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
    return cache(size=1, podTemplate={"spec": {"affinity": affinity}, **more}, rollout={"paused": True})


async def _wait_settled(found: Flooded) -> None:
    """Wait until each Memcached of the tenant has its first status. Before that, it has the default of the CRD."""

    async def is_settled() -> bool:
        crs = (await found.sandbox.client.request("GET", MEMCACHEDS.path(found.tenant)))["items"]
        return all(cr["status"]["observedGeneration"] == cr["metadata"]["generation"] for cr in crs)

    await wait_until(is_settled, 180, "the tenant's objects have statuses", poll=2.0)


async def _attack(found: Flooded, play: Play, times: Times) -> None:
    """Change something at the rate of the play, until cancelled."""
    limit = asyncio.Semaphore(play.in_flight)
    started, done = time.monotonic(), list[int]()

    async def change(number: int) -> None:
        async with limit:
            await play.change(found, number)
            done.append(number)
            times.attacks = len(done) / (time.monotonic() - started)

    async with asyncio.TaskGroup() as group:
        for number in count():
            await asyncio.sleep(max(0.0, started + number / play.rate - time.monotonic()))
            group.create_task(change(number))


async def _create(found: Flooded, names: list[str], spec: Any) -> None:
    make = partial(new_object, MEMCACHEDS, found.tenant, spec=spec)
    await found.write(MEMCACHEDS, [partial(make, name=name) for name in names])


async def _merge(found: Flooded, resource: Resource, name: str, patch: Object) -> None:
    await found.sandbox.client.request("PATCH", resource.path(found.tenant, name), patch, MERGE_PATCH)


def selector(value: str) -> Object:
    """A selector with many requirements that hold for each pod, but for one."""
    denied = [{"key": f"a{number}", "operator": "NotIn", "values": [value]} for number in range(REQUIREMENTS)]
    return {"matchExpressions": [*denied, {"key": "a", "operator": "In", "values": [value]}]}


async def create_budgets(found: Flooded, number: int) -> None:
    """Memcacheds without pods, and PodDisruptionBudgets with large selectors.

    With the size 1, a Memcached has no budget, and its plan reads none.
    """
    spec = cache(size=2, rollout={"paused": True}, podDisruptionBudget={"enabled": True})
    await _create(found, [f"a{index}" for index in range(number)], spec)
    await found.write(
        kinds.POD_DISRUPTION_BUDGETS, [partial(budget, f"z{index}", selector("x")) for index in range(BUDGETS)]
    )


def budget(name: str, selected: Object) -> Object:
    """A PodDisruptionBudget of the tenant."""
    return {"metadata": {"name": name}, "spec": {"maxUnavailable": 1, "selector": selected}}


async def select_all(found: Flooded, number: int) -> None:
    """Change whether a budget selects all pods."""
    selected = EVERYTHING if number % 2 else selector("x")
    await _merge(found, kinds.POD_DISRUPTION_BUDGETS, "z0", {"spec": {"selector": selected}})


async def create_pods(found: Flooded, number: int = 1000) -> None:
    """A Memcached and forged pods of it, half of them large, beside budgets with large selectors."""
    await create_budgets(found, 1)
    await _merge(found, MEMCACHEDS, "a0", {"spec": {"size": 1000}})
    labels = {**OURS, "app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": "a0"}
    # The garbage collector does not know this version, and keeps the pod.
    owner = {"apiVersion": "example.com/v1", "kind": "ReplicaSet", "name": "a0-x", "uid": "x", "controller": True}
    spec = {"nodeSelector": {"example.com/node": "none"}, "containers": [{"name": "memcached", "image": "a"}]}

    def pod(index: int) -> Object:
        junk = {f"a{part}": "x" * 60 for part in range(80 * (index % 2))}
        meta = {"name": f"p{index}", "labels": {**labels, **junk, "pod-template-hash": "x"}, "ownerReferences": [owner]}
        return {"metadata": meta, "spec": spec}

    await found.write(kinds.PODS, [partial(pod, index) for index in range(number)])


async def change_pod(found: Flooded, number: int) -> None:
    """Change a label of one of the pods."""
    await _merge(found, kinds.PODS, f"p{number % 1000}", {"metadata": {"labels": {"changed": str(number)}}})


async def create_large(found: Flooded, number: int, kib: int) -> None:
    """Large Memcacheds."""
    note = {"annotations": {"a": "x" * kib * KIB}}
    spec = cache(size=1, podTemplate={"metadata": note}, rollout={"paused": True})
    await _create(found, [f"a{index}" for index in range(number)], spec)


async def change_large(found: Flooded, number: int, of: int, kib: int) -> None:
    """Change one of the large Memcacheds."""
    note = {"annotations": {"a": f"{number} ".ljust(kib * KIB, "x")}}
    await _merge(found, MEMCACHEDS, f"a{number % of}", {"spec": {"podTemplate": {"metadata": note}}})


async def create_undeletable(found: Flooded, number: int = 200) -> None:
    """Memcacheds whose Services are of earlier ones: a finalizer keeps these."""
    names = [f"a{index}" for index in range(number)]
    spec = cache(size=1, rollout={"paused": True})
    await _create(found, names, spec)

    async def exist() -> bool:
        return len((await found.sandbox.client.request("GET", kinds.SERVICES.path(found.tenant)))["items"]) == number

    await wait_until(exist, 180, "the Services exist", poll=1.0)
    await _for_each(names, partial(_set_finalizers, found, finalizers=["example.com/kept"]))
    await _for_each(names, partial(_delete, found))
    await _create(found, names, spec)
    await wait_until(partial(_is_calm, found), 120, "few objects are read")


async def _is_calm(found: Flooded) -> bool:
    """Whether there were few reads: each new object reads what remains of the children of an earlier one once."""
    seconds = 5.0
    return len(_reads(found, time.monotonic() - seconds)) <= MAX_READS * seconds


async def release(found: Flooded) -> None:
    """Remove the finalizers, so that the namespace can be deleted."""
    services = (await found.sandbox.client.request("GET", kinds.SERVICES.path(found.tenant)))["items"]
    await _for_each([each["metadata"]["name"] for each in services], partial(_set_finalizers, found, finalizers=None))


async def _set_finalizers(found: Flooded, name: str, finalizers: list[str] | None) -> None:
    await _merge(found, kinds.SERVICES, name, {"metadata": {"finalizers": finalizers}})


async def _delete(found: Flooded, name: str) -> None:
    await found.sandbox.client.request("DELETE", MEMCACHEDS.path(found.tenant, name))


async def _for_each(names: list[str], work: Callable[[str], Awaitable[None]]) -> None:
    waiting = iter(names)

    async def worker() -> None:
        for name in waiting:
            await work(name)

    await asyncio.gather(*(worker() for _ in range(WRITERS)))


async def nothing(_: Flooded, __: int = 0) -> None:
    """No flood."""


PLAYS: Final[dict[str, Play]] = {
    "idle": Play(nothing, nothing, 1),
    "budgets-select-500": Play(partial(create_budgets, number=500), select_all, 10, in_flight=OF_ONE_OBJECT),
    "pods-1000": Play(create_pods, change_pod, 50),
    "large-20": Play(partial(create_large, number=20, kib=100), partial(change_large, of=20, kib=100), 19),
    "undeletable": Play(create_undeletable, nothing, 1, release, MAX_READS),
    "large-8": Play(partial(create_large, number=8, kib=70), partial(change_large, of=8, kib=70), 11),
}


def cases() -> list[Case]:
    """One case per play."""
    return [
        Case(f"tenants/{name}", partial(run, play=play), alone=True, sync_period=2 * LONG_SYNC_PERIOD, limit=900.0)
        for name, play in PLAYS.items()
    ]
