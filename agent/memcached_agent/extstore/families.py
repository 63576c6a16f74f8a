"""The metrics of the volume of extstore."""

from collections.abc import Iterator
from typing import Final

from memcached_agent.metrics.exposition import Family, Metric

WRITABLE: Final = Metric(
    "memcached_agent_extstore_writable",
    "gauge",
    "Whether the agent can write to the volume of extstore, and reads what it has written: 1 or 0.",
)
SECONDS: Final = Metric(
    "memcached_agent_extstore_probe_seconds",
    "histogram",
    "Seconds until 4 KiB were written to the volume of extstore, synced, read and removed.",
)
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper limits in seconds. A local disk needs a few ms; after 10 s, the probe counts as hanging."""
FREE: Final = Metric(
    "memcached_agent_extstore_volume_free_bytes", "gauge", "Bytes that are free on the volume of extstore."
)
USED: Final = Metric(
    "memcached_agent_extstore_file_bytes", "gauge", "Bytes of its volume that the file of extstore uses."
)


def families(*, writable: bool | None, free: int | None, used: int | None) -> Iterator[Family]:
    """The gauges; what is None has no sample."""
    for metric, value in ((WRITABLE, writable), (FREE, free), (USED, used)):
        yield Family(metric, [] if value is None else [((), int(value))])
