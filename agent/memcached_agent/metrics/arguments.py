"""The metrics of the arguments of memcached, which change with a restart that keeps its items."""

from collections.abc import Iterator
from typing import Final

from memcached_agent.metrics.exposition import Family, Metric

IN_EFFECT: Final = Metric(
    "memcached_agent_arguments_in_effect", "gauge", "Whether memcached runs with the arguments of its pod: 1 or 0."
)
SIGNALS: Final = Metric(
    "memcached_agent_memcached_signals_total", "counter", "Signals that made memcached restart with other arguments."
)


def families(signals: int, *, in_effect: bool) -> Iterator[Family]:
    """The metrics of the arguments, with the number of signals that were sent."""
    yield Family(IN_EFFECT, [((), int(in_effect))])
    yield Family(SIGNALS, [((), signals)])
