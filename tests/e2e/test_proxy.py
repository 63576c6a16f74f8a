"""One address for a cache, with real pods: keys are found through each proxy, and each connection is reset once."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

from kubectl_memcached.ring.proxies import slot_of
from support import kube
from support.clients import Client, Server
from support.connections import CONNECTIONS, connected
from support.kube import Object, eventually, items, must_get
from support.memcached import SMALL, by_slot, conditions, memcached, pods_of, wait_until_degraded, wait_until_ready
from support.slots import replace_pod
from support.waiting import READY, ROLLOUT, STEP

pytestmark = pytest.mark.usefixtures("cluster")

KEYS: Final = [f"key-{number}" for number in range(10_000)]
PROXIES: Final = "memcachedproxies"
PERIOD: Final = 0.02
"""Seconds between two requests of a connection: 500 requests per second in all."""
LARGEST_STALL: Final = 2.0
"""Seconds without a response on any connection while the proxies are replaced."""


def proxy(namespace: str, **spec: Any) -> Object:
    """A MemcachedProxy for the Memcached `cache`."""
    return {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "MemcachedProxy",
        "metadata": {"name": "front", "namespace": namespace},
        "spec": {"memcachedRef": {"name": "cache"}, **spec},
    }


def cache(namespace: str, size: int, **spec: Any) -> Object:
    """A Memcached with slots."""
    given: Object = {"identity": "Stable", "size": size, "resources": SMALL, "cache": {"memory": "16Mi"}, **spec}
    return memcached(namespace, **given)


def address(namespace: str) -> str:
    """The IP address of the Service."""
    return must_get("services", namespace, "front")["spec"]["clusterIP"]


def stores(host: str) -> bool:
    """Whether all keys can be stored. The rules of a Service reach its node a moment after its pods are ready."""
    try:
        with Client(Server(host, 11211)) as client:
            client.store(KEYS)
    except OSError:
        return False
    return True


def held(address: str, slot: int) -> bool:
    """Whether a server has exactly the keys of its slot among three."""
    of_slot = [each for each in KEYS if slot_of(each.encode(), 3) == slot]
    with Client(Server(address, 11211)) as client:
        return client.count(of_slot) == len(of_slot) == client.count(KEYS)


def test_keys_are_found_through_each_proxy_and_a_dead_slot_costs_only_its_own(namespace: str) -> None:
    kube.apply(proxy(namespace))
    message = wait_until_degraded(namespace, "ReferenceNotFound", "front", plural=PROXIES)["message"]
    assert f"Memcached cache does not exist in namespace {namespace}" in message
    assert items("deployments", namespace) == []
    host = address(namespace)
    kube.apply(cache(namespace, 3))
    wait_until_ready(namespace)
    status = wait_until_ready(namespace, "front", plural=PROXIES)["status"]
    assert status["address"] == f"front.{namespace}.svc.cluster.local:11211"
    eventually(partial(stores, host), STEP, "all slots are reached")
    proxies = pods_of(namespace, "front")
    assert len(proxies) == 2
    for pod in proxies:
        with Client(Server(pod["status"]["podIP"], 11211)) as client:
            assert client.count(KEYS) == len(KEYS)
    assert all(held(pod["status"]["podIP"], slot) for slot, pod in enumerate(by_slot(namespace)))
    others = sum(slot_of(each.encode(), 3) != 1 for each in KEYS)
    replace_pod(namespace, "cache-1", "cache")
    wait_until_ready(namespace)
    eventually(lambda: _count(host) == others, STEP, "the keys of the others")


def _count(host: str) -> int:
    try:
        with Client(Server(host, 11211)) as client:
            return client.count(KEYS)
    except (OSError, IndexError):  # the slot is away, or its address is not known yet
        return -1


def test_change_of_the_size_resets_each_connection_once(
    namespace: str, record_property: Callable[[str, object], None]
) -> None:
    kube.apply(cache(namespace, 3))
    wait_until_ready(namespace)
    kube.apply(proxy(namespace))
    wait_until_ready(namespace, "front", plural=PROXIES)
    with connected(address(namespace), PERIOD) as clients:
        eventually(lambda: all(each.answered > 20 for each in clients), READY, "the proxies answer")
        for size in (4, 3):
            before = [(each.closed, each.refused) for each in clients]
            for each in clients:
                each.stall = 0.0
            kube.apply(cache(namespace, size))
            started = time.monotonic()
            eventually(
                partial(serves, namespace, size), ROLLOUT, f"the proxies use {size} slots, and no pod is too many"
            )
            record_property(f"until the proxies use {size} slots", f"{time.monotonic() - started:.1f} s")
            resets = [each.closed - old for each, (old, _) in zip(clients, before, strict=True)]
            assert max(resets) <= 1, resets
            assert [each.refused - old for each, (_, old) in zip(clients, before, strict=True)] == [0] * CONNECTIONS
            assert [each.errors for each in clients] == [[]] * CONNECTIONS
            assert max(each.stall for each in clients) < LARGEST_STALL
    assert conditions(namespace)["Degraded"]["message"] == "All components are healthy"


def serves(namespace: str, size: int) -> bool:
    """Whether the cache has this number of pods, and all proxies use these."""
    status = must_get(PROXIES, namespace, "front")["status"]
    assert status["caches"] == [{"name": "cache", "servers": size}]
    assert len(items("pods", namespace, "app.kubernetes.io/instance=cache")) == size
    assert len(items("pods", namespace, "app.kubernetes.io/instance=front")) == 2, "an earlier proxy is still there"
    wait_until_ready(namespace, timeout=0.1)
    wait_until_ready(namespace, "front", timeout=0.1, plural=PROXIES)
    return True
