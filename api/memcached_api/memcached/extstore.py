"""Items on a disk: `spec.cache.extstore`, and what follows from it for memcached's file and its memory.

The figures were measured on memcached 1.6.38 and 1.6.45; docs/extstore.md has them.
"""

from decimal import Decimal
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from memcached_api.effects import REPLACES, Effect, FieldEffect, Needs, Part
from memcached_api.kubernetes import Quantity
from memcached_api.memcached.memory import MEBIBYTE
from memcached_api.quantity import parse_quantity
from memcached_api.shared.durations import seconds

CLAIM: Final = "Claim"
EMPTY_DIR: Final = "EmptyDir"

MIN_SIZE: Final = 2**30
MAX_SIZE: Final = 4 * 2**40
"""Bytes of a volume. memcached needs a page or more, and accepts fewer than 65,536 pages."""

PAGE: Final = 64  # MiB of a page of the file: memcached's own default
FILE_TENTHS: Final = 9
"""Tenths of the volume for the file: ext4 as drivers make it has 93 % at 1Gi and more above, less blocks for root."""

BUFFERS: Final = (4, 8, 16, 32, 64)
"""MiB of a buffer for writes, `ext_wbuf_size`: those that divide a page, from memcached's default on."""
ITEMS_PER_BUFFER: Final = 4  # of the largest size: so at most a quarter of a buffer, and of the file, is unused
BUFFERS_IN_MEMORY: Final = 7  # six for writes, and one for compaction (storage.c, 1.6.45)
BYTES_PER_THREAD: Final = 8 * 2**10  # a stack, as far as a thread that reads uses it
BYTES_PER_BYTE: Final = 2**18
"""Bytes of the volume for each byte that describes them: at most 205 of each page of 64 MiB."""

MIN_CACHE: Final = 64 * MEBIBYTE
ITEMS_PER_CACHE: Final = 32  # of the largest size: each read of the disk needs memory for its item until it is sent
BYTES_PER_CACHE_BYTE: Final = 500
"""Bytes of the volume for each byte of `cache.memory`, which has a header of 96 bytes or more for each item on the
disk. Items below 48 KiB need more: the webhook warns."""
MAX_ITEM_SIZE: Final = PAGE * MEBIBYTE

DEFAULT_THREADS: Final = 8
MAX_THREADS: Final = 64
MAX_AGE: Final = 86400
"""Seconds."""
MAX_AGE_LENGTH: Final = 16
NEVER: Final = 2**32 - 1
"""Seconds: memcached's default age, with which items move only when memory is nearly full."""
AGE_OPTION: Final = "ext_item_age="
PATH_OPTION: Final = "ext_path="


def _number(amount: str | float) -> object:
    return parse_quantity(amount)


def age_seconds(age: str | None) -> int | None:
    """An `itemAge` in seconds; None if it is absent."""
    return None if age is None else seconds(age)


_AGE: Final = FieldEffect(Effect.IN_PLACE, Needs.AGENT, Part.ITEM_AGE)


class Extstore(msgspec.Struct, frozen=True, rename="camel"):
    """Items on a disk, in addition to those in memory: memcached's extstore. They do not survive a restart."""

    size: Annotated[Quantity, REPLACES.by(_number)]
    """Size of the volume of each pod, from 1Gi to 4Ti. memcached's file has 90 % of it."""

    volume: Annotated[Literal["Claim", "EmptyDir"], REPLACES.unless(CLAIM)] | None = None
    """`Claim`: a volume that a PersistentVolumeClaim requests, and that is deleted with its pod. `EmptyDir`: a
    directory on the disk of the node. Defaults to `Claim`."""

    storage_class_name: Annotated[str, Meta(min_length=1, max_length=253), REPLACES] | None = None
    """Name of the StorageClass of the claims. Defaults to the default class of the cluster."""

    item_age: Annotated[str, Meta(min_length=1, max_length=MAX_AGE_LENGTH), _AGE.by(age_seconds)] | None = None
    """Time after which an item moves to the disk, such as `30s`. `0s`: at once, so that no burst of writes loses items.
    At most 24h. If absent, items move only when memory is nearly full."""

    threads: Annotated[int, Meta(ge=1, le=MAX_THREADS), REPLACES.unless(DEFAULT_THREADS)] | None = None
    """Number of threads that read the disk: memcached's `ext_threads`. Defaults to 8."""


def file_mebibytes(size: str | float) -> int:
    """The size of memcached's file, MiB: whole pages."""
    return int(parse_quantity(size) * FILE_TENTHS / 10 / (PAGE * MEBIBYTE)) * PAGE


def buffer_mebibytes(item_size: int) -> int:
    """The size of a buffer for items of at most `item_size` bytes, MiB."""
    return next((each for each in BUFFERS if each * MEBIBYTE >= ITEMS_PER_BUFFER * item_size), BUFFERS[-1])


def memory_of(size: Decimal, item_size: int, threads: int | None) -> int:
    """The memory that memcached needs for a disk beside the cache, bytes. `size`: of the volume. `threads`: of it."""
    buffers = BUFFERS_IN_MEMORY * buffer_mebibytes(item_size) * MEBIBYTE
    reading = BYTES_PER_THREAD * (DEFAULT_THREADS if threads is None else threads)
    return int(buffers + reading + size / BYTES_PER_BYTE)


def options(extstore: Extstore, path: str, item_size: int) -> str:
    """The value of `-o` for a file at `path`. memcached 1.6.38 accepts no page size after the path, so none is set.

    `ext_max_sleep` (microseconds) and `slab_automove_freeratio` make memcached write earlier in a burst.
    """
    age = age_seconds(extstore.item_age)
    return ",".join(
        [
            f"{PATH_OPTION}{path}:{file_mebibytes(extstore.size)}m",
            f"ext_wbuf_size={buffer_mebibytes(item_size)}",
            f"ext_threads={DEFAULT_THREADS if extstore.threads is None else extstore.threads}",
            "ext_max_sleep=10000",
            "slab_automove_freeratio=0.1",
            *([] if age is None else [f"{AGE_OPTION}{age}"]),
        ]
    )
