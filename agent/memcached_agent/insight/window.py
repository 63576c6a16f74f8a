"""One window: the lines of a watcher between two samples of memcached's counters, and what they predict."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, get_args

from memcached_agent.insight import curve
from memcached_agent.insight.counters import Chunks, Counters
from memcached_agent.insight.curve import Point
from memcached_agent.insight.ghosts import MAX_GHOSTS, Ghosts
from memcached_agent.insight.histogram import Histogram
from memcached_agent.insight.lines import ALL, Event, parse

Quality = Literal["good", "busy", "changed", "idle", "lost", "short", "unavailable"]
"""What a window is worth. good: it has predictions. busy: more lines per second than the agent reads. changed:
memcached was restarted, its counters were reset, or its memory changed. idle: nothing was evicted, so more memory
brings nothing. lost: memcached dropped lines. short: too few lines. unavailable: memcached does not let the agent
watch."""
QUALITIES: Final[tuple[Quality, ...]] = get_args(Quality)
MAX_LOST: Final = 0.01
"""The share of the lines that may be lost."""
MAX_RATE: Final = 50_000
"""Lines per second in a window: 5 % of a processor for the agent, and half of that for memcached."""
MIN_STORES: Final = 500
"""Sampled items that were stored after the bins of a point were ready. With fewer, a share of a half has a standard
deviation of more than 2.2 points."""


class Result(NamedTuple):
    """What a window shows. Only a good one has points. `hit_ratio`: the measured one; None without gets.

    `smaller`: the point with less memory. `seconds`: how long the window was. `memory`: bytes, of the items' limit.
    """

    quality: Quality
    seconds: float
    memory: int = 0
    hit_ratio: float | None = None
    larger: tuple[Point, ...] = ()
    smaller: Point | None = None


class Window:
    """Collects lines. `begin`: the counters at its start; `threshold`: which keys are sampled, as `parse` takes it.

    `lines`, `evictions`: how many there were.

    The threshold is halved whenever the ghost list is full: the list of a smaller sample reaches as far back.
    """

    def __init__(self, begin: Counters, chunks: Chunks, threshold: int = ALL, capacity: int = MAX_GHOSTS) -> None:
        self.threshold = threshold
        self.lines = self.evictions = 0
        self.begin: Final = begin
        self._chunks = chunks
        self._ghosts = Ghosts(capacity)
        self._histogram = Histogram(begin.memory * chunks.usable, curve.bins(curve.FACTORS[-1]))
        self._stores = self._lost = 0

    def feed(self, lines: Sequence[bytes]) -> None:
        """Add complete lines. Raises ValueError, as `parse`."""
        batch = parse(lines, self.threshold)
        self.lines += len(lines)
        self.evictions += batch.evictions
        self._stores += batch.stores
        self._lost += batch.lost
        for event in batch.events:
            if event.key % ALL < self.threshold:  # which the events before may have lowered
                self._add(event)

    @property
    def complete(self) -> bool:
        """Whether every point has enough stored items."""
        return self._is_covered(curve.FACTORS[-1])

    def result(self, end: Counters, seconds: float) -> Result:
        """What the window shows. `end`: the counters now; `seconds`: since its start."""
        quality = self._quality(end, seconds)
        ratio = curve.hit_ratio(self.begin, end) if end.gets > self.begin.gets else None
        if quality != "good":
            return Result(quality, seconds, end.memory, ratio)
        points = curve.larger(self.begin, end, self._histogram.shares(), self._stores)
        covered = tuple(point for point in points if self._is_covered(point.memory))
        return Result(quality, seconds, end.memory, ratio, covered, curve.smaller(self.begin, end))

    def _quality(self, end: Counters, seconds: float) -> Quality:
        begin = self.begin
        if end.memory != begin.memory or end.gets < begin.gets or end.evictions < begin.evictions:
            return "changed"
        if self.lines > MAX_RATE * max(1.0, seconds):
            return "busy"
        lost = self._lost + end.lost - begin.lost
        if lost > MAX_LOST * (self.lines + lost):
            return "lost"
        if end.evictions == begin.evictions:
            return "idle"
        return "good" if end.gets > begin.gets and self._is_covered(curve.FACTORS[0]) else "short"

    def _is_covered(self, factor: float) -> bool:
        """Whether the bins of this point have counted enough sampled items."""
        return self._histogram.stores(curve.bins(factor)) * self.threshold >= MIN_STORES * ALL

    def _add(self, event: Event) -> None:
        if event.evicted:
            self._evict(event)
        else:
            self._store(event)

    def _evict(self, event: Event) -> None:
        while self._ghosts.full:
            self.threshold //= 2
            self._ghosts.thin(self.threshold, ALL)
        if event.key % ALL < self.threshold:
            size = self._chunks.needed(event.slab, event.size)
            self._ghosts.push(event.key, size, event.expires)
            self._histogram.evict(size * ALL / self.threshold, self._ghosts.size * ALL / self.threshold)

    def _store(self, event: Event) -> None:
        weight = ALL / self.threshold
        found = self._ghosts.remove(event.key)
        if found is None or found[0].expires <= event.at:
            self._histogram.store(weight, None)
        else:
            ghost, distance = found
            self._histogram.store(weight, distance * weight + ghost.size)
