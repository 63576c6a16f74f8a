"""T8, the cases that no schema tells of: a spec that cannot be carried out, and back to one that can."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from faults.campaigns.drift import rolled_out, told
from faults.case import Case, References
from faults.esr import VICTIM, Reference, calm, quiet, stable
from faults.stage import NORMAL, Stage, until
from faults.workloads import OTHER_IMAGE, Workload, cache
from memcached_api import conditions as c
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.client import MERGE_PATCH
from memcached_operator.kube.resource import PODS, Object, Resource, nested_map
from memcached_operator.memcached.controller import MEMCACHEDS

QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas")
GOOD = cache(size=2)
THOUSAND = 1000
MANY = 60
"""Pods that are there before a thousand are taken back: the node has no room for all of them."""
REFILL = 120.0
"""Seconds: the API server counts a quota anew within 5, the ReplicaSet tries again within some ten."""


async def begun(stage: Stage, references: References, resource: Resource) -> Reference:
    """The object is there; what it is like without all this."""
    expected = await references.of(Workload(f"semantics-{resource.plural}", resource, None, GOOD, ()))
    stage.operator.start()
    await stage.watching()
    await stage.create(resource, VICTIM, GOOD)
    await stage.settled(resource, VICTIM)
    return expected


async def ended(stage: Stage, resource: Resource, expected: Reference) -> None:
    """All is as if nothing had been."""
    await stage.settled(resource, VICTIM, REFILL)
    await stable(stage, resource, expected, NORMAL, loose=True)


async def impossible(stage: Stage, references: References, resource: Resource) -> None:
    """Resources that no node has: the pods there were go on serving, and what is awaited is told."""
    expected = await begun(stage, references, resource)
    bad = {**GOOD, "resources": {"requests": {"cpu": "1M"}, "limits": {"cpu": "1M"}}}
    await stage.change(resource, VICTIM, GOOD, bad)
    await told(stage, resource, c.ROLLING_OUT)
    await quiet(stage)
    await told(stage, resource, c.MINIMUM_REPLICAS_AVAILABLE)
    await stage.change(resource, VICTIM, bad, GOOD)
    await ended(stage, resource, expected)


async def no_quota(stage: Stage, references: References, resource: Resource) -> None:
    """A quota lets no pods be, all of them are lost, and the quota goes again."""
    expected = await begun(stage, references, resource)
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    await stage.client.request("POST", QUOTAS.path(stage.namespace), quota)
    await stage.client.request("DELETE", PODS.path(stage.namespace))
    await told(stage, resource, c.APPLY_FAILED)
    await stage.client.request("DELETE", QUOTAS.path(stage.namespace, "none"))
    await ended(stage, resource, expected)


async def no_image(stage: Stage, references: References, resource: Resource) -> None:
    """An image that cannot be pulled: it is told of, and the way back is open."""
    expected = await begun(stage, references, resource)
    bad = {**GOOD, "image": OTHER_IMAGE}
    await stage.change(resource, VICTIM, GOOD, bad)

    async def failing() -> bool:
        for pod in await _pods(stage):
            if pod["spec"]["containers"][0]["image"] == OTHER_IMAGE and nested_map(pod, "status").get("podIP"):
                await _unpullable(stage, pod)
        obj = await stage.get(resource, VICTIM) or {}
        reasons = [each["reason"] for each in nested_map(obj, "status").get("conditions", [])]
        return c.IMAGE_UNAVAILABLE in reasons

    await until(failing, NORMAL, "Degraded tells of the image")
    await stage.change(resource, VICTIM, bad, GOOD)
    await ended(stage, resource, expected)


async def thousand(stage: Stage, references: References, resource: Resource) -> None:
    """A thousand pods, more than the node has room for, and down again."""
    expected = await begun(stage, references, resource)
    bad: Mapping[str, Any] = {**GOOD, "size": THOUSAND}
    await stage.change(resource, VICTIM, GOOD, bad)

    async def look() -> bool:
        obj = await stage.get(resource, VICTIM) or {}
        return nested_map(obj, "status").get("replicas", 0) >= MANY

    await until(look, 3 * NORMAL, f"there are {MANY} pods")
    await stage.change(resource, VICTIM, bad, GOOD)
    await rolled_out(stage, resource, 3 * NORMAL)
    await ended(stage, resource, expected)
    calm(stage)


async def _pods(stage: Stage) -> list[Object]:
    found, _ = await stage.client.list(PODS, stage.namespace)
    return list(found)


async def _unpullable(stage: Stage, pod: Object) -> None:
    """What a kubelet says of a pod whose image is nowhere."""
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    container = {"name": pod["spec"]["containers"][0]["name"], "image": OTHER_IMAGE, "imageID": "", "restartCount": 0}
    status = {
        "containerStatuses": [{**container, "ready": False, "state": waiting}],
        "conditions": [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "False"}],
    }
    path = PODS.path(stage.namespace, pod["metadata"]["name"], "status")
    await stage.client.request("PATCH", path, {"status": status}, MERGE_PATCH)


PLAYS: dict[str, Callable[..., Awaitable[None]]] = {
    "impossible-resources": impossible,
    "quota": no_quota,
    "wrong-image": no_image,
    "a-thousand": thousand,
}


def cases() -> list[Case]:
    """Each for both kinds; the thousand alone, because the node's room is everybody's."""
    return [
        Case(f"T8/{resource.plural}/{name}", partial(play, resource=resource), alone=play == thousand, limit=480)
        for resource in (MEMCACHEDS, APPSERVICES)
        for name, play in PLAYS.items()
    ]
