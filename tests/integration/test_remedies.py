"""Remedies of docs/troubleshoot.md that depend on the API server and the controllers of Kubernetes, as written."""

from functools import partial
from typing import Any, Final

import pytest

from integration.control_plane import NAMESPACES, ControlPlane, eventually
from integration.test_creation import hasten, reported
from integration.test_manager import cache, create, missing, patch, run_operator, wait_until_ready
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import CONFIG_MAPS, POD_DISRUPTION_BUDGETS, STATEFULSETS, Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS
from support.admitted import admitted
from support.draining import condition, evict, is_ready, pods_of

LEVEL: Final = "pod-security.kubernetes.io/enforce"
UNCONFINED: Final[Object] = {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}
HEALTHY: Final = "All components are healthy"


def of(namespace: str) -> Key:
    """The key of the Memcached."""
    return Key(MEMCACHEDS, namespace, "cache")


async def healthy(client: ApiClient, namespace: str) -> None:
    """Wait until there is no problem."""
    found = await wait_until_ready(client, namespace)
    assert condition(found, "Degraded")["message"] == HEALTHY


def test_cache_that_was_created_while_paused_gets_its_pods(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, size=1, rollout={"paused": True}))

        async def paused() -> bool:
            return condition(await client.get(of(namespace)) or {}, "Progressing").get("reason") == "Paused"

        await eventually(paused)
        assert await pods_of(client, namespace) == []
        found = condition(await client.get(of(namespace)) or {}, "Progressing")["message"]
        assert found.endswith("to continue, set spec.rollout.paused to false")
        await patch(client, of(namespace), {"spec": {"rollout": {"paused": False}}})
        await healthy(client, namespace)

    run_operator(plane, (namespace,), scenario)


@pytest.mark.parametrize("identity", ["Pooled", "Stable"])
@pytest.mark.parametrize("change", ["fields", "level"])
def test_pods_that_violate_pod_security(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch, identity: str, change: str
) -> None:
    """Remove the fields that it names, or lower the level of the namespace."""
    hasten(monkeypatch)
    plane.change(Key(NAMESPACES, "", namespace), {"metadata": {"labels": {LEVEL: "restricted"}}})

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, size=1, identity=identity, podTemplate={"spec": UNCONFINED}))
        loss = "Changing the fields that it names replaces the pods, and their items are lost"
        await eventually(partial(reported, client, of(namespace), "ApplyFailed", "violates PodSecurity"))
        await eventually(partial(reported, client, of(namespace), "ApplyFailed", loss))
        if change == "fields":
            await patch(client, of(namespace), {"spec": {"podTemplate": {"spec": {"securityContext": None}}}})
        else:
            labels = {"metadata": {"labels": {LEVEL: "privileged"}}}
            await patch(client, Key(NAMESPACES, "", namespace), labels)
        await healthy(client, namespace)

    run_operator(plane, (namespace,), scenario)


def test_immutable_config_map_is_deleted(plane: ControlPlane, namespace: str) -> None:
    key = Key(CONFIG_MAPS, namespace, "cache-connection")

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, size=1, identity="Stable"))
        await wait_until_ready(client, namespace)
        before = [pod["metadata"]["uid"] for pod in await pods_of(client, namespace)]
        await patch(client, key, {"immutable": True})
        await patch(client, of(namespace), {"spec": {"size": 2}})
        await eventually(partial(reported, client, of(namespace), "ApplyFailed", "immutable"))
        await client.request("DELETE", key.resource.path(namespace, key.name))
        await healthy(client, namespace)
        assert (await client.get(Key(STATEFULSETS, namespace, "cache")) or {})["spec"]["replicas"] == 2
        assert before[0] in [pod["metadata"]["uid"] for pod in await pods_of(client, namespace)]

    run_operator(plane, (namespace,), scenario)


def test_budget_that_delays_a_drain_is_raised_or_disabled(plane: ControlPlane, namespace: str) -> None:
    key = Key(POD_DISRUPTION_BUDGETS, namespace, "cache")

    async def allows(client: ApiClient, number: int) -> bool:
        found: Any = await client.get(key) or {}
        return found.get("status", {}).get("disruptionsAllowed") == number

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, **admitted(size=3)))
        await wait_until_ready(client, namespace)
        await eventually(partial(allows, client, 1))
        await patch(client, of(namespace), {"spec": {"podDisruptionBudget": {"maxUnavailable": 2}}})
        await eventually(partial(allows, client, 2))
        await patch(client, of(namespace), {"spec": {"podDisruptionBudget": {"enabled": False}}})
        await eventually(partial(missing, client, key))
        pods = [pod for pod in await pods_of(client, namespace) if is_ready(pod)]
        for pod in pods:
            await evict(client, pod)
        await healthy(client, namespace)

    run_operator(plane, (namespace,), scenario)
