"""One process leads, the other takes over: no write is repeated or lost."""

from collections import Counter
from typing import Any

import pytest

from support import installed, kube
from support.audit import Audit
from support.kube import eventually, kubectl
from support.memcached import SMALL, children, memcached, wait_until_ready
from support.waiting import TAKEOVER

CHILDREN = ("deployments", "services")

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.mark.smoke
def test_restarted_operator_writes_nothing_and_continues(namespace: str, audit: Audit) -> None:
    """The former leader releases the lease: the next one need not wait until it expires."""
    kube.apply(memcached(namespace, size=2, resources=SMALL))
    wait_until_ready(namespace)
    audit.wait_until_quiet(namespace=namespace)
    before, since, former = children(namespace), Audit(audit.path), installed.lease()["holderIdentity"]
    with kube.watched("leases", installed.NAMESPACE, installed.LEASE, ".spec.holderIdentity") as holders:
        assert holders() == [former]
        pods = f"control-plane={installed.CONTROLLER}"
        kubectl("delete", "pods", "-n", installed.NAMESPACE, "-l", pods, "--wait=false")
        installed.new_leader(former, TAKEOVER)
        eventually(lambda: len(holders()) > 2, description="the watch has the next leader")
        assert holders()[:2] == [former, ""]
    installed.wait_until_up()
    kubectl("scale", "memcached/cache", "-n", namespace, "--replicas=3")
    assert wait_until_ready(namespace)["status"]["readyReplicas"] == 3
    since.wait_until_quiet(namespace=namespace)
    writes = since.writes(namespace)
    assert {what: writes[what] for what in writes if "status" not in what} == {"patch deployments": 1}
    assert not since.writes(installed.NAMESPACE)
    assert before["pods"].items() <= children(namespace)["pods"].items()


def created(audit: Audit, namespace: str) -> "Counter[tuple[str, str]]":
    """How often the API server responded that it created each child in a namespace.

    If the client dies during the request, the log has a timeout whether or not the child was created.
    """
    return Counter(
        (request["objectRef"]["resource"], request["objectRef"].get("name", ""))
        for request in audit.requests()
        if request["verb"] == "create"
        and request["objectRef"].get("namespace") == namespace
        and request["objectRef"].get("resource") in CHILDREN
        and request["responseStatus"]["code"] == 201
    )


@pytest.mark.disruptive
@pytest.mark.race
def test_standby_takes_over_from_a_killed_leader_without_duplicates(
    namespace: str, cluster: dict[str, Any], audit: Audit
) -> None:
    if cluster["mode"] != "node":
        pytest.skip("needs a leader that runs on this machine")
    former, pod = installed.lease()["holderIdentity"], kube.must_get("pods", installed.NAMESPACE, installed.leader())
    names = [f"killed-{number}" for number in range(12)]
    objects = [memcached(namespace, name, resources=SMALL) for name in names]
    kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": objects})
    eventually(lambda: len(created(audit, namespace)) >= 6, description="some of the children exist")
    installed.kill(pod)
    installed.new_leader(former, TAKEOVER)
    for name in names:
        wait_until_ready(namespace, name)
        assert_created_once(namespace, name)
    assert created(audit, namespace) <= Counter({(plural, name): 1 for plural in CHILDREN for name in names})
    installed.wait_until_up()


def assert_created_once(namespace: str, name: str) -> None:
    """Assert that each child of an object exists once, unchanged since its creation."""
    selector = f"app.kubernetes.io/instance={name}"
    for plural in (*CHILDREN, "replicasets", "pods"):
        assert len(kube.items(plural, namespace, selector)) == 1, plural
    assert kube.must_get("deployments", namespace, name)["metadata"]["generation"] == 1
