"""One process leads, the other takes over: no write is repeated or lost."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from support import installed, kube
from support.audit import WRITES, Audit
from support.kube import Object, eventually, kubectl
from support.memcached import SMALL, memcached, wait_until_ready

EXPIRY = 22
"""Maximum seconds until a standby takes over from a killed leader: the lease lasts 15 s, retries come every 2 s."""
TAKEOVER = 10
"""Maximum seconds until a standby takes over a released lease: it retries every 2 s; a lease expires after 15 s."""
CHILDREN = ("deployments", "services")

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


@pytest.fixture(scope="module")
def space() -> Iterator[str]:
    """A namespace for this module with 20 ready objects; finally waits until both processes are up."""
    with kube.temporary_namespace() as name:
        create(name, "first", 20)
        wait_until_all_ready(name, "first", 20)
        yield name
        installed.wait_until_up()


def create(namespace: str, prefix: str, count: int) -> None:
    """Apply many objects with one command."""
    objects = [memcached(namespace, f"{prefix}-{number}", resources=SMALL) for number in range(count)]
    kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": objects})


def wait_until_all_ready(namespace: str, prefix: str, count: int) -> None:
    """Wait until all of them are ready."""
    for number in range(count):
        wait_until_ready(namespace, f"{prefix}-{number}")


def leading_pod() -> Object:
    """The pod of the leader."""
    return kube.must_get("pods", installed.NAMESPACE, installed.leader())


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


def operator_writes(audit: Audit, *namespaces: str) -> list[str]:
    """The operator's writes in these namespaces and of cluster-scoped objects, without Leases."""
    found: list[dict[str, Any]] = [
        request["objectRef"]
        for request in audit.requests()
        if request["verb"] in WRITES and request["userAgent"].startswith("memcached-operator")
    ]
    return [
        f"{target.get('resource')} {target.get('namespace')}/{target.get('name')}"
        for target in found
        if target["resource"] != "leases" and target.get("namespace") in (None, *namespaces)
    ]


def test_standby_takes_over_from_a_killed_leader_without_duplicates(
    space: str, cluster: dict[str, Any], audit: Audit
) -> None:
    if cluster["mode"] != "node":
        pytest.skip("needs a leader that runs on this machine")
    former, pod = installed.lease()["holderIdentity"], leading_pod()
    names = [f"killed-{number}" for number in range(12)]
    create(space, "killed", len(names))
    eventually(lambda: len(created(audit, space)) >= 6, 60, "some of the children exist")
    installed.kill(pod)
    installed.new_leader(former, EXPIRY)
    wait_until_all_ready(space, "killed", len(names))
    assert created(audit, space) <= Counter({(plural, name): 1 for plural in CHILDREN for name in names})
    for name in names:
        assert_created_once(space, name)
    eventually(both_ready, installed.STARTUP_SECONDS, "the killed process is restarted")


def assert_created_once(namespace: str, name: str) -> None:
    """Assert that each child of an object exists once, unchanged since its creation."""
    selector = f"app.kubernetes.io/instance={name}"
    for plural in (*CHILDREN, "replicasets", "pods"):
        assert len(kube.items(plural, namespace, selector)) == 1, plural
    assert kube.must_get("deployments", namespace, name)["metadata"]["generation"] == 1


def both_ready() -> bool:
    """Whether both controller pods are ready."""
    states = [
        condition["status"]
        for pod in installed.pods(installed.CONTROLLER)
        for condition in pod["status"].get("conditions", [])
        if condition["type"] == "Ready"
    ]
    return states == ["True", "True"]


def test_standby_takes_over_immediately_when_the_leader_shuts_down(space: str) -> None:
    former, pod = installed.lease()["holderIdentity"], installed.leader()
    kubectl("delete", "pod", pod, "-n", installed.NAMESPACE, "--wait=false")
    installed.new_leader(former, TAKEOVER)
    kubectl("scale", "memcached/first-0", "-n", space, "--replicas=2")
    assert wait_until_ready(space, "first-0")["status"]["readyReplicas"] == 2
    installed.wait_until_up()


def test_restart_writes_nothing(space: str, audit: Audit) -> None:
    audit.wait_until_quiet(3, space)
    since, former = Audit(audit.path), installed.lease()["holderIdentity"]
    kubectl("delete", "pods", "-n", installed.NAMESPACE, "-l", f"control-plane={installed.CONTROLLER}", "--wait=false")
    leader = installed.new_leader(former, EXPIRY)
    installed.wait_until_up()
    eventually(lambda: reconciled() >= 20, 30, f"{leader} has reconciled every object")
    assert operator_writes(since, space, installed.NAMESPACE) == []


def reconciled() -> float:
    """The leader's number of reconciles without error."""
    return sum(
        value
        for name, value in installed.metrics(leading_pod()).items()
        if name.startswith("controller_runtime_reconcile_total") and "error" not in name
    )
