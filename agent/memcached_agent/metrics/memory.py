"""The metrics of memcached's memory."""

from collections.abc import Iterator, Mapping
from typing import Final

from memcached_agent.memcached.stats import Statistics, is_proxy, items_memory
from memcached_agent.metrics.exposition import Family, Metric

ITEMS: Final = Metric(
    "memcached_agent_items_bytes", "gauge", "Bytes of the items in memory, without those on the disk of extstore."
)
TARGET: Final = Metric(
    "memcached_agent_memory_target_bytes", "gauge", "Bytes that items may use at most, by the annotation of the pod."
)
REACHED: Final = Metric(
    "memcached_agent_memory_target_reached", "gauge", "Whether items may use exactly as much as the target: 1 or 0."
)
CHANGES: Final = Metric(
    "memcached_agent_memory_changes_total", "counter", "How often the agent raised or lowered the memory of memcached."
)


def families(target: int | None, limit: int | None, changes: Mapping[str, int]) -> Iterator[Family]:
    """The metrics of the target, in bytes. None: no target, or a limit that is not known. `changes`: by direction."""
    yield Family(TARGET, [] if target is None else [((), target)])
    yield Family(REACHED, [] if target is None or limit is None else [((), int(limit == target))])
    counts = [((("direction", name),), count) for name, count in changes.items()]
    yield Family(CHANGES, [] if target is None else counts)


def of_items(statistics: Statistics) -> Iterator[Family]:
    """The memory of the items. A proxy has none."""
    yield Family(ITEMS, [] if is_proxy(statistics.general) else [((), items_memory(statistics))])
