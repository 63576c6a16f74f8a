"""Decides whether a memcached process is warm, and says what is missing."""

from typing import Final, Literal

from memcached_agent.pod.record import WHOLE, ProcessRecord
from memcached_agent.warm.gate import Gate
from memcached_agent.warm.window import MINUTE, Window

MIN_OBSERVED: Final = 10.0
"""Seconds of samples before the hit ratio decides.

A process with its items, after a warm restart, is ready after these. An empty one has its first misses in the window
until they are a minute old, so that a short window shows less than its present hit ratio, not more.
"""

MIN_REQUESTS: Final = 100
"""Gets of a minute whose hit ratio is typical for the slot: its standard error is at most 5 %."""

Reason = Literal["ratio", "quiet", "timeout"]
"""Why a process is warm. ratio: it has the hit ratio. quiet: fewer gets than `minRequests` in a minute, so that there
is nothing to wait for. timeout: it has not become warm in time."""


def decide(gate: Gate, window: Window, elapsed: int, before: int | None) -> Reason | None:
    """The reason why a process is warm; None if it is not.

    `elapsed`: seconds since it began to warm up. `before`: hit ratio of its predecessor in basis points; None if that
    is not known, and then the hit ratio of the gate is absolute.
    """
    enough = window.gets >= max(gate.min_requests, 1)
    if not enough and window.seconds >= MINUTE:
        return "quiet"
    if enough and window.seconds >= MIN_OBSERVED and _reaches(window, gate, before):
        return "ratio"
    return "timeout" if elapsed >= gate.timeout else None


def with_ratio(record: ProcessRecord, window: Window) -> ProcessRecord:
    """The record with the hit ratio of a full minute, if the process is warm and the minute is typical."""
    if not record.warm or window.seconds < MINUTE or window.gets < MIN_REQUESTS:
        return record
    return record._replace(ratio=WHOLE * window.hits // window.gets)


def target(gate: Gate, before: int | None) -> float:
    """The hit ratio that is needed, from 0 to 1."""
    return _parts(gate, before) / (100 * WHOLE)


def sentence(gate: Gate, window: Window, elapsed: int, before: int | None) -> str:
    """A sentence about what is missing until a process is warm."""
    return f"not warm yet: {_state(gate, window, before)}; ready in {_duration(gate.timeout - elapsed)} at the latest"


def _state(gate: Gate, window: Window, before: int | None) -> str:
    span = "minute" if window.seconds >= MINUTE else f"{window.seconds:.0f} s"
    if window.seconds < MIN_OBSERVED:
        return f"memcached has been observed for {window.seconds:.0f} s, {MIN_OBSERVED:.0f} s needed"
    if window.gets < max(gate.min_requests, 1):
        return (
            f"{window.gets} gets in the last {span}, {max(gate.min_requests, 1)} needed for a hit ratio (minRequests)"
        )
    has, needed = 100 * window.hits // window.gets, -(-_parts(gate, before) // WHOLE)  # rounded apart
    return f"hit ratio {has} % of {window.gets} gets in the last {span}, {needed} % needed"


def _reaches(window: Window, gate: Gate, before: int | None) -> bool:
    return window.hits * 100 * WHOLE >= _parts(gate, before) * window.gets  # integers: 80 % of 80 % are exactly 64 %


def _parts(gate: Gate, before: int | None) -> int:
    """The hit ratio that is needed, in millionths."""
    return gate.hit_ratio * (WHOLE if before is None else before)


def _duration(seconds: int) -> str:
    return f"{max(seconds, 0)} s" if seconds < 120 else f"{-(-seconds // 60)} min"
