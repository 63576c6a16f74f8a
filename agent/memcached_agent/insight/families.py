"""The metrics of predicted hit ratios."""

from collections.abc import Iterator
from typing import Final

from memcached_agent.insight.curve import Point
from memcached_agent.insight.window import QUALITIES, Result
from memcached_agent.metrics.exposition import Family, Labels, Metric

RATIO: Final = Metric(
    "memcached_agent_predicted_hit_ratio",
    "gauge",
    "Hit ratio that memcached would have with so many times its memory, from 0 to 1. 1: measured in the window.",
)
BYTES: Final = Metric(
    "memcached_agent_predicted_memory_bytes", "gauge", "Memory for which a hit ratio is predicted, in bytes."
)
CLIFF: Final = Metric(
    "memcached_agent_predicted_hit_ratio_cliff",
    "gauge",
    "1 if the predicted hit ratio changes by more than 5 points within 5 % of this memory, so that it is uncertain.",
)
QUALITY: Final = Metric(
    "memcached_agent_insight_quality", "gauge", "1 for the quality of the last window, 0 for others."
)
SECONDS: Final = Metric("memcached_agent_insight_window_seconds", "gauge", "How long the last good window took.")
AGE: Final = Metric("memcached_agent_insight_age_seconds", "gauge", "Seconds since the end of the last good window.")
SMALLER: Final = "smaller"
"""The label of the point with less memory, whose size differs in each window."""


def families(last: Result | None, good: Result | None, age: float) -> Iterator[Family]:
    """The metrics. `last`: the last window; `good`: the last good one, which ended `age` seconds ago."""
    if last is not None:
        yield Family(QUALITY, [((("quality", each),), int(each == last.quality)) for each in QUALITIES])
    if good is None:
        return
    points = _points(good)
    yield Family(RATIO, [(labels, round(point.hit_ratio, 4)) for labels, point in points])
    yield Family(BYTES, [(labels, round(point.memory * good.memory)) for labels, point in points])
    yield Family(CLIFF, [(labels, int(point.cliff)) for labels, point in points if point.memory > 1])
    yield Family(SECONDS, [((), round(good.seconds, 1))])
    yield Family(AGE, [((), round(age, 1))])


def _points(good: Result) -> list[tuple[Labels, Point]]:
    """All points with their labels."""
    present = [Point(1.0, good.hit_ratio or 0.0)]
    larger = [((("memory", f"{point.memory:g}"),), point) for point in (*present, *good.larger)]
    return [*larger, *([((("memory", SMALLER),), good.smaller)] if good.smaller else [])]
