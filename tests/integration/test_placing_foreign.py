"""Objects of others with the names of our children are not modified, and everything else of the object works."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from integration.control_plane import ControlPlane, create_as_user, eventually
from integration.test_manager import cache, create, patch, run_operator, wait_until_ready
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import (
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    Key,
    Object,
    Resource,
    controller_of,
)
from memcached_operator.memcached.controller import MEMCACHEDS
from support.admitted import admitted
from support.draining import condition

CHILDREN = (DEPLOYMENTS, SERVICES, POD_DISRUPTION_BUDGETS, NETWORK_POLICIES)
SELECTOR = {"app": "foreign"}
POD = {"metadata": {"labels": SELECTOR}, "spec": {"containers": [{"name": "main", "image": "localhost/foreign:1"}]}}
CONTENT: dict[Resource, Object] = {
    DEPLOYMENTS: {"spec": {"replicas": 0, "selector": {"matchLabels": SELECTOR}, "template": POD}},
    SERVICES: {"spec": {"selector": SELECTOR, "ports": [{"port": 80}]}},
    POD_DISRUPTION_BUDGETS: {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": SELECTOR}}},
    NETWORK_POLICIES: {"spec": {"podSelector": {"matchLabels": SELECTOR}, "policyTypes": ["Ingress"]}},
}
"""The content of a foreign object of each resource, which selects none of our pods."""

BEFORE: Object = {"size": 2, "containerPort": 11211, "networkPolicy": {}}
AFTER: Object = {"size": 3, "containerPort": 11311, "podDisruptionBudget": {"maxUnavailable": 2}}
VALUES: dict[Resource, tuple[Callable[[Object], Any], Any]] = {
    DEPLOYMENTS: (lambda spec: (spec["replicas"], spec["template"]["spec"]["containers"][0]["ports"]), (3, 11311)),
    SERVICES: (lambda spec: spec["ports"][0]["port"], 11311),
    POD_DISRUPTION_BUDGETS: (lambda spec: spec["maxUnavailable"], 2),
    NETWORK_POLICIES: (lambda spec: spec["ingress"][0]["ports"][0]["port"], 11311),
}
"""Of each child, how to read what changes from BEFORE to AFTER, and its value then."""


def labels(name: str) -> dict[str, str]:
    """The labels of the children of a Memcached."""
    own = {"name": "memcached", "instance": name, "managed-by": "memcached-operator", "component": "cache"}
    return {f"app.kubernetes.io/{key}": value for key, value in own.items()}


def foreign(key: Key, *, labelled: bool) -> Object:
    """An object with the name of a child that does not belong to the operator, with the operator's labels or not."""
    meta: Object = {"name": key.name, "namespace": key.namespace}
    meta |= {"labels": labels(key.name)} if labelled else {}
    return {
        "apiVersion": key.resource.api_version,
        "kind": key.resource.kind,
        "metadata": meta,
        **CONTENT[key.resource],
    }


async def create_foreign(client: ApiClient, key: Key, *, labelled: bool) -> Object:
    """Create a foreign object; return it when its own controller has no more to write."""
    await create_as_user(client, key.resource, foreign(key, labelled=labelled))

    async def settled() -> Object | None:
        found = await client.get(key)
        assert found is not None
        done = {
            POD_DISRUPTION_BUDGETS: bool(condition(found, "DisruptionAllowed")),
            DEPLOYMENTS: condition(found, "Progressing").get("reason") == "NewReplicaSetAvailable",
        }
        return found if done.get(key.resource, True) else None

    found = await eventually(settled)
    assert found is not None
    return found


async def is_owned(client: ApiClient, key: Key, uid: str) -> bool:
    """Whether a child exists and belongs to the object with this uid."""
    found = await client.get(key)
    return found is not None and (controller_of(found) or {}).get("uid") == uid


async def has_value(client: ApiClient, key: Key) -> bool:
    """Whether a child has what AFTER asks for."""
    read, expected = VALUES[key.resource]
    found = read((await client.get(key) or {"spec": {}})["spec"])
    return (found[0], found[1][0]["containerPort"]) == expected if isinstance(found, tuple) else found == expected


async def expect(
    client: ApiClient, key: Key, check: Callable[[ApiClient, Key], Awaitable[bool]], but: Resource | None = None
) -> None:
    """Wait until a check of every child of a Memcached is true, except for one that cannot exist."""
    for resource in CHILDREN:
        if resource != but:
            await eventually(lambda resource=resource: check(client, key._replace(resource=resource)))


async def wait_for_conflict(client: ApiClient, key: Key, kind: str) -> None:
    """Wait until a Memcached reports the conflict with an object of its name."""

    async def check() -> bool:
        found = condition(await client.get(key) or {}, "Degraded")
        return found.get("reason") == "Conflict" and f"{kind} {key.name} exists" in found["message"]

    await eventually(check)


async def has_no_effect(client: ApiClient, namespace: str, resource: Resource, *, labelled: bool) -> None:
    """Check everything for one resource, with a Memcached whose name is the resource's."""
    key = Key(MEMCACHEDS, namespace, f"{resource.plural}-labelled" if labelled else resource.plural)
    name = key._replace(resource=resource)
    before = await create_foreign(client, name, labelled=labelled)
    await create(client, cache(namespace, key.name, **admitted(**BEFORE)))
    await wait_for_conflict(client, key, resource.kind)
    uid = (await client.get(key) or {})["metadata"]["uid"]
    await expect(client, key, lambda client, child: is_owned(client, child, uid), resource)
    await patch(client, key, {"spec": AFTER})
    await expect(client, key, has_value, resource)
    assert await client.get(name) == before
    await client.request("DELETE", resource.path(namespace, key.name))
    await wait_until_ready(client, namespace, key.name)
    await expect(client, key, lambda client, child: is_owned(client, child, uid))
    await expect(client, key, has_value)


def test_foreign_objects_with_our_names_are_not_modified(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memcached_operator.reconcile.result.CONFLICT_PERIOD", 1.0)

    async def scenario(client: ApiClient) -> None:
        # The operator watches objects with its label, and meets the others when it creates a child.
        every = [*((resource, False) for resource in CHILDREN), (DEPLOYMENTS, True), (POD_DISRUPTION_BUDGETS, True)]
        await asyncio.gather(*(has_no_effect(client, namespace, each, labelled=also) for each, also in every))

    run_operator(plane, (namespace,), scenario)


OPTIONS = {POD_DISRUPTION_BUDGETS: "podDisruptionBudget", NETWORK_POLICIES: "networkPolicy"}
"""The fields whose removal deletes a child."""


def test_child_that_was_replaced_before_its_deletion_is_not_deleted(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion is only of the object that was seen: someone else takes its name just before."""
    replaced: dict[Resource, Object] = {}
    original = ApiClient.delete

    async def replace_first(self: ApiClient, key: Key, uid: str, resource_version: str) -> None:
        if key.resource not in replaced:
            await self.request("DELETE", key.resource.path(key.namespace, key.name))
            replaced[key.resource] = await create_foreign(self, key, labelled=True)
        await original(self, key, uid, resource_version)

    monkeypatch.setattr(ApiClient, "delete", replace_first)

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, **admitted(**BEFORE)))
        await wait_until_ready(client, namespace)
        await patch(client, Key(MEMCACHEDS, namespace, "cache"), {"spec": dict.fromkeys(OPTIONS.values())})
        await eventually(lambda: all_replaced(client))
        await wait_until_ready(client, namespace)
        for resource, obj in replaced.items():
            assert await client.get(Key(resource, namespace, "cache")) == obj

    async def all_replaced(_: ApiClient) -> bool:
        return replaced.keys() == OPTIONS.keys()

    run_operator(plane, (namespace,), scenario)
