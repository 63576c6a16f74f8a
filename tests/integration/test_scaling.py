"""The number of writes when autoscalers change the size of many objects again and again."""

import asyncio
from collections.abc import Iterator

import pytest

from integration.control_plane import ControlPlane, eventually, without_controllers
from integration.test_manager import cache, create, run_operator
from memcached_operator.kube.client import MERGE_PATCH, Client
from memcached_operator.kube.resource import DEPLOYMENTS, Object
from memcached_operator.memcached.controller import MEMCACHEDS

NAMES = [f"cache-{number:02}" for number in range(20)]
SIZES = [2, 5, 1, 8, 3, 7, 2, 6, 4, 3]
QUIET = 2.0
"""Seconds without a write after which the operator is considered idle: twice the minimum between two statuses."""


async def scale(client: Client, namespace: str, size: int) -> None:
    """Scale all objects through the subresource that autoscalers use, at the same time."""
    body = {"spec": {"replicas": size}}
    paths = [MEMCACHEDS.path(namespace, name, "scale") for name in NAMES]
    await asyncio.gather(*(client.request("PATCH", path, body, MERGE_PATCH) for path in paths))


async def wait_until_current(client: Client, namespace: str) -> None:
    """Wait until the status of every object is about its current generation."""

    async def all_current() -> bool:
        found = await client.request("GET", MEMCACHEDS.path(namespace))
        return len(found["items"]) == len(NAMES) and all(map(is_current, found["items"]))

    await eventually(all_current, 60)


def is_current(obj: Object) -> bool:
    """Whether a status is about the current generation."""
    return obj.get("status", {}).get("observedGeneration") == obj["metadata"]["generation"]


@pytest.fixture
def no_controllers(plane: ControlPlane) -> Iterator[None]:
    """Nothing but the operator changes the children: a change by the Deployment controller costs more statuses."""
    with without_controllers(plane):
        yield


@pytest.mark.usefixtures("no_controllers")
def test_each_change_of_the_size_costs_two_writes(plane: ControlPlane, namespace: str) -> None:
    audit = plane.audit()

    async def scenario(client: Client) -> None:
        await create(client, *(cache(namespace, name, size=1) for name in NAMES))
        await wait_until_current(client, namespace)
        await asyncio.to_thread(audit.wait_until_quiet, QUIET, namespace)
        for size in SIZES:
            await scale(client, namespace, size)
            await wait_until_current(client, namespace)
        await asyncio.to_thread(audit.wait_until_quiet, QUIET, namespace)
        found = await client.request("GET", DEPLOYMENTS.path(namespace))
        assert [each["spec"]["replicas"] for each in found["items"]] == len(NAMES) * [SIZES[-1]]

    run_operator(plane, (namespace,), scenario)
    writes, objects, changes = audit.writes(namespace), len(NAMES), len(NAMES) * len(SIZES)
    assert writes.pop("patch memcacheds/status") <= objects + changes
    scenario_writes = {"create memcacheds": objects, "patch memcacheds/scale": changes}
    children = {"create deployments": objects, "create services": objects, "patch deployments": changes}
    assert writes == scenario_writes | children
