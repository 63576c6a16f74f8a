"""Memcached objects are independent of each other, and do not block deletions."""

from collections.abc import Iterator

import pytest

from support import kube
from support.audit import Audit
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL, addresses, memcached, pods_of, ready_addresses, wait_until_ready

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture
def other_namespace() -> Iterator[str]:
    """A second namespace for one test."""
    with kube.temporary_namespace() as name:
        yield name


def selected(namespace: str, plural: str, name: str) -> list[str]:
    """Names of the pods that the selector of a Deployment or Service matches."""
    selector = must_get(plural, namespace, name)["spec"]["selector"]
    labels = selector.get("matchLabels", selector)
    return kube.names(kube.items("pods", namespace, ",".join(f"{key}={value}" for key, value in labels.items())))


def test_two_objects_in_a_namespace_share_no_pods(namespace: str) -> None:
    sizes = {"one": 1, "one-more": 2}
    for name, size in sizes.items():
        kube.apply(memcached(namespace, name, size=size, resources=SMALL))
    for name, size in sizes.items():
        wait_until_ready(namespace, name)
        own = kube.names(pods_of(namespace, name))
        assert len(own) == size
        assert selected(namespace, "deployments", name) == own
        assert selected(namespace, "services", name) == own
        assert_endpoints_are_its_own_pods(namespace, name)


def assert_endpoints_are_its_own_pods(namespace: str, name: str) -> None:
    """Assert that the endpoints of an object's Service are exactly its pods."""
    own = addresses(pods_of(namespace, name))
    eventually(lambda: ready_addresses(namespace, name) == own, 60, f"the endpoints of {name} are its own pods")


def test_deleting_one_object_does_not_change_the_other(namespace: str) -> None:
    for name in ("kept", "deleted"):
        kube.apply(memcached(namespace, name, resources=SMALL))
    wait_until_ready(namespace, "deleted")
    before = versions(namespace, wait_until_ready(namespace, "kept"))
    kubectl("delete", "mc/deleted", "-n", namespace, "--cascade=foreground")
    assert kube.get("deployments", namespace, "deleted") is None
    assert versions(namespace, must_get("memcacheds", namespace, "kept")) == before


def versions(namespace: str, owner: Object) -> list[str]:
    """The resourceVersions of an object, its children and its pods: they change with every write."""
    name = owner["metadata"]["name"]
    children = [must_get(plural, namespace, name) for plural in ("deployments", "services")]
    return [obj["metadata"]["resourceVersion"] for obj in (owner, *children, *pods_of(namespace, name))]


def test_same_name_in_two_namespaces_is_two_caches(namespace: str, other_namespace: str) -> None:
    for each, port in ((namespace, 11311), (other_namespace, 11411)):
        kube.apply(memcached(each, size=1, containerPort=port, resources=SMALL))
    owners = {each: wait_until_ready(each) for each in (namespace, other_namespace)}
    for each, owner in owners.items():
        assert owner["status"]["nodes"] == kube.names(pods_of(each))
        for plural in ("deployments", "services"):
            (reference,) = must_get(plural, each, "cache")["metadata"]["ownerReferences"]
            assert reference["uid"] == owner["metadata"]["uid"]
    kubectl("delete", "mc/cache", "-n", namespace, "--cascade=foreground")
    assert kube.get("deployments", namespace, "cache") is None
    assert wait_until_ready(other_namespace)["status"] == owners[other_namespace]["status"]


def test_deleting_a_namespace_does_not_hang(other_namespace: str, audit: Audit) -> None:
    kube.apply(memcached(other_namespace, size=2, resources=SMALL))
    kube.apply(memcached(other_namespace, "rolling-out", size=2, resources=SMALL))
    wait_until_ready(other_namespace)
    kubectl("delete", "namespace", other_namespace, "--timeout=110s")
    writes = audit.writes(other_namespace)
    assert writes.total() < 30, f"the operator works against the deletion: {writes}"
