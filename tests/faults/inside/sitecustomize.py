"""What a campaign puts into the operator's process, by PYTHONPATH: a wrong clock, and a count of its tasks.

Python imports this before anything else; without the variables it does nothing.
"""

import asyncio
import datetime
import os
import signal
import time
from pathlib import Path

SKEW = float(os.environ.get("FAULTS_CLOCK_SKEW", "0"))
"""Seconds by which the wall clock is wrong. The monotonic clock is what it is."""
TASKS = os.environ.get("FAULTS_TASKS", "")
"""File that gets a line with the number of asyncio's tasks at each SIGUSR2."""


def skew_clock(seconds: float) -> None:
    """Have every way to ask Python for the time of day answer so many seconds more."""
    true_time, true_time_ns = time.time, time.time_ns

    class Skewed(datetime.datetime):
        """A datetime whose present is another."""

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "Skewed":
            return cls.fromtimestamp(true_time() + seconds, tz)

    time.time = lambda: true_time() + seconds
    time.time_ns = lambda: true_time_ns() + int(seconds * 1e9)
    datetime.datetime = Skewed


def count_tasks(*_: object) -> None:
    """Write down how many tasks there are."""
    with Path(TASKS).open("a") as file:
        file.write(f"{len(asyncio.all_tasks())}\n")


if SKEW:
    skew_clock(SKEW)
if TASKS:
    signal.signal(signal.SIGUSR2, count_tasks)
