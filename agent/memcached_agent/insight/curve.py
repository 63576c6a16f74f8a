"""The hit ratio at other sizes of the memory, from the histogram of a window and the counters at its ends."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from memcached_agent.insight.counters import Counters
from memcached_agent.insight.histogram import STEPS

FACTORS: Final = (1.25, 1.5, 2.0, 4.0)
"""Sizes of the memory, relative to the present one, for which the hit ratio is predicted."""
NEIGHBOURHOOD: Final = 0.05
"""The share of the memory by which a prediction can be wrong."""
STEEP: Final = 0.05
"""The largest difference of the hit ratio within the neighbourhood of a point, from 0 to 1, unless it is at a cliff.
The steepest workload without a cliff, Zipf 0.6, has 0.02."""
MAX_TOUCHES: Final = 0.01
"""The largest share of the gets whose hits memcached does not count by segment, from 0 to 1."""


def bins(memory: float) -> int:
    """The bins of a histogram that the point of this size needs, with its neighbourhood."""
    return _bins(memory * (1 + NEIGHBOURHOOD))


def _bins(memory: float) -> int:
    return round((memory - 1) * STEPS)


class Point(NamedTuple):
    """The hit ratio, from 0 to 1, with `memory` times the present memory.

    `cliff`: whether the ratio changes so much near this size that the prediction is uncertain.
    """

    memory: float
    hit_ratio: float
    cliff: bool = False


def hit_ratio(begin: Counters, end: Counters) -> float:
    """The hit ratio between two samples; 0 without gets. A get is counted before extstore loses it: see `Gets`."""
    return max(0, end.hits - begin.hits) / max(1, end.gets - begin.gets)


def larger(begin: Counters, end: Counters, shares: Sequence[float], stores: int) -> list[Point]:
    """The points with more memory that the histogram covers.

    `shares`: those of `Histogram.shares`; `stores`: all items stored between the samples.
    """
    worth = stores * _missed(begin, end) / max(1, end.gets - begin.gets)
    present = hit_ratio(begin, end)

    def at(memory: float) -> float:
        return min(1.0, present + worth * shares[_bins(memory) - 1])

    covered = [factor for factor in FACTORS if bins(factor) <= len(shares)]
    return [Point(factor, at(factor), _is_cliff(at, factor)) for factor in covered]


def smaller(begin: Counters, end: Counters) -> Point | None:
    """The point without the memory of the items that are evicted next.

    None if there are no such items, or if it is not known which hits are theirs.
    """
    gets, touches = max(1, end.gets - begin.gets), end.touches - begin.touches
    if not 0.0 < end.cold_share < 1.0 or touches > MAX_TOUCHES * gets:
        return None
    lost = (end.cold_hits - begin.cold_hits + touches) / gets
    return Point(1 - end.cold_share, max(0.0, hit_ratio(begin, end) - lost))


def _missed(begin: Counters, end: Counters) -> float:
    """The share of the new keys which clients stored because a get missed them, and not for another reason."""
    inserted = end.inserted - begin.inserted
    return min(1.0, (end.misses - begin.misses) / inserted) if inserted > 0 else 1.0


def _is_cliff(at: Callable[[float], float], factor: float) -> bool:
    low, middle, high = (at(factor * (1 + sign * NEIGHBOURHOOD)) for sign in (-1, 0, 1))
    return max(middle - low, high - middle) > STEEP
