"""Drains of nodes and the placement of pods, with the real scheduler, disruption controller and eviction API."""

import asyncio
import uuid
from collections.abc import Callable, Iterator

import pytest

from integration.control_plane import ControlPlane, create_as_user, eventually
from integration.test_manager import cache, create, keys, missing, patch, run_operator, wait_until_ready
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS
from support import draining
from support.admitted import admitted
from support.draining import condition, node

AddNode = Callable[..., str]
"""Adds a node to the pool of the test, with these resources; returns its name."""


@pytest.fixture
def pool() -> str:
    """The name of a pool of nodes for one test."""
    return f"pool-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def add_node(plane: ControlPlane, pool: str) -> Iterator[AddNode]:
    """Adds nodes, which accept pods when the function returns; deletes them afterwards."""
    names: list[str] = []

    def add(**resources: str) -> str:
        created = plane.create(draining.NODES, node(pool, len(names), **resources))
        names.append(created["metadata"]["name"])

        async def wait(client: ApiClient) -> None:
            async def check() -> bool:
                found = await client.get(Key(draining.NODES, "", names[-1]))
                return found is not None and draining.schedulable(found)

            await eventually(check)

        plane.call(wait)
        return names[-1]

    yield add
    for name in names:
        plane.delete(Key(draining.NODES, "", name))


def budget(namespace: str, name: str = "cache") -> Key:
    """The key of a PodDisruptionBudget."""
    return Key(POD_DISRUPTION_BUDGETS, namespace, name)


def foreign_budget(namespace: str) -> Object:
    """A user's own budget for the pods of the Memcached `cache`."""
    selector = {"matchLabels": {"app.kubernetes.io/instance": "cache"}}
    return {
        "apiVersion": POD_DISRUPTION_BUDGETS.api_version,
        "kind": POD_DISRUPTION_BUDGETS.kind,
        "metadata": {"name": "own-budget", "namespace": namespace},
        "spec": {"maxUnavailable": 1, "selector": selector},
    }


async def wait_until_observed(client: ApiClient, key: Key) -> None:
    """Wait until the disruption controller has observed a budget; before, it allows no eviction."""

    async def check() -> bool:
        found = await client.get(key) or {}
        return found.get("status", {}).get("observedGeneration") == found.get("metadata", {}).get("generation", 0)

    await eventually(check)


async def wait_for_message(client: ApiClient, namespace: str, text: str) -> None:
    """Wait until the Degraded condition is False and its message contains a text."""

    async def check() -> bool:
        found = condition(await client.get(Key(MEMCACHEDS, namespace, "cache")) or {}, "Degraded")
        return found.get("status") == "False" and text in found.get("message", "")

    await eventually(check)


@pytest.mark.parametrize(("size", "lowest"), [(1, 0), (3, 2)])
def test_drain_completes(
    plane: ControlPlane, namespace: str, pool: str, add_node: AddNode, size: int, lowest: int
) -> None:
    """All pods run on the node that is drained, so that all are evicted at the same time."""
    first = add_node()

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, **admitted(size=size, **draining.in_pool(pool))))
        await wait_until_ready(client, namespace)
        assert draining.nodes_of(await draining.pods_of(client, namespace)) == size * [first]
        assert await missing(client, budget(namespace)) == (size == 1)
        others = [await asyncio.to_thread(add_node) for _ in range(2)]
        async with draining.ready_pods(client, namespace) as ready:
            await asyncio.wait_for(draining.drain(client, first, namespace), 60)
            await wait_until_ready(client, namespace)
        assert min(ready.counts) == lowest, ready.counts
        found = draining.nodes_of(await draining.pods_of(client, namespace))
        assert len(found) == size
        assert set(found) <= set(others)

    run_operator(plane, (namespace,), scenario)


def test_drain_with_a_foreign_budget(
    plane: ControlPlane, namespace: str, pool: str, add_node: AddNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two budgets evictions fail; the operator deletes its own, and creates it again when it is the only one."""
    monkeypatch.setattr("memcached_operator.world.other_budgets.LIST_PERIOD", 3.0)
    first = add_node()
    ours, theirs = budget(namespace), budget(namespace, "own-budget")

    async def start(client: ApiClient) -> None:
        await create(client, cache(namespace, **admitted(size=3, **draining.in_pool(pool))))
        await wait_until_ready(client, namespace)

    async def without_operator(client: ApiClient) -> None:
        await create_as_user(client, theirs.resource, foreign_budget(namespace))
        await wait_until_observed(client, theirs)
        pods = await draining.pods_of(client, namespace)
        with pytest.raises(ApiError, match="more than one PodDisruptionBudget") as error:
            await draining.evict(client, pods[0])
        assert error.value.code == 500

    async def with_operator(client: ApiClient) -> None:
        await eventually(lambda: missing(client, ours))
        await asyncio.to_thread(add_node)
        async with draining.ready_pods(client, namespace) as ready:
            await asyncio.wait_for(draining.drain(client, first, namespace), 60)
            await wait_until_ready(client, namespace)
        assert min(ready.counts) == 2, ready.counts
        await wait_for_message(client, namespace, "because PodDisruptionBudget own-budget selects the same pods")
        assert await missing(client, ours)
        await client.request("DELETE", theirs.resource.path(namespace, theirs.name))
        await eventually(lambda: client.get(ours))

    run_operator(plane, (namespace,), start)
    plane.call(without_operator)
    run_operator(plane, (namespace,), with_operator)


@pytest.mark.parametrize(("spec", "on_large_node"), [({}, 2), (admitted(), 1)], ids=["old", "new"])
def test_pods_of_a_new_object_run_on_different_nodes(
    plane: ControlPlane, namespace: str, pool: str, add_node: AddNode, spec: Object, on_large_node: int
) -> None:
    """The scheduler prefers the large node, which its own default for spreading does not outweigh."""
    names = [add_node(cpu="64", memory="128Gi"), *(add_node(cpu="120m", memory="150Mi") for _ in range(2))]

    async def scenario(client: ApiClient) -> None:
        obj = cache(namespace)
        placed = draining.in_pool(pool)["podTemplate"]["spec"] | spec.get("podTemplate", {}).get("spec", {})
        obj["spec"] = {**spec, "size": 3, "podTemplate": {"spec": placed}}
        await create(client, obj)
        await wait_until_ready(client, namespace)
        assert draining.nodes_of(await draining.pods_of(client, namespace)).count(names[0]) == on_large_node

    run_operator(plane, (namespace,), scenario)


def test_new_pods_replace_old_ones_on_different_nodes(
    plane: ControlPlane, namespace: str, pool: str, add_node: AddNode
) -> None:
    """Only pods of one template count: those being replaced do not push the new ones together."""
    names = [add_node() for _ in range(3)]

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, **admitted(size=3, **draining.in_pool(pool))))
        await wait_until_ready(client, namespace)
        before = await client.get(keys(namespace)[0])
        await patch(client, Key(MEMCACHEDS, namespace, "cache"), {"spec": {"image": "example.com/memcached:2"}})
        await wait_until_ready(client, namespace)
        after = await client.get(Key(DEPLOYMENTS, namespace, "cache"))
        assert before is not None
        assert after is not None
        assert before["spec"]["template"] != after["spec"]["template"]
        assert draining.nodes_of(await draining.pods_of(client, namespace)) == sorted(names)

    run_operator(plane, (namespace,), scenario)
