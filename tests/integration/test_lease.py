"""Concurrent writes of a Lease on a real API server. The rest is in tests/unit/runtime/test_lease.py."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from integration.control_plane import ControlPlane, client_of, eventually
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import LEASES, Key
from memcached_operator.runtime import leader_election as module
from memcached_operator.runtime.leader_election import LeaderElector, LeaseLostError


def with_client(plane: ControlPlane, scenario: Callable[[ApiClient], Awaitable[None]]) -> None:
    """Run a scenario with a client."""

    async def run() -> None:
        async with client_of(plane.connection) as client, asyncio.timeout(60):
            await scenario(client)

    asyncio.run(run())


def key_of(namespace: str) -> Key:
    """The key of the test's Lease."""
    return Key(LEASES, namespace, "operator")


def test_only_one_of_several_candidates_acquires(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: ApiClient) -> None:
        candidates = [LeaderElector(client, namespace, "operator", name) for name in "abcde"]
        for _ in range(2):  # first all try to create the Lease, then to update it
            acquired = await asyncio.gather(*(each.try_acquire_or_renew(30) for each in candidates))
            assert acquired.count(True) == 1
            await candidates[acquired.index(True)].release()

    with_client(plane, scenario)
    spec = plane.must_get(key_of(namespace))["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("", 1)


def test_holder_renews_until_another_identity_takes_the_lease(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_PERIOD", 0.1)
    key = key_of(namespace)

    async def scenario(client: ApiClient) -> None:
        lease = LeaderElector(client, namespace, "operator", "one")
        await lease.acquire()
        holding = asyncio.create_task(lease.renew())
        acquired = (await client.get(key) or {})["spec"]["renewTime"]

        async def renewed() -> bool:
            return (await client.get(key) or {})["spec"]["renewTime"] != acquired

        await eventually(renewed)
        await client.patch(key, {"spec": {"holderIdentity": "other"}})
        with pytest.raises(LeaseLostError, match=f"Lease {namespace}/operator is lost"):
            await holding

    with_client(plane, scenario)
    assert plane.must_get(key)["spec"]["holderIdentity"] == "other"


def test_release_is_repeated_after_a_conflict_with_a_late_renewal(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(client: ApiClient) -> None:
        get = client.get

        async def renewed_after_get(key: Key) -> Any:
            live = await get(key)
            monkeypatch.setattr(client, "get", get)
            await client.patch(key, {"metadata": {"labels": {"renewed": "late"}}})
            return live

        lease = LeaderElector(client, namespace, "operator", "one")
        await lease.acquire()
        monkeypatch.setattr(client, "get", renewed_after_get)
        await lease.release()

    with_client(plane, scenario)
    live = plane.must_get(key_of(namespace))
    assert (live["spec"]["holderIdentity"], live["metadata"]["labels"]["renewed"]) == ("", "late")
