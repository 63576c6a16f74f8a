"""How much more memory stored items would have needed to be hits: a histogram of the distances of ghosts."""

from itertools import accumulate
from typing import Final

STEPS: Final = 100
"""Bins in the present memory."""
TURNOVER: Final = 2
"""A ghost list that is shorter than a bin, after evictions of so many times the memory of the bin, has the whole
working set."""


class Histogram:
    """Counts by distance, up to `bins` / STEPS of `memory`, in bytes.

    A bin counts from the time when the list is so long that it can have a ghost at this distance: before, the ghosts
    would be missing that were evicted before the list began. So each bin has its own number of stored items.
    """

    def __init__(self, memory: float, bins: int) -> None:
        self._width = memory / STEPS
        self._hits = [0.0] * bins
        self._before = [0.0] * bins
        self._ready = 0
        self._stores = 0.0
        self._evicted = 0.0

    def evict(self, size: float, listed: float) -> None:
        """Count an eviction of `size` bytes, after which the list has `listed` bytes."""
        self._evicted += size
        length = max(listed, self._evicted / TURNOVER) / self._width
        while self._ready < len(self._hits) and self._ready + 1 <= length:
            self._before[self._ready] = self._stores
            self._ready += 1

    def store(self, weight: float, memory: float | None) -> None:
        """Count `weight` stored items. `memory`: how much more they would have needed; None without a ghost."""
        self._stores += weight
        if memory is not None:
            step = int(memory / self._width)
            if step < self._ready:
                self._hits[step] += weight

    def stores(self, bins: int) -> float:
        """The items stored since the last of the first `bins` counts."""
        return self._stores - self._before[bins - 1] if bins <= self._ready else 0.0

    def shares(self) -> list[float]:
        """For each number of bins that are ready: the share of stored items which would have been hits."""
        pairs = zip(self._hits[: self._ready], self._before, strict=False)
        return list(accumulate(hits / max(self._stores - before, 1.0) for hits, before in pairs))
