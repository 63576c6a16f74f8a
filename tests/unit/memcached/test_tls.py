"""TLS and passwords: the pods, the Services and the published ports."""

from typing import Any

import pytest

from memcached_api.images import Images
from memcached_api.memcached.ports import Ports, ports
from memcached_api.memcached.types import decode_spec
from memcached_operator.kind import Outcome, Snapshot
from memcached_operator.kube.resource import STATEFULSETS, Object, key_of
from memcached_operator.memcached.controller import plan_with
from memcached_operator.memcached.status import status_with
from unit.builders import NOW, memcached

IMAGES = Images("example.com/memcached:1", "example.com/agent:1")
DOMAIN = "cluster.example"
TLS = {"secretName": "web-tls"}
BOTH = {**TLS, "port": 11212, "plaintext": "Enabled"}
AUTH = {"secretName": "web-auth"}


def planned(live: Object | None = None, **spec: Any) -> dict[str, Object]:
    """The children by kind; one of them for each kind."""
    children = {} if live is None else {key_of(STATEFULSETS, live): live}
    plan = plan_with(IMAGES, DOMAIN)(Snapshot(memcached(**spec), children), NOW)
    return {each["kind"]: each for each in plan.children or ()}


def pod_of(**spec: Any) -> Object:
    """The spec of the pods."""
    found = planned(**spec)
    return (found.get("Deployment") or found["StatefulSet"])["spec"]["template"]["spec"]


def command_of(name: str, **spec: Any) -> str:
    """The command line of a container."""
    (found,) = (each for each in pod_of(**spec)["containers"] if each["name"] == name)
    return " ".join(found["command"])


def named(obj: Object) -> dict[str, int]:
    """The ports of a Service or a container by name."""
    listed = obj["spec"]["ports"] if "spec" in obj else obj["ports"]
    return {each["name"]: each.get("port") or each["containerPort"] for each in listed}


FILES = "ssl_chain_cert=/etc/memcached/tls/tls.crt,ssl_key=/etc/memcached/tls/tls.key"
OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "none": ({}, ""),
    "TLS": ({"tls": TLS}, f"-l *:11211,notls:127.0.0.1:11210 -Z -o {FILES},ssl_min_version=2"),
    "port": ({"tls": {**TLS, "port": 11212}}, f"-l *:11212,notls:127.0.0.1:11210 -Z -o {FILES},ssl_min_version=2"),
    "plaintext": ({"tls": BOTH}, f"-l *:11212,notls:*:11211,notls:127.0.0.1:11210 -Z -o {FILES},ssl_min_version=2"),
    "version": (
        {"tls": {**TLS, "minVersion": "1.3"}},
        f"-l *:11211,notls:127.0.0.1:11210 -Z -o {FILES},ssl_min_version=3",
    ),
    "clients may have certificates": (
        {"tls": {**TLS, "clientAuth": "Request"}},
        f"-l *:11211,notls:127.0.0.1:11210 -Z -o {FILES},ssl_ca_cert=/etc/memcached/tls/ca.crt,ssl_verify_mode=1,"
        "ssl_session_cache,ssl_min_version=2",
    ),
    "clients need certificates": (
        {"tls": {**TLS, "clientAuth": "Require", "clientCASecretName": "clients-ca"}},
        f"-l *:11211,notls:127.0.0.1:11210 -Z -o {FILES},ssl_ca_cert=/etc/memcached/tls/client-ca.crt,"
        "ssl_verify_mode=2,ssl_session_cache,ssl_min_version=2",
    ),
    "passwords": ({"auth": AUTH}, "-Y /etc/memcached/auth/users"),
}


@pytest.mark.parametrize(("spec", "options"), OPTIONS.values(), ids=OPTIONS.keys())
def test_options_of_memcached(spec: dict[str, Any], options: str) -> None:
    base = command_of("memcached")
    assert command_of("memcached", **spec).removeprefix(base).strip() == options


AGENTS: dict[str, tuple[dict[str, Any], str]] = {
    "monitoring": ({"monitoring": {}, "containerPort": 2000}, "--memcached=127.0.0.1:2000"),
    "TLS": ({"tls": TLS}, "--memcached=127.0.0.1:11210 --tls-directory=/etc/memcached/tls --tls-port=11211"),
    "TLS on another port": (
        {"tls": BOTH},
        "--memcached=127.0.0.1:11210 --tls-directory=/etc/memcached/tls --tls-port=11212",
    ),
    "passwords": ({"auth": AUTH}, "--memcached=127.0.0.1:11211 --users-file=/etc/memcached/auth/users"),
    "metrics over HTTPS": (
        {"tls": TLS, "monitoring": {"tls": {}}},
        "--memcached=127.0.0.1:11210 --tls-directory=/etc/memcached/tls --tls-port=11211 --metrics-tls",
    ),
}


@pytest.mark.parametrize(("spec", "options"), AGENTS.values(), ids=AGENTS.keys())
def test_options_of_the_agent(spec: dict[str, Any], options: str) -> None:
    assert command_of("agent", **spec) == f"memcached-agent {options}"


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


def test_agent_shares_processes_only_to_signal_memcached() -> None:
    assert [pod_of(**each).get("shareProcessNamespace") for each in ({"tls": TLS}, {"auth": AUTH})] == [None, True]


def test_both_containers_read_the_same_files() -> None:
    memcached_container, agent = pod_of(tls=TLS, auth=AUTH)["containers"]
    expected = [
        {"name": "tls", "mountPath": "/etc/memcached/tls", "readOnly": True},
        {"name": "auth", "mountPath": "/etc/memcached/auth", "readOnly": True},
    ]
    assert memcached_container["volumeMounts"] == expected
    assert agent["volumeMounts"][1:] == expected


@pytest.mark.parametrize(
    ("tls", "sources"),
    [
        (TLS, [("web-tls", "tls.crt tls.key", False), ("web-tls", "ca.crt", True)]),
        (
            {**TLS, "clientAuth": "Require"},
            [("web-tls", "tls.crt tls.key", False), ("web-tls", "ca.crt", False)],
        ),
        (
            {**TLS, "clientAuth": "Request", "clientCASecretName": "own"},
            [("web-tls", "tls.crt tls.key", False), ("web-tls", "ca.crt", True), ("own", "client-ca.crt", False)],
        ),
    ],
)
def test_files_that_memcached_needs_are_required(tls: dict[str, Any], sources: list[tuple[str, str, bool]]) -> None:
    """The kubelet keeps the previous files of a Secret that lacks a required key."""
    (volume,) = (each for each in pod_of(tls=tls)["volumes"] if each["name"] == "tls")
    secrets = [each["secret"] for each in volume["projected"]["sources"]]
    found = [
        (each["name"], " ".join(item["path"] for item in each["items"]), each.get("optional", False))
        for each in secrets
    ]
    assert found == sources


def test_clients_learn_the_ports() -> None:
    data = planned(identity="Stable", size=1, tls=BOTH)["ConfigMap"]["data"]
    host = f"cache-0.cache.test.svc.{DOMAIN}"
    assert data == {
        "MEMCACHED_HOST": f"cache.test.svc.{DOMAIN}",
        "MEMCACHED_PORT": "11211",
        "MEMCACHED_SERVERS": f"{host}:11211",
        "servers": f"{host}:11211\n",
        "MEMCACHED_TLS": "true",
        "MEMCACHED_TLS_PORT": "11212",
        "MEMCACHED_TLS_SERVERS": f"{host}:11212",
        "tls-servers": f"{host}:11212\n",
    }


def test_clients_of_slots_learn_the_port_for_tls() -> None:
    given: dict[str, Any] = {"identity": "Stable", "size": 1, "service": {"perPod": True}, "tls": TLS}
    data = planned(**given)["ConfigMap"]["data"]
    assert data["MEMCACHED_TLS_FIXED_SERVERS"] == data["MEMCACHED_FIXED_SERVERS"]
    assert data["tls-fixed-servers"] == f"cache-0.test.svc.{DOMAIN}:11211\n"


def test_ports_of_the_pods_are_published_during_a_pause() -> None:
    before = planned(identity="Stable")["StatefulSet"]
    spec: dict[str, Any] = {"identity": "Stable", "rollout": {"paused": True}, "tls": {**TLS, "port": 11212}}
    spec |= {"monitoring": {"tls": {}, "podMonitor": {}}}
    held = planned(before, **spec)
    assert named(held["Service"]) == {"memcached": 11211}
    assert "MEMCACHED_TLS" not in held["ConfigMap"]["data"]
    assert "PodMonitor" not in held
    live = {key_of(STATEFULSETS, held["StatefulSet"]): held["StatefulSet"]}
    found = status_with(DOMAIN)(Snapshot(memcached(**spec), live), Outcome(), NOW).status["servers"]
    assert found == [f"cache-0.cache.test.svc.{DOMAIN}:11211"]


def test_prometheus_verifies_the_agents() -> None:
    monitoring: dict[str, Any] = {"podMonitor": {}, "tls": {}}
    (endpoint,) = planned(tls=TLS, monitoring=monitoring)["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert endpoint == {
        "port": "metrics",
        "scheme": "https",
        "tlsConfig": {"ca": {"secret": {"name": "web-tls", "key": "ca.crt"}}, "serverName": f"cache.test.svc.{DOMAIN}"},
    }
    (plain,) = planned(tls=TLS, monitoring={"podMonitor": {}})["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert plain == {"port": "metrics"}


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


def test_kubelet_needs_no_certificate_of_the_agent() -> None:
    """An agent that starts with a bad Secret has none, and must not be restarted because of it."""
    _, agent = pod_of(tls=TLS, monitoring={"tls": {}})["containers"]
    assert agent["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "metrics"}
