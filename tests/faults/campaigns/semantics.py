"""Pods for which no node has room, and the way back. tests/e2e/test_failures.py tests other pods that cannot start."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from faults.campaigns.drift import wait_for_reason, wait_rolled_out
from faults.case import Case, References
from faults.esr import VICTIM, Reference, check_operator, check_quiet, check_stable
from faults.sandbox import READY_TIMEOUT, Sandbox, wait_until
from faults.workloads import Workload, cache
from memcached_api import conditions as c
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.resource import Resource, nested_map
from memcached_operator.memcached.controller import MEMCACHEDS

VALID = cache(size=2)
SIZE = 1000
MANY = 60
"""Pods that must exist before the size is reduced; the node has no room for all 1,000."""
REFILL = 120.0
"""Seconds. The API server recounts a quota within 5, the ReplicaSet controller retries within about ten."""


async def create_ready(sandbox: Sandbox, references: References, resource: Resource) -> Reference:
    """Create the object; returns its state without the fault."""
    expected = await references.of(Workload(f"semantics-{resource.plural}", resource, None, VALID, ()))
    await sandbox.start()
    await sandbox.create_ready(resource, VICTIM, VALID)
    return expected


async def check_recovered(sandbox: Sandbox, resource: Resource, expected: Reference) -> None:
    """Check that the state is as without the fault."""
    await sandbox.wait_ready(resource, VICTIM, REFILL)
    await check_stable(sandbox, resource, expected, READY_TIMEOUT, loose=True)


async def impossible(sandbox: Sandbox, references: References) -> None:
    """No node has the requested resources: existing pods keep serving, and the reason is reported."""
    expected = await create_ready(sandbox, references, MEMCACHEDS)
    impossible_spec = {**VALID, "resources": {"requests": {"cpu": "1M"}, "limits": {"cpu": "1M"}}}
    await sandbox.change(MEMCACHEDS, VICTIM, VALID, impossible_spec)
    await wait_for_reason(sandbox, MEMCACHEDS, c.ROLLING_OUT)
    await check_quiet(sandbox)
    await wait_for_reason(sandbox, MEMCACHEDS, c.MINIMUM_REPLICAS_AVAILABLE)
    await sandbox.change(MEMCACHEDS, VICTIM, impossible_spec, VALID)
    await check_recovered(sandbox, MEMCACHEDS, expected)


async def thousand_pods(sandbox: Sandbox, references: References, resource: Resource) -> None:
    """Scale to 1,000 pods, more than the node has room for, and back."""
    expected = await create_ready(sandbox, references, resource)
    changed: Mapping[str, Any] = {**VALID, "size": SIZE}
    await sandbox.change(resource, VICTIM, VALID, changed)

    async def poll() -> bool:
        obj = await sandbox.get(resource, VICTIM) or {}
        return nested_map(obj, "status").get("replicas", 0) >= MANY

    await wait_until(poll, 3 * READY_TIMEOUT, f"{MANY} pods exist")
    await sandbox.change(resource, VICTIM, changed, VALID)
    await wait_rolled_out(sandbox, resource, seconds=3 * READY_TIMEOUT)
    await check_recovered(sandbox, resource, expected)
    check_operator(sandbox)


def cases() -> list[Case]:
    """One case without room, and one for each kind that fills the node, which all cases share: these run alone."""
    return [
        Case("pods/memcacheds/impossible-resources", impossible, limit=480),
        *(
            Case(
                f"pods/{resource.plural}/thousand-pods",
                partial(thousand_pods, resource=resource),
                alone=True,
                limit=480,
            )
            for resource in (MEMCACHEDS, APPSERVICES)
        ),
    ]
