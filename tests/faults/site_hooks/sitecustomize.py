"""Hooks that campaigns add to the operator's process with PYTHONPATH: a wrong clock, and a count of its tasks.

Python imports this module at startup. Without the environment variables it does nothing.
"""

import asyncio
import datetime
import os
import signal
import time
from pathlib import Path

SKEW = float(os.environ.get("FAULTS_CLOCK_SKEW", "0"))
"""Seconds by which the wall clock is wrong. The monotonic clock is not changed."""
TASKS = os.environ.get("FAULTS_TASKS", "")
"""File to which each SIGUSR2 appends the number of asyncio tasks."""

CGROUP = os.environ.get("FAULTS_CGROUP", "")
"""File of a cgroup to which the process adds itself."""


def skew_clock(seconds: float) -> None:
    """Shift the time of day by this many seconds, in all of Python's functions for it."""
    true_time, true_time_ns = time.time, time.time_ns

    class Skewed(datetime.datetime):
        """A datetime whose `now` is shifted."""

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "Skewed":
            return cls.fromtimestamp(true_time() + seconds, tz)

    time.time = lambda: true_time() + seconds
    time.time_ns = lambda: true_time_ns() + int(seconds * 1e9)
    datetime.datetime = Skewed


def count_tasks(*_: object) -> None:
    """Append the number of tasks."""
    with Path(TASKS).open("a") as file:
        file.write(f"{len(asyncio.all_tasks())}\n")


if CGROUP:
    Path(CGROUP).write_text(str(os.getpid()))
if SKEW:
    skew_clock(SKEW)
if TASKS:
    signal.signal(signal.SIGUSR2, count_tasks)
