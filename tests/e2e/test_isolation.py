"""Memcached objects have nothing in common, and nothing of them is in the way of a deletion."""

from collections.abc import Iterator

import pytest

from support import kube
from support.audit import Audit
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL, addresses, memcached, pods_of, ready_addresses, settled

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture
def other_namespace() -> Iterator[str]:
    """A second namespace of the test's own."""
    with kube.own_namespace() as name:
        yield name


def selected(namespace: str, plural: str, name: str) -> list[str]:
    """Names of the pods that the selector of a Deployment or Service takes in."""
    selector = must_get(plural, namespace, name)["spec"]["selector"]
    labels = selector.get("matchLabels", selector)
    return kube.names(kube.items("pods", namespace, ",".join(f"{key}={value}" for key, value in labels.items())))


def test_two_objects_of_a_namespace_share_no_pods(namespace: str) -> None:
    sizes = {"one": 1, "one-more": 2}
    for name, size in sizes.items():
        kube.apply(memcached(namespace, name, size=size, resources=SMALL))
    for name, size in sizes.items():
        settled(namespace, name)
        own = kube.names(pods_of(namespace, name))
        assert len(own) == size
        assert selected(namespace, "deployments", name) == own
        assert selected(namespace, "services", name) == own
        assert_leads_to_its_own_pods(namespace, name)


def assert_leads_to_its_own_pods(namespace: str, name: str) -> None:
    """Behind the Service of an object are its pods, and no others."""
    own = addresses(pods_of(namespace, name))
    eventually(lambda: ready_addresses(namespace, name) == own, 15, f"{name} leads to its own pods")


def test_deleting_one_object_leaves_the_other_as_it_is(namespace: str) -> None:
    for name in ("stays", "goes"):
        kube.apply(memcached(namespace, name, resources=SMALL))
    settled(namespace, "goes")
    before = everything(namespace, settled(namespace, "stays"))
    kubectl("delete", "mc/goes", "-n", namespace, "--cascade=foreground")
    assert kube.get("deployments", namespace, "goes") is None
    assert everything(namespace, must_get("memcacheds", namespace, "stays")) == before


def everything(namespace: str, owner: Object) -> list[str]:
    """resourceVersions of an object, its children and its pods: they move with every write."""
    name = owner["metadata"]["name"]
    children = [must_get(plural, namespace, name) for plural in ("deployments", "services")]
    return [obj["metadata"]["resourceVersion"] for obj in (owner, *children, *pods_of(namespace, name))]


def test_the_same_name_in_two_namespaces_is_two_caches(namespace: str, other_namespace: str) -> None:
    for each, port in ((namespace, 11311), (other_namespace, 11411)):
        kube.apply(memcached(each, size=1, containerPort=port, resources=SMALL))
    owners = {each: settled(each) for each in (namespace, other_namespace)}
    for each, owner in owners.items():
        assert owner["status"]["nodes"] == kube.names(pods_of(each))
        for plural in ("deployments", "services"):
            (reference,) = must_get(plural, each, "cache")["metadata"]["ownerReferences"]
            assert reference["uid"] == owner["metadata"]["uid"]
    kubectl("delete", "mc/cache", "-n", namespace, "--cascade=foreground")
    assert kube.get("deployments", namespace, "cache") is None
    assert settled(other_namespace)["status"] == owners[other_namespace]["status"]


def test_deleting_a_namespace_never_hangs(other_namespace: str, audit: Audit) -> None:
    kube.apply(memcached(other_namespace, size=2, resources=SMALL))
    kube.apply(memcached(other_namespace, "rolling-out", size=2, resources=SMALL))
    settled(other_namespace)
    kubectl("delete", "namespace", other_namespace, "--timeout=110s")
    writes = audit.writes(other_namespace)
    assert writes.total() < 30, f"the operator does not fight the deletion: {writes}"
