"""Leader election by a Lease, as client-go does it: one process works, the others stand by."""

import asyncio
import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memcached_operator import metrics
from memcached_operator.kube.client import ApiError, Client
from memcached_operator.kube.resource import LEASES, Key, Object

log = logging.getLogger(__name__)

DURATION = 15.0
"""Seconds that a lease is valid after its last renewal (client-go's LeaseDuration)."""
RENEW_DEADLINE = 10.0
"""Seconds without a successful renewal after which the leader gives up (client-go's RenewDeadline)."""
RETRY_PERIOD = 2.0
"""Seconds between tries to acquire or to renew (client-go's RetryPeriod)."""

ATTEMPT_TIMEOUT = 5.0
"""Seconds for one try: a lost answer must leave time for another try before the deadline (controller-runtime's half
of RenewDeadline); and a lease whose answer comes later than that is renewed before it is used."""


class LeaseLostError(Exception):
    """This process may no longer write: it must end."""


@dataclass
class _Seen:
    """The lease as last seen, and when by our own clock: other machines' clocks are not trusted.

    `duration`: seconds that it is valid.
    """

    version: str = ""
    at: float = float("-inf")
    duration: float = DURATION


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

    def is_held(self) -> bool:
        """Whether this process may write: it holds the lease, as far as it knows, and has renewed it in time.

        One that stood still, in a frozen container for example, learns from this that it must not go on, before it
        has heard of its successor.
        """
        return time.monotonic() - self._renewed < RENEW_DEADLINE and not self._seen_other()

    async def acquire(self) -> None:
        """Wait until this process is the leader."""
        log.info("waiting for the lease %s", self._key)
        while not await self.attempt(ATTEMPT_TIMEOUT):  # noqa: ASYNC110 - what is waited for happens elsewhere
            await asyncio.sleep(RETRY_PERIOD)
        self._gauge.set(1)
        log.info("this process is the leader now (%s)", self._identity)

    async def hold(self) -> None:
        """Renew for ever. Raises LeaseLostError when another process holds it, or the deadline passed."""
        pause = RETRY_PERIOD
        while True:
            await asyncio.sleep(pause)
            started = time.monotonic()
            left = self._renewed + RENEW_DEADLINE - started
            held = await self.attempt(min(max(left, 0), ATTEMPT_TIMEOUT))
            if not held and (time.monotonic() - self._renewed >= RENEW_DEADLINE or self._seen_other()):
                self._gauge.set(0)
                raise LeaseLostError(f"the lease {self._key} is lost")
            pause = max(0.0, started + RETRY_PERIOD - time.monotonic())

    async def release(self) -> None:
        """Let a standby take over at once."""
        live = await self._client.get(self._key)
        if live is not None and holder_of(live) == self._identity:
            spec = {**live["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
            await self._write({**live, "spec": spec})
        self._gauge.set(0)

    async def attempt(self, seconds: float) -> bool:
        """Take or renew it within so many seconds. It counts from the beginning, whenever the answer came."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                held = await self._try()
        except TimeoutError:
            return False
        if held:
            self._renewed, self._holder = started, self._identity
        return held

    async def _try(self) -> bool:
        try:
            live = await self._client.get(self._key)
            if live is None:
                # Deleted by somebody, while its holder works: that one makes it again.
                if not self._has_run_out():
                    return False
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
            self._seen = _Seen(version, time.monotonic(), live["spec"].get("leaseDurationSeconds") or DURATION)
        return self._has_run_out()

    def _has_run_out(self) -> bool:
        return not self._seen_other() or time.monotonic() - self._seen.at > self._seen.duration

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
