"""Pods that do not start: specs that are valid but cannot be fulfilled, and the way back."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from faults.campaigns.drift import wait_for_reason, wait_rolled_out
from faults.case import Case, References
from faults.esr import VICTIM, Reference, check_operator, check_quiet, check_stable
from faults.sandbox import READY_TIMEOUT, Sandbox, wait_until
from faults.workloads import OTHER_IMAGE, Workload, cache
from memcached_api import conditions as c
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.client import MERGE_PATCH
from memcached_operator.kube.resource import PODS, Object, Resource, nested_map
from memcached_operator.memcached.controller import MEMCACHEDS
from support.lists import listed

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


async def impossible(sandbox: Sandbox, references: References, resource: Resource) -> None:
    """No node has the requested resources: existing pods keep serving, and the reason is reported."""
    expected = await create_ready(sandbox, references, resource)
    impossible_spec = {**VALID, "resources": {"requests": {"cpu": "1M"}, "limits": {"cpu": "1M"}}}
    await sandbox.change(resource, VICTIM, VALID, impossible_spec)
    await wait_for_reason(sandbox, resource, c.ROLLING_OUT)
    await check_quiet(sandbox)
    await wait_for_reason(sandbox, resource, c.MINIMUM_REPLICAS_AVAILABLE)
    await sandbox.change(resource, VICTIM, impossible_spec, VALID)
    await check_recovered(sandbox, resource, expected)


async def no_image(sandbox: Sandbox, references: References, resource: Resource) -> None:
    """An image cannot be pulled: it is reported, and the spec can be changed back."""
    expected = await create_ready(sandbox, references, resource)
    changed = {**VALID, "image": OTHER_IMAGE}
    await sandbox.change(resource, VICTIM, VALID, changed)

    async def failing() -> bool:
        for pod in await _pods(sandbox):
            if pod["spec"]["containers"][0]["image"] == OTHER_IMAGE and nested_map(pod, "status").get("podIP"):
                await _unpullable(sandbox, pod)
        return (await sandbox.condition(resource, VICTIM, c.DEGRADED))["reason"] == c.IMAGE_UNAVAILABLE

    await wait_until(failing, READY_TIMEOUT, "Degraded reports the image")
    await sandbox.change(resource, VICTIM, changed, VALID)
    await check_recovered(sandbox, resource, expected)


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


async def _pods(sandbox: Sandbox) -> list[Object]:
    found, _ = await listed(sandbox.client, PODS, sandbox.namespace)
    return list(found)


async def _unpullable(sandbox: Sandbox, pod: Object) -> None:
    """Set a pod's status as a kubelet does if the image does not exist."""
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    container = {"name": pod["spec"]["containers"][0]["name"], "image": OTHER_IMAGE, "imageID": "", "restartCount": 0}
    status = {
        "containerStatuses": [{**container, "ready": False, "state": waiting}],
        "conditions": [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "False"}],
    }
    path = PODS.path(sandbox.namespace, pod["metadata"]["name"], "status")
    await sandbox.client.request("PATCH", path, {"status": status}, MERGE_PATCH)


SCENARIOS: dict[str, Callable[..., Awaitable[None]]] = {
    "impossible-resources": impossible,
    "wrong-image": no_image,
    "thousand-pods": thousand_pods,
}


def cases() -> list[Case]:
    """Each case for both kinds. The ones with 1,000 pods run alone, because all cases share the node."""
    return [
        Case(f"pods/{resource.plural}/{name}", partial(run, resource=resource), alone=run == thousand_pods, limit=480)
        for resource in (MEMCACHEDS, APPSERVICES)
        for name, run in SCENARIOS.items()
    ]
