"""Pods that Kubernetes itself stops. The statuses are those that a kubelet and controllers of release 1.35 report."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memcached_api.remedies import text_of
from memcached_operator.appservice.containers import DISRUPTIONS as OF_APPSERVICE
from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.findings import disruptions
from memcached_operator.findings.disruptions import disruption
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.containers import DISRUPTIONS as OF_MEMCACHED
from memcached_operator.memcachedproxy.containers import DISRUPTIONS as OF_PROXY
from unit.builders import NOW, ago, deleted, pod, pod_of

STORAGE = "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi"
MEMORY = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 98Mi. Container memcached was using"
)
TAINT = "Taint manager: deleting due to NoExecute taint"
RULES = PodRules("Memcached", disruptions=OF_MEMCACHED, loss_by=lambda remedy: f". It costs {len(remedy)}")


def target(reason: str, message: str = "", status: str = "True") -> Object:
    """The condition DisruptionTarget."""
    since = {"lastTransitionTime": ago(20)}
    return {"type": "DisruptionTarget", "status": status, "reason": reason, "message": message, **since}


def failed(reason: str = "Evicted", message: str = STORAGE, *conditions: Object) -> Object:
    """A pod that a node has stopped."""
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": ago(20)}
    return pod("cache-0", phase="Failed", reason=reason, message=f"{message}. ", conditions=[*conditions, ready])


DISRUPTED: dict[str, tuple[Object, str, str]] = {
    "evicted by the kubelet": (
        failed("Evicted", STORAGE, target("TerminationByKubelet", f"{STORAGE}. ")),
        "Evicted",
        STORAGE,
    ),
    "evicted, without the condition": (failed(), "Evicted", STORAGE),
    "shutdown of the node": (
        failed("Terminated", "Pod was terminated in response to imminent node shutdown"),
        "Terminated",
        "Pod was terminated in response to imminent node shutdown",
    ),
    "preempted by the scheduler": (
        deleted(pod("cache-0", conditions=[target("PreemptionByScheduler", "preempting to accommodate a pod")])),
        "PreemptionByScheduler",
        "preempting to accommodate a pod",
    ),
    "taint": (
        deleted(pod("cache-0", conditions=[target("DeletionByTaintManager", TAINT)])),
        "DeletionByTaintManager",
        TAINT,
    ),
    "drain": (deleted(pod("cache-0", conditions=[target("EvictionByEvictionAPI", "a")])), "EvictionByEvictionAPI", "a"),
    "failed with the condition only": (
        pod("cache-0", phase="Failed", conditions=[target("DeletionByPodGC", "node not found")]),
        "DeletionByPodGC",
        "node not found",
    ),
}


@pytest.mark.parametrize(("obj", "reason", "message"), DISRUPTED.values(), ids=DISRUPTED.keys())
def test_disruption(obj: Object, reason: str, message: str) -> None:
    found = disruption(pod_of(obj), NOW)
    assert found is not None
    assert (found.pod, found.uid, found.reason, found.message) == ("cache-0", obj["metadata"]["uid"], reason, message)
    assert (found.label, timestamp(found.at)) == (reason, ago(20))


UNDISRUPTED: dict[str, Object] = {
    "running": pod("cache-0"),
    "deleted by a user": deleted(pod("cache-0")),
    "an eviction that has not happened": pod("cache-0", conditions=[target("EvictionByEvictionAPI")]),
    "an eviction that was given up": deleted(pod("cache-0", conditions=[target("EvictionByEvictionAPI", "", "False")])),
    "rejected by its node": failed("OutOfcpu", "Pod was rejected"),
    "its process failed": pod("cache-0", phase="Failed"),
}


@pytest.mark.parametrize("obj", UNDISRUPTED.values(), ids=UNDISRUPTED.keys())
def test_no_disruption(obj: Object) -> None:
    assert disruption(pod_of(obj), NOW) is None


def test_reasons_of_others_do_not_add_series() -> None:
    found = disruption(pod_of(deleted(pod("cache-0", conditions=[target("x" * 9999)]))), NOW)
    assert found is not None
    assert (found.label, len(found.reason)) == (disruptions.OTHER, 100)


def found(seconds: float = 60, reason: str = "Evicted", message: str = STORAGE) -> disruptions.Disruption:
    """A disruption some time ago."""
    return disruptions.Disruption("cache-0", "uid", "node-1", reason, message, NOW - timedelta(seconds=seconds))


def test_sentence_of_an_event() -> None:
    text = f"Kubernetes stopped pod cache-0 on node node-1 (Evicted): {STORAGE}; its items are lost"
    assert disruptions.sentence(found(), "its items are lost") == text
    assert disruptions.sentence(found(), "its items are lost", 7) == f"{text}. Before, it stopped 7 more"
    bare = replace(found(message="a\nb" + "x" * 5000), node="")
    assert disruptions.sentence(bare, "").startswith('Kubernetes stopped pod cache-0 (Evicted): "a\\nbxxx')
    assert len(disruptions.sentence(bare, "")) < 700


AGES: dict[str, tuple[tuple[float, ...], bool]] = {
    "three": ((9, 99, 999), True),
    "two": ((9, 99), False),
    "the third is too old": ((9, 99, disruptions.WINDOW.total_seconds()), False),
}


@pytest.mark.parametrize(("ages", "expected"), AGES.values(), ids=AGES.keys())
def test_notice_of_repeated_disruptions(ages: tuple[float, ...], expected: bool) -> None:
    sent = disruptions.notice([found(age) for age in ages], NOW, RULES)
    assert (sent is not None) is expected
    if sent is not None:
        remedy = OF_MEMCACHED["local storage usage exceeds the total limit of containers"]
        assert sent.message == (
            f"Kubernetes stopped 3 or more pods within 30 minutes (Evicted): {STORAGE}. R{text_of(remedy)[1:]}. "
            f"It costs {len(remedy)}"
        )
        assert sent.ends_in == disruptions.WINDOW.total_seconds() - 999


def test_different_reasons_are_not_a_repetition() -> None:
    assert disruptions.notice([found(9), found(8, "Preempting"), found(7, "NodeShutdown")], NOW, RULES) is None


REMEDIES: dict[tuple[str, str], tuple[str, str]] = {
    ("Evicted", STORAGE): ("raise ephemeral-storage in spec.resources.limits", "raise ephemeral-storage"),
    ("Evicted", 'Container memcached exceeded its local ephemeral storage limit "2Mi"'): (
        "raise ephemeral-storage in spec.resources.limits",
        "raise ephemeral-storage",
    ),
    ("Evicted", MEMORY): ("raise spec.resources.requests.memory", "raise spec.resources.requests.memory"),
    ("Evicted", "The node was low on resource: ephemeral-storage"): ("free this resource", "free this resource"),
    ("Evicted", "The node had condition: [DiskPressure]"): ("free this resource", "free this resource"),
    ("PreemptionByScheduler", "preempting"): ("spec.podTemplate.spec.priorityClassName", "add a node"),
    ("Preempting", "Preempted in order to admit critical pod"): ("priorityClassName", "add a node"),
    ("DeletionByTaintManager", TAINT): ("spec.podTemplate.spec.tolerations", "remove the taint"),
    ("Terminated", "Pod was terminated in response to imminent node shutdown"): ("nodeSelector", ""),
    ("NodeShutdown", "Pod was rejected as the node is shutting down"): ("nodeSelector", ""),
    ("EvictionByEvictionAPI", "Eviction API: evicting"): ("", ""),
    ("DeletionByPodGC", "PodGC: node no longer exists"): ("", ""),
}
"""By reason and message: a part of the remedy for a Memcached or a MemcachedProxy, and for an AppService."""


@pytest.mark.parametrize(("cause", "expected"), REMEDIES.items())
def test_remedy(cause: tuple[str, str], expected: tuple[str, str]) -> None:
    """A drain is wanted, and so is the deletion of a node: there is nothing to correct."""
    repeated = [found(9, *cause)] * disruptions.MIN_REPEATED
    tables: tuple[Mapping[str, Any], ...] = (OF_MEMCACHED, OF_PROXY, OF_APPSERVICE)
    for table, part in zip(tables, (expected[0], *expected), strict=True):
        sent = disruptions.notice(repeated, NOW, PodRules("", disruptions=table))
        assert (sent is not None) is bool(part)
        assert sent is None or part.lower() in sent.message.lower()


@pytest.mark.parametrize("obj", [failed(message="a" * 2**20), deleted(pod(conditions=[target("a", "a" * 2**20)]))])
def test_long_message_is_cut_when_it_is_read(obj: Object) -> None:
    """Anyone who can write statuses of pods can write it, and up to 2,000 are kept of an object."""
    found = disruption(pod_of(obj), NOW)
    assert found is not None
    assert found.message == "a" * disruptions.MAX_MESSAGE
