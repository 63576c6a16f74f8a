"""One process works, the other takes over: whatever happens to the first, nothing is done twice or left undone."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from support import installed, kube
from support.audit import WRITES, Audit
from support.kube import Object, eventually, kubectl
from support.memcached import SMALL, memcached, settled

EXPIRY = 22
"""Seconds until a standby leads that saw the leader vanish: the lease of 15, and two looks at it 2 apart."""
AT_ONCE = 5
"""Seconds until a standby leads that was told."""
CHILDREN = ("deployments", "services")

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


@pytest.fixture(scope="module")
def space() -> Iterator[str]:
    """A namespace for this module, with 20 settled objects; both processes are up again afterwards."""
    with kube.own_namespace() as name:
        create(name, "first", 20)
        all_settled(name, "first", 20)
        yield name
        installed.up()


def create(namespace: str, prefix: str, count: int) -> None:
    """Apply many objects at once."""
    objects = [memcached(namespace, f"{prefix}-{number}", resources=SMALL) for number in range(count)]
    kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": objects})


def all_settled(namespace: str, prefix: str, count: int) -> None:
    """Wait for all of them."""
    for number in range(count):
        settled(namespace, f"{prefix}-{number}")


def leading_pod() -> Object:
    """The pod of the leader."""
    return kube.must_get("pods", installed.NAMESPACE, installed.leader())


def created(audit: Audit, namespace: str) -> "Counter[tuple[str, str]]":
    """How often the API server said that it created a child in a namespace, to whoever asked.

    To a process that dies meanwhile it says nothing: it may have created it or not, and it counts as a time-out.
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
    """Writes of the operator in some namespaces or on the cluster as a whole, Leases apart."""
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


def test_a_leader_killed_while_it_creates_is_succeeded_and_nothing_is_doubled(
    space: str, cluster: dict[str, Any], audit: Audit
) -> None:
    if cluster["mode"] != "node":
        pytest.skip("needs a leader that runs on this machine")
    former, pod = installed.lease()["holderIdentity"], leading_pod()
    names = [f"killed-{number}" for number in range(12)]
    create(space, "killed", len(names))
    eventually(lambda: len(created(audit, space)) >= 6, 15, "some children exist, and most do not")
    installed.kill(pod)
    installed.new_leader(former, EXPIRY)
    all_settled(space, "killed", len(names))
    assert created(audit, space) <= Counter({(plural, name): 1 for plural in CHILDREN for name in names})
    for name in names:
        assert_alone(space, name)
    eventually(both_ready, installed.UP, "the killed process is there again")


def assert_alone(namespace: str, name: str) -> None:
    """The children of an object are there once, and as they were created."""
    selector = f"app.kubernetes.io/instance={name}"
    for plural in (*CHILDREN, "replicasets", "pods"):
        assert len(kube.items(plural, namespace, selector)) == 1, plural
    assert kube.must_get("deployments", namespace, name)["metadata"]["generation"] == 1


def both_ready() -> bool:
    """Both controller pods are Ready."""
    states = [
        condition["status"]
        for pod in installed.pods(installed.CONTROLLER)
        for condition in pod["status"].get("conditions", [])
        if condition["type"] == "Ready"
    ]
    return states == ["True", "True"]


def test_a_leader_that_is_asked_to_end_is_succeeded_at_once(space: str) -> None:
    former, pod = installed.lease()["holderIdentity"], installed.leader()
    kubectl("delete", "pod", pod, "-n", installed.NAMESPACE, "--wait=false")
    installed.new_leader(former, AT_ONCE)
    kubectl("scale", "memcached/first-0", "-n", space, "--replicas=2")
    assert settled(space, "first-0")["status"]["readyReplicas"] == 2
    installed.up()


def test_a_restart_with_objects_in_place_writes_nothing(space: str, audit: Audit) -> None:
    audit.quiet(3, space)
    quiet, former = Audit(audit.path), installed.lease()["holderIdentity"]
    kubectl("delete", "pods", "-n", installed.NAMESPACE, "-l", f"control-plane={installed.CONTROLLER}", "--wait=false")
    leader = installed.new_leader(former, EXPIRY)
    installed.up()
    eventually(lambda: reconciled() >= 20, 30, f"{leader} has looked at every object")
    assert operator_writes(quiet, space, installed.NAMESPACE) == []


def reconciled() -> float:
    """How many turns the leader's workers have had that ended well."""
    return sum(
        value
        for name, value in installed.metrics(leading_pod()).items()
        if name.startswith("controller_runtime_reconcile_total") and "error" not in name
    )
