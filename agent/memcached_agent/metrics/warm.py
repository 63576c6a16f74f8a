"""The metrics of the warm gate."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from memcached_agent.metrics.exposition import Family, Metric

WARM: Final = Metric("memcached_agent_warm", "gauge", "Whether memcached is warm, so that /readyz succeeds: 1 or 0.")
HIT_RATIO: Final = Metric(
    "memcached_agent_hit_ratio", "gauge", "Hit ratio of the gets in the last minute, from 0 to 1."
)
TARGET: Final = Metric(
    "memcached_agent_target_hit_ratio", "gauge", "Hit ratio with which memcached is warm, from 0 to 1."
)
SECONDS: Final = Metric(
    "memcached_agent_warm_up_seconds", "gauge", "Seconds that the last complete warm-up in this pod took."
)


class WarmthSample(NamedTuple):
    """The state of the warm gate. None: not known, or without a gate."""

    warm: bool
    hit_ratio: float | None
    target: float | None
    took: int | None


def families(warmth: WarmthSample) -> Iterator[Family]:
    """The metrics of the warm gate; what is None has no sample."""
    yield Family(WARM, [((), int(warmth.warm))])
    for metric, value in ((HIT_RATIO, warmth.hit_ratio), (TARGET, warmth.target), (SECONDS, warmth.took)):
        yield Family(metric, [] if value is None else [((), round(value, 4))])
