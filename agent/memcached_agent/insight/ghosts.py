"""The ghost list: keys that were evicted and not stored since, the latest first, with the memory that they would need.

The distance of a ghost is the memory of the ghosts in front of it: memcached would still have the item if it had so
much more memory, and evicted the least recently used items. A ghost that has expired still counts: memcached, too,
keeps most expired items until it evicts them. Without them, predictions for items with TTLs were 1 point too high.
"""

from typing import Final, NamedTuple

MAX_GHOSTS: Final = 2**13
"""Ghosts in a list. Together with the tree they need about 2 MiB."""


class Ghost(NamedTuple):
    """`place`: in the order of the evictions. `size`: bytes. `expires`: seconds of memcached's clock."""

    place: int
    size: int
    expires: int


class Ghosts:
    """A list of at most `capacity` ghosts. Keys are hashes. `size`: the bytes of all.

    A Fenwick tree has the sizes by place, so that a distance takes the logarithm of the capacity.
    """

    def __init__(self, capacity: int = MAX_GHOSTS) -> None:
        self.size = 0
        self._capacity = capacity
        self._places: Final = 2 * capacity
        self._ghosts: dict[int, Ghost] = {}
        self._tree = [0] * (self._places + 1)
        self._next = 1

    def __len__(self) -> int:
        return len(self._ghosts)

    @property
    def full(self) -> bool:
        """Whether the list must be thinned before the next ghost."""
        return len(self._ghosts) >= self._capacity

    def push(self, key: int, size: int, expires: int) -> None:
        """Add a ghost at the front. The list must not be full."""
        self.remove(key)
        if self._next > self._places:
            self._renumber()
        self._ghosts[key] = Ghost(self._next, size, expires)
        self._add(self._next, size)
        self._next += 1

    def remove(self, key: int) -> tuple[Ghost, int] | None:
        """Remove a ghost; returns it and its distance in bytes, without its own. None if it is not in the list."""
        ghost = self._ghosts.pop(key, None)
        if ghost is None:
            return None
        behind = self._until(ghost.place)
        distance = self.size - behind
        self._add(ghost.place, -ghost.size)
        return ghost, distance

    def thin(self, threshold: int, modulus: int) -> None:
        """Keep only keys whose remainder is below the threshold."""
        self._ghosts = {key: ghost for key, ghost in self._ghosts.items() if key % modulus < threshold}
        self._renumber()

    def _renumber(self) -> None:
        """Give the ghosts the first places, in their order."""
        kept = sorted(self._ghosts.items(), key=lambda pair: pair[1].place)
        self._ghosts = {key: ghost._replace(place=place) for place, (key, ghost) in enumerate(kept, 1)}
        self._tree = [0] * (self._places + 1)
        self.size, self._next = 0, len(kept) + 1
        for ghost in self._ghosts.values():
            self._add(ghost.place, ghost.size)

    def _add(self, place: int, size: int) -> None:
        tree = self._tree
        self.size += size
        while place <= self._places:
            tree[place] += size
            place += place & -place

    def _until(self, place: int) -> int:
        """The bytes of the ghosts at this place and before."""
        tree, total = self._tree, 0
        while place:
            total += tree[place]
            place &= place - 1
        return total
