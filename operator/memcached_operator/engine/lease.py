"""Leader election by a Lease, as client-go does it: one process works, the others stand by."""

import asyncio
import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memcached_operator.engine import metrics
from memcached_operator.engine.client import ApiError, Client
from memcached_operator.engine.resource import LEASES, Key, Object

log = logging.getLogger(__name__)

DURATION = 15.0
"""Seconds that a lease is valid after its last renewal (client-go's LeaseDuration)."""
RENEW_DEADLINE = 10.0
"""Seconds without a successful renewal after which the leader gives up (client-go's RenewDeadline)."""
RETRY_PERIOD = 2.0
"""Seconds between tries to acquire or to renew (client-go's RetryPeriod)."""

ATTEMPT_TIMEOUT = 5.0
"""Seconds for one try to acquire: a lease whose answer comes later than that is renewed before it is used."""


class LeaseLostError(Exception):
    """This process may no longer write: it must end."""


@dataclass
class _Seen:
    """The lease as last seen, and when by our own clock: other machines' clocks are not trusted."""

    version: str = ""
    at: float = float("-inf")


class Lease:
    """One lease. `identity` must be unique to this process."""

    def __init__(self, client: Client, namespace: str, name: str, identity: str) -> None:
        self._client = client
        self._key = Key(LEASES, namespace, name)
        self._identity = identity
        self._holder = ""
        self._seen = _Seen()
        self._renewed = float("-inf")
        self._gauge = metrics.LEADER.labels(name)
        self._gauge.set(0)

    async def acquire(self) -> None:
        """Wait until this process is the leader."""
        log.info("waiting for the lease %s", self._key)
        while not await self._attempt(ATTEMPT_TIMEOUT):  # noqa: ASYNC110 - what is waited for happens elsewhere
            await asyncio.sleep(RETRY_PERIOD)
        self._gauge.set(1)
        log.info("this process is the leader now (%s)", self._identity)

    async def hold(self) -> None:
        """Renew for ever. Raises LeaseLostError when another process holds it, or the deadline passed."""
        while True:
            await asyncio.sleep(RETRY_PERIOD)
            left = self._renewed + RENEW_DEADLINE - time.monotonic()
            held = await self._attempt(max(left, 0))
            if not held and (time.monotonic() - self._renewed >= RENEW_DEADLINE or self._seen_other()):
                self._gauge.set(0)
                raise LeaseLostError(f"the lease {self._key} is lost")

    async def release(self) -> None:
        """Let a standby take over at once."""
        live = await self._client.get(self._key)
        if live is not None and holder_of(live) == self._identity:
            spec = {**live["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
            await self._write({**live, "spec": spec})
        self._gauge.set(0)

    async def _attempt(self, seconds: float) -> bool:
        """Take or renew it within so many seconds. It counts from the beginning, whenever the answer came."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                held = await self._try()
        except TimeoutError:
            return False
        if held:
            self._renewed = started
        return held

    async def _try(self) -> bool:
        try:
            live = await self._client.get(self._key)
            if live is None:
                await self._client.create(self._key, self._fresh())
                return True
            if not self._may_take(live):
                return False
            await self._write({**live, "spec": taken(live["spec"], self._identity, datetime.now(UTC))})
        except ApiError as error:
            log.warning("%s: %s", self._key, error)
            return False
        return True

    def _may_take(self, live: Object) -> bool:
        self._holder = holder_of(live)
        version = live["metadata"]["resourceVersion"]
        if version != self._seen.version:
            self._seen = _Seen(version, time.monotonic())
        if self._holder in ("", self._identity):
            return True
        return time.monotonic() - self._seen.at > (live["spec"].get("leaseDurationSeconds") or DURATION)

    def _seen_other(self) -> bool:
        return self._holder not in ("", self._identity)

    async def _write(self, lease: Object) -> None:
        # With the resourceVersion that was read: of two processes only one can succeed.
        await self._client.request("PUT", self._key.resource.path(self._key.namespace, self._key.name), lease)

    def _fresh(self) -> dict[str, Any]:
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self._key.name, "namespace": self._key.namespace},
            "spec": taken({}, self._identity, datetime.now(UTC)),
        }


def holder_of(lease: Object) -> str:
    """Identity of the process that holds a lease, empty where nobody does."""
    return lease["spec"].get("holderIdentity") or ""


def taken(spec: Object, identity: str, now: datetime) -> dict[str, Any]:
    """The spec of a lease as `identity` holds it from now on."""
    at = now.isoformat(timespec="microseconds").replace("+00:00", "Z")
    changed = (spec.get("holderIdentity") or "") != identity
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": int(DURATION),
        "acquireTime": at if changed else spec.get("acquireTime", at),
        "renewTime": at,
        "leaseTransitions": (spec.get("leaseTransitions") or 0) + (1 if changed and spec else 0),
    }
