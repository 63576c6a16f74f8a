"""Probes something continuously during a test, and measures outages."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

Record = Callable[[str, object], None]
"""The type of pytest's `record_property`, which adds a figure to the report."""
PAUSE = 0.1
"""Seconds between two probes."""


@dataclass
class ProbeResults:
    """The times of successful and failed probes, in seconds of the monotonic clock, the latter with their errors."""

    started: float = field(default_factory=time.monotonic)
    successes: list[float] = field(default_factory=list[float])
    failures: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    def longest_outage(self) -> float:
        """The longest time between two successes; the start and now count as successes."""
        times = [self.started, *self.successes, time.monotonic()]
        return max(later - earlier for earlier, later in pairwise(times))

    def stable_seconds(self) -> float:
        """Seconds since the start of the last failed probe, or since the start."""
        return time.monotonic() - (self.failures[-1][0] if self.failures else self.started)


@contextmanager
def probing(probe: Callable[[], str]) -> Generator[ProbeResults]:
    """Call `probe` repeatedly in a thread until the block ends; it returns an error, or an empty string."""
    results, ended = ProbeResults(), threading.Event()

    def work() -> None:
        while not ended.wait(PAUSE):
            started = time.monotonic()
            if error := probe():
                results.failures.append((started, error))
            else:
                results.successes.append(time.monotonic())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield results
    finally:
        ended.set()
        thread.join(30)
