"""TLS and passwords: the pods, the Services and the published ports."""

from collections.abc import Iterable
from typing import Any

import pytest

from memcached_api.images import Images
from memcached_api.memcached.resolved import Ports, ports
from memcached_api.memcached.types import decode_spec
from memcached_operator.engine.kind import Outcome
from memcached_operator.kube.resource import STATEFULSETS, Object, key_of
from memcached_operator.memcached.plan import plan_with
from memcached_operator.memcached.status import status_with
from unit.builders import NOW, memcached, snapshot_of

IMAGES = Images("example.com/memcached:1", "example.com/agent:1")
DOMAIN = "cluster.example"
TLS = {"secretName": "web-tls"}
BOTH = {**TLS, "port": 11212, "plaintext": "Enabled"}


def planned(live: Object | None = None, pods: Iterable[Object] = (), **spec: Any) -> dict[str, Object]:
    """The children by kind; one of them for each kind."""
    children = {} if live is None else {key_of(STATEFULSETS, live): live}
    plan = plan_with(IMAGES, DOMAIN)(snapshot_of(memcached(**spec), children, tuple(pods)), NOW)
    return {each["kind"]: each for each in plan.children or ()}


def named(obj: Object) -> dict[str, int]:
    """The ports of a Service or a container by name."""
    listed = obj["spec"]["ports"] if "spec" in obj else obj["ports"]
    return {each["name"]: each.get("port") or each["containerPort"] for each in listed}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, Ports(plain=11211)),
        ({"containerPort": 2000, "tls": TLS}, Ports(tls=2000)),
        ({"containerPort": 2000, "tls": {**TLS, "port": 11212}}, Ports(tls=11212)),
        ({"tls": BOTH}, Ports(11211, 11212)),
    ],
)
def test_ports(spec: dict[str, Any], expected: Ports) -> None:
    found = ports(decode_spec(memcached(**spec)))
    assert found == expected
    assert found.default == (expected.plain or expected.tls)
    children = planned(**spec, identity="Stable", networkPolicy={})
    names = {"memcached": expected.plain, "memcached-tls": expected.tls}
    served = {name: port for name, port in names.items() if port is not None}
    container, *_ = children["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    assert named(children["Service"]) == named(container) == served
    assert [each["port"] for each in children["NetworkPolicy"]["spec"]["ingress"][0]["ports"]] == list(served.values())
    assert container["readinessProbe"]["tcpSocket"] == container["livenessProbe"]["tcpSocket"]
    assert container["readinessProbe"]["tcpSocket"] == {"port": next(iter(served))}


def test_ports_of_the_pods_are_published_during_a_pause() -> None:
    before = planned(identity="Stable")["StatefulSet"]
    spec: dict[str, Any] = {"identity": "Stable", "rollout": {"paused": True}, "tls": {**TLS, "port": 11212}}
    spec |= {"monitoring": {"tls": {}, "podMonitor": {}}}
    held = planned(before, **spec)
    assert named(held["Service"]) == {"memcached": 11211}
    assert "MEMCACHED_TLS" not in held["ConfigMap"]["data"]
    assert "PodMonitor" not in held
    live = {key_of(STATEFULSETS, held["StatefulSet"]): held["StatefulSet"]}
    found = status_with(DOMAIN)(snapshot_of(memcached(**spec), live), Outcome(), NOW).status["servers"]
    assert found == [f"cache-0.cache.test.svc.{DOMAIN}:11211"]


@pytest.mark.parametrize(
    ("encrypted", "paused", "published"),
    [
        ([True, True, True], True, {"memcached-tls": 11211}),
        ([False, True, True], True, {"memcached-tls": 11211}),
        ([False, False, True], True, {"memcached": 11211}),
        ([True], True, {"memcached-tls": 11211}),
        ([], True, {"memcached": 11211}),
        ([True, True, True], False, {"memcached": 11211}),
    ],
)
def test_ports_of_most_pods_are_published_while_a_deployment_is_paused(
    encrypted: list[bool], paused: bool, published: dict[str, int]
) -> None:
    """The spec switches TLS off. `encrypted`: whether each pod still has it. The first one is being deleted."""
    pods = [
        {
            "metadata": {"name": str(number), **({} if number else {"deletionTimestamp": "now"})},
            "spec": planned(tls=TLS if tls else None)["Deployment"]["spec"]["template"]["spec"],
        }
        for number, tls in enumerate(encrypted)
    ]
    assert named(planned(pods=pods, rollout={"paused": paused})["Service"]) == published


@pytest.mark.parametrize(("monitoring", "rules"), [({}, 2), ({"enabled": False}, 1), (None, 1)])
def test_port_of_the_agent_is_open_only_for_metrics(monitoring: Any, rules: int) -> None:
    given = {} if monitoring is None else {"monitoring": monitoring}
    policy = planned(tls=TLS, networkPolicy={}, **given)["NetworkPolicy"]
    assert len(policy["spec"]["ingress"]) == rules


def test_held_pods_are_monitored_as_they_are() -> None:
    """During a pause that removes TLS, the pods still serve HTTPS with the previous Secret."""
    monitoring: dict[str, Any] = {"podMonitor": {}, "tls": {}}
    before = planned(identity="Stable", tls=TLS, monitoring=monitoring)["StatefulSet"]
    held = planned(before, identity="Stable", monitoring={"podMonitor": {}}, rollout={"paused": True})
    (endpoint,) = held["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert endpoint["tlsConfig"]["ca"]["secret"]["name"] == "web-tls"


def test_agent_that_exists_for_tls_creates_no_pod_monitor() -> None:
    assert "PodMonitor" not in planned(tls=TLS, monitoring={"enabled": False, "podMonitor": {}})
