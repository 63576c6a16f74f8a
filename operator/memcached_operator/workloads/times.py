"""Times in the status of pods and workloads."""

from datetime import datetime
from typing import Any


def past_time(value: Any, now: datetime) -> datetime | None:
    """A time in the format of Kubernetes; None if it is missing, invalid or later than `now`, as of a fast clock."""
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None and found <= now else None
