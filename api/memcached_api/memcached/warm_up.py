"""The part of a Memcached's spec about warm caches: how long a replaced pod has to be filled before the next one."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from memcached_api.effects import Effect, FieldEffect, Needs, Part
from memcached_api.shared.durations import seconds

DEFAULT_HIT_RATIO: Final = 80
DEFAULT_TIMEOUT: Final = "15m"
DEFAULT_MIN_REQUESTS: Final = 100
MAX_REQUESTS: Final = 1_000_000_000
MAX_TIMEOUT_LENGTH: Final = 16


def timeout_seconds(timeout: str | None) -> int:
    """The timeout of a gate, in seconds."""
    return seconds(timeout or DEFAULT_TIMEOUT)


# The timeout of a gate always has a value, so that a gate that is added or removed is a change.
_GATE: Final = FieldEffect(Effect.IN_PLACE, Needs.AGENT, Part.GATE)


class WarmUp(msgspec.Struct, frozen=True, rename="camel"):
    """When a pod that has lost its items is warm again. Until then, it serves clients but is not ready."""

    hit_ratio: Annotated[int, Meta(ge=1, le=100), _GATE.unless(DEFAULT_HIT_RATIO)] | None = None
    """Percentage of the requests in the last minute that must find their item. After a restart of memcached alone, it
    is a percentage of the hit ratio before it, if known. Defaults to 80."""

    timeout: Annotated[str, Meta(min_length=1, max_length=MAX_TIMEOUT_LENGTH), _GATE.by(timeout_seconds)] | None = None
    """Time after which a pod counts as warm in any case, such as `15m` or `1h30m`. Defaults to 15m."""

    min_requests: Annotated[int, Meta(ge=0, le=MAX_REQUESTS), _GATE.unless(DEFAULT_MIN_REQUESTS)] | None = None
    """Minimum number of requests for items per minute. A pod with fewer counts as warm after its first minute. Defaults
    to 100."""


def setting(warm_up: WarmUp) -> str:
    """The settings as the agent reads them, all of them: `hitRatio=80,timeout=900,minRequests=100`."""
    ratio = DEFAULT_HIT_RATIO if warm_up.hit_ratio is None else warm_up.hit_ratio
    requests = DEFAULT_MIN_REQUESTS if warm_up.min_requests is None else warm_up.min_requests
    return f"hitRatio={ratio},timeout={timeout_seconds(warm_up.timeout)},minRequests={requests}"
