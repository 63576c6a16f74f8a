"""What a cache with more or less memory would bring, from the predictions of the agents of its pods."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubectl_memcached.model import units
from kubectl_memcached.model.statistics.metrics import Prediction
from kubectl_memcached.model.statistics.replies import GETS, number, summed
from kubectl_memcached.model.statistics.rows import Reading, ratio

PRESENT: Final = "1"
SMALLER: Final = "smaller"
LARGER: Final = ("1.25", "1.5", "2", "4")
WORTH: Final = 0.02
"""The smallest gain that is worth more memory, from 0 to 1: the error of the predictions (docs/insight.md)."""
MOST: Final = 0.5
"""The share of the largest gain that the advised memory brings at least."""
UNUSED: Final = 0.2
"""The smallest share of the memory for advice about memory that brings little."""
LITTLE: Final = 0.01
"""The largest share of the gets that hit items in memory that brings little, from 0 to 1."""


@dataclass(frozen=True)
class Point:
    """The hit ratio of a cache with `size` bytes of memory for each pod, compared with `present` of the same pods.

    `share`: of the present memory.
    """

    memory: str
    size: float
    share: float
    hit_ratio: float
    present: float
    cliff: bool

    @property
    def gain(self) -> float:
        """The difference of the hit ratio, from -1 to 1."""
        return self.hit_ratio - self.present


def points(readings: Sequence[Reading]) -> list[Point]:
    """The points that at least one agent predicts. Each pod counts by its gets.

    Predictions for a memory that memcached no longer has are left out: the agent drops them within a minute.
    """
    found = [
        (reading.metrics.predictions, summed(reading.stats, *GETS) or 0.0)
        for reading in readings
        if PRESENT in reading.metrics.predictions
        and reading.metrics.predictions[PRESENT].size == number(reading.stats, "limit_maxbytes")
    ]
    return [point for memory in (SMALLER, *LARGER) if (point := _point(memory, found))]


def _point(memory: str, found: Sequence[tuple[Mapping[str, Prediction], float]]) -> Point | None:
    pairs = [(each[memory], each[PRESENT], gets) for each, gets in found if memory in each]
    predicted = _average([(prediction.hit_ratio, gets) for prediction, _, gets in pairs])
    present = _average([(prediction.hit_ratio, gets) for _, prediction, gets in pairs])
    if predicted is None or present is None:
        return None
    size = max(prediction.size for prediction, _, _ in pairs)
    share = ratio(size, max(prediction.size for _, prediction, _ in pairs)) or 1.0
    return Point(memory, size, share, predicted, present, any(prediction.cliff for prediction, _, _ in pairs))


def _average(weighted: Sequence[tuple[float, float]]) -> float | None:
    return ratio(sum(value * weight for value, weight in weighted), sum(weight for _, weight in weighted))


def sentences(readings: Sequence[Reading]) -> Iterator[str]:
    """Advice about the memory. None without predictions."""
    found = {point.memory: point for point in points(readings)}
    larger = [found[memory] for memory in LARGER if memory in found and not found[memory].cliff]
    if larger:
        yield _more(larger)
    if SMALLER in found:
        yield from _less(found[SMALLER])


def _more(larger: Sequence[Point]) -> str:
    """The smallest memory that brings most of the gain."""
    best = max(point.gain for point in larger)
    if best < WORTH:
        text, present = _text(larger[-1]), units.percent(larger[-1].present)
        return f"Even {text} would raise the hit ratio of {present} by less than {100 * WORTH:.0f} points."
    wanted = max(WORTH, MOST * best)
    point = next(each for each in larger if each.gain >= wanted)
    change = f"{units.percent(point.present)} to {units.percent(point.hit_ratio)}"
    return f"{_text(point)} would raise the hit ratio from {change}."


def _text(point: Point) -> str:
    return f"{point.memory} × memory ({units.size(point.size)} per pod)"


def _less(point: Point) -> Iterator[str]:
    share = 1 - point.share
    if share >= UNUSED and -point.gain < LITTLE:
        points_lost = f"{-100 * point.gain:.1f} points"
        yield f"{units.percent(share)} of the memory holds items that bring {points_lost} of the hit ratio."


def document(readings: Sequence[Reading]) -> list[dict[str, Any]]:
    """The points as JSON."""
    return [
        {
            "memory": point.memory,
            "bytesPerPod": round(point.size),
            "hitRatio": round(point.hit_ratio, 4),
            "presentHitRatio": round(point.present, 4),
            "cliff": point.cliff,
        }
        for point in points(readings)
    ]
