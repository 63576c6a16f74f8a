"""A Memcached with slots on the real API server: what its children cost, and what stays where it is."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from integration.control_plane import ControlPlane, eventually
from integration.test_manager import cache, create, missing, run_operator, wait_until_ready
from integration.test_placing_budgets import QUIET, STATUS
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import CONFIG_MAPS, PODS, SERVICES, STATEFULSETS, Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcached.updates.confirmation import ready_since
from support.admitted import admitted
from support.draining import condition
from support.lists import listed
from unit.builders import pod_of

COLLECTION_SECONDS = 90
"""Timeout for the garbage collector. It looks for new resources, such as those of a CRD, every 30 s."""
CREATED = {
    "create statefulsets": 1,
    "create services": 1,
    "create configmaps": 1,
    "create poddisruptionbudgets": 1,
    "create networkpolicies": 1,
}
CHANGES: list[tuple[Object, dict[str, int]]] = [
    # The first change of a child also transfers the field ownership. The size alone needs no apply.
    ({"size": 3}, {"patch statefulsets": 1, "patch configmaps": 2}),
    # The ConfigMap names the Services as soon as they exist.
    ({"service": {"perPod": True}}, {"create services": 3, "patch configmaps": 1}),
    ({"size": 2}, {"patch statefulsets": 1, "patch configmaps": 1, "delete services": 1}),
    # The operator deletes each pod, instead of the controller of StatefulSets.
    ({"image": "example.com/memcached:2"}, {"patch statefulsets": 2, "delete pods": 2}),
    ({"service": None}, {"delete services": 2, "patch configmaps": 1}),
]
"""Changes of the spec, one after the other, and the writes of children and pods that each may cost."""


def stable(namespace: str, name: str = "cache", **spec: Any) -> Object:
    """A Memcached with slots."""
    return cache(namespace, name, **{"identity": "Stable", **spec})


async def degraded(client: ApiClient, namespace: str, name: str, reason: str) -> Object | None:
    """The Memcached if it is degraded for a reason."""
    found = await client.get(Key(MEMCACHEDS, namespace, name))
    return found if found and condition(found, "Degraded").get("reason") == reason else None


def test_request_budgets_and_servers(plane: ControlPlane, namespace: str) -> None:
    key = Key(MEMCACHEDS, namespace, "cache")

    async def check(client: ApiClient, action: Any, expected: dict[str, int]) -> Object:
        audit = plane.audit()
        await asyncio.to_thread(action)
        found = await wait_until_ready(client, namespace)
        await asyncio.to_thread(audit.wait_until_quiet, QUIET, namespace)
        writes = audit.writes(namespace)
        assert writes.pop(STATUS) >= 1
        assert writes == expected
        return found

    async def scenario(client: ApiClient) -> None:
        spec = admitted(identity="Stable", size=2, networkPolicy={})
        found = await check(client, lambda: plane.create(MEMCACHEDS, cache(namespace, **spec)), CREATED)
        for change, expected in CHANGES:
            found = await check(client, partial(plane.change, key, {"spec": change}), expected)
            size = found["spec"]["size"]
            servers = [f"cache-{slot}.cache.{namespace}.svc.cluster.local:11211" for slot in range(size)]
            assert found["status"]["servers"] == servers
            config = await client.get(Key(CONFIG_MAPS, namespace, "cache-connection"))
            assert config is not None
            assert config["data"]["servers"].splitlines() == servers

    async def steady(client: ApiClient) -> None:
        audit = plane.audit()
        await wait_until_ready(client, namespace)
        await asyncio.sleep(3 * SHORT_SYNC)
        assert audit.writes(namespace) == {}

    run_operator(plane, (namespace,), scenario)
    run_operator(plane, (namespace,), steady, sync_period=SHORT_SYNC)


EARLIER = datetime(2026, 1, 1, tzinfo=UTC)
"""A time at which each pod was available."""

SHORT_SYNC = 0.3
"""Seconds between full resyncs, so that a test sees several."""


def test_several_slots_are_replaced_at_once(plane: ControlPlane, namespace: str) -> None:
    """As many as the budget and the rollout allow, and never more: counted after each event of a pod.

    A new pod counts until it is available, which takes some seconds.
    """
    size, limit, period, new = 6, 2, timedelta(seconds=4), "example.com/memcached:2"
    unavailable: list[list[str]] = []

    async def count(client: ApiClient, version: str, since: dict[str, datetime | None]) -> None:
        """`since`: when each pod became ready; None if it is not."""
        async for what, obj in client.watch(PODS, namespace, "", version):
            if what != "BOOKMARK":
                now, pod = datetime.now(UTC), pod_of(obj)
                exists = what != "DELETED" and pod.is_active
                since[pod.name] = ready_since(pod, now) if exists else None
                unavailable.append([name for name, at in since.items() if at is None or now - at < period])

    async def scenario(client: ApiClient) -> None:
        rollout = {"maxUnavailable": 3, "minReadySeconds": int(period.total_seconds())}
        budget = {"maxUnavailable": limit}
        await create(client, stable(namespace, size=size, rollout=rollout, podDisruptionBudget=budget))
        await wait_until_ready(client, namespace)
        pods, version = await listed(client, PODS, namespace)
        before = {pod["metadata"]["uid"] for pod in pods}
        counting = asyncio.create_task(count(client, version, {pod["metadata"]["name"]: EARLIER for pod in pods}))
        try:
            await asyncio.to_thread(plane.change, Key(MEMCACHEDS, namespace, "cache"), {"spec": {"image": new}})
            await wait_until_ready(client, namespace)
        finally:
            counting.cancel()
        pods, _ = await listed(client, PODS, namespace)
        assert len(pods) == size
        assert not before & {pod["metadata"]["uid"] for pod in pods}
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {new}

    run_operator(plane, (namespace,), scenario)
    assert max(map(len, unavailable)) == limit, unavailable


def test_fields_that_others_add_are_removed(plane: ControlPlane, namespace: str) -> None:
    """They would give all slots other names, delay every update, or expose a slot."""
    drifts: list[tuple[Key, Object, Callable[[Object], bool]]] = [
        (
            Key(STATEFULSETS, namespace, "cache"),
            {"ordinals": {"start": 5}, "minReadySeconds": 900},
            lambda spec: spec["ordinals"] == {"start": 0} and not spec.get("minReadySeconds"),
        ),
        (
            Key(STATEFULSETS, namespace, "cache"),
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}},
            lambda spec: spec["updateStrategy"] == {"type": "OnDelete"},
        ),
        (
            Key(SERVICES, namespace, "cache-0"),
            {"externalIPs": ["192.0.2.1"], "type": "NodePort"},
            lambda spec: "externalIPs" not in spec and spec["type"] == "ClusterIP",
        ),
    ]

    async def scenario(client: ApiClient) -> None:
        async def reverted(key: Key, check: Callable[[Object], bool]) -> bool:
            found = await client.get(key)
            return found is not None and check(found["spec"])

        await create(client, stable(namespace, size=2, service={"perPod": True}))
        await wait_until_ready(client, namespace)
        for key, drift, check in drifts:
            await asyncio.to_thread(plane.change, key, {"spec": drift})
            await eventually(partial(reverted, key, check))
        await wait_until_ready(client, namespace)

    run_operator(plane, (namespace,), scenario)


def test_two_memcacheds_that_want_one_service(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one gets Conflict; the first one, and everything else of the second, works."""
    monkeypatch.setattr("memcached_operator.engine.writes.result.CONFLICT_PERIOD", 1.0)
    monkeypatch.setattr("memcached_operator.memcached.plan.CONFLICT_DELAY", 1.0)
    first, second = "cache-0", "cache"

    async def scenario(client: ApiClient) -> None:
        await create(client, cache(namespace, first))
        await wait_until_ready(client, namespace, first)
        service = await client.get(Key(SERVICES, namespace, "cache-0"))
        await create(client, stable(namespace, second, size=2, service={"perPod": True}))
        await eventually(lambda: degraded(client, namespace, second, "Conflict"))
        found = await degraded(client, namespace, second, "Conflict")
        assert found is not None
        assert f"Service cache-0 belongs to Memcached {first}" in condition(found, "Degraded")["message"]
        await eventually(lambda: is_available(client, namespace, second))
        assert await client.get(Key(SERVICES, namespace, "cache-0")) == service
        assert not await missing(client, Key(SERVICES, namespace, "cache-1"))
        # Its clients must not use the other one's servers.
        await eventually(lambda: fixed_servers(client, namespace, is_listed=False))
        await asyncio.to_thread(plane.delete, Key(MEMCACHEDS, namespace, first))

        async def collected() -> bool:
            return await client.get(Key(SERVICES, namespace, "cache-0")) != service

        await eventually(collected, COLLECTION_SECONDS)
        await wait_until_ready(client, namespace, second)
        await eventually(lambda: fixed_servers(client, namespace, is_listed=True))

    run_operator(plane, (namespace,), scenario)


async def fixed_servers(client: ApiClient, namespace: str, *, is_listed: bool) -> bool:
    """Whether the ConfigMap names the Services of the slots, or does not."""
    found = await client.get(Key(CONFIG_MAPS, namespace, "cache-connection"))
    return found is not None and ("MEMCACHED_FIXED_SERVERS" in found["data"]) is is_listed


async def is_available(client: ApiClient, namespace: str, name: str) -> bool:
    """Whether enough pods are ready."""
    found = await client.get(Key(MEMCACHEDS, namespace, name))
    return found is not None and condition(found, "Available").get("status") == "True"


def test_identity_cannot_be_changed_without_the_webhook(plane: ControlPlane, namespace: str) -> None:
    key = Key(MEMCACHEDS, namespace, "cache")
    plane.create(MEMCACHEDS, stable(namespace))
    for spec in ({"identity": "Pooled"}, {"identity": None}):
        with pytest.raises(ApiError) as caught:
            plane.change(key, {"spec": spec})
        assert "spec.identity" in str(caught.value)
        assert "create another Memcached with this value" in str(caught.value)
    plane.change(key, {"spec": {"size": 2, "identity": "Stable"}})
