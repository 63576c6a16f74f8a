"""Which clients the NetworkPolicy of a Memcached admits, by Kubernetes' definition of its fields."""

from typing import Any

import pytest

from memcached_api.images import Images
from memcached_api.memcached.types import check
from memcached_operator.kind import Snapshot
from memcached_operator.kube.resource import DEPLOYMENTS, NETWORK_POLICIES, Object
from memcached_operator.memcached.controller import memcached as kind
from support.network_policies import Client, admits
from unit.builders import NOW, memcached

WEB = {"app": "web", "tier": "front"}
CLIENTS = {
    "same pod": Client("10.0.0.1", "test", {"app.kubernetes.io/instance": "cache"}, {"team": "a"}),
    "web": Client("10.0.0.2", "test", WEB, {"team": "a"}),
    "job": Client("10.0.0.3", "test", {"app": "job"}, {"team": "a"}),
    "web of team b": Client("10.0.1.2", "b", WEB, {"team": "b"}),
    "job of team b": Client("10.0.1.3", "b", {"app": "job"}, {"team": "b"}),
    "web elsewhere": Client("10.0.2.2", "elsewhere", WEB),
    "outside": Client("192.0.2.7"),
    "outside, excepted": Client("192.0.2.129"),
    "outside, IPv6": Client("2001:db8::1"),
}
"""Clients. The Memcached is in namespace `test`, whose label is team=a."""

INSIDE = {"same pod", "web", "job"}
APP_WEB = {"matchLabels": {"app": "web"}}
TEAM_B = {"matchLabels": {"team": "b"}}
BLOCK = {"cidr": "192.0.2.0/24", "except": ["192.0.2.128/25"]}


def requirement(key: str, operator: str, *values: str) -> Object:
    """A label selector with one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": [*values]} if values else {})}]}


CASES: dict[str, tuple[Object, set[str]]] = {
    "no peers: this namespace": ({}, INSIDE),
    "null peers: this namespace": ({"from": None}, INSIDE),
    "every pod of this namespace": ({"from": [{"podSelector": {}}]}, INSIDE),
    "pods of this namespace": ({"from": [{"podSelector": APP_WEB}]}, {"web"}),
    "every namespace": (
        {"from": [{"namespaceSelector": {}}]},
        {*INSIDE, "web of team b", "job of team b", "web elsewhere"},
    ),
    "another namespace": ({"from": [{"namespaceSelector": TEAM_B}]}, {"web of team b", "job of team b"}),
    "pods of another namespace": (
        {"from": [{"namespaceSelector": TEAM_B, "podSelector": APP_WEB}]},
        {"web of team b"},
    ),
    "pods of this namespace, or another namespace": (
        {"from": [{"namespaceSelector": TEAM_B}, {"podSelector": APP_WEB}]},
        {"web", "web of team b", "job of team b"},
    ),
    "in": ({"from": [{"podSelector": requirement("app", "In", "job", "batch")}]}, {"job"}),
    "not in": ({"from": [{"podSelector": requirement("app", "NotIn", "web")}]}, {"same pod", "job"}),
    "exists": ({"from": [{"podSelector": requirement("tier", "Exists")}]}, {"web"}),
    "does not exist": ({"from": [{"podSelector": requirement("app", "DoesNotExist")}]}, {"same pod"}),
    "labels and an expression": (
        {"from": [{"podSelector": {**APP_WEB, **requirement("tier", "DoesNotExist")}}]},
        set(),
    ),
    "range of addresses": ({"from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}, {"outside", "outside, excepted"}),
    "range with an exception": ({"from": [{"ipBlock": BLOCK}]}, {"outside"}),
    "range of IPv6 addresses": ({"from": [{"ipBlock": {"cidr": "2001:db8::/32"}}]}, {"outside, IPv6"}),
    "range or pods": ({"from": [{"ipBlock": BLOCK}, {"podSelector": APP_WEB}]}, {"outside", "web"}),
}
"""Values of spec.networkPolicy, and the clients that each admits."""


def built(given: Object, **spec: Any) -> tuple[Object, Object]:
    """The NetworkPolicy of a Memcached in namespace `test`, and the labels of its pods."""
    cr = memcached(networkPolicy=given, **spec)
    found, errors = check(cr)
    assert found is not None
    assert not errors
    children = kind(Images("example.com/memcached:1")).plan(Snapshot(cr), NOW).children or ()
    (policy,) = (each for each in children if each["kind"] == NETWORK_POLICIES.kind)
    (deployment,) = (each for each in children if each["kind"] == DEPLOYMENTS.kind)
    placed = {**policy, "metadata": {**policy["metadata"], "namespace": "test"}}
    return placed, deployment["spec"]["template"]["metadata"]["labels"]


@pytest.mark.parametrize(("given", "expected"), CASES.values(), ids=CASES.keys())
def test_clients_that_are_admitted(given: Object, expected: set[str]) -> None:
    policy, pod = built(given)
    assert {name for name, client in CLIENTS.items() if admits(policy, pod, client, 11211)} == expected


def test_only_the_port_of_the_cache_is_admitted() -> None:
    policy, pod = built({"from": [{"podSelector": APP_WEB}]}, containerPort=11311)
    ports = [(11311, "TCP"), (11311, "UDP"), (11211, "TCP"), (22, "TCP")]
    admitted = [each for each in ports if admits(policy, pod, CLIENTS["web"], *each)]
    assert admitted == [(11311, "TCP")]
    assert not any(admits(policy, pod, CLIENTS["job"], *each) for each in ports)


def test_only_the_pods_of_the_object_are_isolated() -> None:
    policy, pod = built({"from": [{"podSelector": APP_WEB}]})
    others = [WEB, pod | {"app.kubernetes.io/instance": "other"}, pod | {"app.kubernetes.io/managed-by": "user"}]
    assert all(admits(policy, other, CLIENTS["outside"], 11211) for other in others)
    assert not admits(policy, pod | {"added": "by user"}, CLIENTS["outside"], 11211)


def test_an_empty_list_would_admit_everyone() -> None:
    """Why the API denies it: to Kubernetes, an empty list of peers is no restriction."""
    policy, pod = built({"from": [{"podSelector": APP_WEB}]})
    policy["spec"]["ingress"][0]["from"] = []
    assert all(admits(policy, pod, client, 11211) for client in CLIENTS.values())
    _, errors = check(memcached(networkPolicy={"from": []}))
    assert "spec.networkPolicy.from" in str(errors)
