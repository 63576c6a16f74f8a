"""Autoscalers of others, and what changes of objects of others cost, with the real autoscaler controller."""

import asyncio
from typing import Any

import pytest

from integration.control_plane import ControlPlane, create_as_user, eventually
from integration.test_manager import cache, create, patch, run_operator, wait_until_ready
from integration.test_placing_drain import foreign_budget, wait_for_message, wait_until_observed
from memcached_operator import metrics
from memcached_operator.kube.client import MERGE_PATCH, Client
from memcached_operator.kube.reflector import Change
from memcached_operator.kube.resource import AUTOSCALERS, DEPLOYMENTS, POD_DISRUPTION_BUDGETS, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.reconcile.manager import Manager
from support.admitted import admitted
from support.draining import condition

QUIET = 0.5
"""Seconds without a reconcile after which the operator is considered idle, or an event to have had no effect."""
REMEDY = "to apiVersion cache.example.com/v1, kind Memcached, name cache"


def autoscaler(namespace: str, target: Resource) -> Object:
    """An autoscaler. Without metrics, its controller writes only its status."""
    return {
        "apiVersion": AUTOSCALERS.api_version,
        "kind": AUTOSCALERS.kind,
        "metadata": {"name": "load", "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": target.api_version, "kind": target.kind, "name": "cache"},
            "minReplicas": 1,
            "maxReplicas": 5,
        },
    }


async def wait_for_conflict(client: Client, namespace: str) -> Object:
    """Wait until the autoscaler is reported as a Conflict with its remedy; return the Memcached."""

    async def check() -> Object | None:
        found = await client.get(Key(MEMCACHEDS, namespace, "cache")) or {}
        degraded = condition(found, "Degraded")
        reported = degraded.get("reason") == "Conflict" and REMEDY in degraded["message"]
        return found if reported and condition(found, "Progressing")["reason"] == "RolloutComplete" else None

    found = await eventually(check)
    assert found is not None
    return found


def test_autoscaler_of_the_deployment_is_reported_until_it_scales_the_memcached(
    plane: ControlPlane, namespace: str
) -> None:
    key, own = Key(AUTOSCALERS, namespace, "load"), Key(MEMCACHEDS, namespace, "cache")
    audit = plane.audit()

    async def scenario(client: Client) -> None:
        await create(client, cache(namespace, **admitted(size=1)))
        await wait_until_ready(client, namespace)
        await create_as_user(client, AUTOSCALERS, autoscaler(namespace, DEPLOYMENTS))
        found = await wait_for_conflict(client, namespace)
        assert "HorizontalPodAutoscaler load scales Deployment cache" in condition(found, "Degraded")["message"]
        assert condition(found, "Available")["status"] == "True"
        await patch(client, key, {"spec": autoscaler(namespace, MEMCACHEDS)["spec"]})
        await wait_for_message(client, namespace, "All components are healthy")
        scale = own.resource.path(namespace, own.name, "scale")
        await client.request("PATCH", scale, {"spec": {"replicas": 3}}, MERGE_PATCH)
        found = await wait_until_ready(client, namespace)
        assert (found["spec"]["size"], len(found["status"]["nodes"])) == (3, 3)
        assert condition(found, "Degraded")["message"] == "All components are healthy"

    run_operator(plane, (namespace,), scenario)
    writes = audit.writes(namespace)
    of_objects = {what for what in writes if "memcacheds" in what}
    assert of_objects == {"create memcacheds", "patch memcacheds/scale", "patch memcacheds/status"}
    assert (writes["patch memcacheds/scale"], writes["patch deployments"]) == (1, 1)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> set[tuple[Resource, str]]:
    """Resource and resourceVersion of every event that the operator has handled."""
    found: set[tuple[Resource, str]] = set()
    original = Manager.handle_event

    def record(self: Manager, resource: Resource, change: Change, obj: Object) -> None:
        original(self, resource, change, obj)
        found.add((resource, obj["metadata"]["resourceVersion"]))

    monkeypatch.setattr(Manager, "handle_event", record)
    return found


def reconciles() -> int:
    """The number of reconciles of Memcacheds in this process."""
    (metric,) = metrics.RECONCILES.collect()
    return sum(
        int(sample.value)
        for sample in metric.samples
        if sample.name.endswith("_total") and sample.labels["controller"] == "memcached"
    )


async def wait_until_idle() -> int:
    """Wait until no object is reconciled for QUIET; return the number of reconciles."""
    last = -1
    while (now := reconciles()) != last:
        last = now
        await asyncio.sleep(QUIET)
    return now


STATUSES: dict[Resource, tuple[str, Object]] = {
    AUTOSCALERS: ("load", {"currentReplicas": 7, "desiredReplicas": 7}),
    POD_DISRUPTION_BUDGETS: ("own-budget", {"expectedPods": 7}),
}
"""Name and new status of an object of others."""


def test_status_of_an_object_of_others_causes_no_reconcile(
    plane: ControlPlane, namespace: str, seen: set[tuple[Resource, str]]
) -> None:
    """Such statuses change with every pod and every measured value."""

    async def change(client: Client, key: Key, subresource: str, content: Any) -> None:
        path = key.resource.path(namespace, key.name, subresource)
        reply = await client.request("PATCH", path, content, MERGE_PATCH)

        async def is_seen() -> bool:
            return (key.resource, reply["metadata"]["resourceVersion"]) in seen

        await eventually(is_seen)

    async def scenario(client: Client) -> None:
        await create_as_user(client, AUTOSCALERS, autoscaler(namespace, DEPLOYMENTS))
        await create_as_user(client, POD_DISRUPTION_BUDGETS, foreign_budget(namespace))
        await create(client, cache(namespace, **admitted(size=2)))
        await wait_for_conflict(client, namespace)
        await wait_until_observed(client, Key(POD_DISRUPTION_BUDGETS, namespace, "own-budget"))
        for resource, (name, status) in STATUSES.items():
            before = await wait_until_idle()
            await change(client, Key(resource, namespace, name), "status", {"status": status})
            assert await wait_until_idle() == before, resource
            await change(client, Key(resource, namespace, name), "", {"metadata": {"labels": {"touched": "yes"}}})
            assert await wait_until_idle() > before, resource

    run_operator(plane, (namespace,), scenario)


def test_restart_with_objects_of_others_writes_nothing(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No object is reconciled before all that its plan reads are listed, however long that takes."""

    async def first(client: Client) -> None:
        await create_as_user(client, AUTOSCALERS, autoscaler(namespace, DEPLOYMENTS))
        await create_as_user(client, POD_DISRUPTION_BUDGETS, foreign_budget(namespace))
        spec = admitted(size=2, networkPolicy={})
        await create(client, cache(namespace, **spec), cache(namespace, "all-children", **spec))
        await wait_for_conflict(client, namespace)
        await wait_until_ready(client, namespace, "all-children")
        await asyncio.to_thread(audit.wait_until_quiet, 4 * QUIET, namespace)

    async def second(_: Client) -> None:
        before = reconciles()

        async def reconciled() -> bool:
            return reconciles() >= before + 2

        await eventually(reconciled)
        await wait_until_idle()

    original = Client.list

    async def delayed(self: Client, resource: Resource, namespace: str | None, selector: str = "") -> Any:
        if resource in STATUSES:
            await asyncio.sleep(QUIET)
        return await original(self, resource, namespace, selector)

    audit = plane.audit()
    run_operator(plane, (namespace,), first)
    audit = plane.audit()
    monkeypatch.setattr(Client, "list", delayed)
    run_operator(plane, (namespace,), second)
    assert audit.writes(namespace) == {}
