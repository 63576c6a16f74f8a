"""When a window ends, and how long the agent pauses after it. Pure functions."""

from typing import Final

from memcached_agent.insight.window import MAX_RATE, Window

MIN_WINDOW: Final = 60.0
AGES: Final = 2
"""A window is at least so many times as long as the age of the items that are evicted next."""
PATIENCE: Final = 8
"""After so many times the shortest time, a window ends with the points that it has."""
MAX_WINDOW: Final = 6 * 3600.0
"""Seconds of a window."""
BUSY: Final = 10.0
"""Seconds after which a window with too many lines ends."""
IDLE: Final = 300.0
"""Seconds after which a window without evictions ends."""
MIN_PAUSE: Final = 10.0
MAX_PAUSE: Final = 3600.0
"""Seconds between two windows."""
AVERAGE: Final = 1000.0
"""Lines per second, on average over windows and pauses: 0.1 % of a processor for the agent, 0.05 % for memcached."""


def is_over(window: Window, seconds: float) -> bool:
    """Whether a window ends after so many seconds."""
    if seconds >= BUSY and window.lines > MAX_RATE * seconds:
        return True
    if seconds >= IDLE and not window.evictions:
        return True
    shortest = min(MAX_WINDOW, max(MIN_WINDOW, AGES * window.begin.age))
    return seconds >= (shortest if window.complete else min(MAX_WINDOW, PATIENCE * shortest))


def pause(window: Window, seconds: float) -> float:
    """Seconds until the next window, after one of so many seconds."""
    return min(MAX_PAUSE, max(MIN_PAUSE, window.lines / AVERAGE - seconds))
