"""Leader election with a Lease, as in client-go: one process is active, the others are standbys."""

import asyncio
import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memcached_operator import metrics
from memcached_operator.kube.client import ApiClient, ApiError
from memcached_operator.kube.resource import LEASES, Key, Object

log = logging.getLogger(__name__)

LEASE_DURATION = 15.0
"""Seconds for which a lease is valid after its last renewal (client-go's LeaseDuration)."""
RENEW_DEADLINE = 10.0
"""Seconds without a successful renewal after which the leader stops (client-go's RenewDeadline)."""
RETRY_PERIOD = 2.0
"""Seconds between attempts to acquire or to renew (client-go's RetryPeriod)."""

ATTEMPT_TIMEOUT = 5.0
"""Seconds for one attempt: half of RenewDeadline, as in controller-runtime, so that a second attempt is possible before
the deadline. An attempt whose response arrives later counts as failed."""


class LeaseLostError(Exception):
    """This process is no longer the leader and must exit."""


@dataclass
class _Observed:
    """The last observed version of the lease, and the local time of the observation. Remote clocks are not trusted.

    `duration`: seconds for which it is valid.
    """

    version: str = ""
    at: float = float("-inf")
    duration: float = LEASE_DURATION


_UNKNOWN = "unknown"
"""Instead of the identity of a holder that has not been read: no process has it."""


class LeaderElector:
    """Acquires, renews and releases one lease. `identity` must be unique to this process."""

    def __init__(self, client: ApiClient, namespace: str, name: str, identity: str) -> None:
        self._client = client
        self._key = Key(LEASES, namespace, name)
        self._identity = identity
        self._holder = ""
        self._observed = _Observed()
        self._renewed = float("-inf")
        self._keeps_lease = False
        self._gauge = metrics.LEADER.labels(name)
        self._gauge.set(0)

    def is_leader(self) -> bool:
        """Whether this process may write: it holds the lease and has renewed it before the deadline.

        A process that resumes from a pause, for example of its container, gets False before it observes its successor.
        """
        return time.monotonic() - self._renewed < RENEW_DEADLINE and not self._is_held_by_other()

    def keep_lease(self) -> None:
        """Let the lease expire instead of releasing it: until then, no other process writes."""
        self._keeps_lease = True

    async def acquire(self) -> None:
        """Wait until this process is the leader."""
        log.info("waiting for %s", self._key)
        while not await self.try_acquire_or_renew(ATTEMPT_TIMEOUT):  # noqa: ASYNC110 - the lease changes on the API server
            await asyncio.sleep(RETRY_PERIOD)
        self._gauge.set(1)
        log.info("became the leader as %s", self._identity)

    async def renew(self) -> None:
        """Renew periodically. Raises LeaseLostError if another process holds the lease or the deadline has passed."""
        pause = RETRY_PERIOD
        while True:
            await asyncio.sleep(pause)
            started = time.monotonic()
            left = self._renewed + RENEW_DEADLINE - started
            held = await self.try_acquire_or_renew(min(max(left, 0), ATTEMPT_TIMEOUT))
            if not held and (time.monotonic() - self._renewed >= RENEW_DEADLINE or self._is_held_by_other()):
                self._gauge.set(0)
                raise LeaseLostError(f"{self._key} is lost")
            pause = max(0.0, started + RETRY_PERIOD - time.monotonic())

    async def release(self) -> None:
        """Release the lease, so that a standby can acquire it immediately. Raises ApiError if it cannot be written."""
        if self._keeps_lease:
            log.warning("the API server has not answered the last write; a standby waits until the lease expires")
            return
        try:
            await self._release()
        except ApiError as error:
            if error.code != 409:
                raise
            # The API server was still executing this process's last renewal, which had been cancelled.
            await self._release()
        self._gauge.set(0)

    async def _release(self) -> None:
        live = await self._client.get(self._key)
        if live is not None and holder_of(live) == self._identity:
            spec = {**live["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
            await self._write({**live, "spec": spec})

    async def try_acquire_or_renew(self, seconds: float) -> bool:
        """Acquire or renew the lease within `seconds`. Its duration counts from the start of the attempt."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                held = await self._acquire_or_renew()
        except TimeoutError:
            return False
        if held:
            self._renewed, self._holder = started, self._identity
        return held

    async def _acquire_or_renew(self) -> bool:
        try:
            live = await self._client.get(self._key)
            if live is None:
                # If the Lease was deleted while its holder is active, the holder creates it again.
                if not self._has_expired():
                    return False
                await self._client.create(self._key, self._new_lease())
                return True
            if not self._can_acquire(live):
                return False
            await self._write({**live, "spec": lease_spec(live["spec"], self._identity, datetime.now(UTC))})
        except ApiError as error:
            log.warning("%s: %s", self._key, error)
            if error.code == 409 and self._holder != self._identity:
                # Another process was faster. If the Lease is deleted before it is read, that process still holds it.
                self._holder, self._observed = _UNKNOWN, _Observed(at=time.monotonic())
            return False
        return True

    def _can_acquire(self, live: Object) -> bool:
        self._holder = holder_of(live)
        version = live["metadata"]["resourceVersion"]
        if version != self._observed.version:
            duration = live["spec"].get("leaseDurationSeconds") or LEASE_DURATION
            self._observed = _Observed(version, time.monotonic(), duration)
        return self._has_expired()

    def _has_expired(self) -> bool:
        return not self._is_held_by_other() or time.monotonic() - self._observed.at > self._observed.duration

    def _is_held_by_other(self) -> bool:
        return self._holder not in ("", self._identity)

    async def _write(self, lease: Object) -> None:
        # With the observed resourceVersion, so that only one of two concurrent writers succeeds.
        await self._client.request("PUT", self._key.resource.path(self._key.namespace, self._key.name), lease)

    def _new_lease(self) -> Object:
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self._key.name, "namespace": self._key.namespace},
            "spec": lease_spec({}, self._identity, datetime.now(UTC)),
        }


def holder_of(lease: Object) -> str:
    """Identity of the process that holds a lease; empty if the lease is not held."""
    return lease["spec"].get("holderIdentity") or ""


def lease_spec(spec: Object, identity: str, now: datetime) -> dict[str, Any]:
    """The spec of a lease that `identity` acquires or renews at `now`."""
    at = now.isoformat(timespec="microseconds").replace("+00:00", "Z")
    changed = (spec.get("holderIdentity") or "") != identity
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": int(LEASE_DURATION),
        "acquireTime": at if changed else spec.get("acquireTime", at),
        "renewTime": at,
        "leaseTransitions": (spec.get("leaseTransitions") or 0) + (1 if changed and spec else 0),
    }
