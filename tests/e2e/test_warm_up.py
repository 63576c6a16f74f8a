"""Rollouts and drains of caches that must be warm, with real pods and clients that fill them."""

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from support import kube
from support.agents import readyz
from support.kube import Object, eventually, kubectl, must_get
from support.load import Load, fill, load
from support.memcached import SMALL, by_slot, conditions, memcached, states, wait_until_ready
from support.slots import slot_addresses
from support.waiting import BUSY, READY, ROLLOUT

SLOTS = 3
KEYS = [f"key-{number}" for number in range(8_000)]
RATE = 1000
"""Requests per second to each cache: a third of them to each slot, so that its clients fill it in 24 s."""
WARM_UP = {"hitRatio": 80, "timeout": "15m", "minRequests": 100}
WARM = BUSY * 75.0
"""Seconds until a pod with clients is warm: the agent needs a whole minute."""

pytestmark = [pytest.mark.nightly, pytest.mark.usefixtures("cluster")]


def cache(namespace: str, name: str, **spec: Any) -> Object:
    """A Memcached with a Service for each slot, whose addresses stay."""
    merged: dict[str, Any] = {"size": SLOTS, "identity": "Stable", "service": {"perPod": True}, "resources": SMALL}
    return memcached(namespace, name, monitoring={}, **merged, **spec)


def ready_since(pod: Object) -> str:
    """Since when a pod is ready."""
    return next(each["lastTransitionTime"] for each in pod["status"]["conditions"] if each["type"] == "Ready")


def is_cold(namespace: str, slot: int) -> bool:
    """Whether the agent of a slot's pod runs, and says that the pod is not warm."""
    with suppress(OSError, KeyError):  # it has not started yet
        return "not warm yet" in readyz(must_get("pods", namespace, f"gated-{slot}"))
    return False


@contextmanager
def warm(namespace: str, name: str = "gated") -> Generator[Load]:
    """A cache that is warm, and clients that keep it so during the block."""
    eventually(lambda: states(namespace, name).get("Available") == "True", READY, "the cache is available")
    addresses = slot_addresses(namespace, SLOTS, name)
    fill(addresses, KEYS)
    with load(addresses, KEYS, RATE, fills=True) as clients:
        wait_until_ready(namespace, name, WARM)
        yield clients


@pytest.mark.long(240)
def test_next_pod_is_replaced_only_when_the_previous_one_is_warm(
    namespace: str, record_property: Callable[[str, object], None]
) -> None:
    """Beside it a cache without the gate, with the same clients and the same change: the chart in docs/warm.md."""

    def changed(name: str, verbosity: int) -> Object:
        rollout = {"warmUp": WARM_UP} if name == "gated" else {}
        return cache(namespace, name, rollout=rollout, cache={"verbosity": verbosity})

    names = ("gated", "ungated")
    for name in names:
        kube.apply(changed(name, 1))
    with warm(namespace, "gated") as with_gate, warm(namespace, "ungated") as without:
        before = {pod["metadata"]["uid"] for pod in by_slot(namespace, "gated")}
        since = with_gate.now()
        said = [kubectl("apply", "-f", "-", stdin=changed(name, 0)).stderr for name in names]
        assert f"this change replaces {SLOTS} pods" in said[0]
        eventually(lambda: "gated-2 is warming up" in conditions(namespace, "gated")["Progressing"]["message"], READY)
        for name in names:
            wait_until_ready(namespace, name, SLOTS * WARM)
        until = with_gate.now()
    pods = by_slot(namespace, "gated")
    assert not before & {pod["metadata"]["uid"] for pod in pods}
    for lower, higher in pairwise(pods):
        assert lower["metadata"]["creationTimestamp"] >= ready_since(higher), "two slots were cold at the same time"
    for pod in pods:
        started = datetime.fromisoformat(pod["status"]["startTime"])
        assert (datetime.fromisoformat(ready_since(pod)) - started).total_seconds() >= 60, "warm before a whole minute"
    for name, each in (("with the gate", with_gate), ("without it", without)):
        record_property(f"lowest hit ratio of all slots in 10 s, {name}", f"{each.lowest(since):.0%}")
        ratios = (each.ratio(at, at + 10) for at in range(since, until, 10))
        record_property(f"hit ratio every 10 s, {name}", " ".join("-" if r is None else f"{r:.0%}" for r in ratios))


@pytest.mark.long(100)
def test_eviction_waits_for_a_pod_that_warms_up(namespace: str) -> None:
    budget = {"enabled": True, "maxUnavailable": 1}
    kube.apply(cache(namespace, "gated", rollout={"warmUp": WARM_UP}, podDisruptionBudget=budget))
    with warm(namespace):
        first = must_get("pods", namespace, "gated-0")["metadata"]["uid"]
        assert evict(namespace, "gated-0") == ""
        eventually(lambda: uid(namespace, "gated-0") not in ("", first), READY, "the pod is replaced")
        eventually(lambda: is_cold(namespace, 0), READY, "the new pod is cold")
        assert "disruption budget" in evict(namespace, "gated-1")
        eventually(lambda: evict(namespace, "gated-1") == "", ROLLOUT, "the next pod is evicted when the first is warm")
        assert kube.ready(must_get("pods", namespace, "gated-0"))


def uid(namespace: str, name: str) -> str:
    """The uid of a pod; empty if it does not exist."""
    return (kube.get("pods", namespace, name) or {"metadata": {"uid": ""}})["metadata"]["uid"]


def evict(namespace: str, name: str) -> str:
    """Evict a pod as `kubectl drain` does; returns why that is denied, or an empty string."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    return kubectl("create", "--raw", path, "-f", "-", stdin=body, check=False).stderr
