"""The status of a MemcachedProxy."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from memcached_api import conditions as c
from memcached_api.annotations import RING_ANNOTATION
from memcached_api.images import Images
from memcached_api.memcachedproxy.types import MemcachedProxyStatus
from memcached_operator.engine.kind import Outcome
from memcached_operator.engine.reporting.conditions import debounce_period, with_transition_times
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Key, Object, key_of
from memcached_operator.memcachedproxy.controller import memcachedproxy as controller
from memcached_operator.memcachedproxy.status import RINGS, Seen, caches
from memcached_operator.parts.ring import Ring
from memcached_operator.world.snapshot import Snapshot
from unit.builders import NOW, deleted, memcachedproxy, pod, rolled_out, snapshot_of

STATUS = controller(Images("memcached:1.6.45"), "cluster.example").status


def with_ring(obj: Object, ring: str) -> Object:
    """A pod with a ring."""
    return {**obj, "metadata": {**obj["metadata"], "annotations": {RING_ANNOTATION: ring}}}


def live(ring: str = "cache/cr/3", size: int = 2) -> Object:
    """A Deployment with a ring, whose rollout is complete."""
    found = rolled_out(size)
    template = with_ring({"metadata": {}}, ring)
    return {
        **found,
        "metadata": {**found["metadata"], "name": "front"},
        "spec": {**found["spec"], "template": template},
    }


def snapshot(*pods: Object, cr: Object | None = None, deployment: Object | None = None) -> Snapshot:
    """A proxy with a Deployment and pods."""
    found = live() if deployment is None else deployment
    return snapshot_of(cr or memcachedproxy(), {key_of(DEPLOYMENTS, found): found}, pods)


PODS = tuple(with_ring(pod(name), "cache/cr/3") for name in ("b", "a"))


def conditions(found: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message by type."""
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in found["conditions"]}


def test_status_of_a_proxy() -> None:
    found = STATUS(snapshot(*PODS), Outcome(), NOW).status
    assert {name: value for name, value in found.items() if name != "conditions"} == {
        "observedGeneration": 1,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "selector": "app.kubernetes.io/instance=front,app.kubernetes.io/managed-by=memcached-operator,"
        "app.kubernetes.io/name=memcached-proxy",
        "nodes": ["a", "b"],
        "address": "front.test.svc.cluster.example:11211",
        "caches": [{"name": "cache", "servers": 3}],
    }
    assert conditions(found)["Ready"][:2] == ("True", "AsExpected")
    stored = {**found, "conditions": with_transition_times((), found["conditions"], NOW)}
    msgspec.convert(stored, MemcachedProxyStatus)


def test_address_is_kept_while_the_spec_is_invalid() -> None:
    cr = {**memcachedproxy(threads=0), "status": {"address": "front.test.svc:1"}}
    assert STATUS(snapshot(cr=cr), Outcome(), NOW).status["address"] == "front.test.svc:1"


CACHES: dict[str, tuple[str, list[Object], list[Object]]] = {
    "only the template": ("cache/cr/3", [], [{"name": "cache", "servers": 3}]),
    "an old pod with more": ("cache/cr/3", [with_ring(pod("a"), "cache/cr/4")], [{"name": "cache", "servers": 4}]),
    "an old pod that is being deleted": (
        "cache/cr/3",
        [deleted(with_ring(pod("a"), "cache/cr/4"))],
        [{"name": "cache", "servers": 4}],
    ),
    "an old pod with less": ("cache/cr/4", [with_ring(pod("a"), "cache/cr/3")], [{"name": "cache", "servers": 4}]),
    "of an earlier Memcached of the name": (
        "cache/new/2",
        [with_ring(pod("a"), "cache/old/5")],
        [{"name": "cache", "servers": 5}],
    ),
    "of another Memcached": (
        "cache/cr/3",
        [with_ring(pod("a"), "before/cr/4")],
        [{"name": "cache", "servers": 3}, {"name": "before", "servers": 4}],
    ),
    "without a ring": ("", [pod("a")], []),
}


@pytest.mark.parametrize(("ring", "pods", "expected"), CACHES.values(), ids=CACHES.keys())
def test_largest_number_of_slots_in_use(ring: str, pods: list[Object], expected: list[Object]) -> None:
    assert caches(snapshot(*pods, deployment=live(ring)), None) == expected


PENDING = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2}
OTHERS = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2}
FEWER = {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1}
UNREADY = {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2}
LISTS: dict[str, tuple[int, Snapshot, bool]] = {
    "the pods have fewer slots": (5, snapshot(*PODS), True),
    "they have as many slots": (3, snapshot(*PODS), False),
    "a known pod has as many slots": (4, snapshot(PODS[0], with_ring(pod("a"), "cache/cr/4")), False),
    "the Deployment has just changed": (5, snapshot(*PODS, deployment={**live(), "status": PENDING}), False),
    "the Deployment has other pods": (5, snapshot(*PODS, deployment={**live(), "status": OTHERS}), False),
    "the Deployment lacks pods": (5, snapshot(*PODS, deployment={**live(), "status": FEWER}), False),
    "the pods are not available": (5, snapshot(*PODS, deployment={**live(), "status": UNREADY}), True),
    "the Deployment does not exist": (5, snapshot_of(memcachedproxy()), True),
}


@pytest.mark.parametrize(("servers", "found", "needed"), LISTS.values(), ids=LISTS.keys())
def test_pods_are_listed_before_the_number_of_slots_becomes_lower(servers: int, found: Snapshot, needed: bool) -> None:
    cr = {**memcachedproxy(), "status": {"caches": [{"name": "cache", "servers": servers}]}}
    found = replace(found, cr=cr)
    assert RINGS.needed(found) is needed
    assert caches(found, None) == [{"name": "cache", "servers": servers}]
    listed = frozenset({Seen(Ring("cache", "cr", 4))})
    assert caches(replace(found, listed=listed), None) == [{"name": "cache", "servers": 4}]
    assert caches(replace(found, listed=listed | {Seen(None)}), None) == [{"name": "cache", "servers": max(servers, 4)}]


def test_names_in_use_come_before_those_of_the_status() -> None:
    forged = [{"name": f"a{number}", "servers": 1} for number in range(16)]
    found = caches(
        snapshot(*PODS, with_ring(pod("c"), "old/cr/1"), cr={**memcachedproxy(), "status": {"caches": forged}}), None
    )
    assert [each["name"] for each in found][:2] == ["cache", "old"]


def test_number_of_caches_is_limited() -> None:
    pods = [with_ring(pod(str(number)), f"m{number}/cr/1") for number in range(30)]
    found = caches(snapshot(*pods), None)
    assert len(found) == 16
    assert found[0]["name"] == "cache"


def test_no_caches_without_a_deployment() -> None:
    assert caches(snapshot_of(memcachedproxy()), None) == []


@pytest.mark.parametrize(("reason", "stalled"), [(c.REFERENCE_NOT_FOUND, False), (c.REFERENCE_INVALID, True)])
def test_only_a_cache_that_a_user_must_change_stalls(reason: str, stalled: bool) -> None:
    found = conditions(STATUS(snapshot_of(memcachedproxy()), Outcome((Problem(reason, "text"),)), NOW).status)
    assert found["Degraded"] == ("True", reason, "text")
    assert found["Ready"][1] == reason
    assert ("Stalled" in found) is stalled
    assert found["Available"][0] == "False"


def test_proxies_that_serve_stay_available_without_their_cache() -> None:
    problem = Problem(c.REFERENCE_NOT_FOUND, "text")
    found = conditions(STATUS(snapshot(*PODS), Outcome((problem,)), NOW).status)
    assert found["Available"][0] == "True"
    assert found["Degraded"][1] == c.REFERENCE_NOT_FOUND


def test_wait_for_slots_is_progress() -> None:
    found = conditions(STATUS(snapshot(*PODS), Outcome((Problem(c.ROLLING_OUT, "slot 3"),)), NOW).status)
    assert found["Progressing"] == ("True", "RollingOut", "slot 3")
    assert found["Degraded"][0] == "False"


@pytest.mark.parametrize(
    ("paused", "remedy"), [(True, "set spec.rollout.paused to false"), (False, "see the Degraded condition")]
)
def test_pause_names_the_remedy(paused: bool, remedy: str) -> None:
    """After its end, the Deployment stays paused while its Memcached cannot be used."""
    deployment = live()
    deployment = {**deployment, "spec": {**deployment["spec"], "paused": True}}
    cr = memcachedproxy(rollout={"paused": paused})
    found = conditions(STATUS(snapshot(*PODS, cr=cr, deployment=deployment), Outcome(), NOW).status)
    assert found["Progressing"][1] == "Paused"
    assert found["Progressing"][2].endswith(f"to continue, {remedy}")


@pytest.mark.parametrize(
    ("value", "version"), [("PreferClose", "1.31"), ("PreferSameZone", "1.34"), ("PreferSameNode", "1.34")]
)
def test_removed_traffic_distribution_is_a_notice(value: str, version: str) -> None:
    cr = memcachedproxy(service={"trafficDistribution": value})
    base = snapshot(*PODS, cr=cr)

    def message(spec: Object) -> str:
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "front", "namespace": "test"},
            "spec": spec,
        }
        children = {**base.children, Key(SERVICES, "test", "front"): service}
        found = STATUS(snapshot_of(cr, children, base.pods), Outcome(), NOW).status
        return conditions(found)["Degraded"][2]

    assert f"Upgrade the cluster to Kubernetes {version} or later, or remove it" in message({})
    assert message({"trafficDistribution": value}) == "All components are healthy"


def test_change_of_the_slots_in_use_is_written_soon() -> None:
    """Pods that are being deleted disappear after the end of a rollout, and a Memcached waits for that."""
    done = STATUS(snapshot(*PODS), Outcome(), NOW).status
    before = {**done, "caches": [{"name": "cache", "servers": 4}]}
    assert debounce_period(before, done) == 0.5
    rolling = STATUS(snapshot(*PODS), Outcome((Problem(c.ROLLING_OUT, ""),)), NOW).status
    assert debounce_period({**rolling, "caches": []}, rolling) == 0.5
    assert debounce_period({**rolling, "nodes": []}, rolling) == 30.0
