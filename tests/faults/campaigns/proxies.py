"""Faults while a MemcachedProxy follows the slots of its Memcached.

tests/simulation/test_proxies.py kills the leader at many moments.
"""

import asyncio
from functools import partial

from aiohttp import web

from faults.campaigns import drift
from faults.campaigns.drift import Child
from faults.campaigns.watches import DURATION, FAULTS, WatchFault, active
from faults.case import Case, References, prepare, user_action, wait_beside
from faults.esr import VICTIM, check_quiet, check_stable
from faults.faulty import Exchange
from faults.routes import Routes, template_routes
from faults.rules import Rule
from faults.sandbox import LONG_SYNC_PERIOD, READY_TIMEOUT, Sandbox, wait_until_injected
from faults.workloads import FRONT, PROXY_GROW, PROXY_SHRINK, SERVED, Workload
from memcached_api import conditions as c
from memcached_operator.kube.resource import DEPLOYMENTS, STATEFULSETS, Object
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES

RECOVERY = 40.0
"""Seconds until both objects have settled."""
DELAY = 5.0
"""Seconds for which events are held back: several times as long as a change of the slots takes."""
PAUSED: Object = {"rollout": {"paused": True}}
RUNNING: Object = {"rollout": {"paused": False}}


async def slots_kept(sandbox: Sandbox, references: References) -> None:
    """The rollout of the proxies is paused: their Memcached keeps the slots that they use, and says so."""
    expected = await references.of(PROXY_SHRINK)
    await sandbox.start()
    await prepare(sandbox, PROXY_SHRINK)
    await sandbox.change(MEMCACHEDPROXIES, VICTIM, FRONT, {**FRONT, **PAUSED})
    await user_action(sandbox, PROXY_SHRINK)
    await asyncio.sleep(DELAY)
    await check_quiet(sandbox)
    live = await sandbox.get(STATEFULSETS, SERVED) or {}
    sandbox.check(live["spec"]["replicas"] == 4, "a slot that proxies use was removed")
    reason = (await sandbox.condition(MEMCACHEDS, SERVED, c.PROGRESSING))["reason"]
    sandbox.check(reason == c.WAITING_FOR_PROXIES, f"Progressing has the reason {reason}")
    await sandbox.change(MEMCACHEDPROXIES, VICTIM, {**FRONT, **PAUSED}, FRONT)
    await wait_beside(sandbox, PROXY_SHRINK, RECOVERY)
    await check_stable(sandbox, MEMCACHEDPROXIES, expected, RECOVERY, loose=True)


async def slots_not_ready(sandbox: Sandbox, references: References) -> None:
    """No event reports that the pod of a new slot is ready: the proxies do not use it."""
    expected = await references.of(PROXY_GROW)
    await sandbox.start()
    await prepare(sandbox, PROXY_GROW)
    sandbox.proxy.hold("statefulsets", "pods")
    await user_action(sandbox, PROXY_GROW)
    await asyncio.sleep(DELAY)
    used = template_routes(await sandbox.get(DEPLOYMENTS, VICTIM) or {})
    sandbox.check(used == Routes(SERVED, 3), f"the proxies use a slot that is not ready: {used}")
    sandbox.proxy.release()
    await wait_beside(sandbox, PROXY_GROW, RECOVERY)
    await check_stable(sandbox, MEMCACHEDPROXIES, expected, RECOVERY)


async def status_unseen(sandbox: Sandbox, references: References) -> None:
    """No event reports what the operator writes into the Memcached's status. The proxies follow it nevertheless."""
    expected = await references.of(PROXY_GROW)
    await sandbox.start()
    await prepare(sandbox, PROXY_GROW)

    async def hold(exchange: Exchange) -> web.StreamResponse:
        sandbox.proxy.hold(MEMCACHEDS.plural)
        return await exchange.forward()

    (active,) = sandbox.proxy.inject(Rule("patch statefulsets", hold, times=1, name=SERVED))
    await user_action(sandbox, PROXY_GROW)
    await wait_until_injected(active, READY_TIMEOUT)
    await wait_beside(sandbox, PROXY_GROW, RECOVERY)
    sandbox.proxy.release()
    await check_stable(sandbox, MEMCACHEDPROXIES, expected, RECOVERY)


async def watch_fails(
    sandbox: Sandbox, references: References, workload: Workload, resource: str, fault: WatchFault
) -> None:
    """Watches fail for a while, in which the size of the Memcached changes."""
    expected = await references.of(workload)
    await sandbox.start()
    await prepare(sandbox, workload)
    async with active(sandbox, resource, fault):
        await user_action(sandbox, workload)
        await asyncio.sleep(DURATION)
    await sandbox.wait_watching(RECOVERY)
    await wait_beside(sandbox, workload, RECOVERY)
    await check_stable(sandbox, workload.resource, expected, RECOVERY)


WATCH_FAULT = "error-410"
CHILD = Child(MEMCACHEDPROXIES, DEPLOYMENTS, drift.OTHER_TEMPLATE, "MemcachedProxy")
DRIFTS = ("deleted", "orphaned", "adopted", "field-changed", "label-changed", "finalizer")
"""What another client does with the Deployment of the proxies; all children share the code."""


def cases() -> list[Case]:
    """Slots that are kept and that are not ready, failing watches, and changes of the Deployment."""
    found = [
        Case("drift/proxies/slots-kept", slots_kept, sync_period=LONG_SYNC_PERIOD),
        Case("stale/proxies/slots-not-ready", slots_not_ready, sync_period=LONG_SYNC_PERIOD),
        Case("stale/proxies/status-unseen", status_unseen, sync_period=LONG_SYNC_PERIOD),
    ]
    found += [
        Case(
            f"watch/proxies/{resource.plural}/{WATCH_FAULT}",
            partial(watch_fails, workload=PROXY_GROW, resource=resource.plural, fault=FAULTS[WATCH_FAULT]),
            sync_period=LONG_SYNC_PERIOD,
        )
        for resource in (MEMCACHEDPROXIES, MEMCACHEDS)
    ]
    found += [
        Case(f"drift/{CHILD.name}/{name}", partial(drift.DRIFTS[name], child=CHILD), sync_period=LONG_SYNC_PERIOD)
        for name in DRIFTS
    ]
    return found
