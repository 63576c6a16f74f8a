"""Parse the lines of `watch evictions mutations`. The format is that of memcached's logger.c.

A line has no secrets of its own, but a key can be one: a key is hashed at once, and never kept. memcached encodes keys
in the same way in both kinds of lines, so they need not be decoded.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

ALL: Final = 2**32
"""A threshold with which every key is sampled."""
NEVER: Final = 2**62
"""The expiration of an item without one, in seconds of memcached's clock."""
MAX_LINE: Final = 2**10
"""Bytes of a line. The longest key, encoded, has 750; the rest fewer than 200."""

_EVICTION: Final = b"type=eviction"
_STORE: Final = b"type=item_store"
_STORED: Final = b"status=stored"
_LOST: Final = b"skipped="


class Event(NamedTuple):
    """A sampled item that was evicted, or stored. Events of one connection of memcached are ordered by `gid`.

    `key`: a hash. `at`: seconds of memcached's clock. `expires`, `slab` and `size`: only of an eviction. `size` is that
    of the value, in bytes.
    """

    gid: int
    key: int
    at: int
    evicted: bool
    expires: int = NEVER
    slab: int = 0
    size: int = 0


class Batch(NamedTuple):
    """What some lines say: the numbers of all items evicted and stored, the sampled events in the order of memcached.

    `lost`: lines that memcached did not send because the connection was full.
    """

    evictions: int
    stores: int
    lost: int
    events: list[Event]


def parse(lines: Iterable[bytes], threshold: int) -> Batch:
    """Parse complete lines, without line ends. Keys are sampled whose hash, below ALL, is below the threshold.

    Python's hash of bytes has a random seed in each process: no client can choose keys that are sampled. Raises
    ValueError if memcached sent something else.
    """
    evictions = stores = lost = 0
    events: list[Event] = []
    for line in lines:
        words = line.split(b" ", 9)
        if len(words) < 9:
            lost += _lost(line)
        elif words[2] == _STORE:
            if words[4] != _STORED:
                continue
            stores += 1
            key = hash(words[3])
            if key % ALL < threshold:
                events.append(Event(_number(words[1], b"gid="), key, _seconds(words[0]), evicted=False))
        elif words[2] == _EVICTION:
            evictions += 1
            key = hash(words[3])
            if key % ALL < threshold:
                events.append(_eviction(words, key))
    events.sort()
    return Batch(evictions, stores, lost, events)


def _eviction(words: list[bytes], key: int) -> Event:
    at = _seconds(words[0])
    ttl = int(words[5].removeprefix(b"ttl="))
    expires = NEVER if ttl < 0 else at + ttl
    slab, size = _number(words[7], b"clsid="), _number(words[8], b"size=")
    return Event(_number(words[1], b"gid="), key, at, True, expires, slab, size)


def _lost(line: bytes) -> int:
    """The number in `skipped=7`, which memcached sends instead of lines. Raises ValueError for another line."""
    if not line.startswith(_LOST):
        raise ValueError("invalid line")  # it may contain a key
    return int(line.removeprefix(_LOST))


def _seconds(word: bytes) -> int:
    """The seconds of `ts=1795679961.75`. The fraction is a number of microseconds without leading zeros."""
    return int(word[3 : word.index(b".")])


def _number(word: bytes, prefix: bytes) -> int:
    return int(word.removeprefix(prefix))
