"""The metric of restarts of memcached."""

from collections.abc import Iterator
from typing import Final

from memcached_agent.metrics.exposition import Family, Metric

RESTARTS: Final = Metric(
    "memcached_agent_memcached_restarts_total", "counter", "Restarts of memcached in this pod, with and without items."
)


def families(kept: int, lost: int) -> Iterator[Family]:
    """The restarts that kept the items, and those that lost them."""
    yield Family(RESTARTS, [((("items", "kept"),), kept), ((("items", "lost"),), lost)])
