"""Remedies of docs/troubleshoot.md that depend on the API server and the controllers of Kubernetes, as written."""

from functools import partial
from typing import Any, Final

import pytest

from integration.control_plane import NAMESPACES, ControlPlane, eventually
from integration.test_creation import KINDS, hasten, make, obj, reported
from integration.test_interventions import run
from integration.test_manager import cache, create, missing, patch, run_operator, wait_until_ready
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube import resource as kinds
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS
from support.admitted import admitted
from support.draining import condition, evict, is_ready, pods_of

LEVEL: Final = "pod-security.kubernetes.io/enforce"
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


INJECTED: Final[Object] = {"initContainers": [{"name": "proxy", "image": "example.com/proxy:1"}]}


def test_pods_that_violate_pod_security(plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Correct what adds a container to the pods, here to their template; lower the level for an AppService."""
    hasten(monkeypatch)
    level = Key(NAMESPACES, "", namespace)
    plane.change(level, {"metadata": {"labels": {LEVEL: "restricted"}}})
    app, workload = Key(APPSERVICES, namespace, "app"), Key(kinds.DEPLOYMENTS, namespace, "cache")

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, size=1, rollout={"maxUnavailable": 1, "maxSurge": 0}))
        await wait_until_ready(client, namespace)
        await patch(client, workload, {"spec": {"template": {"spec": INJECTED}}})
        await make(client, APPSERVICES, obj(APPSERVICES, "app", namespace, spec={"image": "example.com/app:1"}))
        for key in (of(namespace), app):
            await eventually(partial(reported, client, key, "ApplyFailed", "violates PodSecurity"))
        await patch(client, workload, {"spec": {"template": {"spec": {"initContainers": []}}}})
        await healthy(client, namespace)
        await patch(client, level, {"metadata": {"labels": {LEVEL: "baseline"}}})
        await wait_until_ready(client, namespace, "app", APPSERVICES)

    run_operator(plane, (namespace,), scenario, kinds=KINDS)


def test_immutable_config_map_is_deleted(plane: ControlPlane, namespace: str) -> None:
    key = Key(kinds.CONFIG_MAPS, namespace, "cache-connection")

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, size=1, identity="Stable"))
        await wait_until_ready(client, namespace)
        before = [pod["metadata"]["uid"] for pod in await pods_of(client, namespace)]
        await patch(client, key, {"immutable": True})
        await patch(client, of(namespace), {"spec": {"size": 2}})
        await eventually(partial(reported, client, of(namespace), "ApplyFailed", "immutable"))
        await client.request("DELETE", key.resource.path(namespace, key.name))
        await healthy(client, namespace)
        assert (await client.get(Key(kinds.STATEFULSETS, namespace, "cache")) or {})["spec"]["replicas"] == 2
        assert before[0] in [pod["metadata"]["uid"] for pod in await pods_of(client, namespace)]

    run_operator(plane, (namespace,), scenario)


@pytest.mark.kubectl
@pytest.mark.usefixtures("kubeconfig")
def test_paused_app_service_is_resumed_with_the_command_of_its_message(plane: ControlPlane, namespace: str) -> None:
    app = Key(APPSERVICES, namespace, "app")

    async def message(client: ApiClient) -> str:
        found = condition(await client.get(app) or {}, "Progressing")
        return found["message"] if found.get("reason") == "Paused" else ""

    async def scenario(client: ApiClient) -> None:
        await make(client, APPSERVICES, obj(APPSERVICES, "app", namespace, spec={"image": "example.com/app:1"}))
        await wait_until_ready(client, namespace, "app", APPSERVICES)
        await patch(client, Key(kinds.DEPLOYMENTS, namespace, "app"), {"spec": {"paused": True}})
        await patch(client, app, {"spec": {"image": "example.com/app:2"}})
        found = await eventually(partial(message, client))
        await run(found[found.index("kubectl") :])
        await wait_until_ready(client, namespace, "app", APPSERVICES)

    run_operator(plane, (namespace,), scenario, kinds=KINDS)


def test_budget_that_delays_a_drain_is_raised_or_disabled(plane: ControlPlane, namespace: str) -> None:
    key = Key(kinds.POD_DISRUPTION_BUDGETS, namespace, "cache")

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


EVICTED: Final = "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi"


@pytest.mark.parametrize("identity", ["Stable", "Pooled"])
def test_pods_that_kubernetes_stops_have_one_event_each_and_then_a_notice(
    plane: ControlPlane, namespace: str, identity: str
) -> None:
    """A StatefulSet deletes them at once, a ReplicaSet leaves them. A restart of the controller repeats no Event."""

    async def events(client: ApiClient) -> list[str]:
        path = f"/api/v1/namespaces/{namespace}/events"
        found = await client.request("GET", path, params={"fieldSelector": "reason=PodDisrupted"})
        return sorted(each["metadata"]["name"] for each in found["items"])

    async def running(client: ApiClient) -> list[Object]:
        return [each for each in await pods_of(client, namespace) if each["status"]["phase"] == "Running"]

    async def stop(client: ApiClient, number: int) -> None:
        await wait_until_ready(client, namespace)
        # The status of a pod that has just been replaced may be that of the pod before.
        (pod,) = await eventually(partial(running, client))
        failed = {"phase": "Failed", "reason": "Evicted", "message": f"{EVICTED}. "}
        path = f"{kinds.PODS.path(namespace, pod['metadata']['name'])}/status"
        await client.request("PATCH", path, {"status": failed}, "application/merge-patch+json")

        async def is_reported() -> bool:
            return len(await events(client)) == number and f"cache.{pod['metadata']['uid']}" in await events(client)

        await eventually(is_reported)

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, size=1, identity=identity))
        for number in (1, 2, 3):
            await stop(client, number)
        text = f"Kubernetes stopped 3 or more pods within 30 minutes (Evicted): {EVICTED}. Raise ephemeral-storage in"
        await eventually(partial(reported, client, of(namespace), "AsExpected", text))

    async def later(client: ApiClient) -> None:
        before = await events(client)
        await patch(client, of(namespace), {"spec": {"size": 2}})

        async def is_larger() -> bool:
            found = await client.get(of(namespace)) or {}
            return found["status"].get("readyReplicas") == 2

        await eventually(is_larger)
        assert await events(client) == before

    for each in (scenario, later):
        run_operator(plane, (namespace,), each)
