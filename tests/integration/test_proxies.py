"""A Memcached and its MemcachedProxy on API servers: fields that they must store, and who waits for whom.

tests/simulation/test_proxies.py has the orders and the failures.
"""

import asyncio
from typing import Any

import pytest

from integration.control_plane import ControlPlane, eventually
from integration.test_manager import IMAGE, cache, create, patch, run_operator, wait_until_ready
from integration.test_placing_budgets import QUIET
from memcached_api.annotations import RING_ANNOTATION
from memcached_api.images import Images
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, STATEFULSETS, Key, Object, nested_map
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES, memcachedproxy
from support.draining import condition
from support.kubernetes import NEW_TRAFFIC, TRAFFIC

pytestmark = pytest.mark.server

RELEASE = "docker.io/library/memcached:1.6.45"
KINDS = (memcached(Images(IMAGE)), memcachedproxy(Images(RELEASE)))


def front(namespace: str, **spec: Any) -> Object:
    """A proxy in front of the Memcached `cache`."""
    return {
        "apiVersion": MEMCACHEDPROXIES.api_version,
        "kind": MEMCACHEDPROXIES.kind,
        "metadata": {"name": "front", "namespace": namespace},
        "spec": {"memcachedRef": {"name": "cache"}, "image": RELEASE, **spec},
    }


async def make(client: ApiClient, obj: Object) -> None:
    """Create a proxy."""
    await client.request("POST", MEMCACHEDPROXIES.path(obj["metadata"]["namespace"]), obj)


async def ring(client: ApiClient, namespace: str) -> str:
    """The ring in the pod template; without the uid of the Memcached."""
    live = await client.get(Key(DEPLOYMENTS, namespace, "front"))
    text = nested_map(live or {}, "spec", "template", "metadata", "annotations").get(RING_ANNOTATION, "//")
    name, _, servers = text.split("/")
    return f"{name}/{servers}"


def test_proxy_that_is_created_first_follows_the_size_of_its_cache(plane: ControlPlane, namespace: str) -> None:
    key = Key(MEMCACHEDPROXIES, namespace, "front")

    async def reason(client: ApiClient, kind: str, wanted: str) -> bool:
        return condition(await client.get(key) or {}, kind).get("reason") == wanted

    async def replicas(client: ApiClient, wanted: int) -> bool:
        live = await client.get(Key(STATEFULSETS, namespace, "cache"))
        return nested_map(live or {}, "spec").get("replicas") == wanted

    async def uses(client: ApiClient, servers: int) -> bool:
        status = nested_map(await client.get(key) or {}, "status")
        is_reported = status.get("caches") == [{"name": "cache", "servers": servers}]
        return is_reported and await ring(client, namespace) == f"cache/{servers}"

    async def scenario(client: ApiClient) -> None:
        await make(client, front(namespace))
        assert await eventually(lambda: reason(client, "Degraded", "ReferenceNotFound"))
        assert await client.get(Key(SERVICES, namespace, "front")) is not None
        assert await client.get(Key(DEPLOYMENTS, namespace, "front")) is None
        await create(client, cache(namespace, size=2, identity="Stable", image=RELEASE))
        await wait_until_ready(client, namespace)
        found = await wait_until_ready(client, namespace, "front", MEMCACHEDPROXIES)
        assert found["status"]["caches"] == [{"name": "cache", "servers": 2}]
        assert found["status"]["address"] == f"front.{namespace}.svc.cluster.local:11211"
        for size in (3, 1):
            await patch(client, Key(MEMCACHEDS, namespace, "cache"), {"spec": {"size": size}})
            await eventually(lambda wanted=size: replicas(client, wanted))
            await eventually(lambda wanted=size: uses(client, wanted))
            await wait_until_ready(client, namespace)
            await wait_until_ready(client, namespace, "front", MEMCACHEDPROXIES)
        audit = plane.audit()
        await patch(client, key, {"metadata": {"labels": {"a": "b"}}})
        await asyncio.to_thread(audit.wait_until_quiet, QUIET, namespace)
        assert audit.writes(namespace) == {"patch memcachedproxies": 1}, "this patch"

    run_operator(plane, (namespace,), scenario, kinds=KINDS)


def test_traffic_distribution_of_an_older_cluster_has_a_remedy(
    plane: ControlPlane, version: str, namespace: str
) -> None:
    key = Key(MEMCACHEDPROXIES, namespace, "front")

    async def message(client: ApiClient, part: str) -> bool:
        return part in condition(await client.get(key) or {}, "Degraded").get("message", "")

    async def distribution(client: ApiClient) -> str | None:
        return nested_map(await client.get(Key(SERVICES, namespace, "front")) or {}, "spec").get("trafficDistribution")

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, size=1, identity="Stable", image=RELEASE))
        await make(client, front(namespace, size=1, service={"trafficDistribution": "PreferSameNode"}))
        if not NEW_TRAFFIC.applies(version):
            assert await eventually(lambda: message(client, "Upgrade the cluster to Kubernetes 1.34 or later, or "))
            assert await distribution(client) is None
            await patch(client, key, {"spec": {"service": {"trafficDistribution": "PreferClose"}}})
        if TRAFFIC.applies(version):
            await wait_until_ready(client, namespace, "front", MEMCACHEDPROXIES)
            wanted = "PreferSameNode" if NEW_TRAFFIC.applies(version) else "PreferClose"
            assert await distribution(client) == wanted
        else:
            assert await eventually(lambda: message(client, "Upgrade the cluster to Kubernetes 1.31 or later, or "))

    run_operator(plane, (namespace,), scenario, kinds=KINDS)


def test_all_parts_of_the_pods_are_stored(plane: ControlPlane, namespace: str) -> None:
    """Otherwise, each reconcile would write them again."""

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, size=1, identity="Stable", image=RELEASE))
        await make(client, front(namespace, size=1, networkPolicy={}, service={"trafficDistribution": "PreferClose"}))
        await wait_until_ready(client, namespace, "front", MEMCACHEDPROXIES)
        live = await client.get(Key(DEPLOYMENTS, namespace, "front"))
        assert live is not None
        assert live["spec"]["revisionHistoryLimit"] == 0
        assert [each["name"] for each in live["spec"]["template"]["spec"]["dnsConfig"]["options"]] == [
            *("ndots", "timeout", "attempts")
        ]
        audit = plane.audit()
        await patch(client, Key(MEMCACHEDPROXIES, namespace, "front"), {"metadata": {"labels": {"a": "b"}}})
        await asyncio.to_thread(audit.wait_until_quiet, QUIET, namespace)
        assert audit.writes(namespace) == {"patch memcachedproxies": 1}, "this patch"

    run_operator(plane, (namespace,), scenario, kinds=KINDS)
