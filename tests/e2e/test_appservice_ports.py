"""The Service of an AppService: it is updated in place, keeps its node ports, and needs few writes."""

import time
from collections import Counter
from typing import Any

import pytest

from support import controller, kube
from support.appservice import appservice, node_ports, page, wait_until_ready
from support.audit import Audit
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL

QUIET = 3
"""Seconds without a write after which no more is expected."""

PROGRESS = 10
"""Minimum seconds between two status patches that report only progress."""

STATUS = "patch appservices/status"

STATIC = 30040
"""A node port from the static part of the range, from which Kubernetes allocates last (KEP-3668)."""

pytestmark = pytest.mark.usefixtures("cluster")


def apply(namespace: str, *ports: Object, **spec: Any) -> dict[int, int]:
    """Apply these ports and wait until ready; return the node port of each port."""
    kube.apply(appservice(namespace, ports=list(ports), resources=SMALL, **spec))
    return node_ports(wait_until_ready(namespace))


def service(namespace: str) -> Object:
    """The current Service."""
    return must_get("services", namespace, "app")


def identity(namespace: str) -> tuple[str, str]:
    """The uid and cluster IP, which stay the same for the lifetime of a Service."""
    found = service(namespace)
    return found["metadata"]["uid"], found["spec"]["clusterIP"]


def port(number: int, name: str | None = None, **fields: Any) -> Object:
    """A port with the container's port as target."""
    return {"port": number, "targetPort": 80, **({"name": name} if name else {}), **fields}


def test_port_changes_keep_the_service(namespace: str) -> None:
    chosen = apply(namespace, port(80, "http"))[80]
    before = identity(namespace)
    # One change at a time: another port, another number, another name, other targets, fewer ports.
    both = apply(namespace, port(80, "http"), port(9090, "metrics"))
    assert both[80] == chosen
    assert apply(namespace, port(8080, "http"), port(9090, "metrics")) == {8080: chosen, 9090: both[9090]}
    assert apply(namespace, port(8080, "web"), port(9090, "metrics")) == {8080: chosen, 9090: both[9090]}
    assert apply(namespace, port(8080, "web"), port(9090, "metrics", targetPort="web"))[9090] == both[9090]
    assert apply(namespace, port(8080, "web"))[8080] == chosen
    assert apply(namespace, port(8080, "web", targetPort=8000))[8080] == chosen
    assert apply(namespace, port(8080, "web"))[8080] == chosen
    eventually(lambda: page(chosen), 60, "the node port still serves")
    assert identity(namespace) == before


def test_single_port_without_a_name_keeps_its_node_port(namespace: str) -> None:
    chosen = apply(namespace, port(80))[80]
    assert apply(namespace, port(8080)) == {8080: chosen}
    assert apply(namespace, port(8080), port(53, protocol="UDP"))[8080] == chosen


def test_one_of_several_unnamed_ports_keeps_its_node_port_when_its_number_changes(namespace: str) -> None:
    before = apply(namespace, port(80), port(81))
    assert apply(namespace, port(8080), port(81)) == {8080: before[80], 81: before[81]}


def test_allocated_node_port_can_be_assigned_to_another_port(namespace: str) -> None:
    chosen = apply(namespace, port(80))[80]
    found = apply(namespace, port(80, "http"), port(443, "https", nodePort=chosen))
    assert found[443] == chosen != found[80]
    back = apply(namespace, port(80, "http", nodePort=chosen), port(443, "https"))
    assert back[80] == chosen != back[443]


def test_node_port_stays_after_it_is_removed_from_the_spec(namespace: str) -> None:
    chosen = apply(namespace, port(80))[80]
    assert apply(namespace, port(80, nodePort=STATIC)) == {80: STATIC} != {80: chosen}
    assert apply(namespace, port(80)) == {80: STATIC}
    assert apply(namespace, port(81)) == {81: STATIC}


def test_service_is_deleted_without_ports_and_created_with_ports(namespace: str) -> None:
    apply(namespace, port(80))
    before = identity(namespace)
    assert apply(namespace) == {}
    eventually(lambda: kube.get("services", namespace, "app") is None, 60, "the Service is deleted")
    assert apply(namespace, port(80)) != {}
    assert identity(namespace)[0] != before[0]


def test_foreign_service_is_not_deleted_without_ports(namespace: str) -> None:
    kubectl("create", "service", "clusterip", "app", "--tcp=80", "-n", namespace)
    before = service(namespace)
    kube.apply(appservice(namespace, ports=[], resources=SMALL))
    wait_until_ready(namespace)
    assert service(namespace) == before


def test_server_side_apply_does_not_conflict_with_defaults(namespace: str) -> None:
    obj = appservice(namespace, ports=[{"port": 80}, {"port": 81}], resources=SMALL)
    for _ in range(2):
        kube.apply(obj, "--server-side")
    obj["spec"]["ports"][1]["port"] = 82
    kube.apply(obj, "--server-side")
    assert set(node_ports(wait_until_ready(namespace))) == {80, 82}


def writes_of(namespace: str, audit: Audit, *ports: Object, **spec: Any) -> "Counter[str]":
    """Apply ports and return the writes that this causes; checks the budget of status patches."""
    since, started = Audit(audit.path), time.monotonic()
    apply(namespace, *ports, **spec)
    seconds = time.monotonic() - started
    since.wait_until_quiet(QUIET, namespace)
    writes = since.writes(namespace)
    assert 1 <= writes.pop(STATUS) <= 2 + seconds // PROGRESS
    return writes


def test_one_write_per_changed_child(namespace: str, audit: Audit) -> None:
    def cost(*ports: Object, **spec: Any) -> dict[str, int]:
        return dict(writes_of(namespace, audit, *ports, **spec))

    assert cost(port(80)) == {"create deployments": 1, "create services": 1}
    assert cost(port(8080)) == {"patch services": 2}  # the first change also transfers the field ownership
    assert cost(port(8081)) == {"patch services": 1}
    assert cost(port(8081), size=2) == {"patch deployments": 1}
    assert cost(port(8081), port(9090), size=2) == {"patch services": 1}
    # Sizes only grow: the end of a removed pod changes the Deployment's status, and can conflict with the transfer.
    assert cost(port(8081), size=3) == {"patch deployments": 1, "patch services": 1}
    assert cost(size=3) == {"patch deployments": 2, "delete services": 1}


def test_no_writes_in_steady_state_and_after_a_restart(namespace: str, audit: Audit) -> None:
    apply(namespace, port(80))
    apply(namespace, port(8080))
    kube.apply(appservice(namespace, "several", ports=[port(80), port(53, protocol="UDP")], envs=[{"name": "EMPTY"}]))
    wait_until_ready(namespace, "several")
    kube.apply(appservice(namespace, "none"))
    wait_until_ready(namespace, "none")
    audit.wait_until_quiet(QUIET, namespace)
    since = Audit(audit.path)
    with controller.started(namespace, sync_period=1, kind="appservice") as restarted:
        restarted.wait_for_reconciles(9)
        assert set(restarted.reconciles()) == {"success"}
    assert not since.writes(namespace)
