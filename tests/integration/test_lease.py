import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from integration.control_plane import ControlPlane, client_of
from memcached_operator import metrics
from memcached_operator.kube.client import ApiError, Client
from memcached_operator.kube.resource import LEASES, Key
from memcached_operator.runtime import leader_election as module
from memcached_operator.runtime.leader_election import LeaderElector, LeaseLostError

DURATION, DEADLINE, RETRY = 4.0, 3.0, 0.2
"""Seconds. Renewals must succeed within DEADLINE on a busy machine too."""


@pytest.fixture(autouse=True)
def short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use short periods."""
    monkeypatch.setattr(module, "LEASE_DURATION", DURATION)
    monkeypatch.setattr(module, "RENEW_DEADLINE", DEADLINE)
    monkeypatch.setattr(module, "RETRY_PERIOD", RETRY)


class DisconnectableClient(Client):
    """A client that can be disconnected."""

    disconnected = False

    async def request(self, *arguments: Any, **options: Any) -> Any:
        """Send a request; fails while disconnected."""
        if self.disconnected:
            raise ApiError(0, "Unreachable", "the API server cannot be reached")
        return await super().request(*arguments, **options)


def with_client(plane: ControlPlane, scenario: Callable[[DisconnectableClient], Awaitable[None]]) -> None:
    """Run a scenario with a client."""

    async def run() -> None:
        connection = plane.connection
        async with connection.session() as session, asyncio.timeout(30):
            await scenario(DisconnectableClient(connection, session))

    asyncio.run(run())


async def seconds(work: Awaitable[Any]) -> float:
    """The seconds that `work` takes."""
    started = time.monotonic()
    await work
    return time.monotonic() - started


def key_of(namespace: str) -> Key:
    """The key of the test's Lease."""
    return Key(LEASES, namespace, "operator")


def test_missing_lease_is_acquired_immediately(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: DisconnectableClient) -> None:
        assert await seconds(LeaderElector(client, namespace, "operator", "one").acquire()) < DURATION / 2

    with_client(plane, scenario)
    spec = plane.must_get(key_of(namespace))["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("one", 0)


def test_standby_waits_while_the_lease_is_renewed_and_acquires_it_when_released(
    plane: ControlPlane, namespace: str
) -> None:
    async def scenario(client: DisconnectableClient) -> None:
        one, two = (LeaderElector(client, namespace, "operator", name) for name in ("one", "two"))
        await one.acquire()
        holding, standby = asyncio.create_task(one.renew()), asyncio.create_task(two.acquire())
        await asyncio.sleep(2 * DURATION)
        assert not holding.done()
        assert not standby.done()
        holding.cancel()
        await one.release()
        assert await seconds(standby) < DURATION / 2

    with_client(plane, scenario)
    spec = plane.must_get(key_of(namespace))["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("two", 1)


def test_expired_lease_is_acquired(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: DisconnectableClient) -> None:
        await LeaderElector(client, namespace, "operator", "dead").acquire()
        waited = await seconds(LeaderElector(client, namespace, "operator", "two").acquire())
        assert DURATION <= waited < 2 * DURATION

    with_client(plane, scenario)


def test_only_one_of_several_candidates_acquires(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: DisconnectableClient) -> None:
        waiting = [
            asyncio.create_task(LeaderElector(client, namespace, "operator", n).acquire()) for n in ("a", "b", "c")
        ]
        done, pending = await asyncio.wait(waiting, timeout=DURATION / 2)
        assert (len(done), len(pending)) == (1, 2)
        for task in pending:
            task.cancel()

    with_client(plane, scenario)


def test_holder_fails_when_another_identity_takes_the_lease(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: DisconnectableClient) -> None:
        lease = LeaderElector(client, namespace, "operator", "one")
        await lease.acquire()
        holding = asyncio.create_task(lease.renew())
        await client.patch(key_of(namespace), {"spec": {"holderIdentity": "other"}})
        with pytest.raises(LeaseLostError, match=f"Lease {namespace}/operator is lost"):
            async with asyncio.timeout(DEADLINE):
                await holding

    with_client(plane, scenario)
    assert plane.must_get(key_of(namespace))["spec"]["holderIdentity"] == "other"


def test_holder_that_cannot_renew_fails_before_the_lease_expires(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: DisconnectableClient) -> None:
        lease = LeaderElector(client, namespace, "operator", "one")
        started = time.monotonic()
        await lease.acquire()
        client.disconnected = True
        with pytest.raises(LeaseLostError):
            await lease.renew()
        assert DEADLINE <= time.monotonic() - started < DURATION

    with_client(plane, scenario)


def test_holder_survives_a_short_disconnection(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: DisconnectableClient) -> None:
        lease = LeaderElector(client, namespace, "operator", "one")
        await lease.acquire()
        holding = asyncio.create_task(lease.renew())
        client.disconnected = True
        await asyncio.sleep(DEADLINE / 3)
        client.disconnected = False
        await asyncio.sleep(2 * DEADLINE)
        assert not holding.done()
        holding.cancel()

    with_client(plane, scenario)


def test_only_the_holder_can_release(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: DisconnectableClient) -> None:
        await LeaderElector(client, namespace, "operator", "one").acquire()
        await LeaderElector(client, namespace, "operator", "two").release()

    with_client(plane, scenario)
    assert plane.must_get(key_of(namespace))["spec"]["holderIdentity"] == "one"


def test_release_is_repeated_after_a_conflict_with_a_late_renewal(
    plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(client: DisconnectableClient) -> None:
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


def test_releasing_a_missing_lease_is_not_an_error(plane: ControlPlane, namespace: str) -> None:
    async def scenario() -> None:
        async with client_of(plane.connection) as client:
            await LeaderElector(client, namespace, "operator", "one").release()

    asyncio.run(scenario())
    assert plane.get(key_of(namespace)) is None


def test_leadership_is_a_metric(plane: ControlPlane, namespace: str) -> None:
    def is_leader() -> float | None:
        return metrics.REGISTRY.get_sample_value("leader_election_master_status", {"name": "operator"})

    async def scenario(client: DisconnectableClient) -> None:
        lease = LeaderElector(client, namespace, "operator", "one")
        assert is_leader() == 0
        await lease.acquire()
        assert is_leader() == 1
        await lease.release()
        assert is_leader() == 0

    with_client(plane, scenario)
