"""The memory that a memcached container needs for a given cache. Amounts are in bytes unless the name has another unit.

The figures were measured on memcached 1.6.18, 1.6.38 and 1.6.45; docs/sizing.md has the method and the results.
"""

from decimal import Decimal
from math import ceil
from typing import Final, NamedTuple

from memcached_api.quantity import parse_quantity

MEBIBYTE: Final = 2**20

MIN_CACHE: Final = 2 * MEBIBYTE  # `-m 1` is invalid: an item may be 1 MiB, but at most half of the cache
MAX_CACHE: Final = 2**50  # 1Pi: above it, the derived container memory approaches 2^63, the limit of a quantity
SLAB_CLASSES: Final = 39  # sizes of items; with `-e`, memcached reserves a page of 1 MiB of the cache for each
MIN_WARM_CACHE: Final = 64 * MEBIBYTE  # with `-e`, memcached exits below 39 MiB, and has no room for items at 39 MiB
DEFAULT_CACHE: Final = 64 * MEBIBYTE  # memcached's own default for `-m`

ITEM_SIZE_STEP: Final = 512 * 2**10  # memcached exits unless `-I` is a multiple of it
MIN_ITEM_SIZE: Final = ITEM_SIZE_STEP
MAX_ITEM_SIZE: Final = 2**30  # memcached's own limit for `-I`
DEFAULT_ITEM_SIZE: Final = MEBIBYTE  # memcached's own default for `-I`

DEFAULT_CONNECTIONS: Final = 1024  # memcached's own default for `-c`
MIN_CONNECTIONS: Final = 15  # for one thread: see `minimum_connections`
MAX_CONNECTIONS: Final = 65536
DEFAULT_THREADS: Final = 4  # memcached's own default for `-t`
MAX_THREADS: Final = 64
MIN_HASHPOWER: Final = 16  # memcached's own default; with 64 threads, it exits with less
MAX_HASHPOWER: Final = 30  # for 1.6 billion items; above them, memcached doubles the table itself
BYTES_PER_BUCKET: Final = 8  # of the hash table, which has 2^hashpower buckets
CONNECTIONS_PER_THREAD: Final = 5  # file descriptors that memcached subtracts from `-c`
INTERNAL_CONNECTIONS: Final = 10
EXTSTORE_CONNECTIONS: Final = 2  # one that memcached 1.6.38 and later use with a disk, and one of the agent
INSIGHT_CONNECTIONS: Final = 2  # of the agent with `monitoring.insight`, so that a client can still connect


class Settings(NamedTuple):
    """The settings besides the cache that determine how much memory a container needs; memcached's own defaults."""

    connections: int = DEFAULT_CONNECTIONS
    threads: int = DEFAULT_THREADS
    tls: bool = False
    hashpower: int = MIN_HASHPOWER
    disk: int = 0
    """What items on a disk need beside the cache: see `extstore.memory_of`."""


DEFAULTS: Final = Settings()


def settings_of(
    connections: int | None, threads: int | None, *, tls: bool, hashpower: int = MIN_HASHPOWER, disk: int = 0
) -> Settings:
    """The settings for these fields of a spec; None: the default. `tls`: whether clients use TLS."""
    return Settings(
        DEFAULTS.connections if connections is None else connections,
        DEFAULTS.threads if threads is None else threads,
        tls,
        hashpower,
        disk,
    )


class Need(NamedTuple):
    """A need for memory: a percentage of the cache, and a constant number of bytes."""

    percent: int
    constant: int


NEED: Final = Need(118, 42 * MEBIBYTE)
"""The measured need. Percentage: the smallest items while the hash table doubles, when both tables exist. Constant: a
page of 1 MiB for each of 39 sizes of items, which memcached allocates also when the cache is full, and the process."""

FIRST_NEED: Final = Need(110, 16 * MEBIBYTE)
"""The need that release 0.1.0 expected. The derived limit is based on it: see `default_limit`."""

BYTES_PER_CONNECTION: Final = 8 * 2**10  # with an incomplete command
BYTES_PER_TLS_CONNECTION: Final = 88 * 2**10  # all clients reconnect at once; see docs/sizing.md
TLS_FIXED: Final = 6 * MEBIBYTE  # OpenSSL, its buffers of 64 threads, and CAs of clients that were renewed
BYTES_PER_THREAD: Final = 128 * 2**10  # of each thread beyond the default number
HASHPOWER_IN_NEED: Final = 17  # up to it, the table is part of NEED: 0.5 MiB more than by default

HEADROOM: Final = Decimal("1.25")  # factor of FIRST_NEED and settings_memory in the derived limit
MIN_DEFAULT_LIMIT: Final = 128 * MEBIBYTE


def minimum_connections(threads: int) -> int:
    """The minimum of `-c` with which memcached serves a client; with slightly less, it starts and serves none."""
    return CONNECTIONS_PER_THREAD * threads + INTERNAL_CONNECTIONS


def settings_memory(settings: Settings) -> int:
    """What connections, threads, a hash table that is large from the start and a disk need beside the cache, bytes."""
    threads = max(0, settings.threads - DEFAULT_THREADS)
    connection, fixed = (BYTES_PER_TLS_CONNECTION, TLS_FIXED) if settings.tls else (BYTES_PER_CONNECTION, 0)
    clients = connection * settings.connections + BYTES_PER_THREAD * threads + fixed
    return clients + hash_table(settings.hashpower) + settings.disk


def hash_table(hashpower: int) -> int:
    """The size of the hash table with which memcached starts; 0 if it is part of NEED.

    The table for the items of a full cache is part of NEED too, so that the sum is more than what is needed.
    """
    return BYTES_PER_BUCKET * 2**hashpower if hashpower > HASHPOWER_IN_NEED else 0


def exact_minimum(cache_bytes: Decimal | int, settings: Settings = DEFAULTS) -> Decimal:
    """The minimum container memory limit for a full cache: NEED + settings_memory.

    It is never more than the default limit, so that every limit that is derived is also valid.
    """
    return min(needed(NEED, cache_bytes, settings), _exact_default(cache_bytes, settings))


def default_limit(cache_bytes: int, settings: Settings = DEFAULTS) -> int:
    """The default memory request and limit of a container: max(128Mi, 1.25 × (FIRST_NEED + settings)), rounded up.

    Release 0.1.0 derived the same limit; another one would replace the pods of its objects. docs/sizing.md has the
    headroom above what was measured.
    """
    return ceil(_exact_default(cache_bytes, settings))


def derived_cache(limit: Decimal | int, settings: Settings = DEFAULTS) -> int:
    """The largest cache in whole mebibytes for a limit that leaves the headroom of `default_limit` and meets NEED.

    It is less than MIN_CACHE, and may be negative, if the limit is too low.
    """
    with_headroom = _largest_cache(FIRST_NEED, Decimal(limit) / HEADROOM, settings)
    largest = min(with_headroom, _largest_cache(NEED, limit, settings))
    return int(min(largest, Decimal(MAX_CACHE)) // MEBIBYTE) * MEBIBYTE


def exact_limit_for(cache_bytes: Decimal | int, settings: Settings = DEFAULTS) -> Decimal:
    """The smallest limit that leaves the headroom of `default_limit` for this cache and meets NEED.

    Rounded up, it is the smallest from which `derived_cache` derives this cache of whole mebibytes.
    """
    return max(_with_headroom(cache_bytes, settings), needed(NEED, cache_bytes, settings))


def needed(need: Need, cache_bytes: Decimal | int, settings: Settings) -> Decimal:
    """The memory for this need and the settings, exact: a quantity may have fractions of a byte."""
    return Decimal(cache_bytes) * need.percent / 100 + need.constant + settings_memory(settings)


def _exact_default(cache_bytes: Decimal | int, settings: Settings) -> Decimal:
    return max(Decimal(MIN_DEFAULT_LIMIT), _with_headroom(cache_bytes, settings))


def _with_headroom(cache_bytes: Decimal | int, settings: Settings) -> Decimal:
    return needed(FIRST_NEED, cache_bytes, settings) * HEADROOM


def _largest_cache(need: Need, memory: Decimal | int, settings: Settings) -> Decimal:
    return (Decimal(memory) - need.constant - settings_memory(settings)) * 100 / need.percent


def cache_bytes(quantity: str | float) -> int:
    """A cache memory quantity in whole bytes, rounded down. Raises ValueError if it is not a quantity."""
    return int(parse_quantity(quantity))


def megabytes(amount: int) -> int:
    """The value of memcached's `-m`: whole mebibytes, rounded down."""
    return amount // MEBIBYTE


def mebibytes_text(amount: Decimal | int) -> str:
    """An amount for messages: whole mebibytes, rounded up, as a quantity (`95Mi`)."""
    return f"{ceil(Decimal(amount) / MEBIBYTE)}Mi"
