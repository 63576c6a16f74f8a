"""Times in the status of pods and workloads."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from memcached_operator.kube.resource import Object, nested_map


def time_of(value: Any) -> datetime | None:
    """A time in the format of Kubernetes; None if it is missing or invalid."""
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo is not None else None


def past_time(value: object, now: datetime) -> datetime | None:
    """A time in the format of Kubernetes; None if it is missing, invalid or later than `now`, as of a fast clock."""
    time = time_of(value)
    return time if time is not None and time <= now else None


def last_seen(event: Object) -> datetime | None:
    """The time of the last occurrence of an Event; None if it has no valid time."""
    values = (nested_map(event, "series").get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return max((seen for value in values if (seen := time_of(value)) is not None), default=None)


def earliest(delays: Iterable[float | None]) -> float | None:
    """The shortest of some delays, in seconds; None without one. None and 0 do not count as delays."""
    return min((delay for delay in delays if delay), default=None)
