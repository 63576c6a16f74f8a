"""The metrics of the agent itself."""

from collections.abc import Iterator, Mapping
from typing import Final

from memcached_agent.memcached.errors import Reason
from memcached_agent.metrics.exposition import Family, Metric

INFO: Final = Metric("memcached_agent_info", "gauge", "1, with the version of the agent as label.")
UPTIME: Final = Metric("memcached_agent_uptime_seconds", "gauge", "Seconds since the agent started.")
ERRORS: Final = Metric(
    "memcached_agent_connection_errors_total", "counter", "Failures of the agent's connection to memcached, by reason."
)


def families(version: str, uptime: float, errors: Mapping[Reason, int]) -> Iterator[Family]:
    """The metrics of the agent. `uptime` is in seconds, `errors` has every reason."""
    yield Family(INFO, [((("version", version),), 1)])
    yield Family(UPTIME, [((), round(uptime, 3))])
    yield Family(ERRORS, [((("reason", reason),), count) for reason, count in errors.items()])
