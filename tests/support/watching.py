"""Somebody who asks again and again while a test does something, and how long nobody answered."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

Record = Callable[[str, object], None]
"""pytest's `record_property`: a figure for the report."""
PAUSE = 0.1
"""Seconds between two questions."""


@dataclass
class Answers:
    """When each question was put and whether it was answered well; times are in seconds of the monotonic clock."""

    begun: float = field(default_factory=time.monotonic)
    good: list[float] = field(default_factory=list[float])
    bad: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    def longest_silence(self) -> float:
        """The longest time from one good answer (or the beginning) to the next one (or now)."""
        times = [self.begun, *self.good, time.monotonic()]
        return max(later - earlier for earlier, later in pairwise(times))

    def steady(self) -> float:
        """For how long every answer has been good."""
        return time.monotonic() - (self.bad[-1][0] if self.bad else self.begun)


@contextmanager
def asking(ask: Callable[[], str], pause: float = PAUSE) -> Generator[Answers]:
    """Ask in a thread until the block ends. `ask` returns what was wrong with the answer, or nothing."""
    answers, ended = Answers(), threading.Event()

    def work() -> None:
        while not ended.wait(pause):
            begun = time.monotonic()
            if complaint := ask():
                answers.bad.append((begun, complaint))
            else:
                answers.good.append(time.monotonic())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield answers
    finally:
        ended.set()
        thread.join(30)
