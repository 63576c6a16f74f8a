"""A cache with an exact LRU list, and the lines that memcached would log for it."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from memcached_agent.insight.counters import Chunks, Counters

SLAB: Final = 5
SIZE: Final = 100
CHUNKS: Final = Chunks({SLAB: SIZE, 6: 1000}, 1.0)
STARTED: Final = 1_795_679_961


def eviction(gid: int, key: object, *, at: int = STARTED, ttl: int = -1) -> bytes:
    """The line of an eviction."""
    words = f"ts={at}.{gid % 7} gid={gid} type=eviction key={key} fetch=no ttl={ttl} la=3 clsid={SLAB} size=10"
    return words.encode()


def store(
    gid: int, key: object, *, at: int = STARTED, status: str = "stored", cmd: str = "set", slab: int = SLAB
) -> bytes:
    """The line of an item that was stored, or not."""
    words = f"ts={at}.{gid % 7} gid={gid} type=item_store key={key} status={status} cmd={cmd} ttl=0"
    return f"{words} clsid={slab} cfd=16 size=10".encode()


class LruCache:
    """A cache of `items` items of SIZE bytes. `lines`: what memcached would log. `counters`: what it would count."""

    def __init__(self, items: int) -> None:
        self.lines: list[bytes] = []
        self.gets = self.hits = self.inserted = self.evictions = 0
        self._limit = items
        self._items: OrderedDict[int, None] = OrderedDict()

    def look_up(self, keys: Iterable[int]) -> None:
        """Get these keys, and store those that are missing."""
        for key in keys:
            self.gets += 1
            if key in self._items:
                self.hits += 1
                self._items.move_to_end(key)
            else:
                self.store(key)

    def store(self, key: int) -> None:
        """Store a key without a get."""
        if key not in self._items:
            self.inserted += 1
        self._items[key] = None
        self._items.move_to_end(key)
        if len(self._items) > self._limit:
            evicted, _ = self._items.popitem(last=False)
            self.evictions += 1
            self.lines.append(eviction(len(self.lines), evicted))
        self.lines.append(store(len(self.lines), key))

    def counters(self, *, lost: int = 0, cold_hits: int = 0, cold_share: float = 0.4) -> Counters:
        """The counters now."""
        misses = self.gets - self.hits
        return Counters(
            self.gets,
            self.hits,
            misses,
            self.inserted,
            self.evictions,
            cold_hits,
            lost,
            self._limit * SIZE,
            60,
            cold_share,
        )

    def taken(self) -> list[bytes]:
        """The lines since the last call."""
        lines, self.lines = self.lines, []
        return lines
