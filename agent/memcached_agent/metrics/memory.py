"""The metrics of memory growth."""

from collections.abc import Iterator
from typing import Final

from memcached_agent.metrics.exposition import Family, Metric

TARGET: Final = Metric(
    "memcached_agent_memory_target_bytes", "gauge", "Bytes that items may use at most, by the annotation of the pod."
)
REACHED: Final = Metric(
    "memcached_agent_memory_target_reached", "gauge", "Whether items may use as much as the target: 1 or 0."
)


def families(target: int | None, limit: int | None) -> Iterator[Family]:
    """The metrics of the target, in bytes. None: no target, or a limit that is not known."""
    yield Family(TARGET, [] if target is None else [((), target)])
    yield Family(REACHED, [] if target is None or limit is None else [((), int(limit >= target))])
