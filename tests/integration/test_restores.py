"""What a backup brings back: children without owner references, with and without managedFields."""

import json
import re

import pytest

from integration.control_plane import ControlPlane, eventually
from integration.test_interventions import message_with, run
from integration.test_manager import cache, create, patch, run_operator, wait_until_ready
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    STATEFULSETS,
    Key,
    Object,
    Resource,
    controller_of,
    nested_list,
    nested_map,
)
from memcached_operator.memcached.controller import MEMCACHEDS
from support.admitted import admitted
from support.draining import condition
from support.kube import kubectl

pytestmark = [pytest.mark.usefixtures("kubeconfig"), pytest.mark.kubectl]

TOLERATION = {"key": "cache", "operator": "Exists"}
SPEC: Object = {
    "size": 2,
    "networkPolicy": {},
    "podTemplate": {"spec": {"tolerations": [TOLERATION]}},
    "podDisruptionBudget": {"enabled": True},
}
CHILDREN = (DEPLOYMENTS, STATEFULSETS, SERVICES, CONFIG_MAPS, POD_DISRUPTION_BUDGETS, NETWORK_POLICIES)
DROPPED = ("uid", "resourceVersion", "generation", "creationTimestamp", "ownerReferences")
"""Metadata that Velero does not restore."""

RESTORED = {"velero.io/restore-name": "one"}
"""A label that Velero adds."""


CREATED_BY_KUBERNETES = ("replicasets", "controllerrevisions", "pods", "endpoints", "endpointslices")
"""What Kubernetes creates for the children."""


def restorable(obj: Object, *, managed: bool) -> Object:
    """An object as a backup tool creates it again. `managed`: with its managedFields."""
    meta = {name: value for name, value in obj["metadata"].items() if name not in DROPPED}
    if not managed:
        meta.pop("managedFields")
    meta["labels"] = {**meta.get("labels", {}), **RESTORED}
    return {name: value for name, value in obj.items() if name != "status"} | {"metadata": meta}


async def backup(client: ApiClient, namespace: str, *, managed: bool) -> list[tuple[Resource, Object]]:
    """Back up the children of a Memcached, and delete it with them."""
    key = Key(MEMCACHEDS, namespace, "cache")
    owner = (await client.get(key) or {})["metadata"]["uid"]
    found: list[tuple[Resource, Object]] = []
    for resource in CHILDREN:
        items = (await client.request("GET", resource.path(namespace)))["items"]
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        owned = (item for item in items if (controller_of(item) or {}).get("uid") == owner)
        found += [(resource, restorable({**kind, **item}, managed=managed)) for item in owned]
    await client.request("DELETE", MEMCACHEDS.path(namespace, "cache"))

    async def are_deleted() -> bool:
        keys = (Key(resource, namespace, obj["metadata"]["name"]) for resource, obj in found)
        return not [key for key in keys if await client.get(key)]

    await eventually(are_deleted)
    return found


async def restore(
    client: ApiClient, namespace: str, saved: list[tuple[Resource, Object]], manager: str = "velero-server"
) -> list[Object]:
    """Create objects with the field manager of a backup tool; return them as stored."""
    params = {"fieldManager": manager}
    return [await client.request("POST", resource.path(namespace), obj, params=params) for resource, obj in saved]


async def live(client: ApiClient, namespace: str, saved: list[tuple[Resource, Object]]) -> list[Object]:
    """The objects as they are now."""
    return [await client.get(Key(resource, namespace, obj["metadata"]["name"])) or {} for resource, obj in saved]


IDENTITIES: list[tuple[Object, int]] = [({}, 4), ({"identity": "Stable"}, 5)]


@pytest.mark.server
@pytest.mark.parametrize(("identity", "children"), IDENTITIES, ids=["Pooled", "Stable"])
@pytest.mark.parametrize("managed", [True, False], ids=["managedFields", "no managedFields"])
def test_restored_children_are_adopted_as_they_are(
    plane: ControlPlane, namespace: str, identity: Object, children: int, managed: bool
) -> None:
    async def scenario(client: ApiClient) -> None:
        obj = cache(namespace, **admitted(**SPEC, **identity))
        await create(client, obj)
        await wait_until_ready(client, namespace)
        saved = await backup(client, namespace, managed=managed)
        assert len(saved) == children
        created = await restore(client, namespace, saved)
        await create(client, obj)
        cr = await wait_until_ready(client, namespace)
        adopted = await live(client, namespace, saved)
        for before, after in zip(created, adopted, strict=True):
            assert after["metadata"]["uid"] == before["metadata"]["uid"]
            assert after["spec" if "spec" in after else "data"] == before["spec" if "spec" in before else "data"]
            assert (controller_of(after) or {})["uid"] == cr["metadata"]["uid"]
            assert after["metadata"]["labels"].items() >= RESTORED.items()
        await patch(client, Key(MEMCACHEDS, namespace, "cache"), {"spec": {"podTemplate": None}})
        await eventually(lambda: lacks_toleration(client, namespace))

    run_operator(plane, (namespace,), scenario)


async def lacks_toleration(client: ApiClient, namespace: str) -> bool:
    """Whether the field that the spec does not contain any more is removed: the backup tool does not own it."""
    workloads = [await client.get(Key(resource, namespace, "cache")) for resource in (DEPLOYMENTS, STATEFULSETS)]
    return not any(nested_list(each or {}, "spec", "template", "spec", "tolerations") for each in workloads)


def command_in(message: str) -> str:
    """The command that a message gives."""
    (found,) = re.findall(r"kubectl delete -n \S+ --cascade=orphan --wait=false(?: [a-z]+/[-a-z0-9]+)+", message)
    return found


def test_copies_that_differ_are_one_conflict_whose_command_works_as_written(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memcached_operator.engine.writes.result.CONFLICT_PERIOD", 1.0)

    async def scenario(client: ApiClient) -> None:
        obj = cache(namespace, **admitted(**SPEC, identity="Stable"))
        await create(client, obj)
        await wait_until_ready(client, namespace)
        saved = await backup(client, namespace, managed=False)
        changed = {STATEFULSETS: {"replicas": 0}, POD_DISRUPTION_BUDGETS: {"maxUnavailable": 2}}
        for resource, child in saved:
            child.get("spec", {}).update(changed.get(resource, {}))
        created = await restore(client, namespace, saved)
        await create(client, obj)
        found = await message_with(client, namespace, "StatefulSet cache has another value of spec.replicas")
        assert "PodDisruptionBudget cache has another value of spec.maxUnavailable" in found
        before = condition(await client.get(Key(MEMCACHEDS, namespace, "cache")) or {}, "Available")["message"]
        assert before == "The StatefulSet of this name is not managed by this object; see the Degraded condition"
        untouched = [
            nested_map(now, "spec") == nested_map(then, "spec")
            for (resource, _), now, then in zip(saved, await live(client, namespace, saved), created, strict=True)
            if resource in changed
        ]
        assert untouched == [True, True]
        command = command_in(found)
        assert set(command.split()[6:]) == {"statefulset/cache", "poddisruptionbudget/cache"}
        await run(command)
        await wait_until_ready(client, namespace)

    run_operator(plane, (namespace,), scenario)


IMMUTABLE: dict[Resource, tuple[Object, str]] = {
    SERVICES: ({"clusterIP": None, "clusterIPs": None}, "may not change once set"),
    STATEFULSETS: ({"podManagementPolicy": "OrderedReady"}, "StatefulSet cache cannot be applied"),
}
"""Fields of restored children that cannot be changed any more, and the error of the API server."""


@pytest.mark.server
@pytest.mark.parametrize("resource", IMMUTABLE, ids=lambda resource: resource.kind)
def test_immutable_field_of_a_restored_child_has_a_command_that_works_as_written(
    plane: ControlPlane, namespace: str, resource: Resource
) -> None:
    change, error = IMMUTABLE[resource]

    async def scenario(client: ApiClient) -> None:
        obj = cache(namespace, **admitted(**SPEC, identity="Stable"))
        await create(client, obj)
        await wait_until_ready(client, namespace)
        saved = await backup(client, namespace, managed=True)
        for each, child in saved:
            child["spec" if "spec" in child else "data"].update(change if each == resource else {})
        await restore(client, namespace, saved)
        await create(client, obj)
        found = await message_with(client, namespace, error)
        assert condition(await client.get(Key(MEMCACHEDS, namespace, "cache")) or {}, "Degraded")["reason"] == (
            "ApplyFailed"
        )
        command = command_in(found)
        assert command.split()[6:] == [f"{resource.kind.lower()}/cache"]
        await run(command)
        await wait_until_ready(client, namespace)

    run_operator(plane, (namespace,), scenario)


def test_backup_without_the_objects_of_the_operator_restores_everything(plane: ControlPlane, namespace: str) -> None:
    """As docs/lifecycle.md says: with this selector, a backup contains nothing that the operator or Kubernetes creates
    for a cache."""

    async def scenario(client: ApiClient) -> None:
        obj = cache(namespace, **admitted(**SPEC, identity="Stable"))
        await create(client, obj)
        await wait_until_ready(client, namespace)
        kinds = ",".join(["memcacheds", *(resource.plural for resource in CHILDREN), *CREATED_BY_KUBERNETES])
        selector = "app.kubernetes.io/managed-by!=memcached-operator"
        listed = kubectl("get", kinds, "-n", namespace, "-l", selector, "-o", "json").stdout
        found = [f"{item['kind']}/{item['metadata']['name']}" for item in json.loads(listed)["items"]]
        assert found == ["Memcached/cache", "ConfigMap/kube-root-ca.crt"]
        await backup(client, namespace, managed=False)
        await create(client, obj)
        await wait_until_ready(client, namespace)

    run_operator(plane, (namespace,), scenario)
