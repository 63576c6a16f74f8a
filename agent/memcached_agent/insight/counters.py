"""What a window needs of memcached's statistics: counters at its start and its end, and the sizes of chunks."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from memcached_agent.memcached.stats import MISSING, Statistics, Stats, gets, number

OVERHEAD: Final = 64
"""Bytes of an item besides its value, about: the header, a short key and the line end."""
FREED: Final = ("evictions", "reclaimed", "crawler_reclaimed", "get_expired", "delete_hits", MISSING)
"""Counters of items that left memcached."""


class Counters(NamedTuple):
    """Counters of memcached since its start, and a few of its present values.

    `inserted`: items stored under keys that memcached did not have, up to a constant. `lost`: lines for watchers that
    memcached dropped. `memory`: the limit in bytes. `age`: seconds since the last use of the item that is evicted
    next, in the slab class with the most memory. `cold_share`: of the memory of all items, from 0 to 1. `touches`: hits
    that also set the time to live, which memcached leaves out of `cold_hits`.
    """

    gets: int
    hits: int
    misses: int
    inserted: int
    evictions: int
    cold_hits: int
    lost: int
    memory: int
    age: int
    cold_share: float
    touches: int = 0


class Chunks(NamedTuple):
    """The bytes of chunks by slab class. `usable`: the share of the memory of pages that chunks have, from 0 to 1."""

    sizes: Mapping[int, int]
    usable: float

    def needed(self, slab: int, size: int) -> int:
        """The bytes that an item with a value of this size needs. A large one has several chunks."""
        chunk = self.sizes.get(slab, 0)
        return chunk if size <= chunk else size + OVERHEAD


def counters(statistics: Statistics) -> Counters:
    """The counters in these statistics."""
    general, sizes = statistics.general, _sizes(statistics)
    requested = gets(general)
    used = _bytes(sizes, statistics.slabs, "used_chunks")
    cold = _bytes(sizes, statistics.items, "number_cold")
    return Counters(
        gets=requested.total,
        hits=requested.hits,
        misses=requested.misses,
        inserted=_integer(general, "curr_items") + sum(_integer(general, name) for name in FREED),
        evictions=_integer(general, "evictions"),
        cold_hits=sum(_integer(stats, "hits_to_cold") for stats in statistics.items.values()),
        lost=_integer(general, "log_worker_dropped") + _integer(general, "log_watcher_skipped"),
        memory=memory(general),
        age=_age(statistics),
        cold_share=min(1.0, cold / used) if used else 0.0,
        touches=_integer(general, "touch_hits"),
    )


def memory(general: Stats) -> int:
    """The memory limit in bytes, in a reply to `stats`."""
    return _integer(general, "limit_maxbytes")


def chunks(statistics: Statistics) -> Chunks:
    """The chunks in these statistics."""
    sizes = _sizes(statistics)
    usable = sum(sizes[slab] * _integer(stats, "total_chunks") for slab, stats in statistics.slabs.items())
    pages = _integer(statistics.totals, "total_malloced")
    return Chunks(sizes, min(1.0, usable / pages) if usable and pages else 1.0)


def _age(statistics: Statistics) -> int:
    """Of the slab class with the most memory; 0 without items."""
    pages = {slab: _integer(stats, "total_pages") for slab, stats in statistics.slabs.items()}
    largest = max(statistics.items, key=lambda slab: pages.get(slab, 0), default=0)
    return _integer(statistics.items.get(largest, {}), "age")


def _sizes(statistics: Statistics) -> dict[int, int]:
    """The bytes of a chunk by slab class."""
    return {slab: _integer(stats, "chunk_size") for slab, stats in statistics.slabs.items()}


def _bytes(sizes: Mapping[int, int], classes: Mapping[int, Stats], name: str) -> int:
    """The bytes of this number of chunks in each slab class."""
    return sum(sizes.get(slab, 0) * _integer(stats, name) for slab, stats in classes.items())


def _integer(stats: Stats, name: str) -> int:
    return int(number(stats.get(name)) or 0)
