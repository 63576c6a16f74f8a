"""A key stays on its slot: replaced pods, updates and clients that resolve a name once, with real memcached servers."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from support import kube
from support.kube import Object, eventually, must_get
from support.memcached import (
    IMAGE,
    OTHER_IMAGE,
    SMALL,
    by_slot,
    memcached,
    pods_of,
    wait_until_degraded,
    wait_until_ready,
)
from support.slots import Ring, has, replace_pod, requested, slot_addresses, store
from support.waiting import ROLLOUT, STEP

pytestmark = pytest.mark.usefixtures("cluster")

KEYS = [f"key-{number}" for number in range(300)]


def stable(namespace: str, **spec: Any) -> Object:
    """A Memcached with three slots, each with a Service."""
    given: Object = {"identity": "Stable", "size": 3, "resources": SMALL, "service": {"perPod": True}}
    merged: Object = {**given, **spec}
    return memcached(namespace, **merged)


def ready_since(pod: Object) -> str:
    """Since when a pod is ready."""
    return next(each["lastTransitionTime"] for each in pod["status"]["conditions"] if each["type"] == "Ready")


def test_replaced_pod_costs_only_the_keys_of_its_slot(
    namespace: str, record_property: Callable[[str, object], None]
) -> None:
    """A client that has resolved the names once reconnects."""
    kube.apply(stable(namespace))
    servers: list[str] = wait_until_ready(namespace)["status"]["servers"]
    assert servers == [f"cache-{slot}.cache.{namespace}.svc.cluster.local:11211" for slot in range(3)]
    before = Ring(servers).distribution(KEYS)
    addresses = dict(zip(servers, slot_addresses(namespace, 3), strict=True))
    for key, server in before.items():
        store(addresses[server], key)
    with requested(addresses.values()) as slots:
        replace_pod(namespace, "cache-1", "cache")
        count = len(slots[1].answered)
        eventually(lambda: len(slots[1].answered) > count, description="the fixed address leads to the new pod")
    assert slot_addresses(namespace, 3) == list(addresses.values())
    assert must_get("memcacheds", namespace, "cache")["status"]["servers"] == servers
    kept = {key for key, server in before.items() if has(addresses[server], key)}
    assert kept == {key for key, server in before.items() if server != servers[1]}
    assert [slots[slot].failed for slot in (0, 2)] == [[], []]
    away = slots[1].period()
    assert away, "the pod was not replaced"
    record_property("a slot without an answer while its pod is replaced", f"{away[1] - away[0]:.1f} s")


def test_update_takes_one_slot_after_the_other(namespace: str, record_property: Callable[[str, object], None]) -> None:
    kube.apply(stable(namespace, image=IMAGE))
    wait_until_ready(namespace)
    with requested(slot_addresses(namespace, 3)) as slots:
        kube.apply(stable(namespace, image=OTHER_IMAGE))
        wait_until_ready(namespace, timeout=ROLLOUT)
        eventually(lambda: all(each.answered[-1] > max(each.failed, default=0) for each in slots), STEP, "all answer")
    assert {pod["spec"]["containers"][0]["image"] for pod in pods_of(namespace)} == {OTHER_IMAGE}
    periods = [found for each in slots if (found := each.period())]
    assert len(periods) == 3, f"not every slot was updated: {periods}"
    assert periods == sorted(periods, reverse=True), "the slots are updated from the highest"
    pods = by_slot(namespace)
    for lower, higher in pairwise(pods):
        assert lower["metadata"]["creationTimestamp"] >= ready_since(higher), "two slots were away at the same time"
    longest = max(end - start for start, end in periods)
    record_property("longest time without an answer of a slot during an update", f"{longest:.1f} s")


def test_stuck_update_takes_one_slot_and_recovers_when_it_is_corrected(namespace: str) -> None:
    kube.apply(stable(namespace, image=IMAGE))
    wait_until_ready(namespace)
    first = must_get("pods", namespace, "cache-0")["metadata"]["uid"]
    with requested(slot_addresses(namespace, 2)) as others:
        kube.apply(stable(namespace, image="localhost:1/no-such:image"))
        found = wait_until_degraded(namespace, "ImageUnavailable")
        assert "cache-2" in found["message"]
        assert "spec.image" in found["message"]
    assert [each.failed for each in others] == [[], []]
    assert must_get("pods", namespace, "cache-0")["metadata"]["uid"] == first
    kube.apply(stable(namespace, image=IMAGE))
    wait_until_ready(namespace, timeout=ROLLOUT)
    assert must_get("pods", namespace, "cache-0")["metadata"]["uid"] == first
