"""What is not ours is left untouched; what was ours is taken back; a name can be used again at once."""

from typing import Any

import pytest

from support import kube
from support.kube import Object, eventually, kubectl, must_get, steadily
from support.memcached import SMALL, conditions, degraded, memcached, pods_of, settled

LABELS = {
    "app.kubernetes.io/name": "memcached",
    "app.kubernetes.io/instance": "cache",
    "app.kubernetes.io/managed-by": "memcached-operator",
    "app.kubernetes.io/component": "cache",
}
"""The very labels that a child of the Memcached `cache` carries."""

CHILDREN = ("deployments", "services")

pytestmark = pytest.mark.usefixtures("cluster")


def foreign(plural: str, labels: dict[str, str]) -> Object:
    """A Deployment (of no pods) or a Service that has nothing to do with us, whatever its labels say."""
    selector = {"app": "foreign"}
    meta: Object = {"name": "cache", "labels": labels}
    if plural == "services":
        spec: Object = {"selector": selector, "ports": [{"port": 80}]}
        return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
    pod = {"containers": [{"name": "main", "image": "localhost/foreign:1"}]}
    spec = {"replicas": 0, "selector": {"matchLabels": selector}}
    spec["template"] = {"metadata": {"labels": selector | labels}, "spec": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def at_rest(plural: str, namespace: str) -> Object:
    """The object once its own controller has nothing more to write."""

    def look() -> Object | None:
        found = must_get(plural, namespace, "cache")
        told: list[Object] = found.get("status", {}).get("conditions", [])
        rolled_out = any(condition["reason"] == "NewReplicaSetAvailable" for condition in told)
        return found if rolled_out or plural == "services" else None

    found = eventually(look, 15, f"{plural} cache is at rest")
    assert found is not None
    return found


@pytest.mark.parametrize("labels", [{}, LABELS], ids=["unlabelled", "labelled"])
@pytest.mark.parametrize("plural", CHILDREN)
def test_a_foreign_object_of_the_same_name_is_left_untouched(
    namespace: str, plural: str, labels: dict[str, str]
) -> None:
    stranger = foreign(plural, labels)
    kube.apply(stranger, "-n", namespace)
    before = at_rest(plural, namespace)
    kube.apply(memcached(namespace, resources=SMALL))
    message = degraded(namespace, "Conflict", timeout=15)["message"]
    assert f"{stranger['kind']} cache" in message
    steadily(lambda: must_get(plural, namespace, "cache") == before, 2, "the foreign object is as it was")
    kube.apply(memcached(namespace, size=2, resources=SMALL))
    eventually(lambda: conditions(namespace)["Degraded"]["observedGeneration"] == 2, 15, "the new size is noted")
    assert must_get(plural, namespace, "cache") == before

    kubectl("delete", plural, "cache", "-n", namespace)
    owner = settled(namespace, timeout=30)
    assert owner_uid(plural, namespace) == owner["metadata"]["uid"]


def test_an_object_that_somebody_else_controls_is_left_untouched(namespace: str) -> None:
    kubectl("create", "configmap", "owner", "-n", namespace)
    found = kube.read(f"/api/v1/namespaces/{namespace}/configmaps/owner")
    assert found is not None
    stranger = foreign("services", LABELS)
    uid = found["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "controller": True}
    stranger["metadata"]["ownerReferences"] = [owner]
    kube.apply(stranger, "-n", namespace)
    before = must_get("services", namespace, "cache")
    kube.apply(memcached(namespace, resources=SMALL))
    assert "belongs to ConfigMap owner" in degraded(namespace, "Conflict", timeout=15)["message"]
    assert must_get("services", namespace, "cache") == before
    assert owner_uid("deployments", namespace), "the other child is made nevertheless"


def test_deleting_the_object_leaves_the_foreign_one_alone(namespace: str) -> None:
    kube.apply(foreign("services", LABELS), "-n", namespace)
    before = must_get("services", namespace, "cache")
    kube.apply(memcached(namespace, resources=SMALL))
    degraded(namespace, "Conflict", timeout=15)
    kubectl("delete", "mc/cache", "-n", namespace, "--cascade=foreground")
    assert kube.get("deployments", namespace, "cache") is None
    assert must_get("services", namespace, "cache") == before


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_deleted_and_recreated_at_once_is_no_conflict(namespace: str, cascade: str) -> None:
    obj = memcached(namespace, resources=SMALL)
    kube.apply(obj)
    old = settled(namespace)
    kubectl("delete", "mc/cache", "-n", namespace, f"--cascade={cascade}")
    kube.apply(obj)
    new = settled(namespace)
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    for plural in CHILDREN:
        assert owner_uid(plural, namespace) == new["metadata"]["uid"]
    assert_no_conflict_was_told(namespace)
    assert new["status"]["nodes"] == kube.names(pods_of(namespace))


def test_deleted_as_an_orphan_and_recreated_keeps_its_pods(namespace: str) -> None:
    obj = memcached(namespace, size=2, resources=SMALL)
    kube.apply(obj)
    settled(namespace)
    before, pods = children(namespace), kube.names(pods_of(namespace))
    kubectl("delete", "mc/cache", "-n", namespace, "--cascade=orphan")
    kube.apply(obj)
    new = settled(namespace)
    for plural in CHILDREN:
        assert owner_uid(plural, namespace) == new["metadata"]["uid"]
    assert children(namespace) == before
    assert kube.names(pods_of(namespace)) == pods
    assert_no_conflict_was_told(namespace)


@pytest.mark.parametrize("plural", CHILDREN)
def test_a_child_orphaned_by_hand_is_taken_back(namespace: str, plural: str) -> None:
    kube.apply(memcached(namespace, resources=SMALL))
    owner = settled(namespace)
    before, pods = children(namespace), kube.names(pods_of(namespace))
    orphaning = '[{"op": "remove", "path": "/metadata/ownerReferences"}]'
    kubectl("patch", plural, "cache", "-n", namespace, "--type=json", "-p", orphaning)
    eventually(lambda: owner_uid(plural, namespace) == owner["metadata"]["uid"], 15, f"{plural} cache is ours again")
    assert children(namespace) == before
    assert kube.names(pods_of(namespace)) == pods
    settled(namespace)
    assert_no_conflict_was_told(namespace)


def children(namespace: str) -> dict[str, Any]:
    """The uid of each child: the same uid is the same object."""
    return {plural: must_get(plural, namespace, "cache")["metadata"]["uid"] for plural in CHILDREN}


def owner_uid(plural: str, namespace: str) -> str | None:
    """The uid of a child's controller."""
    found = kube.get(plural, namespace, "cache")
    references: list[Object] = [] if found is None else found["metadata"].get("ownerReferences", [])
    return next((reference["uid"] for reference in references if reference.get("controller")), None)


def assert_no_conflict_was_told(namespace: str) -> None:
    """Conflicts are told by an Event each: there was not even a short one."""
    reasons = {event["reason"] for event in kube.items("events", namespace)}
    assert "Conflict" not in reasons
