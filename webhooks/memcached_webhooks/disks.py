"""Warnings about items on a disk: valid settings with which memcached keeps fewer items than expected."""

from collections.abc import Iterator
from typing import Final

from memcached_api.memcached import memory
from memcached_api.memcached.extstore import age_seconds, file_mebibytes
from memcached_api.memcached.resolved import Resolved, resolved
from memcached_api.memcached.types import MemcachedSpec
from memcached_api.shared.resources import cpu_limit

SECTION: Final = "spec.cache.extstore"

BYTES_PER_HEADER: Final = 112
"""What an item on the disk needs in memory with a key of at most 23 bytes: its header, and its part of the hash table
(measured on 1.6.45)."""

LARGE_VALUE: Final = 16 * 2**10
"""Mean size of items, bytes, above which a warning says that the disk needs such items."""

LARGE_ITEM: Final = memory.DEFAULT_ITEM_SIZE
SMALL_MEMORY: Final = 256 * memory.MEBIBYTE
"""With items of 1.5 MB, one command for 100 items failed with 64 MiB, and none for 42 items with 256 MiB (1.6.45)."""


def disk_warnings(new: MemcachedSpec, old: MemcachedSpec | None) -> list[str]:
    """The warnings about a valid object that is created (`old` is None) or changed, without those that it had."""
    before = [] if old is None else list(_warnings(old))
    return [warning for warning in _warnings(new) if warning not in before]


def _warnings(spec: MemcachedSpec) -> Iterator[str]:
    disk = spec.cache.extstore
    if disk is None:
        return
    cache = resolved(spec)
    yield from _headers(spec, file_mebibytes(disk.size) * memory.MEBIBYTE, cache)
    if cache.item_size > LARGE_ITEM and cache.memory < SMALL_MEMORY:
        yield (
            f"a get of many large items on the disk can fail with spec.cache.memory below "
            f"{memory.mebibytes_text(SMALL_MEMORY)}, because each of them needs memory until it is sent"
        )
    if cpu_limit(spec.resources) is not None and age_seconds(disk.item_age) != 0:
        yield (
            "a CPU limit can cost items: a memcached that waits for CPU evicts items before it writes them to the "
            f"disk; remove spec.resources.limits.cpu, or set {SECTION}.itemAge to 0s"
        )


def _headers(spec: MemcachedSpec, file: int, cache: Resolved) -> Iterator[str]:
    """A warning if headers of items that fill the disk would need more than half of the memory."""
    smallest = 2 * BYTES_PER_HEADER * file // cache.memory
    if smallest > LARGE_VALUE:
        yield (
            f"spec.cache.memory of {spec.cache.memory} is little for {SECTION}.size: each item on the disk has a "
            f"header in memory, so only items of {smallest // 1024}Ki or more on average can fill the disk"
        )
