"""A histogram of durations."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from memcached_agent.metrics.exposition import Family, Labels, Metric


class Histogram:
    """Counts durations. `buckets`: their upper limits in seconds, in ascending order."""

    def __init__(self, metric: Metric, buckets: Sequence[float]) -> None:
        self._metric = metric
        self._buckets = buckets
        self._bounds: tuple[Labels, ...] = tuple((("le", str(bound)),) for bound in (*buckets, "+Inf"))
        self._suffixes = (*["_bucket"] * len(self._bounds), "_sum", "_count")
        self._counts = [0] * len(self._bounds)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        """Add a duration."""
        self._counts[bisect_left(self._buckets, seconds)] += 1
        self._sum += seconds

    def family(self) -> Family:
        """The metric with all its samples."""
        totals = list(accumulate(self._counts))
        samples = [*zip(self._bounds, totals, strict=True), ((), round(self._sum, 6)), ((), totals[-1])]
        return Family(self._metric, samples, self._suffixes)
