"""The most frequent keys of a stream in bounded memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import Any, Final

from kubectl_memcached.model.watching import readable

CAPACITY: Final = 2000
"""Keys that are counted at the same time, of each pod: a count is too high by at most 1/2000 of all requests."""


@dataclass(frozen=True)
class Hot:
    """A key, still URI-encoded. `requests`: too high by at most `excess`. `size`: bytes of its value; 0: not known."""

    key: bytes
    requests: int
    excess: int
    size: int


class SpaceSaving:
    """Counts of the most frequent keys (Metwally, Agrawal and El Abbadi, 2005). A new key replaces the rarest one."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.total = 0
        """All requests."""
        self._capacity = capacity
        self._counts: dict[bytes, int] = {}
        self._excess: dict[bytes, int] = {}
        self._sizes: dict[bytes, int] = {}
        self._heap: list[tuple[int, bytes]] = []
        """Each counted key with a count that it had: it is corrected when it is the smallest."""

    def add(self, key: bytes, size: int) -> None:
        """Count a request. `size`: bytes of the value, or 0."""
        self.total += 1
        if key in self._counts:
            self._counts[key] += 1
        elif len(self._counts) < self._capacity:
            self._counts[key] = 1
            if len(self._counts) == self._capacity:
                self._heap = [(count, counted) for counted, count in self._counts.items()]
                heapify(self._heap)
        else:
            self._replace_rarest(key)
        if size:
            self._sizes[key] = size

    def _replace_rarest(self, key: bytes) -> None:
        while (count := self._counts[self._heap[0][1]]) != self._heap[0][0]:
            heapreplace(self._heap, (count, self._heap[0][1]))
        rarest = self._heap[0][1]
        del self._counts[rarest]
        self._sizes.pop(rarest, None)
        self._excess.pop(rarest, None)
        self._counts[key], self._excess[key] = count + 1, count
        heapreplace(self._heap, (count + 1, key))

    def top(self, number: int) -> list[Hot]:
        """The most frequent keys, the first one most often requested. Keys that may be rare are left out."""
        ordered = sorted(self._counts, key=lambda key: (-self._counts[key], key))
        return [
            Hot(key, self._counts[key], self._excess.get(key, 0), self._sizes.get(key, 0))
            for key in ordered[:number]
            if self._counts[key] > 2 * self._excess.get(key, 0)
        ]


@dataclass(frozen=True)
class PodTraffic:
    """The requests to a pod. `seconds`: for which it was watched. `lost`: lines that memcached dropped. None: unknown.

    `problem`: the reason if it was not watched, otherwise empty.
    """

    pod: str
    requests: int = 0
    seconds: float = 0.0
    lost: int | None = None
    keys: tuple[Hot, ...] = ()
    problem: str = ""

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.requests / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class HotKey:
    """A key of a cache. Shares are from 0 to 1. `share`: of the cache's requests. `pods`: share of each pod's."""

    key: bytes
    share: float
    rate: float
    size: int
    pods: dict[str, float]


def hottest(traffic: Sequence[PodTraffic], number: int) -> list[HotKey]:
    """The most frequent keys of all pods."""
    total = sum(pod.rate for pod in traffic)
    found: dict[bytes, list[tuple[PodTraffic, Hot]]] = {}
    for pod in traffic:
        for hot in pod.keys:
            found.setdefault(hot.key, []).append((pod, hot))
    keys = [_hot_key(key, entries, total) for key, entries in found.items()]
    return sorted(keys, key=lambda hot: (-hot.share, hot.key))[:number]


def _hot_key(key: bytes, entries: list[tuple[PodTraffic, Hot]], total: float) -> HotKey:
    rate = sum(hot.requests / pod.seconds for pod, hot in entries)
    pods = {pod.pod: hot.requests / pod.requests for pod, hot in entries}
    return HotKey(key, rate / total, rate, max(hot.size for _, hot in entries), pods)


def lost_share(traffic: Sequence[PodTraffic]) -> float:
    """The share of the lines that memcached dropped, from 0 to 1."""
    lost = sum(pod.lost or 0 for pod in traffic)
    logged = sum(pod.requests for pod in traffic)
    return lost / (lost + logged) if lost else 0.0


def document(hot: HotKey) -> dict[str, Any]:
    """A key for `--output json`."""
    return {
        "key": readable(hot.key),
        "share": round(hot.share, 4),
        "requestsPerSecond": round(hot.rate, 1),
        "valueBytes": hot.size or None,
        "pods": {pod: round(share, 4) for pod, share in hot.pods.items()},
    }
