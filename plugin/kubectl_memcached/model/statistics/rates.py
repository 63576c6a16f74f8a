"""Rates between two samples of the counters of a pod."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubectl_memcached.model.statistics.replies import (
    EXTSTORE,
    GETS,
    HITS,
    LOST,
    number,
    summed,
    used_disk,
    used_memory,
)
from kubectl_memcached.model.statistics.rows import ratio

TOTAL: Final = "total"


@dataclass(frozen=True)
class Rates:
    """Amounts per second, and present values. None: not known, as after a restart between the samples."""

    pod: str
    gets: float | None = None
    sets: float | None = None
    hit_ratio: float | None = None
    evictions: float | None = None
    read: float | None = None
    written: float | None = None
    connections: float | None = None
    memory_share: float | None = None
    items: float | None = None
    disk_share: float | None = None
    problem: str = ""


def rates(pod: str, before: Mapping[str, str], after: Mapping[str, str], seconds: float) -> Rates:
    """The rates between two replies to `stats`.

    `seconds`: the time between them. memcached's own clock has whole seconds.
    """

    def per_second(*names: str) -> float | None:
        amount = increase(before, after, *names)
        return None if amount is None or seconds <= 0 else amount / seconds

    return Rates(
        pod,
        per_second(*GETS),
        per_second("cmd_set"),
        ratio(_hits(before, after), increase(before, after, *GETS)),
        per_second("evictions"),
        per_second("bytes_read"),
        per_second("bytes_written"),
        number(after, "curr_connections"),
        ratio(used_memory(after), number(after, "limit_maxbytes")),
        number(after, "curr_items"),
        ratio(used_disk(after), number(after, EXTSTORE)),
    )


def increase(before: Mapping[str, str], after: Mapping[str, str], *names: str) -> float | None:
    """The increase of the sum of counters between two replies to `stats`.

    None if it is not known, or after a restart.
    """
    first, last = summed(before, *names), summed(after, *names)
    if first is None or last is None or before.get("pid") != after.get("pid") or last < first:
        return None
    return last - first


def _hits(before: Mapping[str, str], after: Mapping[str, str]) -> float | None:
    """The increase of the gets that got an item. One whose item is lost was counted before, maybe in `before`."""
    found, lost = increase(before, after, *HITS), increase(before, after, *LOST)
    if summed(after, *LOST) is None:
        return found
    return None if found is None or lost is None else max(0.0, found - lost)


def total(all_rates: Sequence[Rates]) -> Rates:
    """The sum over all pods. The hit ratio is that of all gets, memory and disk those of the fullest pod."""
    gets = _sum(pod_rates.gets for pod_rates in all_rates)
    hits = sum((pod_rates.hit_ratio or 0) * (pod_rates.gets or 0) for pod_rates in all_rates)
    return Rates(
        TOTAL,
        gets,
        _sum(pod_rates.sets for pod_rates in all_rates),
        ratio(hits, gets),
        _sum(pod_rates.evictions for pod_rates in all_rates),
        _sum(pod_rates.read for pod_rates in all_rates),
        _sum(pod_rates.written for pod_rates in all_rates),
        _sum(pod_rates.connections for pod_rates in all_rates),
        _largest(pod_rates.memory_share for pod_rates in all_rates),
        _sum(pod_rates.items for pod_rates in all_rates),
        _largest(pod_rates.disk_share for pod_rates in all_rates),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def document(values: Rates) -> dict[str, Any]:
    """The rates as JSON."""
    return {
        "pod": values.pod,
        "getsPerSecond": values.gets,
        "setsPerSecond": values.sets,
        "hitRatio": values.hit_ratio,
        "evictionsPerSecond": values.evictions,
        "readBytesPerSecond": values.read,
        "writtenBytesPerSecond": values.written,
        "connections": values.connections,
        "memoryShare": values.memory_share,
        "items": values.items,
        "diskShare": values.disk_share,
        "problem": values.problem,
    }
