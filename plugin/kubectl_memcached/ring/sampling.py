"""A bounded sample of the keys that are stored in a slot."""

from collections.abc import Iterable
from typing import Final

from kubectl_memcached.ring.hashes import MAX_XXH3

MAX_KEYS: Final = 10_000
"""Distinct keys of a slot in memory, about 1.5 MB."""


class Sample:
    """Distinct keys of a slot. Above MAX_KEYS, it keeps those whose hash ends with more and more zero bits.

    The hash is that of Python with a random seed: a sample by a hash of a client library would not be fair to it.
    Keys of more than 240 bytes are left out.
    """

    def __init__(self) -> None:
        self.keys: set[bytes] = set()
        self.level = 0
        """Zero bits of each hash: 2^-level is the share of the keys that are kept."""

    def add(self, key: bytes) -> None:
        """Add a key, if its hash belongs to the sample. Keeps fewer keys if there are too many."""
        if hash(key) & (1 << self.level) - 1 or len(key) > MAX_XXH3:
            return
        self.keys.add(key)
        while len(self.keys) > MAX_KEYS:
            self.thin(self.level + 1)

    def thin(self, level: int) -> None:
        """Keep only the keys of a level."""
        self.level = max(level, self.level)
        self.keys = {key for key in self.keys if not hash(key) & (1 << self.level) - 1}


def merged(samples: Iterable[tuple[int, Sample]], limit: int) -> list[tuple[bytes, int]]:
    """Pairs of key and slot, at most `limit`, with the same share of each slot's keys, in random order."""
    listed = list(samples)
    level = max((sample.level for _, sample in listed), default=0)
    for _, sample in listed:
        sample.thin(level)
    pairs = [(key, slot) for slot, sample in listed for key in sample.keys]
    return sorted(pairs, key=lambda pair: (hash(pair[0]) >> 32, pair))[:limit]
