"""Remembers failed requests, so that events do not repeat them faster than the backoff."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Key

COOLDOWN = 0.3
"""Seconds before a failed request is retried. Shorter than the shortest backoff. Without it, events would cause many
retries per second while pods change."""


@dataclass(frozen=True)
class _FailedRequest:
    """A failed request."""

    intent: str
    error: ApiError
    until: float
    """The time until which it is not retried, in seconds of the monotonic clock."""


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
            self._failed = {other: failed for other, failed in self._failed.items() if failed.until > now}
            self._failed[key] = _FailedRequest(intent, error, now + max(COOLDOWN, error.retry_after or 0))
            raise
        self._failed.pop(key, None)
