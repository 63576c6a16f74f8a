"""Remembers failed requests, so that events do not repeat them faster than the backoff."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Key

COOLDOWN = 0.3
"""Seconds before a failed request is retried. They double with each failure in a row, and are shorter than the backoff
after as many failures. Without it, events would cause many retries per second while pods change."""
MAX_COOLDOWN = 4.8
"""Maximum seconds before it is retried. So events end a failure soon after its cause has ended."""


@dataclass(frozen=True)
class _FailedRequest:
    """A failed request."""

    intent: str
    error: ApiError
    until: float
    """The time until which it is not retried, in seconds of the monotonic clock."""
    failures: int
    """The failures in a row, each within MAX_COOLDOWN after the cooldown before."""


class Cooldown:
    """The recently failed requests, by the key of their object."""

    def __init__(self) -> None:
        self._failed: dict[Key, _FailedRequest] = {}

    @contextmanager
    def guard(self, key: Key, intent: str) -> Generator[None]:
        """Skip the block if the same request failed recently, and raise its ApiError again."""
        before = self._failed.get(key)
        if before is not None and before.intent == intent and time.monotonic() < before.until:
            # Without retry_after: the server's delay is already scheduled, and must not restart.
            raise replace(before.error, retry_after=None)
        try:
            yield
        except ApiError as error:
            now = time.monotonic()
            kept = {other: each for other, each in self._failed.items() if each.until > now - MAX_COOLDOWN}
            failures = 1 + (before.failures if before is not None and before.intent == intent and key in kept else 0)
            seconds = min(MAX_COOLDOWN, COOLDOWN * 2 ** (failures - 1))
            self._failed = kept | {
                key: _FailedRequest(intent, error, now + max(seconds, error.retry_after or 0), failures)
            }
            raise
        self._failed.pop(key, None)
