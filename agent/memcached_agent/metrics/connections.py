"""How many connections memcached leaves for clients."""

from collections.abc import Iterator
from typing import Final

from memcached_agent.memcached.stats import Statistics, number
from memcached_agent.metrics.exposition import Family, Metric

USABLE: Final = Metric(
    "memcached_agent_usable_connections",
    "gauge",
    "Connections that may be open at once: the limit without those that memcached reserves for itself.",
)
RESERVED: Final = 9
"""Connections that memcached keeps free at most besides `reserved_fds` of `stats`, which are 5 for each thread.

docs/sizing.md has the rule. Measured with one listener: 1.6.38 rejects connection 33 of `-c 60 -t 4`, and 1,913 of
`-c 2000 -t 16`, so it keeps 8. 1.6.18 keeps up to 16 fewer.
"""


def families(statistics: Statistics) -> Iterator[Family]:
    """The metric, without a sample if memcached does not report what it follows from."""
    limit, reserved = number(statistics.settings.get("maxconns")), number(statistics.general.get("reserved_fds"))
    if limit is None or reserved is None:
        yield Family(USABLE, [])
    else:
        yield Family(USABLE, [((), max(0, limit - reserved - RESERVED))])
