"""The metrics of memcached's proxy: the servers that it cannot reach, and a change of the number of its slots."""

from collections.abc import Iterator
from typing import Final

from memcached_agent.memcached.stats import Statistics, Stats, number
from memcached_agent.metrics.exposition import Family, Metric

UNREACHABLE: Final = Metric(
    "memcached_agent_proxy_servers_unreachable",
    "gauge",
    "Servers that the proxy has marked as bad: requests for their keys fail.",
)
"""The counters of failures do not show it: memcached counts failures only until a server is marked as bad."""
SCALING_HITS: Final = Metric(
    "memcached_agent_proxy_scaling_hits_total",
    "counter",
    "Hits of keys that move to another slot, by the slot that had the item.",
)
SCALING_MISSES: Final = Metric(
    "memcached_agent_proxy_scaling_misses_total",
    "counter",
    "Misses of keys that move to another slot: neither slot had the item.",
)
SCALING_REFUSED: Final = Metric(
    "memcached_agent_proxy_scaling_refused_total",
    "counter",
    "Writes of keys that move to another slot: they failed because the other slot did not confirm them.",
)
BAD: Final = "bad_"
"""The start of the name of a statistic: the rest is the name of a server, the value is the number of connections."""
PLACES: Final = ("new", "old")
"""The slot of a key after the change, and the one before."""
SCALE: Final = "user_scale_"
"""The start of the names of counters that only the routes of a change of the number of slots have."""


def families(statistics: Statistics) -> Iterator[Family]:
    """The metrics, only of a proxy; those of a change of the number of slots only while its routes count them."""
    if statistics.backends is not None:
        yield Family(UNREACHABLE, [((), sum(name.startswith(BAD) for name in statistics.backends))])
    counters = statistics.routes or {}
    hits = ((place, _counter(counters, place)) for place in PLACES)
    yield Family(SCALING_HITS, [((("place", place),), count) for place, count in hits if count is not None])
    for metric, name in ((SCALING_MISSES, "miss"), (SCALING_REFUSED, "refused")):
        if (count := _counter(counters, name)) is not None:
            yield Family(metric, [((), count)])


def _counter(counters: Stats, name: str) -> float | None:
    return number(counters.get(f"{SCALE}{name}"))
