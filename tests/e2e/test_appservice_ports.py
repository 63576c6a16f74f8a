"""The Service of an AppService: it follows the ports in place, keeps what it has, and costs the least writes."""

import time
from collections import Counter
from typing import Any

import pytest

from support import controller, kube
from support.appservice import appservice, node_ports, page, settled
from support.audit import Audit
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL

QUIET = 3
"""Seconds without a write after which nothing more is to come."""

PROGRESS = 10
"""Seconds between two status patches that tell of mere progress, at least."""

STATUS = "patch appservices/status"

NAMED = 30040
"""A node port from the part of the range that Kubernetes itself chooses from last (KEP-3668)."""

pytestmark = pytest.mark.usefixtures("cluster")


def apply(namespace: str, *ports: Object, **spec: Any) -> dict[int, int]:
    """Apply these ports, and settle; port of the Service → port on every node."""
    kube.apply(appservice(namespace, ports=list(ports), resources=SMALL, **spec))
    return node_ports(settled(namespace))


def service(namespace: str) -> Object:
    """The Service as it is."""
    return must_get("services", namespace, "app")


def identity(namespace: str) -> tuple[str, str]:
    """What stays for as long as a Service does."""
    found = service(namespace)
    return found["metadata"]["uid"], found["spec"]["clusterIP"]


def port(number: int, name: str | None = None, **fields: Any) -> Object:
    """A port that leads to the program."""
    return {"port": number, "targetPort": 80, **({"name": name} if name else {}), **fields}


def test_ports_change_one_by_one_in_the_same_service(namespace: str) -> None:
    chosen = apply(namespace, port(80, "http"))[80]
    before = identity(namespace)
    # Another one beside it, another number, another name, another target, a named node port: one after the other.
    both = apply(namespace, port(80, "http"), port(9090, "metrics"))
    assert both[80] == chosen
    assert apply(namespace, port(8080, "http"), port(9090, "metrics")) == {8080: chosen, 9090: both[9090]}
    assert apply(namespace, port(8080, "web"), port(9090, "metrics")) == {8080: chosen, 9090: both[9090]}
    assert apply(namespace, port(8080, "web"), port(9090, "metrics", targetPort="web"))[9090] == both[9090]
    assert apply(namespace, port(8080, "web"))[8080] == chosen
    assert apply(namespace, port(8080, "web", targetPort=8000))[8080] == chosen
    assert apply(namespace, port(8080, "web"))[8080] == chosen
    eventually(lambda: page(chosen), 15, "the node port answers as ever")
    assert identity(namespace) == before


def test_a_single_port_without_a_name_keeps_its_node_port_too(namespace: str) -> None:
    chosen = apply(namespace, port(80))[80]
    assert apply(namespace, port(8080)) == {8080: chosen}
    assert apply(namespace, port(8080), port(53, protocol="UDP"))[8080] == chosen


def test_a_port_without_a_name_beside_others_keeps_its_node_port_when_its_number_changes(namespace: str) -> None:
    before = apply(namespace, port(80), port(81))
    assert apply(namespace, port(8080), port(81)) == {8080: before[80], 81: before[81]}


def test_a_node_port_that_kubernetes_chose_can_be_given_to_another_port(namespace: str) -> None:
    chosen = apply(namespace, port(80))[80]
    found = apply(namespace, port(80, "http"), port(443, "https", nodePort=chosen))
    assert found[443] == chosen != found[80]
    back = apply(namespace, port(80, "http", nodePort=chosen), port(443, "https"))
    assert back[80] == chosen != back[443]


def test_a_node_port_named_and_named_no_more_stays(namespace: str) -> None:
    chosen = apply(namespace, port(80))[80]
    assert apply(namespace, port(80, nodePort=NAMED)) == {80: NAMED} != {80: chosen}
    assert apply(namespace, port(80)) == {80: NAMED}
    assert apply(namespace, port(81)) == {81: NAMED}


def test_without_ports_the_service_goes_and_with_ports_it_comes_back(namespace: str) -> None:
    apply(namespace, port(80))
    before = identity(namespace)
    assert apply(namespace) == {}
    eventually(lambda: kube.get("services", namespace, "app") is None, 15, "the Service is gone")
    assert apply(namespace, port(80)) != {}
    assert identity(namespace)[0] != before[0]


def test_a_service_that_is_not_ours_stays_when_ports_go(namespace: str) -> None:
    kubectl("create", "service", "clusterip", "app", "--tcp=80", "-n", namespace)
    before = service(namespace)
    kube.apply(appservice(namespace, ports=[], resources=SMALL))
    settled(namespace)
    assert service(namespace) == before


def test_server_side_apply_meets_no_conflict_with_what_admission_filled_in(namespace: str) -> None:
    obj = appservice(namespace, ports=[{"port": 80}, {"port": 81}], resources=SMALL)
    for _ in range(2):
        kube.apply(obj, "--server-side")
    obj["spec"]["ports"][1]["port"] = 82
    kube.apply(obj, "--server-side")
    assert set(node_ports(settled(namespace))) == {80, 82}


def spent(namespace: str, audit: Audit, *ports: Object, **spec: Any) -> "Counter[str]":
    """Apply, settle, and wait until nothing more is written: what the operator wrote, status patches within budget."""
    since, started = Audit(audit.path), time.monotonic()
    apply(namespace, *ports, **spec)
    seconds = time.monotonic() - started
    since.quiet(QUIET, namespace)
    writes = since.writes(namespace)
    assert 1 <= writes.pop(STATUS) <= 2 + seconds // PROGRESS
    return writes


def test_every_change_costs_one_write_per_child_it_touches(namespace: str, audit: Audit) -> None:
    def cost(*ports: Object, **spec: Any) -> dict[str, int]:
        return dict(spent(namespace, audit, *ports, **spec))

    assert cost(port(80)) == {"create deployments": 1, "create services": 1}
    assert cost(port(8080)) == {"patch services": 2}  # the hand-over, once in a Service's life
    assert cost(port(8081)) == {"patch services": 1}
    assert cost(port(8081), size=2) == {"patch deployments": 2}
    assert cost(port(8081), port(9090), size=2) == {"patch services": 1}
    assert cost(port(8081), size=1) == {"patch deployments": 1, "patch services": 1}
    assert cost() == {"patch deployments": 1, "delete services": 1}


def test_nothing_is_written_in_steady_state_nor_after_a_restart(namespace: str, audit: Audit) -> None:
    apply(namespace, port(80))
    apply(namespace, port(8080))
    kube.apply(appservice(namespace, "several", ports=[port(80), port(53, protocol="UDP")], envs=[{"name": "EMPTY"}]))
    settled(namespace, "several")
    kube.apply(appservice(namespace, "none"))
    settled(namespace, "none")
    audit.quiet(QUIET, namespace)
    since = Audit(audit.path)
    with controller.started(namespace, sync_period=1, kind="appservice") as fresh:
        fresh.has_reconciled(9)
        assert set(fresh.reconciles()) == {"success"}
    assert not since.writes(namespace)
