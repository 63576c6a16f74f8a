"""Foreign objects are not modified; orphaned children are adopted again; a name can be reused immediately."""

from typing import Any

import pytest

from support import kube
from support.kube import Object, consistently, eventually, kubectl, must_get
from support.memcached import SMALL, conditions, memcached, pods_of, wait_until_degraded, wait_until_ready

LABELS = {
    "app.kubernetes.io/name": "memcached",
    "app.kubernetes.io/instance": "cache",
    "app.kubernetes.io/managed-by": "memcached-operator",
    "app.kubernetes.io/component": "cache",
}
"""The labels of the children of the Memcached `cache`."""

CHILDREN = ("deployments", "services")

pytestmark = pytest.mark.usefixtures("cluster")


def foreign(plural: str, labels: dict[str, str]) -> Object:
    """A Deployment (without pods) or a Service that does not belong to the operator."""
    selector = {"app": "foreign"}
    meta: Object = {"name": "cache", "labels": labels}
    if plural == "services":
        spec: Object = {"selector": selector, "ports": [{"port": 80}]}
        return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
    pod = {"containers": [{"name": "main", "image": "localhost/foreign:1"}]}
    spec = {"replicas": 0, "selector": {"matchLabels": selector}}
    spec["template"] = {"metadata": {"labels": selector | labels}, "spec": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def wait_until_stable(plural: str, namespace: str) -> Object:
    """Wait until the object's own controller has no more to write; return the object."""

    def stable() -> Object | None:
        found = must_get(plural, namespace, "cache")
        conditions_: list[Object] = found.get("status", {}).get("conditions", [])
        rolled_out = any(condition["reason"] == "NewReplicaSetAvailable" for condition in conditions_)
        return found if rolled_out or plural == "services" else None

    found = eventually(stable, 60, f"{plural} cache is stable")
    assert found is not None
    return found


@pytest.mark.parametrize("labels", [{}, LABELS], ids=["unlabelled", "labelled"])
@pytest.mark.parametrize("plural", CHILDREN)
def test_foreign_object_with_the_same_name_is_not_modified(namespace: str, plural: str, labels: dict[str, str]) -> None:
    other = foreign(plural, labels)
    kube.apply(other, "-n", namespace)
    before = wait_until_stable(plural, namespace)
    kube.apply(memcached(namespace, resources=SMALL))
    message = wait_until_degraded(namespace, "Conflict", timeout=60)["message"]
    assert f"{other['kind']} cache" in message
    consistently(lambda: must_get(plural, namespace, "cache") == before, 2, "the foreign object is unchanged")
    kube.apply(memcached(namespace, size=2, resources=SMALL))
    eventually(lambda: conditions(namespace)["Degraded"]["observedGeneration"] == 2, 60, "the new size is observed")
    assert must_get(plural, namespace, "cache") == before

    kubectl("delete", plural, "cache", "-n", namespace)
    owner = wait_until_ready(namespace, timeout=30)
    assert owner_uid(plural, namespace) == owner["metadata"]["uid"]


def test_object_with_another_controller_is_not_modified(namespace: str) -> None:
    kubectl("create", "configmap", "owner", "-n", namespace)
    found = kube.read(f"/api/v1/namespaces/{namespace}/configmaps/owner")
    assert found is not None
    other = foreign("services", LABELS)
    uid = found["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "controller": True}
    other["metadata"]["ownerReferences"] = [owner]
    kube.apply(other, "-n", namespace)
    before = must_get("services", namespace, "cache")
    kube.apply(memcached(namespace, resources=SMALL))
    assert "belongs to ConfigMap owner" in wait_until_degraded(namespace, "Conflict", timeout=60)["message"]
    assert must_get("services", namespace, "cache") == before
    assert owner_uid("deployments", namespace), "the other child must be created"


def test_deleting_the_object_does_not_modify_the_foreign_one(namespace: str) -> None:
    kube.apply(foreign("services", LABELS), "-n", namespace)
    before = must_get("services", namespace, "cache")
    kube.apply(memcached(namespace, resources=SMALL))
    wait_until_degraded(namespace, "Conflict", timeout=60)
    kubectl("delete", "mc/cache", "-n", namespace, "--cascade=foreground")
    assert kube.get("deployments", namespace, "cache") is None
    assert must_get("services", namespace, "cache") == before


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_immediate_recreation_is_not_a_conflict(namespace: str, cascade: str) -> None:
    obj = memcached(namespace, resources=SMALL)
    kube.apply(obj)
    old = wait_until_ready(namespace)
    kubectl("delete", "mc/cache", "-n", namespace, f"--cascade={cascade}")
    kube.apply(obj)
    new = wait_until_ready(namespace)
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    for plural in CHILDREN:
        assert owner_uid(plural, namespace) == new["metadata"]["uid"]
    assert_no_conflict_event(namespace)
    assert new["status"]["nodes"] == kube.names(pods_of(namespace))


def test_recreation_after_orphaning_keeps_the_pods(namespace: str) -> None:
    obj = memcached(namespace, size=2, resources=SMALL)
    kube.apply(obj)
    wait_until_ready(namespace)
    before, pods = children(namespace), kube.names(pods_of(namespace))
    kubectl("delete", "mc/cache", "-n", namespace, "--cascade=orphan")
    kube.apply(obj)
    new = wait_until_ready(namespace)
    for plural in CHILDREN:
        assert owner_uid(plural, namespace) == new["metadata"]["uid"]
    assert children(namespace) == before
    assert kube.names(pods_of(namespace)) == pods
    assert_no_conflict_event(namespace)


@pytest.mark.parametrize("plural", CHILDREN)
def test_orphaned_child_is_adopted_again(namespace: str, plural: str) -> None:
    kube.apply(memcached(namespace, resources=SMALL))
    owner = wait_until_ready(namespace)
    before, pods = children(namespace), kube.names(pods_of(namespace))
    orphaning = '[{"op": "remove", "path": "/metadata/ownerReferences"}]'
    kubectl("patch", plural, "cache", "-n", namespace, "--type=json", "-p", orphaning)
    eventually(lambda: owner_uid(plural, namespace) == owner["metadata"]["uid"], 60, f"{plural} cache is adopted")
    assert children(namespace) == before
    assert kube.names(pods_of(namespace)) == pods
    wait_until_ready(namespace)
    assert_no_conflict_event(namespace)


def children(namespace: str) -> dict[str, Any]:
    """The uid of each child: the same uid is the same object."""
    return {plural: must_get(plural, namespace, "cache")["metadata"]["uid"] for plural in CHILDREN}


def owner_uid(plural: str, namespace: str) -> str | None:
    """The uid of a child's controller."""
    found = kube.get(plural, namespace, "cache")
    references: list[Object] = [] if found is None else found["metadata"].get("ownerReferences", [])
    return next((reference["uid"] for reference in references if reference.get("controller")), None)


def assert_no_conflict_event(namespace: str) -> None:
    """Assert that no Event reports a conflict: each one, however short, would have emitted an Event."""
    reasons = {event["reason"] for event in kube.items("events", namespace)}
    assert "Conflict" not in reasons
