"""The memory that a memcached container needs for a given cache. Amounts are in bytes unless the name has another unit.

The figures were measured on memcached 1.6.18 and 1.6.38 with caches of 64 MiB to 1 GiB, items of 64 B to 10 KiB and up
to 1,024 connections. In addition to `-m`, memcached needs 8.4 % in the worst case (64 B items), a hash table of 16 MiB,
and 0.6 KiB (idle) to 7.6 KiB (with an unread reply) per connection.
"""

from decimal import Decimal
from typing import Final

from memcached_api.quantity import parse

MEBIBYTE: Final = 2**20

MIN_CACHE: Final = 2 * MEBIBYTE  # `-m 1` is invalid: an item may be 1 MiB, but at most half of the cache
MAX_CACHE: Final = 2**50  # 1Pi: above it, the derived container memory approaches 2^63, the limit of a quantity

OVERHEAD_PERCENT: Final = 10  # of the cache memory, for slab and item headers
HASH_TABLE: Final = 16 * MEBIBYTE
BYTES_PER_CONNECTION: Final = 8 * 2**10
MAX_CONNECTIONS: Final = 1024  # memcached's own default for `-c`

HEADROOM_PERCENT: Final = 25  # of the minimum limit, added in the derived default
MIN_DEFAULT_LIMIT: Final = 128 * MEBIBYTE


def minimum_limit(cache_bytes: int, connections: int = MAX_CONNECTIONS) -> int:
    """The minimum container memory limit for a full cache: m × 1.10 + 16Mi + 8Ki × connections, rounded up."""
    return _ceil_divide(_hundred_minimums(cache_bytes, connections), 100)


def default_limit(cache_bytes: int, connections: int = MAX_CONNECTIONS) -> int:
    """The default memory request and limit of a container: max(128Mi, 1.25 × minimum_limit), rounded up."""
    minimum = _hundred_minimums(cache_bytes, connections) * (100 + HEADROOM_PERCENT)
    return max(MIN_DEFAULT_LIMIT, _ceil_divide(minimum, 100 * 100))


def cache_bytes(quantity: str | float) -> int:
    """A cache memory quantity in whole bytes, rounded down. Raises ValueError if it is not a quantity."""
    return int(parse(quantity))


def megabytes(quantity: str | float) -> int:
    """The value of memcached's `-m`: whole mebibytes, rounded down. Raises ValueError if it is not a quantity."""
    return cache_bytes(quantity) // MEBIBYTE


def mebibytes_text(amount: Decimal | int) -> str:
    """An amount for messages: whole mebibytes, rounded up, as a quantity (`95Mi`)."""
    return f"{-(-int(amount) // MEBIBYTE)}Mi"


def _hundred_minimums(cache_bytes: int, connections: int) -> int:
    """100 times the minimum limit, an integer, so that only the final result is rounded."""
    return cache_bytes * (100 + OVERHEAD_PERCENT) + (HASH_TABLE + BYTES_PER_CONNECTION * connections) * 100


def _ceil_divide(amount: int, divisor: int) -> int:
    return -(-amount // divisor)
