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

DURATION, DEADLINE, RETRY = 2.0, 1.5, 0.1


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Periods of a test's size."""
    monkeypatch.setattr(module, "LEASE_DURATION", DURATION)
    monkeypatch.setattr(module, "RENEW_DEADLINE", DEADLINE)
    monkeypatch.setattr(module, "RETRY_PERIOD", RETRY)


class Cuttable(Client):
    """A client whose line can be cut."""

    cut = False

    async def request(self, *arguments: Any, **options: Any) -> Any:
        """Fail while the line is cut."""
        if self.cut:
            raise ApiError(0, "Unreachable", "the API server cannot be reached")
        return await super().request(*arguments, **options)


def with_client(plane: ControlPlane, scenario: Callable[[Cuttable], Awaitable[None]]) -> None:
    """Run a scenario with a client."""

    async def run() -> None:
        connection = plane.connection
        async with connection.session() as session, asyncio.timeout(30):
            await scenario(Cuttable(connection, session))

    asyncio.run(run())


async def seconds(work: Awaitable[Any]) -> float:
    """How long something takes."""
    started = time.monotonic()
    await work
    return time.monotonic() - started


def key_of(namespace: str) -> Key:
    """The lease of a test."""
    return Key(LEASES, namespace, "operator")


def test_a_lease_that_does_not_exist_is_acquired_at_once(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: Cuttable) -> None:
        assert await seconds(LeaderElector(client, namespace, "operator", "one").acquire()) < 1

    with_client(plane, scenario)
    spec = plane.must_get(key_of(namespace))["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("one", 0)


def test_a_standby_waits_while_the_lease_is_renewed_and_takes_over_at_once_when_it_is_released(
    plane: ControlPlane, namespace: str
) -> None:
    async def scenario(client: Cuttable) -> None:
        one, two = (LeaderElector(client, namespace, "operator", name) for name in ("one", "two"))
        await one.acquire()
        holding, standby = asyncio.create_task(one.renew()), asyncio.create_task(two.acquire())
        await asyncio.sleep(2 * DURATION)
        assert not holding.done()
        assert not standby.done()
        holding.cancel()
        await one.release()
        assert await seconds(standby) < 1

    with_client(plane, scenario)
    spec = plane.must_get(key_of(namespace))["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("two", 1)


def test_the_lease_of_one_that_died_is_taken_when_it_has_run_out(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: Cuttable) -> None:
        await LeaderElector(client, namespace, "operator", "dead").acquire()
        waited = await seconds(LeaderElector(client, namespace, "operator", "two").acquire())
        assert DURATION <= waited < 2 * DURATION

    with_client(plane, scenario)


def test_of_two_that_wait_one_acquires(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: Cuttable) -> None:
        waiting = [
            asyncio.create_task(LeaderElector(client, namespace, "operator", n).acquire()) for n in ("a", "b", "c")
        ]
        done, pending = await asyncio.wait(waiting, timeout=DURATION / 2)
        assert (len(done), len(pending)) == (1, 2)
        for task in pending:
            task.cancel()

    with_client(plane, scenario)


def test_a_holder_whose_lease_somebody_else_takes_must_end(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: Cuttable) -> None:
        lease = LeaderElector(client, namespace, "operator", "one")
        await lease.acquire()
        holding = asyncio.create_task(lease.renew())
        await client.patch(key_of(namespace), {"spec": {"holderIdentity": "thief"}})
        with pytest.raises(LeaseLostError, match=f"the lease Lease {namespace}/operator is lost"):
            async with asyncio.timeout(DEADLINE):
                await holding

    with_client(plane, scenario)
    assert plane.must_get(key_of(namespace))["spec"]["holderIdentity"] == "thief"


def test_a_holder_that_cannot_renew_must_end_before_the_lease_runs_out(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: Cuttable) -> None:
        lease = LeaderElector(client, namespace, "operator", "one")
        started = time.monotonic()
        await lease.acquire()
        client.cut = True
        with pytest.raises(LeaseLostError):
            await lease.renew()
        assert DEADLINE <= time.monotonic() - started < DURATION

    with_client(plane, scenario)


def test_a_short_break_of_the_line_is_survived(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: Cuttable) -> None:
        lease = LeaderElector(client, namespace, "operator", "one")
        await lease.acquire()
        holding = asyncio.create_task(lease.renew())
        client.cut = True
        await asyncio.sleep(DEADLINE / 3)
        client.cut = False
        await asyncio.sleep(2 * DEADLINE)
        assert not holding.done()
        holding.cancel()

    with_client(plane, scenario)


def test_only_the_holder_releases(plane: ControlPlane, namespace: str) -> None:
    async def scenario(client: Cuttable) -> None:
        await LeaderElector(client, namespace, "operator", "one").acquire()
        await LeaderElector(client, namespace, "operator", "two").release()

    with_client(plane, scenario)
    assert plane.must_get(key_of(namespace))["spec"]["holderIdentity"] == "one"


def test_releasing_a_lease_that_is_gone_is_no_error(plane: ControlPlane, namespace: str) -> None:
    async def scenario() -> None:
        async with client_of(plane.connection) as client:
            await LeaderElector(client, namespace, "operator", "one").release()

    asyncio.run(scenario())
    assert plane.get(key_of(namespace)) is None


def test_who_leads_is_a_metric(plane: ControlPlane, namespace: str) -> None:
    def leads() -> float | None:
        return metrics.REGISTRY.get_sample_value("leader_election_master_status", {"name": "operator"})

    async def scenario(client: Cuttable) -> None:
        lease = LeaderElector(client, namespace, "operator", "one")
        assert leads() == 0
        await lease.acquire()
        assert leads() == 1
        await lease.release()
        assert leads() == 0

    with_client(plane, scenario)
