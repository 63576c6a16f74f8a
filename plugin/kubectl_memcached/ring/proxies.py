"""The placement of memcached's proxy: the slot of a key, and the effect of another number of slots."""

import base64
from typing import Final

from kubectl_memcached.ring.hashes import MAX_XXH3, jump, xxh3

LONGEST: Final = MAX_XXH3
"""Bytes of the longest key whose slot is computed."""


def slot_of(key: bytes, slots: int) -> int:
    """The slot to which a proxy sends a key: jump consistent hashing of XXH3, over the order of the slots.

    `key`: at most LONGEST bytes.
    """
    return jump(xxh3(key), slots)


def in_base64(key: bytes) -> bytes:
    """The text of a key in meta commands with the flag `b`. A proxy hashes this text, and servers store the key."""
    return base64.b64encode(key)


def base64_hash(key: bytes) -> int:
    """The proxy's hash of a key in base64. Texts of more than LONGEST bytes have another hash, which is not known."""
    return xxh3(in_base64(key)[:LONGEST])


def moved(before: int, after: int) -> float:
    """The share of the keys that belong to another slot after a change of the number of slots, from 0 to 1."""
    return abs(after - before) / max(after, before)


def other_sizes(slots: int) -> list[int]:
    """Numbers of slots to compare: one fewer, one more, and twice as many."""
    return sorted({size for size in (slots - 1, slots + 1, 2 * slots) if size > 0})
