"""Missing Secrets on the real API server. The test writes the statuses and the Events of pods, as a kubelet does."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from integration.control_plane import ControlPlane, eventually
from integration.test_manager import cache, create, operator_requests, run_operator, wait_until_ready
from memcached_operator.kube.client import ApiClient, Page
from memcached_operator.kube.resource import DEPLOYMENTS, EVENTS, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.status.conditions import DEBOUNCE_PERIOD
from memcached_operator.workloads.problems.mounts import MAX_EVENTS
from support import mounting
from support.draining import condition

MANY = 10 * MAX_EVENTS
"""Events of other pods and of other causes: the API server reads them in several pages."""
AT_ONCE = 50
FORGED = mounting.NOT_FOUND.replace("not found", "cannot be read")


async def stuck_pod(client: ApiClient, namespace: str) -> Object:
    """Create a Memcached whose only pod mounts a Secret and waits for a node; return the pod."""
    await create(client, cache(namespace, size=1, **mounting.NOWHERE))
    workload = Key(DEPLOYMENTS, namespace, "cache")
    await eventually(lambda: client.get(workload))
    await mounting.mount(client, workload)
    (found,) = await eventually(lambda: mounting.mounting_pods(client, namespace))
    return found


async def add_other_events(client: ApiClient, pod: Object) -> None:
    """Add Events of another pod, and of the pod with another cause or from another component."""
    other = {**pod, "metadata": {**pod["metadata"], "uid": "other"}}
    limit = asyncio.Semaphore(AT_ONCE)

    async def add(number: int) -> None:
        async with limit:
            match number % 3:
                case 0:
                    await mounting.report(client, other)
                case 1:
                    await mounting.report(client, pod, message="Back-off", reason="BackOff")
                case _:
                    await mounting.report(client, pod, seen=-60, message=FORGED, source={"component": "other"})

    await asyncio.gather(*map(add, range(MANY)))


def reads_of_events(namespace: str, requests: Any) -> list[str]:
    """The verbs of the operator's reads of Events."""
    found = [each for each in operator_requests(namespace, requests) if each["objectRef"]["resource"] == "events"]
    return [each["verb"] for each in found if each["verb"] != "create"]


def test_missing_secret_is_found_among_many_events_and_reported_until_the_pod_starts(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart of the operator does not change the status, however long the first read takes."""
    audit, original, pods = plane.audit(), ApiClient.list, list[Object]()

    async def list_slowly(self: ApiClient, resource: Resource, *arguments: Any, **options: Any) -> AsyncGenerator[Page]:
        if resource == EVENTS:
            await asyncio.sleep(4 * DEBOUNCE_PERIOD)
        async for page in original(self, resource, *arguments, **options):
            yield page

    async def first(client: ApiClient) -> None:
        pod = await stuck_pod(client, namespace)
        pods.append(pod)
        await add_other_events(client, pod)
        await mounting.report(client, pod, seen=2)
        await mounting.set_waiting(client, pod)
        message = f"Pod {pod['metadata']['name']}: {mounting.MESSAGE}"

        async def is_reported() -> bool:
            found = condition(await client.get(Key(MEMCACHEDS, namespace, "cache")) or {}, "Degraded")
            return (found.get("reason"), found.get("message")) == ("SecretUnavailable", message)

        await eventually(is_reported)

    async def second(client: ApiClient) -> None:
        async def is_read() -> bool:
            return bool(reads_of_events(namespace, audit.requests(b"events")))

        await eventually(is_read)
        await asyncio.to_thread(audit.wait_until_quiet, 2 * DEBOUNCE_PERIOD, namespace)
        assert audit.writes(namespace) == {}
        await mounting.set_running(client, pods[0])
        found = await wait_until_ready(client, namespace)
        assert found["status"]["nodes"] == [pods[0]["metadata"]["name"]]

    run_operator(plane, (namespace,), first)
    assert reads_of_events(namespace, audit.requests(b"events")) == ["list"]
    audit = plane.audit()
    monkeypatch.setattr(ApiClient, "list", list_slowly)
    run_operator(plane, (namespace,), second)
