"""The steps of docs/migrating.md for the objects of the operator-sdk sample, from its CustomResourceDefinition on."""

import re
from collections.abc import Iterator
from os import getpid
from pathlib import Path
from typing import Any

import pytest
import yaml

from integration.control_plane import CRDS, ROOT, ControlPlane, control_plane, eventually, is_served, until
from integration.test_manager import missing, patch, run_operator, wait_until_ready
from memcached_operator.engine.writes.ownership import controller_reference
from memcached_operator.kube.client import APPLY_PATCH, ApiClient
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, SERVICES, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from support.code_blocks import located

pytestmark = pytest.mark.server

CRD = yaml.safe_load((ROOT / "config/crd/bases/cache.example.com_memcacheds.yaml").read_text())
CRD_KEY = Key(CRDS, "", CRD["metadata"]["name"])
SAMPLES = Resource("cache.example.com", "v1alpha1", "Memcached", "memcacheds")
REPLICA_SETS = Resource("apps", "v1", "ReplicaSet", "replicasets")
OLD_OBJECTS = Path(__file__).parents[1] / "unit/migrating/sample.yaml"
PAGE = (ROOT / "docs/migrating.md").read_text()
NAME, NAMESPACE = "memcached-sample", "default"
KEY = Key(MEMCACHEDS, NAMESPACE, NAME)
INTEGER = {"type": "integer", "format": "int32"}
CONDITION = {
    "type": "object",
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    "properties": {name: {"type": "string"} for name in ("lastTransitionTime", "message", "reason", "status", "type")},
}
SAMPLE_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {"size": {**INTEGER, "minimum": 1, "maximum": 3}, "containerPort": INTEGER},
        },
        "status": {"type": "object", "properties": {"conditions": {"type": "array", "items": CONDITION}}},
    },
}
"""That of the sample, without descriptions."""


def sample_crd() -> Object:
    """The CustomResourceDefinition of the sample."""
    version: Object = {
        "name": SAMPLES.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SAMPLE_SCHEMA},
        "subresources": {"status": {}},
    }
    names = {"kind": "Memcached", "listKind": "MemcachedList", "plural": "memcacheds", "singular": "memcached"}
    spec: Object = {"group": SAMPLES.group, "names": names, "scope": "Namespaced", "versions": [version]}
    return {**{name: CRD[name] for name in ("apiVersion", "kind")}, "metadata": {"name": CRD_KEY.name}, "spec": spec}


@pytest.fixture(scope="module")
def old_plane(version: str) -> Iterator[ControlPlane]:
    """A control plane with the sample's CustomResourceDefinition instead of ours."""
    with control_plane(f"migrating-{getpid()}", version) as plane:
        plane.delete(CRD_KEY)
        until(lambda: plane.get(CRD_KEY) is None)
        plane.create(CRDS, sample_crd())
        until(lambda: plane.rejects(SAMPLES, memcached(size=4)) and not plane.rejects(SAMPLES, memcached(size=3)))
        yield plane


def memcached(**spec: Any) -> Object:
    """A Memcached, for a dry run."""
    head = {"apiVersion": SAMPLES.api_version, "kind": SAMPLES.kind}
    return {**head, "metadata": {"name": "dry", "namespace": NAMESPACE}, "spec": spec}


def install_sample(plane: ControlPlane) -> None:
    """Create what the sample's operator leaves behind: object, finalizer, status, Deployment, pods."""
    (cr,) = yaml.safe_load_all(located("migrating.md", "## From the operator-sdk sample\n", languages=("yaml",)).text)
    assert cr["metadata"]["name"] == NAME
    cr["metadata"] |= {"namespace": NAMESPACE, "finalizers": ["cache.example.com/finalizer"]}
    stored = plane.create(SAMPLES, cr)
    condition = {
        "type": "Available",
        "status": "True",
        "reason": "Reconciling",
        "message": f"Deployment for custom resource ({NAME}) with 3 replicas created successfully",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    path = SAMPLES.path(NAMESPACE, NAME, "status")
    status = {"status": {"conditions": [condition]}}
    plane.call(lambda client: client.request("PATCH", path, status, "application/merge-patch+json"))
    (deployment,) = yaml.safe_load(OLD_OBJECTS.read_text())["items"]
    deployment["metadata"]["ownerReferences"] = [controller_reference({**cr, "metadata": stored["metadata"]})]
    plane.create(DEPLOYMENTS, deployment)


def install_operator(plane: ControlPlane) -> None:
    """Apply our CustomResourceDefinition as `kubectl apply --server-side --force-conflicts` does."""
    params = {"fieldManager": "kubectl", "force": "true"}
    path = CRDS.path(None, CRD_KEY.name)
    plane.call(lambda client: client.request("PATCH", path, CRD, APPLY_PATCH, params))
    until(lambda: not plane.rejects(SAMPLES, memcached(size=4)))
    until(lambda: plane.call(lambda client: is_served(client, MEMCACHEDS.path())))


def documented(command: str) -> str:
    """The rest of the line of a command on the page."""
    (found,) = re.findall(rf"^ *kubectl {command} (.*)$", PAGE, flags=re.MULTILINE)
    return found


async def uids(client: ApiClient, resource: Resource, selector: str) -> set[str]:
    """The uids of the objects with these labels."""
    params = {"labelSelector": selector}
    found = await client.request("GET", resource.path(NAMESPACE), params=params)
    return {each["metadata"]["uid"] for each in found["items"]}


async def degraded(client: ApiClient) -> Any:
    """The reason of Degraded, if it is True."""
    found = await client.get(KEY)
    assert found is not None
    conditions = {each["type"]: each for each in found["status"]["conditions"]}
    condition = conditions.get("Degraded", {})
    return condition.get("reason") if condition.get("status") == "True" else None


def test_object_of_the_sample_is_migrated_while_its_pods_run(old_plane: ControlPlane) -> None:
    plane = old_plane
    install_sample(plane)
    selector = documented("delete replicaset --wait=false -l")
    old_pods: set[str] = set()

    async def scenario(client: ApiClient) -> None:
        # The Deployment is in the way: it is reported, and not changed.
        async def reported() -> bool:
            return await degraded(client) == "ApplyFailed"

        await eventually(reported)
        deployment = await client.get(Key(DEPLOYMENTS, NAMESPACE, NAME))
        assert deployment is not None
        assert deployment["metadata"]["generation"] == 1
        assert await uids(client, PODS, selector) == old_pods

        merged = documented(f"patch memcached {NAME} --type=merge -p").strip("'")
        await patch(client, KEY, yaml.safe_load(merged))
        assert documented(f"delete deployment {NAME}") == "--cascade=orphan --wait=false"
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"}
        await client.request("DELETE", DEPLOYMENTS.path(NAMESPACE, NAME), options)

        migrated = await wait_until_ready(client, NAMESPACE, NAME)
        assert "finalizers" not in migrated["metadata"]
        assert {each["type"] for each in migrated["status"]["conditions"]} >= {"Available", "Ready"}
        service = await client.get(Key(SERVICES, NAMESPACE, NAME))
        assert service is not None
        new = ",".join(f"{name}={value}" for name, value in service["spec"]["selector"].items())
        new_pods = await uids(client, PODS, new)
        # Both caches run, until the old one is deleted.
        assert await uids(client, PODS, selector) == old_pods
        assert len(new_pods) == 3
        assert len(await uids(client, REPLICA_SETS, selector)) == 1
        await client.request("DELETE", REPLICA_SETS.path(NAMESPACE), params={"labelSelector": selector})

        async def deleted() -> bool:
            return not await uids(client, PODS, selector)

        await eventually(deleted)
        assert await uids(client, PODS, new) == new_pods

        # Without the finalizer, deletion does not wait for the sample's operator.
        await client.request("DELETE", MEMCACHEDS.path(NAMESPACE, NAME))
        await eventually(lambda: missing(client, KEY))

    async def pods_run(client: ApiClient) -> set[str]:
        async def check() -> set[str] | None:
            found = await uids(client, PODS, selector)
            return found if len(found) == 3 else None

        return await eventually(check) or set()

    old_pods |= plane.call(pods_run)
    install_operator(plane)
    run_operator(plane, (NAMESPACE,), scenario)
    assert plane.must_get(CRD_KEY)["status"]["storedVersions"] == ["v1alpha1", "v1"]
