"""Pods that wait for a Secret that does not exist. The test writes what a kubelet reports."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

from faults.campaigns.drift import wait_for_reason
from faults.case import Case, References, in_gate
from faults.esr import VICTIM, check_operator
from faults.faulty import Delay
from faults.rules import Rule
from faults.sandbox import LONG_SYNC_PERIOD, POLL, READY_TIMEOUT, TIMEOUT_FACTOR, Sandbox, wait_until
from faults.workloads import SLOTS, cache
from memcached_api import conditions as c
from memcached_operator.engine.reporting.conditions import DEBOUNCE_PERIOD
from memcached_operator.findings.volumes.mounts import READ_PERIOD
from memcached_operator.kube.resource import STATEFULSETS, Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS
from support import mounting

SPEC = cache(size=1, **SLOTS, **mounting.NOWHERE)
POD = f"{VICTIM}-0"
READS = "list events"
STABLE = 8.0
"""Seconds: a status follows a read, which a case delays by at most 2 s, within DEBOUNCE_PERIOD."""


async def stuck_pod(sandbox: Sandbox) -> Object:
    """Start the operator and create an object whose pod mounts a Secret and waits; return the pod."""
    await sandbox.start()
    await sandbox.create(MEMCACHEDS, VICTIM, SPEC)
    await wait_until(lambda: sandbox.get(STATEFULSETS, VICTIM), READY_TIMEOUT, "the StatefulSet exists")
    await mounting.mount(sandbox.client, Key(STATEFULSETS, sandbox.namespace, VICTIM))
    pods = partial(mounting.mounting_pods, sandbox.client, sandbox.namespace)
    (pod,) = await wait_until(pods, READY_TIMEOUT, "the pod with the volume exists")
    await mounting.set_waiting(sandbox.client, pod)
    return pod


async def late(sandbox: Sandbox, _: References) -> None:
    """The Secret is missing from the start and created later."""
    pod = await _reported_pod(sandbox)
    await mounting.set_running(sandbox.client, pod)
    await sandbox.wait_ready(MEMCACHEDS, VICTIM)
    await _check_end(sandbox, reads=1)


async def other_pods(sandbox: Sandbox, _: References) -> None:
    """A pod waits for another cause, and a Secret is missing for a pod with another uid."""
    sandbox.proxy.inject(Rule(READS, Delay(1), times=1))
    pod = await stuck_pod(sandbox)
    await mounting.report(sandbox.client, {**pod, "metadata": {**pod["metadata"], "uid": "other"}})
    await _check_not_reported(sandbox, "the Event of another pod is reported")


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


async def _reported_pod(sandbox: Sandbox) -> Object:
    """A pod that waits for a missing Secret, which is reported."""
    sandbox.proxy.inject(Rule(READS, Delay(1), times=1))
    pod = await stuck_pod(sandbox)
    await mounting.report(sandbox.client, pod)
    await wait_for_reason(sandbox, MEMCACHEDS, c.SECRET_UNAVAILABLE)
    message = (await sandbox.condition(MEMCACHEDS, VICTIM, c.DEGRADED))["message"]
    sandbox.check(message == f"Pod {POD}: {mounting.MESSAGE}", f"Degraded says: {message}")
    return pod


async def _reason(sandbox: Sandbox) -> str:
    """The reason of the condition Degraded."""
    return (await sandbox.condition(MEMCACHEDS, VICTIM, c.DEGRADED))["reason"]


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
        return await _reason(sandbox) != c.SECRET_UNAVAILABLE

    await _check_stays(sandbox, not_reported, message)
    sandbox.check(await _reason(sandbox) == c.AS_EXPECTED, "there is no status")
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
    "other-pods": other_pods,
    "restarted": restarted,
}


def cases() -> list[Case]:
    """Each case without a sync, which would reconcile the object too."""
    found = [Case(f"pods/secrets/{name}", run, sync_period=LONG_SYNC_PERIOD) for name, run in SCENARIOS.items()]
    return in_gate(found, "pods/secrets/other-pods")
