import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memcached_operator import metrics
from memcached_operator.engine.runtime import leader_election as module
from memcached_operator.engine.runtime.leader_election import LeaderElector, LeaseLostError, holder_of, lease_spec
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import Key, Object
from unit.builders import NOW

AT = "2030-01-01T12:00:00.000000Z"
LATER = "2030-01-01T12:00:02.500000Z"


def held(by: str, **more: Any) -> dict[str, Any]:
    """The spec of a lease."""
    return {
        "holderIdentity": by,
        "leaseDurationSeconds": 15,
        "acquireTime": AT,
        "renewTime": AT,
        "leaseTransitions": 4,
    } | more


ACQUIRED: dict[str, tuple[Any, Any]] = {
    "new": ({}, held("me", leaseTransitions=0, acquireTime=LATER)),
    "renewed": (held("me"), held("me")),
    "held by another": (held("other"), held("me", leaseTransitions=5, acquireTime=LATER)),
    "released": (held("", leaseDurationSeconds=1), held("me", leaseTransitions=5, acquireTime=LATER)),
    "manually emptied": ({"holderIdentity": None}, held("me", leaseTransitions=1, acquireTime=LATER)),
}


@pytest.mark.parametrize(("before", "after"), ACQUIRED.values(), ids=ACQUIRED.keys())
def test_held_spec(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert lease_spec(before, "me", NOW + timedelta(seconds=2.5)) == after | {"renewTime": LATER}


@pytest.mark.parametrize(
    ("spec", "holder"), [(held("me"), "me"), (held(""), ""), ({}, "")], ids=["held", "released", "empty"]
)
def test_holder(spec: dict[str, Any], holder: str) -> None:
    assert holder_of({"spec": spec}) == holder


@dataclass
class Api:
    """An API server with one lease. `delay`: seconds per write. `unreachable`: every request fails."""

    now: float = 100.0
    delay: float = 0.0
    lease: Object | None = None
    unreachable: bool = False
    failures: int = 0
    unanswered: int = 0
    requests: int = 0
    version: int = field(default=0)

    async def get(self, key: Key) -> Object | None:
        """Return the lease."""
        self._connect()
        return self.lease

    def put(self, holder: str) -> None:
        """Write the lease as another holder."""
        self.version += 1
        self.lease = {"metadata": {"resourceVersion": str(self.version)}, "spec": held(holder)}

    async def create(self, key: Key, obj: Object) -> None:
        """Create the lease."""
        await self._write(obj)

    async def request(self, method: str, path: str, obj: Object) -> None:
        """Update the lease."""
        await self._write(obj)

    def _connect(self) -> None:
        self.requests += 1
        if self.unreachable or self.failures > 0:
            self.failures -= 1
            self.now += 1
            raise ApiError(0, "Unreachable", "the API server cannot be reached")

    async def _write(self, obj: Object) -> None:
        self._connect()
        self.version += 1
        self.lease = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        if self.unanswered:
            self.unanswered -= 1
            await asyncio.Event().wait()
        self.now += self.delay


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Api:
    """An API server whose clock replaces the lease's clock."""
    fake = Api()
    clock: Callable[[], float] = lambda: fake.now  # noqa: E731 - replaces a function of the module
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr(module, "RETRY_PERIOD", 0)
    return fake


def lease_of(api: Api, identity: str = "me") -> LeaderElector:
    """The Lease of one candidate."""
    return LeaderElector(cast("ApiClient", api), "test", "operator", identity)


def test_created_lease_has_its_type_its_name_and_its_holder(api: Api) -> None:
    asyncio.run(lease_of(api).acquire())
    assert api.lease is not None
    assert (api.lease["apiVersion"], api.lease["kind"]) == ("coordination.k8s.io/v1", "Lease")
    assert api.lease["metadata"] == {"name": "operator", "namespace": "test", "resourceVersion": "1"}
    assert holder_of(api.lease) == "me"


def test_renewed_lease_duration_starts_with_the_request(api: Api) -> None:
    async def run() -> None:
        lease = lease_of(api)
        await lease.acquire()
        api.delay = 4.0
        holding = asyncio.create_task(lease.renew())
        while api.version < 2:  # noqa: ASYNC110 - waits for the fake API server
            await asyncio.sleep(0)
        api.unreachable = True
        with pytest.raises(LeaseLostError):
            await holding

    asyncio.run(run())
    # The renewal started at 100; the response arrived at 104.
    assert api.now == 100.0 + module.RENEW_DEADLINE


def test_renewal_without_a_response_ends_at_the_deadline(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RENEW_DEADLINE", 0.2)

    async def run() -> None:
        lease = lease_of(api)
        await lease.acquire()
        api.unanswered = 1
        started = asyncio.get_running_loop().time()
        holding = asyncio.create_task(lease.renew())
        await asyncio.sleep(0.1)
        api.unreachable, api.now = True, api.now + 0.2
        async with asyncio.timeout(5):
            with pytest.raises(LeaseLostError):
                await holding
        assert asyncio.get_running_loop().time() - started >= 0.2

    asyncio.run(run())


def test_paused_leader_does_not_hold_the_lease_even_before_it_reads_it(api: Api) -> None:
    async def run() -> None:
        lease = lease_of(api)
        assert not lease.is_leader()
        await lease.acquire()
        api.now += module.RENEW_DEADLINE - 0.1
        assert lease.is_leader()
        api.now += 0.1
        assert not lease.is_leader()

    asyncio.run(run())


def test_deleted_lease_is_recreated_only_by_its_holder_until_it_expires(api: Api) -> None:
    async def run() -> None:
        holder, standby = lease_of(api, "me"), lease_of(api, "other")
        await holder.acquire()
        assert not await standby.try_acquire_or_renew(5)
        api.lease, api.now = None, api.now + module.LEASE_DURATION
        assert not await standby.try_acquire_or_renew(5)
        assert await holder.try_acquire_or_renew(5)
        assert not await standby.try_acquire_or_renew(5)
        api.lease, api.now = None, api.now + module.LEASE_DURATION + 0.1
        assert await standby.try_acquire_or_renew(5)

    asyncio.run(run())


def test_lease_is_acquired_when_it_has_expired_or_was_released(api: Api) -> None:
    async def run() -> None:
        holder, standby = lease_of(api, "me"), lease_of(api, "other")
        await holder.acquire()
        for _ in range(3):
            assert await holder.try_acquire_or_renew(5)
            assert not await standby.try_acquire_or_renew(5)
            api.now += module.LEASE_DURATION
            assert not await standby.try_acquire_or_renew(5)
        api.now += 0.1
        assert await standby.try_acquire_or_renew(5)
        await standby.release()
        assert await holder.try_acquire_or_renew(5)

    asyncio.run(run())
    assert api.lease is not None
    assert (holder_of(api.lease), api.lease["spec"]["leaseTransitions"]) == ("me", 2)


@pytest.mark.parametrize(("duration", "seconds"), [(40, 40), (None, module.LEASE_DURATION)])
def test_lease_expires_after_the_duration_of_its_holder(api: Api, duration: int | None, seconds: float) -> None:
    async def run() -> None:
        standby = lease_of(api)
        api.put("other")
        assert api.lease is not None
        api.lease["spec"]["leaseDurationSeconds"] = duration
        assert not await standby.try_acquire_or_renew(5)
        api.now += seconds
        assert not await standby.try_acquire_or_renew(5)
        api.now += 0.1
        assert await standby.try_acquire_or_renew(5)

    asyncio.run(run())


def test_only_the_holder_releases(api: Api) -> None:
    async def run() -> None:
        await lease_of(api, "other").release()
        assert api.lease is None
        await lease_of(api, "me").acquire()
        await lease_of(api, "other").release()

    asyncio.run(run())
    assert api.lease is not None
    assert holder_of(api.lease) == "me"


def test_leadership_is_a_metric(api: Api) -> None:
    def is_leader() -> float | None:
        return metrics.REGISTRY.get_sample_value("leader_election_master_status", {"name": "operator"})

    async def run() -> None:
        lease = lease_of(api)
        assert is_leader() == 0
        await lease.acquire()
        assert is_leader() == 1
        await lease.release()
        assert is_leader() == 0
        await lease.acquire()
        api.put("other")
        with pytest.raises(LeaseLostError):
            await lease.renew()
        assert is_leader() == 0
        assert not lease.is_leader()

    asyncio.run(run())


def test_new_leader_survives_failure_of_its_first_renewal(api: Api) -> None:
    async def run() -> None:
        lease = lease_of(api)
        api.put("dead")
        assert not await lease.try_acquire_or_renew(5)
        api.now += module.LEASE_DURATION + 0.1
        await lease.acquire()
        api.failures = 2
        holding = asyncio.create_task(lease.renew())
        while api.version < 3 and not holding.done():  # noqa: ASYNC110 - waits for the fake API server
            await asyncio.sleep(0)
        assert not holding.done()
        holding.cancel()

    asyncio.run(run())


def test_release_that_an_earlier_renewal_overtakes_is_repeated(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    write, errors = api.request, [ApiError(409, "Conflict", "the object has been modified")]

    async def overtaken(method: str, path: str, obj: Object) -> None:
        if errors:
            raise errors.pop()
        await write(method, path, obj)

    async def run() -> None:
        lease = lease_of(api)
        await lease.acquire()
        monkeypatch.setattr(api, "request", overtaken)
        await lease.release()

    asyncio.run(run())
    assert api.lease is not None
    assert holder_of(api.lease) == ""


def test_slower_candidate_waits_although_the_lease_is_deleted(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def taken(*_: object) -> None:
        raise ApiError(409, "AlreadyExists", "leases operator already exists")

    async def run() -> None:
        candidate = lease_of(api)
        with monkeypatch.context() as patched:
            patched.setattr(api, "create", taken)
            assert not await candidate.try_acquire_or_renew(5)
        api.now += module.LEASE_DURATION
        assert not await candidate.try_acquire_or_renew(5)
        api.now += 0.1
        assert await candidate.try_acquire_or_renew(5)

    asyncio.run(run())


def test_release_that_cannot_be_written_is_an_error_and_keeps_the_lease(api: Api) -> None:
    async def run() -> None:
        lease = lease_of(api)
        await lease.acquire()
        api.unreachable = True
        with pytest.raises(ApiError, match="cannot be reached"):
            await lease.release()

    asyncio.run(run())
    assert api.lease is not None
    assert holder_of(api.lease) == "me"
