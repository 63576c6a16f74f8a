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
"""Seconds between two windows."""
PAUSES: Final = 19
"""A pause is so many times as long as the window before it: memcached is watched for 5 % of the time. Watching at most
doubles its CPU time per get, at any rate of requests (docs/insight.md), so on average it costs at most 5 %."""
FEW: Final = 20.0
"""Lines per second. With fewer, memcached's logger mostly sleeps, and pauses are shorter in proportion."""


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
    return max(MIN_PAUSE, PAUSES * min(seconds, window.lines / FEW))
