"""T8, further cases: pods wait for a Secret that does not exist. The test writes what a kubelet reports."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from faults.campaigns.drift import wait_for_reason
from faults.case import Case, References
from faults.esr import BYSTANDER, VICTIM, check_operator, check_quiet
from faults.faulty import Delay, Hang, Reject
from faults.rules import Rule
from faults.sandbox import (
    LONG_SYNC_PERIOD,
    POLL,
    READY_TIMEOUT,
    TIMEOUT_FACTOR,
    Sandbox,
    wait_until,
    wait_until_injected,
)
from faults.workloads import SLOTS, cache
from memcached_api import conditions as c
from memcached_operator.kube.resource import PODS, STATEFULSETS, Key, Object, nested_list
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.status.conditions import DEBOUNCE_PERIOD
from memcached_operator.workloads.mounts import READ_PERIOD, RECENT
from support import mounting

SPEC = cache(size=1, **SLOTS, **mounting.NOWHERE)
POD = f"{VICTIM}-0"
READS = "list events"
STABLE = 8.0
"""Seconds: a status follows a read, which a case delays by at most 2 s, within DEBOUNCE_PERIOD."""
CHANGES = 20
"""Changes of a waiting pod, each of which causes a reconcile."""


async def stuck_pod(sandbox: Sandbox) -> Object:
    """Start the operator and create an object whose pod mounts a Secret and waits; return the pod."""
    sandbox.operator.start()
    await sandbox.wait_watching()
    await sandbox.create(MEMCACHEDS, VICTIM, SPEC)
    await wait_until(lambda: sandbox.get(STATEFULSETS, VICTIM), READY_TIMEOUT, "the StatefulSet exists")
    await mounting.mount(sandbox.client, Key(STATEFULSETS, sandbox.namespace, VICTIM))
    pod = await _new_pod(sandbox)
    await mounting.set_waiting(sandbox.client, pod)
    return pod


async def late(sandbox: Sandbox, _: References) -> None:
    """The Secret is missing from the start and created later."""
    pod = await _reported_pod(sandbox)
    await mounting.set_running(sandbox.client, pod)
    await sandbox.wait_ready(MEMCACHEDS, VICTIM)
    await _check_end(sandbox, reads=1)


async def replaced(sandbox: Sandbox, _: References) -> None:
    """The pod is replaced by one that waits for another cause, and then for the Secret."""
    pod = await _reported_pod(sandbox)
    await sandbox.delete(PODS, POD)
    other = await _new_pod(sandbox, pod["metadata"]["uid"])
    await mounting.set_waiting(sandbox.client, other)
    await _wait_for_degraded(sandbox, c.AS_EXPECTED)
    await mounting.report(sandbox.client, other)
    await _wait_for_reads(sandbox, 2)
    await _wait_for_degraded(sandbox, c.SECRET_UNAVAILABLE)
    await _check_end(sandbox, reads=2)


async def other_pods(sandbox: Sandbox, _: References) -> None:
    """A pod waits for another cause, and a Secret is missing for a pod with another uid."""
    sandbox.proxy.inject(Rule(READS, Delay(1), times=1))
    pod = await stuck_pod(sandbox)
    await mounting.report(sandbox.client, {**pod, "metadata": {**pod["metadata"], "uid": "other"}})
    await _check_not_reported(sandbox, "the Event of another pod is reported")


async def old_events(sandbox: Sandbox, _: References) -> None:
    """A pod waits for another cause, and the Secret was missing in the past."""
    sandbox.proxy.inject(Rule(READS, Delay(1), times=1))
    pod = await stuck_pod(sandbox)
    await mounting.report(sandbox.client, pod, seen=RECENT + 5)
    await _check_not_reported(sandbox, "an old Event is reported")


async def many_reconciles(sandbox: Sandbox, _: References) -> None:
    """A waiting pod changes often: its Events are read at most once per minute."""
    pod = await _reported_pod(sandbox)
    for number in range(CHANGES):
        await mounting.set_waiting(sandbox.client, pod, since=61 + number)
    await check_quiet(sandbox)
    await _check_end(sandbox, reads=1)


async def restarted(sandbox: Sandbox, _: References) -> None:
    """The operator is killed, and reads the Events slowly after its restart: the status stays the same."""
    await _reported_pod(sandbox)
    sandbox.proxy.inject(Rule(READS, Delay(4 * DEBOUNCE_PERIOD), times=1))
    before = await sandbox.get(MEMCACHEDS, VICTIM)
    sandbox.operator.kill()
    await sandbox.wait_watching()
    await _wait_for_reads(sandbox, 2)

    async def unchanged() -> bool:
        return await sandbox.get(MEMCACHEDS, VICTIM) == before

    await _check_stays(sandbox, unchanged, "the status was changed after the restart")
    check_operator(sandbox, allowed_exits=1)


async def rejected(sandbox: Sandbox, _: References) -> None:
    """The first read is rejected, with a Retry-After: it is repeated after a minute."""
    (rule,) = sandbox.proxy.inject(Rule(READS, Reject(503, "ServiceUnavailable", retry_after=5), times=1))
    pod = await stuck_pod(sandbox)
    await mounting.report(sandbox.client, pod)
    await wait_until_injected(rule, READY_TIMEOUT)

    async def not_repeated() -> bool:
        return _reads(sandbox) == 1

    await _check_stays(sandbox, not_repeated, "a rejected read is repeated at once")
    await _wait_for_reads(sandbox, 2)
    await _wait_for_degraded(sandbox, c.SECRET_UNAVAILABLE)
    await _check_end(sandbox, reads=2)


async def hanging(sandbox: Sandbox, _: References) -> None:
    """The API server does not respond to reads: other objects, and the pod itself, do not wait for that."""
    sandbox.proxy.inject(Rule(READS, Hang()))
    pod = await stuck_pod(sandbox)
    await mounting.report(sandbox.client, pod)
    await _wait_for_reads(sandbox, 1)
    await sandbox.create(MEMCACHEDS, BYSTANDER, cache(size=2))
    await sandbox.wait_ready(MEMCACHEDS, BYSTANDER, READY_TIMEOUT / 2)
    await mounting.set_running(sandbox.client, pod)
    await sandbox.wait_ready(MEMCACHEDS, VICTIM, READY_TIMEOUT / 2)
    check_operator(sandbox)


async def _reported_pod(sandbox: Sandbox) -> Object:
    """A pod that waits for a missing Secret, which is reported."""
    sandbox.proxy.inject(Rule(READS, Delay(1), times=1))
    pod = await stuck_pod(sandbox)
    await mounting.report(sandbox.client, pod)
    await wait_for_reason(sandbox, MEMCACHEDS, c.SECRET_UNAVAILABLE)
    message = (await _degraded(sandbox))["message"]
    sandbox.check(message == f"Pod {POD}: {mounting.MESSAGE}", f"Degraded says: {message}")
    return pod


async def _new_pod(sandbox: Sandbox, uid: str = "") -> Object:
    """Wait for the pod with the volume and another uid."""

    async def poll() -> list[Object]:
        found = await mounting.mounting_pods(sandbox.client, sandbox.namespace)
        return [pod for pod in found if pod["metadata"]["uid"] != uid]

    (pod,) = await wait_until(poll, READY_TIMEOUT, "the pod with the volume exists")
    return pod


async def _degraded(sandbox: Sandbox) -> Object:
    """The condition Degraded; with an empty reason if it does not exist."""
    obj = await sandbox.get(MEMCACHEDS, VICTIM) or {}
    found = (each for each in nested_list(obj, "status", "conditions") if each["type"] == c.DEGRADED)
    return dict(next(found, {"reason": ""}))


async def _wait_for_degraded(sandbox: Sandbox, reason: str) -> None:
    async def poll() -> bool:
        return (await _degraded(sandbox))["reason"] == reason

    await wait_until(poll, READY_TIMEOUT, f"Degraded has the reason {reason}")


def _reads(sandbox: Sandbox) -> int:
    """The number of reads of Events."""
    return sum(entry.call.what == READS for entry in sandbox.proxy.requests.entries)


async def _wait_for_reads(sandbox: Sandbox, count: int) -> None:
    async def poll() -> bool:
        return _reads(sandbox) >= count

    await wait_until(poll, READ_PERIOD + READY_TIMEOUT, f"the Events are read {count} times")


async def _check_not_reported(sandbox: Sandbox, message: str) -> None:
    """Check that the Events were read, and that Degraded reports nothing."""
    await _wait_for_reads(sandbox, 1)

    async def not_reported() -> bool:
        return (await _degraded(sandbox))["reason"] != c.SECRET_UNAVAILABLE

    await _check_stays(sandbox, not_reported, message)
    sandbox.check((await _degraded(sandbox))["reason"] == c.AS_EXPECTED, "there is no status")
    check_operator(sandbox)


async def _check_stays(sandbox: Sandbox, condition: Callable[[], Awaitable[bool]], message: str) -> None:
    """Check that a condition holds for STABLE seconds."""
    deadline = time.monotonic() + STABLE * TIMEOUT_FACTOR
    while time.monotonic() < deadline:
        sandbox.check(await condition(), message)
        await asyncio.sleep(POLL)


async def _check_end(sandbox: Sandbox, reads: int) -> None:
    found = _reads(sandbox)
    sandbox.check(found == reads, f"Events were read {found} times, want {reads}")
    check_operator(sandbox)


SCENARIOS: dict[str, Callable[[Sandbox, References], Awaitable[None]]] = {
    "late": late,
    "replaced": replaced,
    "other-pods": other_pods,
    "old-events": old_events,
    "many-reconciles": many_reconciles,
    "restarted": restarted,
    "rejected": rejected,
    "hanging": hanging,
}


def cases() -> list[Case]:
    """Each case without a sync, which would reconcile the object too."""
    return [Case(f"T8/secrets/{name}", run, sync_period=LONG_SYNC_PERIOD) for name, run in SCENARIOS.items()]
