"""How many servers memcached's proxy cannot reach."""

from collections.abc import Iterator
from typing import Final

from memcached_agent.memcached.stats import Statistics
from memcached_agent.metrics.exposition import Family, Metric

UNREACHABLE: Final = Metric(
    "memcached_agent_proxy_servers_unreachable",
    "gauge",
    "Servers that the proxy has marked as bad: requests for their keys fail.",
)
"""The counters of failures do not show it: memcached counts failures only until a server is marked as bad."""
BAD: Final = "bad_"
"""The start of the name of a statistic: the rest is the name of a server, the value is the number of connections."""


def families(statistics: Statistics) -> Iterator[Family]:
    """The metric, only of a proxy."""
    if statistics.backends is not None:
        yield Family(UNREACHABLE, [((), sum(name.startswith(BAD) for name in statistics.backends))])
