"""Rollouts and drains of caches that must be warm, with real pods and clients that fill them."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from support import kube
from support.agents import metrics, value
from support.clients import Client, Server
from support.kube import Object, eventually, kubectl, must_get
from support.load import fill
from support.load import load as constant_load
from support.memcached import SMALL, conditions, memcached, pods_of, states, wait_until_ready
from support.slots import slot_addresses

SLOTS = 3
KEYS = [f"key-{number}" for number in range(300)]
WARM_UP = {"hitRatio": 80, "timeout": "5m", "minRequests": 100}


def cache(namespace: str, **spec: Any) -> Object:
    """A Memcached with a Service for each slot, whose addresses stay."""
    merged: dict[str, Any] = {"size": SLOTS, "identity": "Stable", "service": {"perPod": True}, "resources": SMALL}
    return memcached(namespace, **merged, **spec)


@dataclass
class Load:
    """Clients that read a fixed set of keys from each slot, and store those that they miss while `filling`."""

    filling: threading.Event = field(default_factory=threading.Event)
    cold: int = 0
    """The largest number of slots that missed most of their keys in the same round."""


@contextmanager
def load(namespace: str) -> Generator[Load]:
    """Run a client per slot during the block."""
    addresses = [must_get("services", namespace, f"cache-{slot}")["spec"]["clusterIP"] for slot in range(SLOTS)]
    found, stop = Load(), threading.Event()
    found.filling.set()
    thread = threading.Thread(target=_run, args=(addresses, found, stop), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join(timeout=60)


def _run(addresses: list[str], found: Load, stop: threading.Event) -> None:
    while not stop.wait(0.1):
        shares = [_round(Server(address, 11211), found) for address in addresses]
        found.cold = max(found.cold, sum(share is not None and share < 0.5 for share in shares))


def _round(server: Server, found: Load) -> float | None:
    """The share of the keys that a slot had; None if it cannot be reached."""
    try:
        with Client(server) as client:
            hits = client.count(KEYS)
            if hits < len(KEYS) and found.filling.is_set():
                client.store(KEYS)
            return hits / len(KEYS)
    except OSError:
        return None


def serve(namespace: str) -> None:
    """Wait until the cache serves clients, before it is warm."""
    eventually(lambda: states(namespace).get("Available") == "True", 60, "the cache is available")
    assert states(namespace)["Progressing"] == "True"


def pod(namespace: str, slot: int) -> Object:
    """The pod of a slot, as of now."""
    return must_get("pods", namespace, f"cache-{slot}")


def is_cold(namespace: str, slot: int) -> bool:
    """Whether the agent of a slot's pod runs, and says that the pod is not warm."""
    with suppress(OSError, KeyError):  # it has not started yet
        return "not warm yet" in metrics(pod(namespace, slot), "/readyz")
    return False


def uids(namespace: str) -> list[str]:
    """The uids of the pods, in the order of the slots."""
    return [each["metadata"]["uid"] for each in sorted(pods_of(namespace), key=lambda each: each["metadata"]["name"])]


def test_next_pod_is_replaced_only_when_the_previous_one_is_warm(namespace: str) -> None:
    kube.apply(cache(namespace, rollout={"warmUp": WARM_UP}))
    serve(namespace)
    with load(namespace) as clients:
        wait_until_ready(namespace, timeout=120)
        before = uids(namespace)
        clients.cold = 0  # at first, all slots are empty
        clients.filling.clear()
        said = kubectl(
            "apply", "-f", "-", stdin=cache(namespace, rollout={"warmUp": WARM_UP}, cache={"verbosity": 0})
        ).stderr
        assert f"this change replaces {SLOTS} pods" in said
        eventually(lambda: uids(namespace)[2:] not in ([], before[2:]), 60, "the last slot is replaced")
        eventually(lambda: "cache-2 warms up" in conditions(namespace)["Progressing"]["message"], 60, "the status")
        assert conditions(namespace)["Available"]["status"] == "True"
        kube.consistently(lambda: uids(namespace)[:2] == before[:2], 75, "no other pod is replaced while it is cold")
        assert "not warm yet" in metrics(pod(namespace, 2), "/readyz")
        assert value(pod(namespace, 2), "memcached_agent_warm") == 0
        clients.filling.set()
        wait_until_ready(namespace, timeout=400)
        assert not set(uids(namespace)) & set(before)
        assert [value(pod(namespace, slot), "memcached_agent_warm") for slot in range(SLOTS)] == [1, 1, 1]
    assert clients.cold <= 1


def test_eviction_waits_for_a_pod_that_warms_up(namespace: str) -> None:
    budget = {"enabled": True, "maxUnavailable": 1}
    kube.apply(cache(namespace, rollout={"warmUp": WARM_UP}, podDisruptionBudget=budget))
    serve(namespace)
    with load(namespace) as clients:
        wait_until_ready(namespace, timeout=120)
        clients.filling.clear()
        assert evict(namespace, "cache-0") == ""
        eventually(lambda: kube.get("pods", namespace, "cache-0"), 60, "the pod is replaced")
        eventually(lambda: is_cold(namespace, 0), 60, "the new pod is cold")
        assert "disruption budget" in evict(namespace, "cache-1")
        clients.filling.set()
        eventually(lambda: evict(namespace, "cache-1") == "", 150, "the next pod is evicted when the first is warm")


def evict(namespace: str, name: str) -> str:
    """Evict a pod as `kubectl drain` does; returns why that is denied, or an empty string."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    return kubectl("create", "--raw", path, "-f", "-", stdin=body, check=False).stderr


@pytest.mark.parametrize("identity", ["Pooled", "Stable"])
def test_cache_without_warm_up_is_ready_at_once(namespace: str, identity: str) -> None:
    kube.apply(memcached(namespace, size=2, identity=identity, monitoring={}, resources=SMALL))
    wait_until_ready(namespace, timeout=45)


CHART_KEYS = [f"key-{number}" for number in range(8_000)]
CHART_RATE = 1000
"""Requests per second to each cache: a third of them to each slot, so that its clients fill it in 24 s."""
SHARE = 0.8 * (SLOTS - 1) / SLOTS


def test_hit_ratio_during_a_cold_change_with_and_without_the_gate(
    namespace: str, record_property: Callable[[str, object], None]
) -> None:
    """The figures of the chart in docs/warm.md: both caches have the same clients and the same change."""

    def gated(name: str, verbosity: int) -> Object:
        spec = cache(namespace, rollout={"warmUp": WARM_UP} if name == "gated" else {}, monitoring={})
        return {**spec, "metadata": {**spec["metadata"], "name": name}} | {
            "spec": {**spec["spec"], "cache": {"verbosity": verbosity}}
        }

    names = ("gated", "ungated")
    for name in names:
        kube.apply(gated(name, 1))
    for name in names:
        wait_until_ready(namespace, name, timeout=200)
    addresses = {name: slot_addresses(namespace, SLOTS, name) for name in names}
    for name in names:
        fill(addresses[name], CHART_KEYS)
    with (
        constant_load(addresses["gated"], CHART_KEYS, CHART_RATE, fills=True) as with_gate,
        constant_load(addresses["ungated"], CHART_KEYS, CHART_RATE, fills=True) as without,
    ):
        eventually(lambda: with_gate.ratio(0, 5) == without.ratio(0, 5) == 1.0, 30, "both caches are warm")
        since = with_gate.now()
        for name in names:
            kube.apply(gated(name, 0))
        for name in names:
            wait_until_ready(namespace, name, timeout=600)
        until = with_gate.now()
    lowest = [each.lowest(since) for each in (with_gate, without)]
    for name, each in zip(("with the gate", "without it"), lowest, strict=True):
        record_property(f"lowest hit ratio of all slots in 10 s, {name}", f"{each:.0%}")
    for name, each in (("with the gate", with_gate), ("without it", without)):
        ratios = (each.ratio(at, at + 10) for at in range(since, until, 10))
        record_property(f"hit ratio every 10 s, {name}", " ".join("-" if r is None else f"{r:.0%}" for r in ratios))
    assert lowest[0] >= SHARE > lowest[1]
