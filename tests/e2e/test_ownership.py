"""Orphaned children are adopted again, a name can be reused immediately, and a namespace can be deleted."""

import pytest

from support import kube
from support.audit import Audit
from support.kube import kubectl, must_get
from support.memcached import SMALL, memcached, pods_of, wait_until_ready

CHILDREN = ("deployments", "services")

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.mark.race
@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_immediate_recreation_is_not_a_conflict(namespace: str, cascade: str) -> None:
    obj = memcached(namespace, size=2, resources=SMALL)
    kube.apply(obj)
    old = wait_until_ready(namespace)
    children, pods = uids(namespace), kube.names(pods_of(namespace))
    kubectl("delete", "mc/cache", "-n", namespace, f"--cascade={cascade}")
    kube.apply(obj)
    new = wait_until_ready(namespace)
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    for plural in CHILDREN:
        owners = must_get(plural, namespace, "cache")["metadata"]["ownerReferences"]
        assert [each["uid"] for each in owners if each["controller"]] == [new["metadata"]["uid"]]
    # Each conflict, however short, would have emitted an Event.
    assert "Conflict" not in {event["reason"] for event in kube.items("events", namespace)}
    assert new["status"]["nodes"] == kube.names(pods_of(namespace))
    kept = (uids(namespace), kube.names(pods_of(namespace))) == (children, pods)
    assert kept == (cascade == "orphan")


def uids(namespace: str) -> list[str]:
    """The uid of each child: the same uid is the same object."""
    return [must_get(plural, namespace, "cache")["metadata"]["uid"] for plural in CHILDREN]


def test_deleting_a_namespace_does_not_hang(audit: Audit) -> None:
    with kube.temporary_namespace() as name:
        kube.apply(memcached(name, size=2, resources=SMALL))
        kube.apply(memcached(name, "rolling-out", size=2, resources=SMALL))
        wait_until_ready(name)
        kubectl("delete", "namespace", name, "--timeout=110s")
        writes = audit.writes(name)
        assert writes.total() < 30, f"the operator works against the deletion: {writes}"
