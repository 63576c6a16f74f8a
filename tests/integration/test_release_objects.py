"""An upgrade writes nothing to the children that an earlier release made, in any API version of their object."""

import asyncio
import re
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import yaml

import goldens
from faults.stored import without_rules
from integration.control_plane import CRDS, ControlPlane, eventually, until
from integration.test_manager import run_operator
from integration.test_rules import CRD
from memcached_api.annotations import INTENT_ANNOTATION
from memcached_api.appservice.types import APPSERVICE
from memcached_api.images import Images
from memcached_api.memcached.types import MEMCACHED
from memcached_operator.appservice.controller import appservice
from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.engine.reporting.conditions import is_reported
from memcached_operator.engine.writes.intent import digest_v1
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import DEPLOYMENTS, Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from support.memcached import memcached as new_memcached

pytestmark = pytest.mark.server

KINDS = {MEMCACHED.name: memcached(Images("example.com/memcached:next")), APPSERVICE.name: appservice()}
BATCHES: dict[str, list[list[Object]]] = {
    name: [goldens.objects(path) for shape, path in goldens.released().items() if re.search(pattern, shape)]
    for name, pattern in {
        "memcached": "/memcached/(?!.*unadmitted)",
        "unadmitted": "unadmitted",
        "appservice": "/appservice/",
    }.items()
}
"""The objects of earlier releases, each with its children. Objects of one batch have different names."""


def placed(obj: Object, namespace: str, **meta: Any) -> Object:
    """An object of a golden in a namespace, without its digest."""
    kept = {name: obj["metadata"][name] for name in ("name", "labels") if name in obj["metadata"]}
    given: Object = obj["metadata"].get("annotations", {})
    annotations = {name: text for name, text in given.items() if name != INTENT_ANNOTATION}
    meta |= {"annotations": annotations} if annotations else {}
    return {**obj, "metadata": {**kept, "namespace": namespace, **meta}}


def placed_child(child: Object, namespace: str, uid: str) -> Object:
    """A child in a namespace, with an owner's uid and the digest of the first release, which includes both."""
    owners = [{**reference, "uid": uid} for reference in child["metadata"]["ownerReferences"]]
    obj = placed(child, namespace, ownerReferences=owners)
    annotations = {**obj["metadata"].get("annotations", {}), INTENT_ANNOTATION: digest_v1(obj)}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


async def store(client: ApiClient, kind: ReconciledKind, version: str, objects: list[Object], namespace: str) -> Key:
    """Create an object in a version of its API, and its children; returns the key with which the operator reads it."""
    cr, *children = objects
    key = Key(kind.resource, namespace, cr["metadata"]["name"])
    served = kind.resource._replace(version=version)
    obj = placed({**cr, "apiVersion": served.api_version}, namespace)
    uid = (await client.create(key._replace(resource=served), obj))["metadata"]["uid"]
    for child in children:
        (resource,) = (each for each in kind.owns if each.kind == child["kind"])
        await client.create(Key(resource, namespace, key.name), placed_child(child, namespace, uid))
    return key


@contextmanager
def earlier_rules(plane: ControlPlane, namespace: str) -> Generator[None]:
    """Store Memcacheds without the CRD's rules in the block: the first release accepted lower memory limits."""
    crd = yaml.safe_load(CRD.read_text())
    key = Key(CRDS, "", crd["metadata"]["name"])
    invalid = new_memcached(namespace, cache={"memory": "64Mi"}, resources={"limits": {"memory": "1Mi"}})
    plane.change(key, {"spec": without_rules(crd)["spec"]})
    try:
        until(lambda: not plane.rejects(MEMCACHEDS, invalid))
        yield
    finally:
        plane.change(key, {"spec": crd["spec"]})
        until(lambda: plane.rejects(MEMCACHEDS, invalid))


def test_digest_is_that_of_the_first_release() -> None:
    for child in (child for batch in BATCHES.values() for objects in batch for child in objects[1:]):
        meta = child["metadata"]
        assert placed_child(child, meta["namespace"], meta["ownerReferences"][0]["uid"]) == child


@pytest.mark.parametrize(
    ("name", "api_version"), [("memcached", "v1"), ("unadmitted", "v1alpha1"), ("appservice", "v1")]
)
def test_children_of_an_earlier_release_are_not_written(
    plane: ControlPlane, namespace: str, name: str, api_version: str
) -> None:
    kind = KINDS[BATCHES[name][0][0]["kind"]]

    async def store_all(client: ApiClient) -> list[Key]:
        return await asyncio.gather(*(store(client, kind, api_version, each, namespace) for each in BATCHES[name]))

    with earlier_rules(plane, namespace) if kind.resource == MEMCACHEDS else nullcontext():
        keys = plane.call(store_all)
    audit = plane.audit()

    async def all_have_a_status(client: ApiClient) -> None:
        async def check() -> bool:
            objects = await asyncio.gather(*map(client.get, keys))
            return all(obj is not None and is_reported(obj) for obj in objects)

        await eventually(check)

    run_operator(plane, (namespace,), all_have_a_status, kinds=list(KINDS.values()))
    assert set(audit.writes(namespace)) == {f"patch {kind.resource.plural}/status"}


def test_stored_object_that_violates_a_newer_rule_is_reconciled(plane: ControlPlane, namespace: str) -> None:
    clients: Object = {"metricsFrom": [{"podSelector": {}}]}
    with earlier_rules(plane, namespace):
        plane.create(MEMCACHEDS, new_memcached(namespace, networkPolicy=clients))
    key = Key(MEMCACHEDS, namespace, "cache")

    async def resized(client: ApiClient) -> None:
        await client.patch(key, {"spec": {"size": 3}})

        async def applied() -> bool:
            live, workload = await client.get(key) or {}, await client.get(key._replace(resource=DEPLOYMENTS))
            status = live.get("status", {})
            current = status.get("observedGeneration") == live["metadata"]["generation"]
            return current and workload is not None and workload["spec"]["replicas"] == 3

        await eventually(applied)

    run_operator(plane, (namespace,), resized)
    (degraded,) = (each for each in plane.must_get(key)["status"]["conditions"] if each["type"] == "Degraded")
    assert (degraded["status"], degraded["reason"]) == ("False", "AsExpected")
    assert "newer rule: spec.networkPolicy.metricsFrom: " in degraded["message"]
