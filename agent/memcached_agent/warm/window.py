"""The gets of the last minute, from samples of memcached's counters."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from memcached_agent.memcached.stats import Gets

MINUTE: Final = 60.0
"""Seconds over which a hit ratio is measured."""
MAX_GAP: Final = 15.0
"""Seconds by which the oldest sample may be older than a minute. After a longer gap, the samples start again."""
MAX_SAMPLES: Final = 64
"""Samples in a window. A poll every 5 s needs 14."""


class Sample(NamedTuple):
    """The gets since memcached started, at a time in seconds of a clock that is never set."""

    at: float
    gets: Gets


Samples = tuple[Sample, ...]
"""Samples of one memcached process, the oldest first."""


class Window(NamedTuple):
    """The gets that samples show, and how many of them were hits, during these seconds."""

    seconds: float
    hits: int
    gets: int

    @property
    def ratio(self) -> float | None:
        """The hit ratio, from 0 to 1; None without gets."""
        return self.hits / self.gets if self.gets else None


def add(samples: Samples, new: Sample) -> Samples:
    """The samples with a new one, back to the latest that is at least a minute old.

    Counters that went back, as after `stats reset`, and a gap make the samples start again.
    """
    if samples and min(new.gets.since(samples[-1].gets)) < 0:
        return (new,)
    recent = [*(sample for sample in samples if new.at - sample.at <= MINUTE + MAX_GAP), new]
    while len(recent) > 1 and new.at - recent[1].at >= MINUTE:
        del recent[0]
    return tuple(recent[-MAX_SAMPLES:])


def window(samples: Sequence[Sample]) -> Window:
    """The window of the samples; empty without samples."""
    if not samples:
        return Window(0.0, 0, 0)
    first, last = samples[0], samples[-1]
    gets = last.gets.since(first.gets)
    return Window(last.at - first.at, gets.hits, gets.total)
