"""The metrics about each proxy."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from memcached_operator import metrics
from memcached_operator.app import proxy_gauges
from memcached_operator.engine.kind import Outcome
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.resource import Object
from memcached_operator.memcachedproxy.gauges import states
from unit.builders import NOW, memcachedproxy
from unit.memcachedproxy.test_status import PODS, STATUS, live, snapshot


def observed(deployment: Object | None = None, *problems: Problem, pods: tuple[Object, ...] = PODS) -> Object:
    """A proxy of two pods, with the status that the controller writes."""
    cr = memcachedproxy(size=2)
    found = STATUS(snapshot(*pods, cr=cr, deployment=deployment), Outcome(problems), NOW).status
    return {**cr, "status": found}


def rollout(updated: int, *, paused: bool = False, ready: int = 2) -> Object:
    """A Deployment with so many updated pods."""
    found = live()
    counts = {"updatedReplicas": updated, "readyReplicas": ready, "availableReplicas": ready}
    return {
        **found,
        "spec": {**found["spec"], **({"paused": True} if paused else {})},
        "status": {**found["status"], **counts},
    }


META = memcachedproxy()["metadata"]
CASES: dict[str, tuple[Object, int, bool]] = {
    "complete": (observed(), 2, True),
    "rolling out": (observed(rollout(1)), 2, False),
    "one is not ready": (observed(rollout(2, ready=1)), 1, False),
    "paused": (observed(rollout(2, paused=True)), 2, True),
    "paused with a change": (observed(rollout(0, paused=True)), 2, False),
    "waits for slots": (observed(None, Problem("RollingOut", "slot 3")), 2, False),
    "with an outdated status": (
        {**observed(), "metadata": {**memcachedproxy()["metadata"], "generation": 2}},
        2,
        False,
    ),
    "without its cache": (observed(None, Problem("ReferenceNotFound", "text")), 2, False),
}


@pytest.mark.parametrize(("obj", "ready", "up_to_date"), CASES.values(), ids=CASES)
def test_state_of_a_proxy(obj: Object, ready: int, up_to_date: bool) -> None:
    assert list(states([obj])) == [("test", "front", ready, up_to_date)]


ODD: list[Any] = [{}, {"conditions": []}, {"conditions": [{}, "x"], "readyReplicas": "x"}]


@pytest.mark.parametrize("status", ODD)
def test_status_of_any_form_is_read(status: Any) -> None:
    assert all(not each.up_to_date and each.ready == 0 for each in states([{**memcachedproxy(), "status": status}]))


def test_gauges_have_a_sample_for_each_proxy() -> None:
    names = (metrics.READY_PROXIES, metrics.PROXY_UP_TO_DATE)
    gauges, registry = (
        metrics.ObjectGauges(("proxy_namespace", "proxy"), dict.fromkeys(names, "Text.")),
        CollectorRegistry(),
    )
    registry.register(gauges)
    assert b"{" not in generate_latest(registry)
    gauges.read = lambda: map(proxy_gauges, states([CASES["one is not ready"][0], CASES["complete"][0]]))
    labels = {"proxy_namespace": "test", "proxy": "front"}
    assert [registry.get_sample_value(name, labels) for name in names] == [1, 0]
